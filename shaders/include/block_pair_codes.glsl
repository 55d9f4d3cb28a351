// The parts of block_pairs.glsl for formats whose codes are places in codebooks, and for the rarer ones: what an invocation reads for
// two neighbouring chunks, and the codes and scales that it makes of that.
//
// Codes of a codebook are looked up in shared memory. Where a quad has one, its word there has a byte for each element; formats of
// the largest codebook have two bits for an element, so that two entries share a word.

#ifndef BLOCK_PAIR_CODES_GLSL
#define BLOCK_PAIR_CODES_GLSL

#ifdef CODEBOOK_ENTRIES
#define PAIR_TABLE
#if defined(FORMAT_IQ3_XXS) || defined(FORMAT_IQ3_S)
#define TABLE_WORDS CODEBOOK_ENTRIES
#elif CODEBOOK_ENTRIES == 2048
#define TABLE_WORDS (CODEBOOK_ENTRIES / 2)
#else
#define TABLE_WORDS (2 * CODEBOOK_ENTRIES)
#endif
shared uint code_table[TABLE_WORDS];

// Four numbers of a byte each.
uint four_bytes(vec4 numbers) {
    const uvec4 bytes = uvec4(numbers);
    return bytes.x | (bytes.y << 8) | (bytes.z << 16) | (bytes.w << 24);
}

#if CODEBOOK_ENTRIES == 2048
// Two bits of eight elements, so that a shift brings any two that are one apart in a quad to the lowest bits of halves of a word:
// elements 0, 1, 4, 5 are in the lower half, those two behind each in the upper one.
uint spread(uint codes) {
    const uint low = (codes & 0x0Fu) | ((codes >> 4) & 0xF0u), high = ((codes >> 4) & 0x0Fu) | ((codes >> 8) & 0xF0u);
    return low | (high << 16);
}
#endif

void fill_table() {
    for (uint i = gl_LocalInvocationIndex; i < CODEBOOK_ENTRIES / 2u; i += gl_WorkGroupSize.x) {
        const uint two = codebook[i];
#if CODEBOOK_ENTRIES == 2048
        code_table[i] = spread(two & 0xFFFFu) | (spread(two >> 16) << 8);
#else
        [[unroll]] for (uint j = 0; j < 2; ++j) {
            const uint codes = two >> (16u * j);
            code_table[2u * i + j] = four_bytes(levels(codes));
#if TABLE_WORDS == 2 * CODEBOOK_ENTRIES
            // The second quads have a part of their own, so that those who look for first ones find them in all banks.
            code_table[CODEBOOK_ENTRIES + 2u * i + j] = four_bytes(levels(codes >> 8));
#endif
        }
#endif
    }
}
#endif

// Reads `count` words from an even byte on, and one more where they begin in the middle of one; what lies behind the last byte is not
// read.
#define READ_WORDS(to, byte, count) \
    [[unroll]] for (uint i = 0; i <= (count); ++i) words[(to) + i] = blocks[min(((byte) >> 2) + i, ((byte) + 4u * (count) - 1u) >> 2)];

// The same of four words, by wide reads.
void read_four(uint byte, out uint first[5]) {
    const uint at = byte >> 2, last = (byte + 15u) >> 2;
    uint all[8];
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        const uvec4 four = blocks4[min((at >> 2) + i, last >> 2)];
        [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
    }
    [[unroll]] for (uint i = 0; i < 7; ++i) all[i] = (at & 1u) != 0u ? all[i + 1u] : all[i];
    [[unroll]] for (uint i = 0; i < 5; ++i) first[i] = (at & 2u) != 0u ? all[i + 2u] : all[i];
}

