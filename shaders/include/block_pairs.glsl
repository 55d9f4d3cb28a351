// Weights in blocks for matrix units: four invocations share eight chunks of a row, two each. What an invocation reads of memory for
// its two first, so that many reads are under way at once, and codes as pairs of halves after that, which hold them exactly.
// FORMAT_<name> says which format they have. Rows have an even number of chunks.
//
// pair_chunk(quarter, p) is the p-th chunk of invocation `quarter`, of the eight: the second lies PAIR_APART behind the first. fetch_pair
// reads, align_pair brings what it read to its places, four_codes makes the codes of a quad of a chunk, pair_scales its scales and
// offsets: a weight is scale * code - offset. A chunk has PAIR_SCALES scales and PAIR_OFFSETS offsets (none, one, or as many as scales),
// of as many quads each. Upper bits of bytes are taken where they lie, so that such codes are 4 or 16 times as large: pair_factor is what
// activations are to be multiplied with for that. A template includes blocks.glsl first; where PAIR_TABLE is defined, it calls
// fill_table, and a barrier, before it makes codes; where PAIR_SMALL is, codes are right if keeps_small says so.

#ifndef BLOCK_PAIRS_GLSL
#define BLOCK_PAIRS_GLSL

#if defined(FORMAT_Q4_0) || defined(FORMAT_IQ4_NL) || defined(FORMAT_MXFP4)
#define PAIR_WORDS 9
#elif defined(FORMAT_Q4_1) || defined(FORMAT_Q2_K) || defined(FORMAT_IQ4_XS)
#define PAIR_WORDS 10
#elif defined(FORMAT_Q5_0)
#define PAIR_WORDS 11
#elif defined(FORMAT_Q5_1) || defined(FORMAT_Q4_K)
#define PAIR_WORDS 12
#elif defined(FORMAT_Q8_0)
#define PAIR_WORDS 17
#elif defined(FORMAT_Q5_K)
#define PAIR_WORDS 20
#elif defined(FORMAT_Q3_K) || defined(FORMAT_Q6_K)
#define PAIR_WORDS 22
#elif defined(FORMAT_F16) || defined(FORMAT_BF16)
#define PAIR_WORDS 32
#else
#define PAIR_CODED  // block_pair_codes.glsl has their code.
#if defined(FORMAT_IQ1_M)
#define PAIR_WORDS 5
#elif defined(FORMAT_IQ1_S) || defined(FORMAT_IQ2_XXS)
#define PAIR_WORDS 6
#elif defined(FORMAT_IQ2_XS)
#define PAIR_WORDS 7
#elif defined(FORMAT_IQ2_S) || defined(FORMAT_IQ3_XXS) || defined(FORMAT_NVFP4)
#define PAIR_WORDS 9
#elif defined(FORMAT_TQ2_0)
#define PAIR_WORDS 10
#elif defined(FORMAT_IQ3_S)
#define PAIR_WORDS 11
#endif
#endif

#if defined(FORMAT_F16) || defined(FORMAT_BF16)
#define PAIR_FLOATS  // Codes are weights.
#else
layout(set = 0, binding = BLOCKS_SLOT) readonly buffer Blocks4 { uvec4 blocks4[]; };
#endif

// Words of 16 bytes that hold a pair, wherever it begins in the first.
#if PAIR_WORDS % 4 == 0
#define PAIR_FOURS (PAIR_WORDS / 4)
#elif PAIR_WORDS % 4 == 2
#define PAIR_FOURS ((PAIR_WORDS + 5) / 4)
#else
#define PAIR_FOURS ((PAIR_WORDS + 6) / 4)
#endif

#if defined(FORMAT_Q4_1) || defined(FORMAT_Q5_1) || defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
#define PAIR_OFFSETS 1
#elif defined(FORMAT_Q2_K)
#define PAIR_OFFSETS 2
#else
#define PAIR_OFFSETS 0
#endif
// Room for offsets.
#define PAIR_TERMS (PAIR_OFFSETS == 0 ? 1 : PAIR_OFFSETS)

