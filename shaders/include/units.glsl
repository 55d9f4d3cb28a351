// Weights in blocks, a unit of 32 at a time for one invocation: what it reads of memory first, so that many reads are under way at
// once, and codes with their scales after that. FORMAT_<name> says which format they have.
//
// A unit has UNIT_PARTS parts of neighbouring quads, each with a scale and an offset of its own: a weight is scale * code - offset.
// Where words have codes of several chunks, a unit is what lies together in memory, not a chunk. unit_quad(lane, span, turn, i) is
// the place in its row of the i-th quad of the unit that `lane` of `span` has in a turn. fetch_unit reads, unit_codes makes the codes
// of what was read, unit_scales the scales and offsets. UNIT_OFFSETS is 1 where there are offsets, UNIT_SCALES where there are scales.
// A template defines UNITS_WHOLE: whether rows are whole units of all lanes.

#ifndef UNITS_GLSL
#define UNITS_GLSL

#include "blocks.glsl"

// Words that are read for a unit; 0 where codes are read when they are made.
#if defined(FORMAT_Q4_0) || defined(FORMAT_Q4_1)
#define UNIT_WORDS 5
#elif defined(FORMAT_Q5_0) || defined(FORMAT_Q5_1)
#define UNIT_WORDS 6
#elif defined(FORMAT_Q8_0)
#define UNIT_WORDS 9
#elif defined(FORMAT_Q4_K)
#define UNIT_WORDS 8
#elif defined(FORMAT_Q5_K)
#define UNIT_WORDS 12
#elif defined(FORMAT_Q6_K)
#define UNIT_WORDS 13
#elif defined(FORMAT_F16) || defined(FORMAT_BF16)
#define UNIT_WORDS 16
#else
#define UNIT_WORDS 0
#endif

#if defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
layout(set = 0, binding = BLOCKS_SLOT) readonly buffer Blocks4 { uvec4 blocks4[]; };
#endif

#if defined(FORMAT_Q4_1) || defined(FORMAT_Q5_1) || defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
#define UNIT_OFFSETS 1
#else
#define UNIT_OFFSETS 0
#endif

#if defined(FORMAT_F16) || defined(FORMAT_BF16)
#define UNIT_FLOATS 1
#else
#define UNIT_FLOATS 0
#endif

#if UNIT_FLOATS || UNIT_WORDS == 0
#define UNIT_SCALES 0
#else
#define UNIT_SCALES 1
#endif

#if defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
#define UNIT_PARTS 2
#elif defined(FORMAT_Q6_K)
#define UNIT_PARTS 4
#else
#define UNIT_PARTS 1
#endif

#if UNIT_WORDS == 0
#define UNIT_ROOM 1
#else
#define UNIT_ROOM UNIT_WORDS
#endif

uint unit_quad(uint lane, uint span, uint turn, uint i) {
    const uint unit = turn * span + lane, part = unit % 8u;
#if defined(FORMAT_F16) || defined(FORMAT_BF16)
    // Neighbours read neighbouring words of 16 bytes.
    return 2u * ((turn * 4u + i / 2u) * span + lane) + i % 2u;
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    // 16 bytes have 16 codes of one chunk and 16 of the next.
    return (unit - part + part / 2u * 2u + i / 4u) * 8u + part % 2u * 4u + i % 4u;
#elif defined(FORMAT_Q6_K)
    // Twice eight bytes have codes of four chunks.
    return (unit - part + part / 4u * 4u + i / 2u) * 8u + part % 4u * 2u + i % 2u;
#else
    return unit * 8u + i;
#endif
}

// Reads a unit of a row that begins at a byte and has so many chunks. A unit behind the row is one of it.
void fetch_unit(uint row_byte, uint chunks, uint lane, uint span, uint turn, out uint words[UNIT_ROOM]) {
    const uint unit = min(turn * span + lane, chunks - 1u), part = unit % 8u;
#if defined(FORMAT_F16) || defined(FORMAT_BF16)
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = min((turn * 4u + i) * span + lane, chunks * 4u - 1u);
        uvec4 four = blocks4[(row_byte >> 4) + word];
        // Zeros, for the last could be infinite.
        if (!UNITS_WHOLE && (turn * 4u + i) * span + lane >= chunks * 4u) four = uvec4(0);
        [[unroll]] for (uint j = 0; j < 4; ++j) words[4u * i + j] = four[j];
    }
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    const uint block = (row_byte >> 4) + unit / 8u * (BLOCK_BYTES / 16u);
    const uvec4 head = blocks4[block], codes = blocks4[block + (BLOCK_BYTES / 16u - 8u) + part];
    [[unroll]] for (uint j = 0; j < 4; ++j) {
        words[j] = head[j];
        words[4u + j] = codes[j];
    }
