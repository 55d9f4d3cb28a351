// Rows of weights in blocks or as floats, in bytes: a chunk of 32 elements at a time. FORMAT_<name> says which.
//
// A template declares `readonly buffer … { uint blocks[]; }` before it includes this.

#ifndef EXPERT_ROWS_GLSL
#define EXPERT_ROWS_GLSL

#if defined(FORMAT_F32) || defined(FORMAT_F16) || defined(FORMAT_BF16)

#ifdef FORMAT_F32
#define ROW_BYTES(chunks) ((chunks) * 128u)
#else
#define ROW_BYTES(chunks) ((chunks) * 64u)
#endif

// Makes the elements of a chunk of a row that begins at a byte, which begins a word.
void load_chunk(uint row_byte, uint chunk, out vec4 values[8]) {
    const uint first = (row_byte + ROW_BYTES(chunk)) >> 2;
    [[unroll]] for (uint i = 0; i < 8; ++i) {
#if defined(FORMAT_F32)
        const uint at = first + 4u * i;
        values[i] = uintBitsToFloat(uvec4(blocks[at], blocks[at + 1u], blocks[at + 2u], blocks[at + 3u]));
#elif defined(FORMAT_F16)
        const uint at = first + 2u * i;
        values[i] = vec4(unpackHalf2x16(blocks[at]), unpackHalf2x16(blocks[at + 1u]));
#else
        const uint low = blocks[first + 2u * i], high = blocks[first + 2u * i + 1u];
        values[i] = uintBitsToFloat(uvec4(low << 16, low & 0xFFFF0000u, high << 16, high & 0xFFFF0000u));
#endif
    }
}

#else
#include "blocks.glsl"
#endif

#endif