#if defined(FORMAT_Q2_K) || defined(FORMAT_Q3_K) || defined(FORMAT_Q6_K) || defined(FORMAT_IQ2_XS) || defined(FORMAT_IQ2_S) || \
    defined(FORMAT_IQ1_M) || defined(FORMAT_NVFP4)
#define PAIR_SCALES 2
#else
#define PAIR_SCALES 1
#endif

#ifdef FORMAT_Q6_K
#define PAIR_APART 2u  // Halves of the same bytes.
#else
#define PAIR_APART 1u
#endif

uint pair_chunk(uint quarter, uint p) {
#ifdef FORMAT_Q6_K
    return quarter / 2u * 4u + quarter % 2u + PAIR_APART * p;
#else
    return quarter * 2u + p;
#endif
}

// For quad `quad` of a chunk.
float pair_factor(uint chunk, uint quad) {
#if defined(FORMAT_Q4_0) || defined(FORMAT_Q4_1)
    return quad < 4u ? 1.0 : 1.0 / 16.0;
#elif defined(FORMAT_Q4_K)
    return chunk % 2u == 0u ? 1.0 : 1.0 / 16.0;
#elif defined(FORMAT_Q2_K) || defined(FORMAT_Q3_K)
    return chunk % 2u == 0u ? 1.0 : 1.0 / 4.0;
#else
    return 1.0;
#endif
}

#if defined(FORMAT_IQ4_NL) || defined(FORMAT_IQ4_XS) || defined(FORMAT_NVFP4)
#define PAIR_TABLE
// What codes stand for, twice as a half, for each lane of a subgroup in a bank of its own: in registers, looked_up takes longer (a token
// of a Llama of 8B 5.9 instead of 4.6 ms).
shared uint code_table[16 * 32];

void fill_table() {
    for (uint i = gl_LocalInvocationIndex; i < 16u * 32u; i += gl_WorkGroupSize.x)
        code_table[i] = packHalf2x16(looked_up(uvec4(i / 32u)).xx);
}

// Of the lower halves of bytes 0 and 2.
f16vec2 two_of_table(uint bytes) {
    const uint first = code_table[(bytes & 15u) * 32u + gl_SubgroupInvocationID];
    const uint second = code_table[((bytes >> 16) & 15u) * 32u + gl_SubgroupInvocationID];
    return unpackFloat2x16((first & 0xFFFFu) | (second & 0xFFFF0000u));
}
#endif

#ifdef FORMAT_MXFP4
#define PAIR_SMALL
// Codes are floats of two bits of exponent and one of mantissa. Halves whose bits they have where those are lowest in exponents are
// 2^-14 times them, also below the smallest with all its bits: times SMALL_UNIT, twice the codes. A template that multiplies with it
// anyway defines PAIR_UNITS.
const float SMALL_UNIT = 32768.0;

f16vec2 small_floats(uint bits) {
#ifdef PAIR_UNITS
    return unpackFloat2x16(bits);
#else
    return unpackFloat2x16(bits) * f16vec2(SMALL_UNIT);
#endif
}

// Whether the device keeps halves below the smallest with all its bits. `zero` is none for the compiler.
bool keeps_small(uint zero) {
    return unpackFloat2x16(0x82000200u | zero) * f16vec2(SMALL_UNIT) == f16vec2(1.0, -1.0);
}
#endif

// Moves words down by up to three places.
#define MOVE_DOWN(words, count, by)                                                                                 \
    [[unroll]] for (uint i = 0; i < (count) + 2; ++i) words[i] = ((by) & 1u) != 0u ? words[i + 1u] : words[i];        \
    [[unroll]] for (uint i = 0; i < (count); ++i) words[i] = ((by) & 2u) != 0u ? words[i + 2u] : words[i];

// The codes of four bytes of `mask`, less `zero`: of bytes 0 and 2, 1 and 3. `ten`, halves of 2^10, takes codes into its lowest bits.
// It is no constant for the compiler: with another one besides the mask, NVIDIA's makes two instructions of it.
void halves_of(uint bytes, uint mask, uint ten, float zero, out f16vec2 even, out f16vec2 odd) {
    const f16vec2 less = f16vec2(1024.0 + zero);
    even = unpackFloat2x16((bytes & mask) | ten) - less;
    odd = unpackFloat2x16(((bytes >> 8) & mask) | ten) - less;
}