#ifdef FORMAT_Q5_K
    const uvec4 fifths = blocks4[block + 1u + part % 2u];
    [[unroll]] for (uint j = 0; j < 4; ++j) words[8u + j] = fifths[j];
#endif
#elif defined(FORMAT_Q6_K)
    const uint block = row_byte + unit / 8u * BLOCK_BYTES, side = part / 4u, place = 8u * (part % 4u);
    const uint low = (block + 64u * side + place) >> 2, high = (block + 128u + 32u * side + place) >> 2;
    const uint scales = (block + 192u + 8u * side) >> 2;
    [[unroll]] for (uint j = 0; j < 3; ++j) {
        words[j] = blocks[low + j];
        words[3u + j] = blocks[low + 8u + j];
        words[6u + j] = blocks[high + j];
        words[9u + j] = blocks[scales + j];
    }
    words[12] = blocks[(block + 208u) >> 2];
#elif UNIT_WORDS > 0
    const uint first = (row_byte + unit * BLOCK_BYTES) >> 2;
    [[unroll]] for (uint i = 0; i < UNIT_WORDS; ++i) words[i] = blocks[first + i];
#else
    words[0] = 0u;
#endif
}

// The bits of `mask` as a number, which `factor` brings to the ones, less `zero`: they become the last bits of a float between 2^23
// and 2^24, so that nothing is rounded.
float code(uint word, uint mask, float factor, float zero) {
    return fma(uintBitsToFloat((word & mask) | 0x4B000000u), factor, -(8388608.0 * factor + zero));
}

// Four bytes less `zero`.
vec4 byte_codes(uint word, float zero) {
    const uint next = word >> 16;
    return vec4(code(word, 0xFFu, 1.0, zero), code(word, 0xFF00u, 1.0 / 256.0, zero), code(next, 0xFFu, 1.0, zero),
                code(next, 0xFF00u, 1.0 / 256.0, zero));
}

// The lower and the upper halves of four bytes, less `zero`.
void nibble_codes(uint word, float zero, out vec4 low, out vec4 high) {
    const uint next = word >> 16;
    low = vec4(code(word, 0xFu, 1.0, zero), code(word, 0xF00u, 1.0 / 256.0, zero), code(next, 0xFu, 1.0, zero),
               code(next, 0xF00u, 1.0 / 256.0, zero));
    high = vec4(code(word, 0xF0u, 1.0 / 16.0, zero), code(word, 0xF000u, 1.0 / 4096.0, zero),
                code(next, 0xF0u, 1.0 / 16.0, zero), code(next, 0xF000u, 1.0 / 4096.0, zero));
}

// Four neighbouring bits, each as the fifth of a byte.
uint fifth_bits(uint bits) {
    return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4;
}

// The i-th word from half a word behind the first one on, or from the second one on.
uint word_behind(uint words[UNIT_ROOM], bool second, uint i) {
#if UNIT_WORDS > 1
    return second ? words[i + 1u] : (words[i] >> 16) | (words[i + 1u] << 16);
#else
    return 0u;
#endif
}

// The i-th word, or what begins half a word behind it.
uint word_from(uint words[UNIT_ROOM], bool half_behind, uint i) {
#if UNIT_WORDS > 1
    return half_behind ? (words[i] >> 16) | (words[i + 1u] << 16) : words[i];
#else
    return 0u;
#endif
}

// Whether the block of a unit begins in the middle of a word.
bool unit_is_odd(uint row_byte, uint unit) {
    return ((row_byte + unit / BLOCK_CHUNKS * BLOCK_BYTES) & 2u) != 0u;
}

// Makes the codes of a unit.
void unit_codes(uint words[UNIT_ROOM], uint row_byte, uint chunks, uint lane, uint span, uint turn, out vec4 codes[8]) {
    const uint unit = min(turn * span + lane, chunks - 1u);
    const bool odd = unit_is_odd(row_byte, unit);
#if defined(FORMAT_F16)
    [[unroll]] for (uint i = 0; i < 8; ++i)
        codes[i] = vec4(unpackHalf2x16(words[2u * i]), unpackHalf2x16(words[2u * i + 1u]));
#elif defined(FORMAT_BF16)
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint one = words[2u * i], two = words[2u * i + 1u];
        codes[i] = uintBitsToFloat(uvec4(one << 16, one & 0xFFFF0000u, two << 16, two & 0xFFFF0000u));
    }
#elif defined(FORMAT_Q4_K)
    [[unroll]] for (uint i = 0; i < 4; ++i) nibble_codes(words[4u + i], 0.0, codes[i], codes[i + 4u]);
#elif defined(FORMAT_Q4_1)
    [[unroll]] for (uint i = 0; i < 4; ++i) nibble_codes(words[1u + i], 0.0, codes[i], codes[i + 4u]);
