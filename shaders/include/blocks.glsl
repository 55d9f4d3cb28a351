// Weights in blocks, as GGUF files hold them: a chunk of 32 elements, or a part of it, at a time, from bytes that need not begin
// at words. FORMAT_<name> says which format they have; the crate's `ops/src/blocks` says what its bytes mean.
//
// A template defines BLOCKS_SLOT, the binding of the weights, before it includes this. load_chunk(row, chunk, values) makes the
// eight quads of a chunk; ROW_BYTES(chunks) are the bytes of a row of so many chunks. With BLOCK_SHARE 1, which a template
// defines, four invocations share a chunk: load_pair(row, chunk, share, low, high) makes two quads of it, low_quad(share) and
// high_quad(share), which come of the same words.
//
// Formats with a codebook have CODEBOOK_ENTRIES: its entries are in the buffer at CODEBOOK_SLOT, which a template may define.

#ifndef BLOCKS_GLSL
#define BLOCKS_GLSL

#if defined(FORMAT_Q4_0)
#define BLOCK_BYTES 18
#elif defined(FORMAT_Q4_1)
#define BLOCK_BYTES 20
#elif defined(FORMAT_Q5_0)
#define BLOCK_BYTES 22
#elif defined(FORMAT_Q5_1)
#define BLOCK_BYTES 24
#elif defined(FORMAT_Q8_0)
#define BLOCK_BYTES 34
#elif defined(FORMAT_Q2_K)
#define BLOCK_BYTES 84
#elif defined(FORMAT_Q3_K)
#define BLOCK_BYTES 110
#elif defined(FORMAT_Q4_K)
#define BLOCK_BYTES 144
#elif defined(FORMAT_Q5_K)
#define BLOCK_BYTES 176
#elif defined(FORMAT_Q6_K)
#define BLOCK_BYTES 210
#elif defined(FORMAT_IQ4_NL)
#define BLOCK_BYTES 18
#elif defined(FORMAT_IQ4_XS)
#define BLOCK_BYTES 136
#elif defined(FORMAT_MXFP4)
#define BLOCK_BYTES 17
#elif defined(FORMAT_F16) || defined(FORMAT_BF16)
#define BLOCK_BYTES 64
#elif defined(FORMAT_IQ2_XXS)
#define BLOCK_BYTES 66
#define CODEBOOK_ENTRIES 256
#elif defined(FORMAT_IQ2_XS)
#define BLOCK_BYTES 74
#define CODEBOOK_ENTRIES 512
#elif defined(FORMAT_IQ2_S)
#define BLOCK_BYTES 82
#define CODEBOOK_ENTRIES 1024
#elif defined(FORMAT_IQ3_XXS)
#define BLOCK_BYTES 98
#define CODEBOOK_ENTRIES 256
#elif defined(FORMAT_IQ3_S)
#define BLOCK_BYTES 110
#define CODEBOOK_ENTRIES 512
#elif defined(FORMAT_IQ1_S)
#define BLOCK_BYTES 50
#define CODEBOOK_ENTRIES 2048
#elif defined(FORMAT_IQ1_M)
#define BLOCK_BYTES 56
#define CODEBOOK_ENTRIES 2048
#elif defined(FORMAT_TQ1_0)
#define BLOCK_BYTES 54
#elif defined(FORMAT_TQ2_0)
#define BLOCK_BYTES 66
#elif defined(FORMAT_NVFP4)
#define BLOCK_BYTES 36
#elif defined(FORMAT_Q1_0)
#define BLOCK_BYTES 18
#endif

layout(set = 0, binding = BLOCKS_SLOT) readonly buffer Blocks { uint blocks[]; };
#if defined(FORMAT_F16) || defined(FORMAT_BF16)
layout(set = 0, binding = BLOCKS_SLOT) readonly buffer Blocks4 { uvec4 blocks4[]; };
#endif

#ifdef CODEBOOK_ENTRIES
#ifndef CODEBOOK_SLOT
#define CODEBOOK_SLOT 6
#endif
// Two entries in each word.
layout(set = 0, binding = CODEBOOK_SLOT) readonly buffer Codebook { uint codebook[]; };
#endif

