// Products with weights of chosen experts for few rows: a workgroup has a row of the result, whose expert's weights it reads. SPAN
// neighbouring invocations share the sums of COLUMNS columns, a chunk of 32 of the inner dimension at a time, and add them through
// shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;    // A power of two.
layout(constant_id = 2) const uint COLUMNS = 1;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) readonly buffer Experts { int chosen[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;   // In a row of k.
    uint sharing;  // Rows of the result with one row of lhs.
    uint first;    // Number of the first expert.
    uint experts;  // Experts whose weights are there.
};

#define BLOCKS_SLOT 1
#define CODEBOOK_SLOT 4
#include "expert_rows.glsl"

shared float partial[gl_WorkGroupSize.x];

void main() {
    const uint lane = gl_LocalInvocationIndex % SPAN, team = gl_LocalInvocationIndex / SPAN;
    const uint column0 = (gl_WorkGroupID.x * (gl_WorkGroupSize.x / SPAN) + team) * COLUMNS;
    const uint row = gl_WorkGroupID.y, left_row = row / sharing * chunks;
    // A number below the first becomes a large one.
    const uint expert = uint(chosen[row]) - first;

    float sums[COLUMNS];
    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) sums[c] = 0.0;
    if (expert < experts) {
        for (uint chunk = lane; chunk < chunks; chunk += SPAN) {
            vec4 left[8], right[8];
            [[unroll]] for (uint i = 0; i < 8; ++i) left[i] = lhs[(left_row + chunk) * 8 + i];
            [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
                load_chunk((expert * N + min(column0 + c, N - 1)) * ROW_BYTES(chunks), chunk, right);
                vec4 sum = left[0] * right[0];
                [[unroll]] for (uint i = 1; i < 8; ++i) sum += left[i] * right[i];
                sums[c] += (sum.x + sum.y) + (sum.z + sum.w);
            }
        }
    }

    [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
        float sum = sums[c];
        if (SPAN > 1) {
            partial[gl_LocalInvocationIndex] = sum;
            barrier();
            for (uint rest = SPAN / 2; rest > 0; rest /= 2) {
                if (lane < rest) partial[gl_LocalInvocationIndex] += partial[gl_LocalInvocationIndex + rest];
                barrier();
            }
            sum = partial[gl_LocalInvocationIndex];
        }
        if (lane == 0 && column0 + c < N) result[row * N + column0 + c] = sum;
        if (SPAN > 1) barrier();
    }
}
