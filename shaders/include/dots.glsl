// Dot products of four signed bytes, and results of convolutions of bytes, four neighbouring places at a time. A template
// includes it behind convolution.glsl, and has a constant WHOLE_QUADS: whether planes of results are whole quads.

#ifndef DOTS_GLSL
#define DOTS_GLSL

// Whole quads of results are words.
#ifdef REQUANTIZE
layout(set = 0, binding = 4) writeonly buffer ResultWords { uint result_words[]; };
#else
layout(set = 0, binding = 3) writeonly buffer ResultWords { ivec4 result_words[]; };
#endif

int dot_of(uint a, uint b) {
#ifdef DOT
    return dotPacked4x8EXT(int(a), int(b));
#else
    const int x = int(a), y = int(b);
    return bitfieldExtract(x, 0, 8) * bitfieldExtract(y, 0, 8) + bitfieldExtract(x, 8, 8) * bitfieldExtract(y, 8, 8) +
           bitfieldExtract(x, 16, 8) * bitfieldExtract(y, 16, 8) + (x >> 24) * (y >> 24);
#endif
}

// The columns of four rows of four bytes.
uvec4 turned(uvec4 rows) {
    const uint even = 0x00FF00FFu;
    const uint ab02 = (rows.x & even) | ((rows.y & even) << 8), ab13 = ((rows.x >> 8) & even) | (rows.y & ~even);
    const uint cd02 = (rows.z & even) | ((rows.w & even) << 8), cd13 = ((rows.z >> 8) & even) | (rows.w & ~even);
    return uvec4((ab02 & 0xFFFFu) | (cd02 << 16), (ab13 & 0xFFFFu) | (cd13 << 16), (ab02 >> 16) | (cd02 & 0xFFFF0000u),
                 (ab13 >> 16) | (cd13 & 0xFFFF0000u));
}

// The results of four sums.
ivec4 finished(uint filter_index, ivec4 sum) {
    if (HAS_BIAS) sum += bias[filter_index];
#ifdef REQUANTIZE
    // A product and a sum, not a fused one: results are exact.
    precise vec4 scaled = vec4(sum) * scales[filter_index];
    if (HAS_SCALED_BIAS) scaled += intBitsToFloat(bias[filter_index]);
    sum = clamp(ivec4(clamp(roundEven(scaled), -1024.0, 1024.0)) + result_zero, ivec4(least), ivec4(most));
#endif
    return sum;
}

// Stores the results of a filter at `there` neighbouring places from element `at` on.
void finish4(uint filter_index, uint at, uint there, ivec4 sum) {
    const ivec4 values = finished(filter_index, sum);
    if (WHOLE_QUADS) {
#ifdef REQUANTIZE
        const uvec4 bytes = uvec4(values) & 0xFFu;
        result_words[at >> 2] = bytes.x | (bytes.y << 8) | (bytes.z << 16) | (bytes.w << 24);
#else
        result_words[at >> 2] = values;
#endif
        return;
    }
    for (uint i = 0; i < there; ++i) CONCAT(STORE_, OUT)(result, at + i, values[i]);
}

#endif