// Pairs of quads that an invocation makes of a chunk.
#ifndef BLOCK_SHARE
#define BLOCK_SHARE 4
#endif

// Chunks of a block.
#if defined(FORMAT_Q2_K) || defined(FORMAT_Q3_K) || defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K) || defined(FORMAT_Q6_K) || \
    defined(FORMAT_IQ4_XS) || defined(CODEBOOK_ENTRIES) || defined(FORMAT_TQ1_0) || defined(FORMAT_TQ2_0)
#define BLOCK_CHUNKS 8
#elif defined(FORMAT_Q1_0)
#define BLOCK_CHUNKS 4
#elif defined(FORMAT_NVFP4)
#define BLOCK_CHUNKS 2
#else
#define BLOCK_CHUNKS 1
#endif

#define ROW_BYTES(chunks) ((chunks) / BLOCK_CHUNKS * BLOCK_BYTES)

#if defined(FORMAT_F16) || defined(FORMAT_BF16) || defined(CODEBOOK_ENTRIES) || defined(FORMAT_Q1_0)
// Neighbours, which are 16 bytes, or come of one entry or one byte of signs.
uint low_quad(uint share) { return 2u * share; }
uint high_quad(uint share) { return 2u * share + 1u; }
#elif defined(FORMAT_NVFP4)
// Lower and upper halves of bytes, for each 16 elements.
uint low_quad(uint share) { return share / 2u * 4u + share % 2u; }
uint high_quad(uint share) { return low_quad(share) + 2u; }
#else
// Lower and upper halves of bytes, as most formats have them.
uint low_quad(uint share) { return share; }
uint high_quad(uint share) { return share + 4u; }
#endif

uint byte_at(uint at) {
    return bitfieldExtract(blocks[at >> 2], int(8u * (at & 3u)), 8);
}

// BLOCK_SHARE neighbouring words from any place.
void load_words(uint at, out uint words[BLOCK_SHARE]) {
#if BLOCK_BYTES % 4 == 0
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) words[i] = blocks[(at >> 2) + i];
#else
    // Every word of the buffer is read once. What lies behind the last byte is not read.
    const uint first = at >> 2, last = (at + 4u * BLOCK_SHARE - 1u) >> 2;
    const uint shift = 8u * (at & 3u);
    uint low = blocks[first];
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        const uint high = blocks[min(first + i + 1u, last)];
        words[i] = shift == 0u ? low : (low >> shift) | (high << (32u - shift));
        low = high;
    }
#endif
}

// A 16-bit float at an even place.
float half_at(uint at) {
    return unpackHalf2x16(blocks[at >> 2] >> (8u * (at & 2u))).x;
}

// 16 bits at an even place.
uint half_bits_at(uint at) {
    return bitfieldExtract(blocks[at >> 2], int(8u * (at & 2u)), 16);
}

#if defined(CODEBOOK_ENTRIES) || defined(FORMAT_TQ1_0) || defined(FORMAT_Q1_0)
// A word at an even place.
uint word_at(uint at) {
    const uint low = blocks[at >> 2], high = blocks[(at + 3u) >> 2];
    return (at & 2u) == 0u ? low : (low >> 16) | (high << 16);
}
#endif

// The lower halves of four bytes.
uvec4 low4(uint word) {
    return uvec4(word, word >> 8, word >> 16, word >> 24) & 15u;
}

// Two bits of each of four bytes, from `shift` on.
uvec4 pairs4(uint word, uint shift) {
    const uint moved = word >> shift;
    return uvec4(moved, moved >> 8, moved >> 16, moved >> 24) & 3u;
}

// A bit of each of four bytes.
uvec4 bits4(uint word, uint bit) {
    const uint moved = word >> bit;
    return uvec4(moved, moved >> 8, moved >> 16, moved >> 24) & 1u;
}

// Four neighbouring bits.
uvec4 four_bits(uint word, uint first) {
    const uint moved = word >> first;
    return uvec4(moved, moved >> 1, moved >> 2, moved >> 3) & 1u;
}