#elif defined(FORMAT_Q4_0)
    [[unroll]] for (uint i = 0; i < 4; ++i) nibble_codes(word_behind(words, odd, i), 8.0, codes[i], codes[i + 4u]);
#elif defined(FORMAT_Q5_0) || defined(FORMAT_Q5_1)
#ifdef FORMAT_Q5_0
    const uint fifths = word_behind(words, odd, 0u);
    const float zero = 16.0;
#else
    const uint fifths = words[1];
    const float zero = 0.0;
#endif
    [[unroll]] for (uint i = 0; i < 4; ++i) {
#ifdef FORMAT_Q5_0
        const uint word = word_behind(words, odd, 1u + i);
#else
        const uint word = words[2u + i];
#endif
        codes[i] = byte_codes((word & 0x0F0F0F0Fu) | fifth_bits(fifths >> (4u * i)), zero);
        codes[i + 4u] = byte_codes(((word >> 4) & 0x0F0F0F0Fu) | fifth_bits(fifths >> (16u + 4u * i)), zero);
    }
#elif defined(FORMAT_Q8_0)
    [[unroll]] for (uint i = 0; i < 8; ++i) codes[i] = byte_codes(word_behind(words, odd, i) ^ 0x80808080u, 128.0);
#elif defined(FORMAT_Q5_K)
    const uint chunk = unit % 8u / 2u * 2u;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = words[4u + i], fifths = words[8u + i] >> chunk;
        codes[i] = byte_codes((word & 0x0F0F0F0Fu) | ((fifths & 0x01010101u) << 4), 0.0);
        codes[i + 4u] = byte_codes(((word >> 4) & 0x0F0F0F0Fu) | ((fifths & 0x02020202u) << 3), 0.0);
    }
#elif defined(FORMAT_Q6_K)
    [[unroll]] for (uint e = 0; e < 2; ++e) {
        const uint one = word_from(words, odd, e), two = word_from(words, odd, 3u + e), upper = word_from(words, odd, 6u + e);
        const uint four = 0x0F0F0F0Fu, two_bits = 0x30303030u;
        codes[e] = byte_codes((one & four) | ((upper << 4) & two_bits), 32.0);
        codes[2u + e] = byte_codes((two & four) | ((upper << 2) & two_bits), 32.0);
        codes[4u + e] = byte_codes(((one >> 4) & four) | (upper & two_bits), 32.0);
        codes[6u + e] = byte_codes(((two >> 4) & four) | ((upper >> 2) & two_bits), 32.0);
    }
#else
    load_chunk(row_byte, unit, codes);
#endif
}

// The scales of the parts of a unit, and their offsets.
void unit_scales(uint words[UNIT_ROOM], uint row_byte, uint chunks, uint lane, uint span, uint turn, out float scales[UNIT_PARTS],
                 out float offsets[UNIT_PARTS]) {
    const uint unit = min(turn * span + lane, chunks - 1u), part = unit % 8u;
    const bool odd = unit_is_odd(row_byte, unit);
    [[unroll]] for (uint p = 0; p < UNIT_PARTS; ++p) {
        scales[p] = 1.0;
        offsets[p] = 0.0;
    }
#if defined(FORMAT_Q4_0) || defined(FORMAT_Q5_0) || defined(FORMAT_Q8_0)
    scales[0] = unpackHalf2x16(odd ? words[0] >> 16 : words[0]).x;
#elif defined(FORMAT_Q4_1) || defined(FORMAT_Q5_1)
    const vec2 both = unpackHalf2x16(words[0]);
    scales[0] = both.x;
    offsets[0] = -both.y;
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    const vec2 both = unpackHalf2x16(words[0]);
    const uint chunk = part / 2u * 2u;
    const bool upper = chunk >= 4u;
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        const uint shift = 8u * ((chunk + p) % 4u);
        const uint one = words[1] >> shift, two = words[2] >> shift, three = words[3] >> shift;
        const uint own = upper ? (three & 15u) | ((one >> 2) & 48u) : one & 63u;
        const uint less = upper ? ((three >> 4) & 15u) | ((two >> 2) & 48u) : two & 63u;
        scales[p] = both.x * float(own);
        offsets[p] = both.y * float(less);
    }
#elif defined(FORMAT_Q6_K)
    const float scale = unpackHalf2x16(odd ? words[12] >> 16 : words[12]).x;
    // A byte of each of four half words.
    const int shift = 8 * int(part % 4u / 2u);
    [[unroll]] for (uint p = 0; p < 4; ++p) {
        const int own = bitfieldExtract(int(word_from(words, odd, 9u + p / 2u)), 16 * int(p % 2u) + shift, 8);
        scales[p] = scale * float(own);
    }
#endif
}

#endif
