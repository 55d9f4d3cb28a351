// out = lhs * weights for few rows of lhs, with weights in blocks: SPAN neighbouring invocations share the sums of a column, a
// chunk of 32 of the inner dimension at a time, and add them through shared memory. Weights are read once.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;  // A power of two.
layout(constant_id = 2) const uint ROWS = 1;   // Rows of lhs, up to 8.

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uint blocks[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;  // In a row of k.
};

#include "blocks.glsl"

shared float partial[gl_WorkGroupSize.x];

void main() {
    const uint lane = gl_LocalInvocationIndex % SPAN, team = gl_LocalInvocationIndex / SPAN;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint column = group * (gl_WorkGroupSize.x / SPAN) + team;
    const uint row_byte = min(column, N - 1) * ROW_BYTES(chunks);

    float sums[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] = 0.0;
    // With a SPAN of 1 the loop's chunk is the same in all invocations.
    for (uint base = 0; base < chunks; base += SPAN) {
        const uint chunk = base + lane;
        if (chunk < chunks) {
            vec4 values[8];
            load_chunk(row_byte, chunk, values);
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                const uint at = (r * chunks + chunk) * 8;
                vec4 sum = lhs[at] * values[0];
                [[unroll]] for (uint i = 1; i < 8; ++i) sum += lhs[at + i] * values[i];
                sums[r] += (sum.x + sum.y) + (sum.z + sum.w);
            }
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        float sum = sums[r];
        if (SPAN > 1) {
            partial[gl_LocalInvocationIndex] = sum;
            barrier();
            for (uint rest = SPAN / 2; rest > 0; rest /= 2) {
                if (lane < rest) partial[gl_LocalInvocationIndex] += partial[gl_LocalInvocationIndex + rest];
                barrier();
            }
            sum = partial[gl_LocalInvocationIndex];
        }
        if (lane == 0 && column < N) result[r * N + column] = sum;
        if (SPAN > 1) barrier();
    }
}