// What codes stand for. Tables would lie in memory, where invocations wait for each other's reads.
#if defined(FORMAT_IQ4_NL) || defined(FORMAT_IQ4_XS)
// The format's sixteen numbers are what this gives, rounded, for the code less 8 as eighths: it is off by 0.38 at most, in 16-bit floats,
// too.
#define TABLE_CURVE(KIND, x)                                                                                                 \
    (((((KIND(4.69921875) * x + KIND(5.95703125)) * x + KIND(37.09375)) * x + KIND(-0.460205078125)) * x + KIND(92.4375)) * x + \
     KIND(1.3681640625))

vec4 looked_up(uvec4 codes) {
    const vec4 x = vec4(codes) * 0.125 - 1.0;
    return roundEven(TABLE_CURVE(vec4, x));
}
#elif defined(FORMAT_MXFP4) || defined(FORMAT_NVFP4)
// Twice what they stand for: four bits for each code without its sign.
vec4 looked_up(uvec4 codes) {
    const vec4 sizes = vec4((uvec4(0xC8643210u) >> ((codes & 7u) * 4u)) & 15u);
    return mix(sizes, -sizes, greaterThan(codes, uvec4(7u)));
}
#endif

#include "block_codes.glsl"

// Makes pairs of quads of a chunk of a row that begins at a byte, from the pair `first` on: the lower, then the upper ones.
void load_pairs(uint row_byte, uint chunk, uint first, out vec4 values[2 * BLOCK_SHARE]) {
    const uint block = row_byte + chunk / BLOCK_CHUNKS * BLOCK_BYTES;
#if defined(FORMAT_F16) || defined(FORMAT_BF16)
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        const uvec4 words = blocks4[(block >> 4) + first + i];
#ifdef FORMAT_F16
        values[i] = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
        values[i + BLOCK_SHARE] = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
#else
        const uvec4 even = words << 16, odd = words & 0xFFFF0000u;
        values[i] = uintBitsToFloat(uvec4(even.x, odd.x, even.y, odd.y));
        values[i + BLOCK_SHARE] = uintBitsToFloat(uvec4(even.z, odd.z, even.w, odd.w));
#endif
    }
#elif defined(FORMAT_Q4_0) || defined(FORMAT_Q4_1) || defined(FORMAT_IQ4_NL)
    const float scale = half_at(block);
    uint words[BLOCK_SHARE];
#ifdef FORMAT_Q4_1
    const float offset = half_at(block + 2u);
    load_words(block + 4u + 4u * first, words);
#define FOUR_BITS(word) scale * vec4(low4(word)) + offset
#elif defined(FORMAT_Q4_0)
    load_words(block + 2u + 4u * first, words);
#define FOUR_BITS(word) scale * (vec4(low4(word)) - 8.0)
#else
    load_words(block + 2u + 4u * first, words);
#define FOUR_BITS(word) scale * looked_up(low4(word))
#endif
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        values[i] = FOUR_BITS(words[i]);
        values[i + BLOCK_SHARE] = FOUR_BITS(words[i] >> 4);
    }
#elif defined(FORMAT_Q5_0) || defined(FORMAT_Q5_1)
    const float scale = half_at(block);
    uint words[BLOCK_SHARE];
#ifdef FORMAT_Q5_0
    const uint fifths = half_bits_at(block + 2u) | (half_bits_at(block + 4u) << 16);
    load_words(block + 6u + 4u * first, words);
#define FIVE_BITS(codes) scale * (vec4(codes) - 16.0)
#else
    const float offset = half_at(block + 2u);
    const uint fifths = half_bits_at(block + 4u) | (half_bits_at(block + 6u) << 16);
    load_words(block + 8u + 4u * first, words);
#define FIVE_BITS(codes) scale * vec4(codes) + offset
#endif
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        const uint at = 4u * (first + i);
        values[i] = FIVE_BITS(low4(words[i]) | (four_bits(fifths, at) << 4));
        values[i + BLOCK_SHARE] = FIVE_BITS(low4(words[i] >> 4) | (four_bits(fifths, 16u + at) << 4));
    }
#elif defined(FORMAT_MXFP4)
    // 2^(e - 128), in two factors that no exponent takes out of the range of floats.
    const int exponent = int(byte_at(block)) - 128;
    const int one = exponent / 2, other = exponent - one;
    const float scale = uintBitsToFloat(uint(one + 127) << 23), again = uintBitsToFloat(uint(other + 127) << 23);
    uint words[BLOCK_SHARE];
    load_words(block + 1u + 4u * first, words);
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        values[i] = scale * looked_up(low4(words[i])) * again;
        values[i + BLOCK_SHARE] = scale * looked_up(low4(words[i] >> 4)) * again;
    }