#ifdef PAIR_CODED
#include "block_pair_codes.glsl"
#endif

// Reads the pair of a row that begins at a byte and has so many chunks, of the eight from `first` on. A pair behind the row is its last.
// `whole`: rows are whole eights of chunks, which begin at words of 16 bytes unless they are blocks. Those are read, as many as a pair
// touches: memory serves few wide reads faster than many words.
void fetch_pair(uint row_byte, uint first, uint quarter, uint chunks, bool whole, out uint words[PAIR_WORDS]) {
#if defined(PAIR_CODED)
    fetch_coded(row_byte, first, quarter, chunks, words);
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    const uint block = (row_byte + first / 8u * BLOCK_BYTES) >> 4, codes = block + (BLOCK_BYTES / 16u - 8u) + 2u * quarter;
    [[unroll]] for (uint i = 0; i < 3; ++i) {
        const uvec4 four = blocks4[i == 0u ? block : codes + i - 1u];
        [[unroll]] for (uint j = 0; j < 4; ++j) words[4u * i + j] = four[j];
    }
#ifdef FORMAT_Q5_K
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        const uvec4 four = blocks4[block + 1u + i];
        [[unroll]] for (uint j = 0; j < 4; ++j) words[12u + 4u * i + j] = four[j];
    }
#endif
#elif defined(FORMAT_Q2_K) || defined(FORMAT_IQ4_XS)
    // The weights are whole words of 16 bytes, but their blocks are not.
    const uint block = (row_byte + first / 8u * BLOCK_BYTES) >> 2;
#ifdef FORMAT_Q2_K
    const uint low = block + 4u + 8u * (quarter / 2u);
    words[8] = blocks[block + quarter];
    words[9] = blocks[block + 20u];
#else
    const uint low = block + 2u + 8u * quarter;
    words[8] = blocks[block];
    words[9] = blocks[block + 1u];
