// Rows of a table of weights in blocks, as floats: an invocation makes a chunk of 32 neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint INDEX_WORDS = 1;

layout(set = 0, binding = 1) readonly buffer Indices { uint indices[]; };
layout(set = 0, binding = 2) writeonly buffer Result { vec4 result[]; };

layout(push_constant) uniform Shape {
    uint count;   // Indices.
    uint chunks;  // In a row.
    uint rows;
};

#define BLOCKS_SLOT 0
#define CODEBOOK_SLOT 3
#include "blocks.glsl"
#include "indices.glsl"

void main() {
    const uint lane = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    const uint j = lane / chunks, chunk = lane - j * chunks;
    if (j >= count) return;
    const uint row = WRAPPED(indices, j, rows);
    vec4 values[8];
    [[unroll]] for (uint i = 0; i < 8; ++i) values[i] = vec4(0);
    if (row < rows) load_chunk(row * ROW_BYTES(chunks), chunk, values);
    [[unroll]] for (uint i = 0; i < 8; ++i) result[lane * 8 + i] = values[i];
}