#elif defined(FORMAT_IQ4_XS)
    const uint part = chunk % 8u;
    const uint low = (byte_at(block + 4u + part / 2u) >> (4u * (part % 2u))) & 15u;
    const uint high = (blocks[block >> 2] >> (16u + 2u * part)) & 3u;
    const float scale = half_at(block) * (float(low | (high << 4)) - 32.0);
    uint words[BLOCK_SHARE];
    load_words(block + 8u + 16u * part + 4u * first, words);
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        values[i] = scale * looked_up(low4(words[i]));
        values[i + BLOCK_SHARE] = scale * looked_up(low4(words[i] >> 4));
    }
#elif defined(CODEBOOK_ENTRIES)
    const uint part = chunk % 8u;
#if defined(FORMAT_IQ2_XXS)
    const uint places = word_at(block + 2u + 8u * part), more = word_at(block + 6u + 8u * part);
    const float scale = half_at(block) * (0.5 + float(more >> 28)) * 0.25;
#elif defined(FORMAT_IQ2_XS)
    const uint own = byte_at(block + 66u + part);
    const float scale = half_at(block) * 0.25;
#elif defined(FORMAT_IQ2_S)
    const uint places = word_at(block + 2u + 4u * part), signs = word_at(block + 34u + 4u * part);
    const uint more = byte_at(block + 66u + part), own = byte_at(block + 74u + part);
    const float scale = half_at(block) * 0.25;
#elif defined(FORMAT_IQ3_XXS)
    const uint more = word_at(block + 66u + 4u * part);
    const float scale = half_at(block) * (0.5 + float(more >> 28)) * 0.5;
#elif defined(FORMAT_IQ3_S)
    const uint more = byte_at(block + 66u + part), signs = word_at(block + 74u + 4u * part);
    const uint own = (byte_at(block + 106u + part / 2u) >> (4u * (part % 2u))) & 15u;
    const float scale = half_at(block) * float(2u * own + 1u);
#elif defined(FORMAT_IQ1_S)
    const uint places = word_at(block + 2u + 4u * part), more = half_bits_at(block + 34u + 2u * part);
    const float scale = half_at(block) * float(2u * ((more >> 12) & 7u) + 1u);
#elif defined(FORMAT_IQ1_M)
    const uint places = word_at(block + 4u * part), more = half_bits_at(block + 32u + 2u * part);
    // Twelve bits of four scales in each half of two words, and four of the block's own.
    const uint one = blocks[(block + 48u) >> 2], two = blocks[(block + 52u) >> 2];
    const uint bits = ((one >> 12) & 15u) | ((one >> 24) & 0xF0u) | ((two >> 4) & 0xF00u) | ((two >> 16) & 0xF000u);
    const uint own = (part < 4u ? one : two) >> (16u * (part / 2u % 2u) + 6u * (part % 2u));
    const float scale = unpackHalf2x16(bits).x;
#endif
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        // Eight elements.
        const uint eight = first + i;
#if defined(FORMAT_IQ2_XXS)
        const uint codes = entry_at((places >> (8u * eight)) & 255u), negative = even_signs(more >> (7u * eight));
        const float factor = scale;
#elif defined(FORMAT_IQ2_XS)
        const uint both = half_bits_at(block + 2u + 8u * part + 2u * eight);
        const uint codes = entry_at(both & 511u), negative = even_signs(both >> 9);
        const float factor = scale * (0.5 + float((own >> (eight / 2u * 4u)) & 15u));
#elif defined(FORMAT_IQ2_S)
        const uint upper = ((more >> (2u * eight)) & 3u) << 8;
        const uint codes = entry_at(((places >> (8u * eight)) & 255u) | upper), negative = signs >> (8u * eight);
        const float factor = scale * (0.5 + float((own >> (eight / 2u * 4u)) & 15u));
