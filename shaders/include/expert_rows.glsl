// Rows of weights in blocks or as `f32`, in bytes: a chunk of 32 elements at a time. FORMAT_<name> says which. A template defines
// BLOCKS_SLOT, the binding of the weights, before it includes this.

#ifndef EXPERT_ROWS_GLSL
#define EXPERT_ROWS_GLSL

#ifdef FORMAT_F32

layout(set = 0, binding = BLOCKS_SLOT) readonly buffer Rows { vec4 quads[]; };

#define ROW_BYTES(chunks) ((chunks) * 128u)

// Makes the elements of a chunk of a row that begins at a byte.
void load_chunk(uint row_byte, uint chunk, out vec4 values[8]) {
    const uint first = (row_byte >> 4) + chunk * 8u;
    [[unroll]] for (uint i = 0; i < 8; ++i) values[i] = quads[first + i];
}

#else
#include "blocks.glsl"
#endif

#endif