void fetch_coded(uint row_byte, uint first, uint quarter, uint chunks, out uint words[PAIR_WORDS]) {
#ifdef FORMAT_NVFP4
    // A pair is a block.
    const uint at = (row_byte + min(first / 2u + quarter, chunks / 2u - 1u) * BLOCK_BYTES) >> 2;
    uint all[12];
    [[unroll]] for (uint i = 0; i < 3; ++i) {
        const uvec4 four = blocks4[min((at >> 2) + i, (at + 8u) >> 2)];
        [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
    }
    MOVE_DOWN(all, 9, at)
    [[unroll]] for (uint i = 0; i < 9; ++i) words[i] = all[i];
#else
    const uint block = row_byte + first / 8u * BLOCK_BYTES;
#if defined(FORMAT_IQ2_XXS) || defined(FORMAT_IQ2_XS) || defined(FORMAT_IQ3_XXS) || defined(FORMAT_IQ3_S)
    uint places[5];
    read_four(block + 2u + 16u * quarter, places);
    [[unroll]] for (uint i = 0; i < 5; ++i) words[i] = places[i];
#elif defined(FORMAT_TQ2_0)
    const uint from = (block + 32u * (quarter / 2u)) >> 2;
    uint all[12];
    [[unroll]] for (uint i = 0; i < 3; ++i) {
        const uvec4 four = blocks4[min((from >> 2) + i, (from + 8u) >> 2)];
        [[unroll]] for (uint j = 0; j < 4; ++j) all[4u * i + j] = four[j];
    }
    MOVE_DOWN(all, 9, from)
    [[unroll]] for (uint i = 0; i < 9; ++i) words[i] = all[i];
    words[9] = blocks[(block + 64u) >> 2];
#endif
#if defined(FORMAT_IQ2_XXS)
    words[5] = blocks[block >> 2];
#elif defined(FORMAT_IQ2_XS)
    words[5] = blocks[block >> 2];
    words[6] = blocks[(block + 66u + 2u * quarter) >> 2];
#elif defined(FORMAT_IQ2_S)
    READ_WORDS(0u, block + 2u + 8u * quarter, 2u)
    READ_WORDS(3u, block + 34u + 8u * quarter, 2u)
    words[6] = blocks[block >> 2];
    words[7] = blocks[(block + 66u + 2u * quarter) >> 2];
    words[8] = blocks[(block + 74u + 2u * quarter) >> 2];
#elif defined(FORMAT_IQ3_XXS)
    READ_WORDS(5u, block + 66u + 8u * quarter, 2u)
    words[8] = blocks[block >> 2];
#elif defined(FORMAT_IQ3_S)
    READ_WORDS(5u, block + 74u + 8u * quarter, 2u)
    words[8] = blocks[block >> 2];
    words[9] = blocks[(block + 66u + 2u * quarter) >> 2];
    words[10] = blocks[(block + 106u + quarter) >> 2];
#elif defined(FORMAT_IQ1_S)
    READ_WORDS(0u, block + 2u + 8u * quarter, 2u)
    READ_WORDS(3u, block + 34u + 4u * quarter, 1u)
    words[5] = blocks[block >> 2];
#elif defined(FORMAT_IQ1_M)
    // Blocks are whole words.
    words[0] = blocks[(block >> 2) + 2u * quarter];
    words[1] = blocks[(block >> 2) + 2u * quarter + 1u];
    words[2] = blocks[(block >> 2) + 8u + quarter];
    words[3] = blocks[(block >> 2) + 12u];
    words[4] = blocks[(block >> 2) + 13u];
#endif
#endif
}

#if BLOCK_BYTES % 4 != 0
// `count` words from place `at` on, of which the first may begin in the middle.
#define PUT_IN_PLACE(at, count, half_behind)        \
    [[unroll]] for (uint i = 0; i < (count); ++i)   \
        words[(at) + i] = (half_behind) ? (words[(at) + i] >> 16) | (words[(at) + i + 1u] << 16) : words[(at) + i];

// The bytes of a word from an even one of the block on.
uint from_byte(uint word, uint byte, bool behind) {
    return ((byte & 2u) != 0u) != behind ? word >> 16 : word;
}

void align_coded(inout uint words[PAIR_WORDS], bool behind, uint quarter) {
    // What is two bytes behind a block's beginning is in the middle of a word unless the block itself is.
#if defined(FORMAT_IQ2_XXS) || defined(FORMAT_IQ2_XS) || defined(FORMAT_IQ3_XXS) || defined(FORMAT_IQ3_S)
    PUT_IN_PLACE(0u, 4u, !behind)
#elif defined(FORMAT_IQ2_S) || defined(FORMAT_IQ1_S)
    PUT_IN_PLACE(0u, 2u, !behind)
#elif defined(FORMAT_TQ2_0)
    PUT_IN_PLACE(0u, 8u, behind)
    words[9] = from_byte(words[9], 64u, behind);
#endif
#if defined(FORMAT_IQ2_XXS)
    words[5] = from_byte(words[5], 0u, behind);
#elif defined(FORMAT_IQ2_XS)
    words[5] = from_byte(words[5], 0u, behind);
    words[6] = from_byte(words[6], 66u + 2u * quarter, behind);
#elif defined(FORMAT_IQ2_S)
    PUT_IN_PLACE(3u, 2u, !behind)
    words[6] = from_byte(words[6], 0u, behind);
    words[7] = from_byte(words[7], 66u + 2u * quarter, behind);
    words[8] = from_byte(words[8], 74u + 2u * quarter, behind);
#elif defined(FORMAT_IQ3_XXS)
    PUT_IN_PLACE(5u, 2u, !behind)
    words[8] = from_byte(words[8], 0u, behind);
#elif defined(FORMAT_IQ3_S)
    PUT_IN_PLACE(5u, 2u, !behind)
    words[8] = from_byte(words[8], 0u, behind);
    words[9] = from_byte(words[9], 66u + 2u * quarter, behind);
    words[10] = from_byte(words[10], 106u + quarter, behind) >> (8u * (quarter % 2u));
#elif defined(FORMAT_IQ1_S)
    PUT_IN_PLACE(3u, 1u, !behind)
    words[5] = from_byte(words[5], 0u, behind);
#endif
}
#endif

// Numbers with the signs that are bits: of elements 0 and 2, and of 1 and 3.
void give_signs(uint four, inout f16vec2 even, inout f16vec2 odd) {
    const uint signs = four & 15u;
    even = unpackFloat2x16(packFloat2x16(even) ^ ((signs * 0x20008000u) & 0x80008000u));
    odd = unpackFloat2x16(packFloat2x16(odd) ^ ((signs * 0x10004000u) & 0x80008000u));
}

// As four_codes says.
void coded(uint words[PAIR_WORDS], uint quarter, uint p, uint i, uint ten, out f16vec2 even, out f16vec2 odd) {
    const uint eight = i / 2u, second = i % 2u;
#if defined(FORMAT_IQ2_XXS)
    const uint place = (words[2u * p] >> (8u * eight)) & 255u;
    halves_of(code_table[second * CODEBOOK_ENTRIES + place], 0x00FF00FFu, ten, 0.0, even, odd);
    give_signs(even_signs(words[2u * p + 1u] >> (7u * eight)) >> (4u * second), even, odd);
#elif defined(FORMAT_IQ2_XS)
    const uint both = (words[2u * p + eight / 2u] >> (16u * (eight % 2u))) & 0xFFFFu;
    halves_of(code_table[second * CODEBOOK_ENTRIES + (both & 511u)], 0x00FF00FFu, ten, 0.0, even, odd);
    give_signs(even_signs(both >> 9) >> (4u * second), even, odd);
#elif defined(FORMAT_IQ2_S)
    const uint upper = (words[7] >> (8u * p + 2u * eight)) & 3u;
    const uint place = ((words[p] >> (8u * eight)) & 255u) | (upper << 8);
    halves_of(code_table[second * CODEBOOK_ENTRIES + place], 0x00FF00FFu, ten, 0.0, even, odd);
    give_signs(words[3u + p] >> (4u * i), even, odd);
#elif defined(FORMAT_IQ3_XXS)
    const uint place = (words[2u * p + i / 4u] >> (8u * (i % 4u))) & 255u;
    halves_of(code_table[place], 0x00FF00FFu, ten, 0.0, even, odd);
    give_signs(even_signs(words[5u + p] >> (7u * eight)) >> (4u * second), even, odd);
#elif defined(FORMAT_IQ3_S)
    const uint upper = (words[9] >> (8u * p + i)) & 1u;
    const uint place = ((words[2u * p + i / 4u] >> (8u * (i % 4u))) & 255u) | (upper << 8);
    halves_of(code_table[place], 0x00FF00FFu, ten, 0.0, even, odd);
    give_signs(words[5u + p] >> (4u * i), even, odd);
#elif defined(FORMAT_IQ1_S) || defined(FORMAT_IQ1_M)
    // Eight times what they stand for, so that the eighth that is added or taken away is one.
#ifdef FORMAT_IQ1_S
    const uint more = words[3] >> (16u * p), upper = (more >> (3u * eight)) & 7u;
    const bool less = (more & 0x8000u) != 0u;
#else
    const uint more = words[2] >> (16u * p + 4u * eight), upper = more & 7u;
    const bool less = (more & 8u) != 0u;
#endif
    const uint place = ((words[p] >> (8u * eight)) & 255u) | (upper << 8);
    const uint entry = code_table[place >> 1] >> (8u * (place & 1u) + 4u * second);
    const f16vec2 one = f16vec2(less ? -1.0 : 1.0);
    even = (unpackFloat2x16((entry & 0x00030003u) | ten) - f16vec2(1025.0)) * f16vec2(8.0) + one;
    odd = (unpackFloat2x16(((entry >> 2) & 0x00030003u) | ten) - f16vec2(1025.0)) * f16vec2(8.0) + one;
#elif defined(FORMAT_TQ2_0)
    halves_of(words[i] >> (4u * (quarter % 2u) + 2u * p), 0x00030003u, ten, 1.0, even, odd);
#elif defined(FORMAT_NVFP4)
    const uint bytes = words[1u + 4u * p + 2u * (i / 4u) + i % 2u] >> (4u * (i % 4u / 2u));
    even = two_of_table(bytes);
    odd = two_of_table(bytes >> 8);
#endif
}

// Scales of the p-th chunk of a pair.
void coded_scales(uint words[PAIR_WORDS], uint quarter, uint p, out float scales[PAIR_SCALES]) {
#if defined(FORMAT_IQ2_XXS)
    scales[0] = unpackHalf2x16(words[5]).x * (0.5 + float(words[2u * p + 1u] >> 28)) * 0.25;
#elif defined(FORMAT_IQ2_XS) || defined(FORMAT_IQ2_S)
#ifdef FORMAT_IQ2_XS
    const float scale = unpackHalf2x16(words[5]).x * 0.25;
    const uint own = words[6] >> (8u * p);
#else
    const float scale = unpackHalf2x16(words[6]).x * 0.25;
    const uint own = words[8] >> (8u * p);
#endif
    [[unroll]] for (uint h = 0; h < 2; ++h) scales[h] = scale * (0.5 + float((own >> (4u * h)) & 15u));
#elif defined(FORMAT_IQ3_XXS)
    scales[0] = unpackHalf2x16(words[8]).x * (0.5 + float(words[5u + p] >> 28)) * 0.5;
#elif defined(FORMAT_IQ3_S)
    scales[0] = unpackHalf2x16(words[8]).x * float(2u * ((words[10] >> (4u * p)) & 15u) + 1u);
#elif defined(FORMAT_IQ1_S)
    scales[0] = unpackHalf2x16(words[5]).x * float(2u * ((words[3] >> (16u * p + 12u)) & 7u) + 1u) * 0.125;
#elif defined(FORMAT_IQ1_M)
    const uint one = words[3], two = words[4];
    const uint bits = ((one >> 12) & 15u) | ((one >> 24) & 0xF0u) | ((two >> 4) & 0xF00u) | ((two >> 16) & 0xF000u);
    const float scale = unpackHalf2x16(bits).x * 0.125;
    const uint own = (quarter < 2u ? one : two) >> (16u * (quarter % 2u) + 6u * p);
    [[unroll]] for (uint h = 0; h < 2; ++h) scales[h] = scale * float(2u * ((own >> (3u * h)) & 7u) + 1u);
#elif defined(FORMAT_TQ2_0)
    scales[0] = unpackHalf2x16(words[9]).x;
#elif defined(FORMAT_NVFP4)
    [[unroll]] for (uint h = 0; h < 2; ++h) scales[h] = half_e4m3((words[0] >> (16u * p + 8u * h)) & 127u);
#endif
}

#endif