#elif defined(FORMAT_IQ3_XXS) || defined(FORMAT_IQ3_S)
        const uint both = half_bits_at(block + 2u + 8u * part + 2u * eight);
#ifdef FORMAT_IQ3_S
        const uint upper = more >> (2u * eight), negative = signs >> (8u * eight);
        const uint codes = entry_at((both & 255u) | ((upper & 1u) << 8));
        const uint next = entry_at((both >> 8) | ((upper & 2u) << 7));
#else
        const uint negative = even_signs(more >> (7u * eight));
        const uint codes = entry_at(both & 255u), next = entry_at(both >> 8);
#endif
        const float factor = scale;
#elif defined(FORMAT_IQ1_S)
        const uint upper = ((more >> (3u * eight)) & 7u) << 8;
        const uint codes = entry_at(((places >> (8u * eight)) & 255u) | upper);
        const float factor = scale, delta = (more & 0x8000u) != 0u ? -0.125 : 0.125;
#elif defined(FORMAT_IQ1_M)
        const uint upper = more >> (4u * eight);
        const uint codes = entry_at(((places >> (8u * eight)) & 255u) | ((upper & 7u) << 8));
        const float factor = scale * float(2u * ((own >> (eight / 2u * 3u)) & 7u) + 1u);
        const float delta = (upper & 8u) != 0u ? -0.125 : 0.125;
#endif
#if defined(FORMAT_IQ1_S) || defined(FORMAT_IQ1_M)
        values[i] = factor * (levels(codes) + delta);
        values[i + BLOCK_SHARE] = factor * (levels(codes >> 8) + delta);
#else
#if !defined(FORMAT_IQ3_XXS) && !defined(FORMAT_IQ3_S)
        const uint next = codes >> 8;
#endif
        values[i] = factor * with_signs(levels(codes), negative);
        values[i + BLOCK_SHARE] = factor * with_signs(levels(next), negative >> 4);
#endif
    }
#elif defined(FORMAT_Q1_0)
    const float scale = half_at(block);
    // A bit that is set is positive.
    const uint bits = ~word_at(block + 2u + 4u * (chunk % BLOCK_CHUNKS));
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        const uint own = bits >> (8u * (first + i));
        values[i] = mix(vec4(scale), vec4(-scale), equal(four_bits(own, 0u), uvec4(1u)));
        values[i + BLOCK_SHARE] = mix(vec4(scale), vec4(-scale), equal(four_bits(own, 4u), uvec4(1u)));
    }
#elif defined(FORMAT_NVFP4)
    const uint part = chunk % BLOCK_CHUNKS;
    uint words[BLOCK_SHARE];
    load_words(block + 4u + 16u * part + 4u * first, words);
    [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
        const float scale = half_e4m3(byte_at(block + 2u * part + (first + i) / 2u) & 127u);
        values[i] = scale * looked_up(low4(words[i]));
        values[i + BLOCK_SHARE] = scale * looked_up(low4(words[i] >> 4));
    }
#else
    // Each half of the chunk has words, and where formats have scales for 16 elements, one, of its own.
    const uint part = chunk % BLOCK_CHUNKS;
#if defined(FORMAT_Q8_0)
    const float scale = half_at(block);
#elif defined(FORMAT_Q2_K)
    const float scale = half_at(block + 80u), offset = half_at(block + 82u);
#elif defined(FORMAT_Q3_K)
    const float scale = half_at(block + 108u);
#elif defined(FORMAT_TQ1_0)
    const float scale = half_at(block + 52u);
#elif defined(FORMAT_TQ2_0)
    const float scale = half_at(block + 64u);
#elif defined(FORMAT_Q6_K)
    const uint side = part / 4u, place = part % 4u;
    const float scale = half_at(block + 208u);
#else
    const uint at = part % 4u;
    const uint one = byte_at(block + 4u + at), two = byte_at(block + 8u + at), three = byte_at(block + 12u + at);
    const bool upper = part >= 4u;
    const uint own = upper ? (three & 15u) | ((one >> 6) << 4) : one & 63u;
    const uint less = upper ? (three >> 4) | ((two >> 6) << 4) : two & 63u;
    const float scale = half_at(block) * float(own), offset = half_at(block + 2u) * float(less);
