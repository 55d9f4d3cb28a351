// Weights in blocks, as GGUF files hold them: a chunk of 32 elements at a time, from bytes that need not begin at words.
// FORMAT_<name> says which format they have; the crate's `ops/src/blocks` says what its bytes mean.
//
// A template declares `readonly buffer … { uint blocks[]; }` before it includes this. load_chunk(row, chunk, values) makes the
// elements of a chunk; ROW_BYTES(chunks) are the bytes of a row of so many chunks.

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
#endif

// Chunks of a block.
#if defined(FORMAT_Q2_K) || defined(FORMAT_Q3_K) || defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K) || defined(FORMAT_Q6_K) || \
    defined(FORMAT_IQ4_XS)
#define BLOCK_CHUNKS 8
#else
#define BLOCK_CHUNKS 1
#endif

#define ROW_BYTES(chunks) ((chunks) / BLOCK_CHUNKS * BLOCK_BYTES)

uint byte_at(uint at) {
    return bitfieldExtract(blocks[at >> 2], int(8u * (at & 3u)), 8);
}

#if BLOCK_BYTES % 4 == 0
#define READ_WORDS(count)                                                        \
    const uint first = at >> 2;                                                  \
    [[unroll]] for (uint i = 0; i < count; ++i) words[i] = blocks[first + i];
#else
// Every word of the buffer is read once. What lies behind the last byte is not read.
#define READ_WORDS(count)                                                        \
    const uint first = at >> 2, last = (at + 4u * count - 1u) >> 2;              \
    const uint shift = 8u * (at & 3u);                                           \
    uint low = blocks[first];                                                    \
    [[unroll]] for (uint i = 0; i < count; ++i) {                                \
        const uint high = blocks[min(first + i + 1u, last)];                     \
        words[i] = shift == 0u ? low : (low >> shift) | (high << (32u - shift)); \
        low = high;                                                              \
    }
#endif

// Four, five or eight words from any place.
void words4(uint at, out uint words[4]) { READ_WORDS(4u) }
void words5(uint at, out uint words[5]) { READ_WORDS(5u) }
void words8(uint at, out uint words[8]) { READ_WORDS(8u) }

// A 16-bit float at an even place.
float half_at(uint at) {
    return unpackHalf2x16(blocks[at >> 2] >> (8u * (at & 2u))).x;
}

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

#if defined(FORMAT_IQ4_NL) || defined(FORMAT_IQ4_XS)
const float TABLE[16] = float[16](-127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
                                  89.0, 113.0);
#elif defined(FORMAT_MXFP4)
const float TABLE[16] = float[16](0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0);
#endif
#if defined(FORMAT_IQ4_NL) || defined(FORMAT_IQ4_XS) || defined(FORMAT_MXFP4)
vec4 looked_up(uvec4 codes) {
    return vec4(TABLE[codes.x], TABLE[codes.y], TABLE[codes.z], TABLE[codes.w]);
}
#endif

// Makes the elements of a chunk of a row that begins at a byte.
void load_chunk(uint row_byte, uint chunk, out vec4 values[8]) {
    const uint block = row_byte + chunk / BLOCK_CHUNKS * BLOCK_BYTES;
#if defined(FORMAT_Q4_0)
    const float scale = half_at(block);
    uint words[4];
    words4(block + 2u, words);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[i] = scale * (vec4(low4(words[i])) - 8.0);
        values[i + 4] = scale * (vec4(low4(words[i] >> 4)) - 8.0);
    }
#elif defined(FORMAT_Q4_1)
    const float scale = half_at(block), offset = half_at(block + 2u);
    uint words[4];
    words4(block + 4u, words);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[i] = scale * vec4(low4(words[i])) + offset;
        values[i + 4] = scale * vec4(low4(words[i] >> 4)) + offset;
    }
#elif defined(FORMAT_Q5_0)
    const float scale = half_at(block);
    uint words[5];
    words5(block + 2u, words);
    const uint fifths = words[0];
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = words[i + 1u];
        values[i] = scale * (vec4(low4(word) | (four_bits(fifths, 4u * i) << 4)) - 16.0);
        values[i + 4] = scale * (vec4(low4(word >> 4) | (four_bits(fifths, 16u + 4u * i) << 4)) - 16.0);
    }
#elif defined(FORMAT_Q5_1)
    const float scale = half_at(block), offset = half_at(block + 2u);
    uint words[5];
    words5(block + 4u, words);
    const uint fifths = words[0];
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint word = words[i + 1u];
        values[i] = scale * vec4(low4(word) | (four_bits(fifths, 4u * i) << 4)) + offset;
        values[i + 4] = scale * vec4(low4(word >> 4) | (four_bits(fifths, 16u + 4u * i) << 4)) + offset;
    }