#endif
    uint all[12];
    [[unroll]] for (uint i = 0; i < 3; ++i) {
        const uvec4 four = blocks4[min((low >> 2) + i, (low + 7u) >> 2)];
        [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
    }
    MOVE_DOWN(all, 8, low)
    [[unroll]] for (uint i = 0; i < 8; ++i) words[i] = all[i];
#elif defined(FORMAT_Q3_K)
    // The same; and blocks may begin in the middle of a word.
    const uint block = row_byte + first / 8u * BLOCK_BYTES, scales = (block + 96u) >> 2;
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint from = (h == 0u ? block + 32u + 32u * (quarter / 2u) : block) >> 2;
        uint all[12];
        [[unroll]] for (uint i = 0; i < 3; ++i) {
            const uvec4 four = blocks4[min((from >> 2) + i, (from + 8u) >> 2)];
            [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
        }
        MOVE_DOWN(all, 9, from)
        [[unroll]] for (uint i = 0; i < 9; ++i) words[9u * h + i] = all[i];
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) words[18u + i] = blocks[scales + i];
#elif defined(FORMAT_Q6_K)
    const uint block = row_byte + first / 8u * BLOCK_BYTES, side = quarter / 2u;
    const uint low = (block + 64u * side + 32u * (quarter % 2u)) >> 2, high = (block + 128u + 32u * side) >> 2;
    const uint scales = (block + 192u + 8u * side) >> 2;
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        uint all[12];
        [[unroll]] for (uint i = 0; i < 3; ++i) {
            const uvec4 four = blocks4[((h == 0u ? low : high) >> 2) + i];
            [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
        }
        MOVE_DOWN(all, 9, low)
        [[unroll]] for (uint i = 0; i < 9; ++i) words[9u * h + i] = all[i];
    }
    [[unroll]] for (uint i = 0; i < 3; ++i) words[18u + i] = blocks[scales + i];
    words[21] = blocks[(block + 208u) >> 2];
#elif defined(FORMAT_MXFP4)
    // A pair begins at any half of a word, and is put where words begin.
    const uint pair = whole ? first / 2u + quarter : min(first / 2u + quarter, chunks / 2u - 1u);
    const uint byte = row_byte + pair * (2u * BLOCK_BYTES), at = byte >> 2;
    uint all[13];
    all[12] = 0u;
    [[unroll]] for (uint i = 0; i < 3; ++i) {
        const uvec4 four = blocks4[min((at >> 2) + i, (at + 8u) >> 2)];
        [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
    }
    MOVE_DOWN(all, 10, at)
    [[unroll]] for (uint i = 0; i < 9; ++i) words[i] = (byte & 2u) != 0u ? (all[i] >> 16) | (all[i + 1u] << 16) : all[i];
#elif defined(FORMAT_F16) || defined(FORMAT_BF16)
    const uint pair = whole ? first / 2u + quarter : min(first / 2u + quarter, chunks / 2u - 1u);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uvec4 four = blocks4[((row_byte + pair * (2u * BLOCK_BYTES)) >> 4) + i];
        [[unroll]] for (uint j = 0; j < 4; ++j) words[4u * i + j] = four[j];
    }
#else
    if (whole) {
        const uint block = (row_byte + first * BLOCK_BYTES) >> 4, at = PAIR_WORDS * quarter / 4u;
        uint all[PAIR_FOURS * 4 + 1];
        all[PAIR_FOURS * 4] = 0u;
        [[unroll]] for (uint i = 0; i < PAIR_FOURS; ++i) {
            const uvec4 four = blocks4[block + min(at + i, PAIR_WORDS - 1u)];
            [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
        }
#if PAIR_WORDS % 4 != 0
        MOVE_DOWN(all, PAIR_WORDS, PAIR_WORDS * quarter)
#endif
        [[unroll]] for (uint i = 0; i < PAIR_WORDS; ++i) words[i] = all[i];
    } else {
        const uint pair = min(first / 2u + quarter, chunks / 2u - 1u), at = (row_byte + pair * (2u * BLOCK_BYTES)) >> 2;
        [[unroll]] for (uint i = 0; i < PAIR_WORDS; ++i) words[i] = blocks[at + i];
    }
#endif
}

// The i-th word, or what begins half a word behind it.
uint pair_word(uint words[PAIR_WORDS], bool half_behind, uint i) {
    return half_behind ? (words[i] >> 16) | (words[i + 1u] << 16) : words[i];
}

// Brings words to where codes and scales are taken from. `behind`: the block begins in the middle of a word.
void align_pair(inout uint words[PAIR_WORDS], bool behind, uint quarter) {
    // Q6_K brings each word to its place where it makes codes of it, which takes less time there (docs/results/kernels.md).
#if defined(PAIR_CODED) && BLOCK_BYTES % 4 != 0
    align_coded(words, behind, quarter);
#elif defined(FORMAT_Q3_K)
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        words[i] = pair_word(words, behind, i);
        words[9u + i] = pair_word(words, behind, 9u + i);
    }
    [[unroll]] for (uint i = 18; i < 21; ++i) words[i] = pair_word(words, behind, i);
    if (behind) words[21] >>= 16;
#endif
}

// Four neighbouring bits, each as the fifth of a byte.
uint fifths_of(uint bits) {
    return (((bits & 15u) * 0x00204081u) & 0x01010101u) << 4;
}