#endif
    [[unroll]] for (uint h = 0; h < 2; ++h) {
        const uint word = 16u * h + 4u * first;  // In bytes.
        uint words[BLOCK_SHARE], more[BLOCK_SHARE];
#if defined(FORMAT_Q8_0)
        load_words(block + 2u + word, words);
#elif defined(FORMAT_Q2_K)
        const uint codes = byte_at(block + 2u * part + h);
        const float factor = scale * float(codes & 15u), term = offset * float(codes >> 4);
        load_words(block + 16u + 32u * (part / 4u) + word, words);
#elif defined(FORMAT_Q3_K)
        const uint s = 2u * part + h;
        const uint low = (byte_at(block + 96u + s % 8u) >> (4u * (s / 8u))) & 15u;
        const uint high = (byte_at(block + 104u + s % 4u) >> (2u * (s / 4u))) & 3u;
        const float factor = scale * (float(low | (high << 4)) - 32.0);
        load_words(block + 32u + 32u * (part / 4u) + word, words);
        load_words(block + word, more);
#elif defined(FORMAT_Q4_K)
        load_words(block + 16u + 32u * (part / 2u) + word, words);
#elif defined(FORMAT_Q5_K)
        load_words(block + 48u + 32u * (part / 2u) + word, words);
        load_words(block + 16u + word, more);
#elif defined(FORMAT_Q6_K)
        const float factor = scale * float(int(byte_at(block + 192u + 2u * part + h) << 24) >> 24);
        load_words(block + 64u * side + 32u * (place % 2u) + word, words);
        load_words(block + 128u + 32u * side + word, more);
#elif defined(FORMAT_TQ2_0)
        load_words(block + 32u * (part / 4u) + word, words);
#endif
        [[unroll]] for (uint i = 0; i < BLOCK_SHARE; ++i) {
            vec4 made;
#if defined(FORMAT_TQ1_0)
            // Bytes have digits of elements 32 apart, then 16, then 4.
            const uint at = 32u * part + 16u * h + 4u * (first + i);
            const uint byte = at < 160u ? at % 32u : (at < 240u ? 32u + at % 16u : 48u);
            const uint digit = at < 160u ? part : (at < 240u ? at / 16u - 10u : at / 4u - 60u);
            made = scale * (vec4(digits4(word_at(block + byte), digit)) - 1.0);
#elif defined(FORMAT_TQ2_0)
            made = scale * (vec4(pairs4(words[i], 2u * (part % 4u))) - 1.0);
#elif defined(FORMAT_Q8_0)
            const int codes = int(words[i]);
            made = scale * vec4(ivec4(codes << 24, codes << 16, codes << 8, codes) >> 24);
#elif defined(FORMAT_Q2_K)
            made = factor * vec4(pairs4(words[i], 2u * (part % 4u))) - term;
#elif defined(FORMAT_Q3_K)
            made = factor * (vec4(pairs4(words[i], 2u * (part % 4u))) + 4.0 * vec4(bits4(more[i], part)) - 4.0);
#elif defined(FORMAT_Q4_K)
            made = scale * vec4(low4(words[i] >> (4u * (part % 2u)))) - offset;
#elif defined(FORMAT_Q5_K)
            made = scale * vec4(low4(words[i] >> (4u * (part % 2u))) | (bits4(more[i], part) << 4)) - offset;
#elif defined(FORMAT_Q6_K)
            made = factor * (vec4(low4(words[i] >> (4u * (place / 2u))) | (pairs4(more[i], 2u * place) << 4)) - 32.0);
#endif
            values[i + h * BLOCK_SHARE] = made;
        }
    }
#endif
}

#if BLOCK_SHARE == 4
// Makes the quads of a chunk.
void load_chunk(uint row_byte, uint chunk, out vec4 values[8]) {
    vec4 pairs[8];
    load_pairs(row_byte, chunk, 0u, pairs);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[low_quad(i)] = pairs[i];
        values[high_quad(i)] = pairs[i + 4];
    }
}
#else
void load_pair(uint row_byte, uint chunk, uint share, out vec4 low, out vec4 high) {
    vec4 pair[2];
    load_pairs(row_byte, chunk, share, pair);
    low = pair[0];
    high = pair[1];
}
#endif

#endif
