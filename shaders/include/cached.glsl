// Keys and values as caches have them: halves, or blocks of 32 elements whose codes have 8 or 4 bits (halite-ops, `cached`). Eight
// neighbours are read at a time, and made floats where they are used; with CACHED_QUADS four, as floats. Which format it is is a
// constant: 0 for halves, else the bits of a code. Buffers: `k` and `v` of as many halves, `k_words` and `v_words` of words; rows
// begin at units of what the format has.

#ifndef CACHED_GLSL
#define CACHED_GLSL

// Words of the scales of a row of D elements.
const uint SCALES = (D / 32 + 1) / 2;

// Bits of the scale of the block that eight elements are in.
uint scale_bits(uint word, uint eighth) {
    return (word >> (16 * (eighth / 4 & 1))) & 0xFFFFu;
}

#if defined(CACHED_QUADS)

#define CACHED_READ(NAME, FORMAT, quads, words) \
    vec4 NAME(uint row, uint quad) { \
        if (FORMAT == 0) return halves4(quads[row + quad]); \
        const float scale = unpackHalf2x16(scale_bits(words[row + quad / 16], quad / 2)).x; \
        const uint at = row + SCALES; \
        if (FORMAT == 8) return scale * vec4(bytes4(words[at + quad])); \
        const uint codes = words[at + quad / 2] >> (16 * (quad & 1)); \
        return scale * (vec4(uvec4(codes, codes >> 4, codes >> 8, codes >> 12) & 15u) - 8.0); \
    }

#else

#define CACHED_READ(NAME, FORMAT, quads, words) \
    uvec4 NAME(uint row, uint eighth) { \
        if (FORMAT == 0) return quads[row + eighth]; \
        const uint scale = scale_bits(words[row + eighth / 8], eighth), at = row + SCALES; \
        if (FORMAT == 8) return uvec4(words[at + 2 * eighth], words[at + 2 * eighth + 1], scale, 0); \
        return uvec4(words[at + eighth], 0, scale, 0); \
    }

float[8] cached_values(uvec4 read, uint format) {
    float[8] values;
    if (format == 0) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            const vec2 pair = unpackHalf2x16(read[i]);
            values[2 * i] = pair.x;
            values[2 * i + 1] = pair.y;
        }
        return values;
    }
    const float scale = unpackHalf2x16(read.z).x;
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        values[i] = scale * (format == 8 ? float(bitfieldExtract(int(read[i / 4]), int(8 * (i % 4)), 8))
                                         : float((read.x >> (4 * i)) & 15u) - 8.0);
    }
    return values;
}

#endif

CACHED_READ(key_read, K_FORMAT, k, k_words)
CACHED_READ(value_read, V_FORMAT, v, v_words)

#endif