// The codes of quad i of the p-th chunk of a pair: of elements 0 and 2, and of 1 and 3.
void four_codes(uint words[PAIR_WORDS], bool behind, uint quarter, uint p, uint i, uint ten, out f16vec2 even, out f16vec2 odd) {
#if defined(FORMAT_Q4_0) || defined(FORMAT_Q4_1)
#ifdef FORMAT_Q4_0
    const uint word = p == 0u ? pair_word(words, true, i % 4u) : words[5u + i % 4u];
    const float zero = 8.0;
#else
    const uint word = words[5u * p + 1u + i % 4u];
    const float zero = 0.0;
#endif
    halves_of(word, i < 4u ? 0x000F000Fu : 0x00F000F0u, ten, i < 4u ? zero : 16.0 * zero, even, odd);
#elif defined(FORMAT_MXFP4)
    const uint low = words[4u * p + i % 4u], high = words[4u * p + i % 4u + 1u];
    const uint word = (p == 0u ? (low >> 8) | (high << 24) : (low >> 16) | (high << 16)) >> (i / 4u * 4u);
    even = small_floats(((word << 9) & 0x0E000E00u) | ((word << 12) & 0x80008000u));
    odd = small_floats(((word << 1) & 0x0E000E00u) | ((word << 4) & 0x80008000u));
#elif defined(PAIR_CODED)
    coded(words, quarter, p, i, ten, even, odd);
#elif defined(PAIR_TABLE)
#ifdef FORMAT_IQ4_NL
    const uint word = p == 0u ? pair_word(words, true, i % 4u) : words[5u + i % 4u];
#else
    const uint word = words[4u * p + i % 4u];
#endif
    even = two_of_table(word >> (i / 4u * 4u));
    odd = two_of_table(word >> (i / 4u * 4u + 8u));
#elif defined(FORMAT_Q2_K)
    halves_of(words[i] >> (4u * (quarter % 2u)), p == 0u ? 0x00030003u : 0x000C000Cu, ten, 0.0, even, odd);
#elif defined(FORMAT_Q3_K)
    const uint low = (words[i] >> (4u * (quarter % 2u))) & (0x03030303u << (2u * p));
    const uint high = ((words[9u + i] >> (2u * quarter)) << (2u + p)) & (0x04040404u << (2u * p));
    halves_of(low | high, 0x00FF00FFu, ten, p == 0u ? 4.0 : 16.0, even, odd);
#elif defined(FORMAT_Q5_0) || defined(FORMAT_Q5_1)
#ifdef FORMAT_Q5_0
    const uint word = p == 0u ? pair_word(words, true, 1u + i % 4u) : words[7u + i % 4u];
    const uint fifths = p == 0u ? pair_word(words, true, 0u) : words[6];
    const float zero = 16.0;
#else
    const uint word = words[6u * p + 2u + i % 4u], fifths = words[6u * p + 1u];
    const float zero = 0.0;
#endif
    halves_of(((word >> (i / 4u * 4u)) & 0x0F0F0F0Fu) | fifths_of(fifths >> (4u * i)), 0x00FF00FFu, ten, zero, even, odd);
#elif defined(FORMAT_Q8_0)
    const uint word = p == 0u ? pair_word(words, true, i) : words[9u + i];
    halves_of(word ^ 0x80808080u, 0x00FF00FFu, ten, 128.0, even, odd);
#elif defined(FORMAT_Q4_K)
    halves_of(words[4u + i], p == 0u ? 0x000F000Fu : 0x00F000F0u, ten, 0.0, even, odd);
#elif defined(FORMAT_Q5_K)
    const uint fifths = (words[12u + i] >> (2u * quarter + p)) & 0x01010101u;
    halves_of(((words[4u + i] >> (4u * p)) & 0x0F0F0F0Fu) | (fifths << 4), 0x00FF00FFu, ten, 0.0, even, odd);
#elif defined(FORMAT_Q6_K)
    const uint low = (pair_word(words, behind, i) >> (4u * p)) & 0x0F0F0F0Fu;
    const uint high = (pair_word(words, behind, 9u + i) >> (2u * (quarter % 2u) + 4u * p)) & 0x03030303u;
    halves_of(low | (high << 4), 0x00FF00FFu, ten, 32.0, even, odd);
#elif defined(FORMAT_F16)
    const uint one = words[16u * p + 2u * i], two = words[16u * p + 2u * i + 1u];
    even = unpackFloat2x16((one & 0xFFFFu) | (two << 16));
    odd = unpackFloat2x16((one >> 16) | (two & 0xFFFF0000u));
#elif defined(FORMAT_BF16)
    const uint one = words[16u * p + 2u * i], two = words[16u * p + 2u * i + 1u];
    even = f16vec2(uintBitsToFloat(one << 16), uintBitsToFloat(two << 16));
    odd = f16vec2(uintBitsToFloat(one & 0xFFFF0000u), uintBitsToFloat(two & 0xFFFF0000u));
#endif
}

