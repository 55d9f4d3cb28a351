// What the codes of some formats of blocks.glsl stand for: places in codebooks, digits of three, scales that are floats of 8 bits.

#ifndef BLOCK_CODES_GLSL
#define BLOCK_CODES_GLSL

#ifdef FORMAT_NVFP4
// Half of a positive float of 8 bits, E4M3. The one that is no number is 0.
float half_e4m3(uint bits) {
    const uint exponent = (bits >> 3) & 15u, mantissa = bits & 7u;
    const float normal = uintBitsToFloat(((exponent + 119u) << 23) | (mantissa << 20));
    // 2^-10 for each of the last bit.
    const float low = float(mantissa) * 0.0009765625;
    return bits == 127u ? 0.0 : (exponent == 0u ? low : normal);
}
#endif

#ifdef FORMAT_TQ1_0
// Digits of three of four bytes, which are fractions of 256.
uvec4 digits4(uint word, uint digit) {
    const uint power = digit < 4u ? (0x1B090301u >> (8u * digit)) & 255u : 81u;
    return ((uvec4(word, word >> 8, word >> 16, word >> 24) & 255u) * power & 255u) * 3u >> 8;
}
#endif

#ifdef CODEBOOK_ENTRIES
// The codes of a place, in the lowest bits.
uint entry_at(uint place) {
    return codebook[place >> 1] >> (16u * (place & 1u));
}

// What the codes of four elements stand for, before scales and signs.
vec4 levels(uint codes) {
#if defined(FORMAT_IQ3_XXS) || defined(FORMAT_IQ3_S)
    const uvec4 four = uvec4(codes, codes >> 4, codes >> 8, codes >> 12) & 7u;
#ifdef FORMAT_IQ3_S
    return vec4(2u * four + 1u);
#else
    // The last one is 62.
    return vec4(8u * four + 4u + ((four + 1u) >> 3) * 2u);
#endif
#else
    const uvec4 four = uvec4(codes, codes >> 2, codes >> 4, codes >> 6) & 3u;
#if defined(FORMAT_IQ1_S) || defined(FORMAT_IQ1_M)
    return vec4(four) - 1.0;
#else
    // 8, 25, 43.
    return vec4(17u * four + (four >> 1) + 8u);
#endif
#endif
}

// Numbers with the signs that are four bits.
vec4 with_signs(vec4 numbers, uint signs) {
    const uvec4 bits = uvec4(signs << 31, signs << 30, signs << 29, signs << 28) & 0x80000000u;
    return uintBitsToFloat(floatBitsToUint(numbers) ^ bits);
}

// Eight signs of seven bits: an even number of them are negative.
uint even_signs(uint bits) {
    const uint seven = bits & 127u;
    return seven | (uint(bitCount(seven) & 1) << 7);
}
#endif

#endif