#elif defined(FORMAT_Q8_0)
    const float scale = half_at(block);
    uint words[8];
    words8(block + 2u, words);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const int word = int(words[i]);
        values[i] = scale * vec4(ivec4(word << 24, word << 16, word << 8, word) >> 24);
    }
#elif defined(FORMAT_Q2_K)
    const uint part = chunk % 8u, shift = 2u * (part % 4u);
    const float scale = half_at(block + 80u), offset = half_at(block + 82u);
    uint words[8];
    words8(block + 16u + 32u * (part / 4u), words);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint own = byte_at(block + 2u * part + i / 4u);
        values[i] = scale * float(own & 15u) * vec4(pairs4(words[i], shift)) - offset * float(own >> 4);
    }
#elif defined(FORMAT_Q3_K)
    const uint part = chunk % 8u, shift = 2u * (part % 4u);
    const float scale = half_at(block + 108u);
    uint words[8], thirds[8];
    words8(block + 32u + 32u * (part / 4u), words);
    words8(block, thirds);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint s = 2u * part + i / 4u;
        const uint low = (byte_at(block + 96u + s % 8u) >> (4u * (s / 8u))) & 15u;
        const uint high = (byte_at(block + 104u + s % 4u) >> (2u * (s / 4u))) & 3u;
        const vec4 codes = vec4(pairs4(words[i], shift)) + 4.0 * vec4(bits4(thirds[i], part)) - 4.0;
        values[i] = scale * (float(low | (high << 4)) - 32.0) * codes;
    }
#elif defined(FORMAT_Q4_K) || defined(FORMAT_Q5_K)
    const uint part = chunk % 8u, at = part % 4u;
    const uint first = byte_at(block + 4u + at), second = byte_at(block + 8u + at), third = byte_at(block + 12u + at);
    const bool upper = part >= 4u;
    const uint own = upper ? (third & 15u) | ((first >> 6) << 4) : first & 63u;
    const uint less = upper ? (third >> 4) | ((second >> 6) << 4) : second & 63u;
    const float scale = half_at(block) * float(own), offset = half_at(block + 2u) * float(less);
    const uint shift = 4u * (part % 2u);
    uint words[8];
#ifdef FORMAT_Q5_K
    uint fifths[8];
    words8(block + 48u + 32u * (part / 2u), words);
    words8(block + 16u, fifths);
    [[unroll]] for (uint i = 0; i < 8; ++i)
        values[i] = scale * vec4(low4(words[i] >> shift) | (bits4(fifths[i], part) << 4)) - offset;
#else
    words8(block + 16u + 32u * (part / 2u), words);
    [[unroll]] for (uint i = 0; i < 8; ++i) values[i] = scale * vec4(low4(words[i] >> shift)) - offset;
#endif
#elif defined(FORMAT_Q6_K)
    const uint part = chunk % 8u, side = part / 4u, place = part % 4u;
    const float scale = half_at(block + 208u);
    uint words[8], upper[8];
    words8(block + 64u * side + 32u * (place % 2u), words);
    words8(block + 128u + 32u * side, upper);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const float own = float(int(byte_at(block + 192u + 2u * part + i / 4u) << 24) >> 24);
        const uvec4 codes = low4(words[i] >> (4u * (place / 2u))) | (pairs4(upper[i], 2u * place) << 4);
        values[i] = scale * own * (vec4(codes) - 32.0);
    }
#elif defined(FORMAT_IQ4_NL)
    const float scale = half_at(block);
    uint words[4];
    words4(block + 2u, words);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[i] = scale * looked_up(low4(words[i]));
        values[i + 4] = scale * looked_up(low4(words[i] >> 4));
    }
#elif defined(FORMAT_IQ4_XS)
    const uint part = chunk % 8u;
    const uint low = (byte_at(block + 4u + part / 2u) >> (4u * (part % 2u))) & 15u;
    const uint high = (blocks[block >> 2] >> (16u + 2u * part)) & 3u;
    const float scale = half_at(block) * (float(low | (high << 4)) - 32.0);
    uint words[4];
    words4(block + 8u + 16u * part, words);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[i] = scale * looked_up(low4(words[i]));
        values[i + 4] = scale * looked_up(low4(words[i] >> 4));
    }
#elif defined(FORMAT_MXFP4)
    // 2^(e - 128), in two factors that no exponent takes out of the range of floats.
    const int exponent = int(byte_at(block)) - 128;
    const int one = exponent / 2, other = exponent - one;
    const float scale = uintBitsToFloat(uint(one + 127) << 23), again = uintBitsToFloat(uint(other + 127) << 23);
    uint words[4];
    words4(block + 1u, words);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        values[i] = scale * looked_up(low4(words[i])) * again;
        values[i + 4] = scale * looked_up(low4(words[i] >> 4)) * again;
    }
#endif
}

#endif