// Scales and offsets of the p-th chunk of a pair.
void pair_scales(uint words[PAIR_WORDS], bool behind, uint quarter, uint p, out float scales[PAIR_SCALES],
                 out float offsets[PAIR_TERMS]) {
    offsets[0] = 0.0;
#if defined(PAIR_CODED)
    coded_scales(words, quarter, p, scales);
#elif defined(FORMAT_F16) || defined(FORMAT_BF16)
    scales[0] = 1.0;
#elif defined(FORMAT_Q4_0) || defined(FORMAT_IQ4_NL)
    scales[0] = unpackHalf2x16(p == 0u ? words[0] : words[4] >> 16).x;
#elif defined(FORMAT_MXFP4)
    // 2^(e - 128), of which nothing is left below the range of floats.
    const uint exponent = (p == 0u ? words[0] : words[4] >> 8) & 255u;
    scales[0] = exponent < 2u ? 0.0 : uintBitsToFloat((exponent - 1u) << 23);
#elif defined(FORMAT_IQ4_XS)
    const uint low = (words[9] >> (8u * quarter + 4u * p)) & 15u, high = (words[8] >> (16u + 4u * quarter + 2u * p)) & 3u;
    scales[0] = unpackHalf2x16(words[8]).x * (float(low | (high << 4)) - 32.0);
#elif defined(FORMAT_Q2_K)
    const vec2 both = unpackHalf2x16(words[9]);
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint codes = words[8] >> (16u * p + 8u * h);
        scales[h] = both.x * float(codes & 15u);
        offsets[h] = both.y * float((codes >> 4) & 15u);
    }
#elif defined(FORMAT_Q3_K)
    const float scale = unpackHalf2x16(words[21]).x;
    // The lower four bits of 16 scales are in eight bytes, the first eight scales' in lower halves. The upper two are in four bytes.
    const uint lows = quarter % 2u == 0u ? words[18] : words[19], highs = words[20] >> (2u * quarter);
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint at = 8u * (2u * p + h);
        const uint code = ((lows >> (at + 4u * (quarter / 2u))) & 15u) | (((highs >> at) & 3u) << 4);
        scales[h] = scale * (float(code) - 32.0);
    }
#elif defined(FORMAT_Q5_0)
    scales[0] = unpackHalf2x16(p == 0u ? words[0] : words[5] >> 16).x;
#elif defined(FORMAT_Q8_0)
    scales[0] = unpackHalf2x16(p == 0u ? words[0] : words[8] >> 16).x;
#elif defined(FORMAT_Q4_1) || defined(FORMAT_Q5_1)
    const vec2 both = unpackHalf2x16(words[PAIR_WORDS / 2 * p]);
    scales[0] = both.x;
    offsets[0] = -both.y;
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    const vec2 both = unpackHalf2x16(words[0]);
    const uint shift = 8u * ((2u * quarter + p) % 4u);
    const uint one = words[1] >> shift, two = words[2] >> shift, three = words[3] >> shift;
    const bool upper = quarter >= 2u;
    scales[0] = both.x * float(upper ? (three & 15u) | ((one >> 2) & 48u) : one & 63u);
    offsets[0] = both.y * float(upper ? ((three >> 4) & 15u) | ((two >> 2) & 48u) : two & 63u);
#elif defined(FORMAT_Q6_K)
    const float scale = unpackHalf2x16(behind ? words[21] >> 16 : words[21]).x;
    // Of chunk quarter % 2 + 2 * p of four, a byte for each half.
    const int pair = int(pair_word(words, behind, 18u + p)), shift = 16 * int(quarter % 2u);
    scales[0] = scale * float(bitfieldExtract(pair, shift, 8));
    scales[1] = scale * float(bitfieldExtract(pair, shift + 8, 8));
#endif
}

#endif
