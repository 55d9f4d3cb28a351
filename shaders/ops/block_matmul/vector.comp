// out = lhs * weights for few rows of lhs, with weights in blocks: SPAN neighbouring invocations share the sums of COLUMNS
// columns, a chunk of 32 of the inner dimension at a time, and add them through shared memory. Weights are read once, activations
// once for all columns. GATED: the result is function(sum with a row of weights) * (sum with the row N behind it).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;    // A power of two.
layout(constant_id = 2) const uint ROWS = 1;     // Rows of lhs, up to 8.
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool GATED = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;  // In a row of k.
};

#define BLOCKS_SLOT 1
#include "blocks.glsl"
#include "block_product.glsl"

shared float partial[gl_WorkGroupSize.x];

float product(vec4 left[8], vec4 right[8]) {
    vec4 sum = left[0] * right[0];
    [[unroll]] for (uint i = 1; i < 8; ++i) sum += left[i] * right[i];
    return (sum.x + sum.y) + (sum.z + sum.w);
}

void load_left(uint chunk, out vec4 left[8]) {
    [[unroll]] for (uint i = 0; i < 8; ++i) left[i] = lhs[chunk * 8 + i];
}

// What an invocation's team has together.
float together(float sum, uint lane) {
    if (SPAN == 1) return sum;
    barrier();
    partial[gl_LocalInvocationIndex] = sum;
    barrier();
    for (uint rest = SPAN / 2; rest > 0; rest /= 2) {
        if (lane < rest) partial[gl_LocalInvocationIndex] += partial[gl_LocalInvocationIndex + rest];
        barrier();
    }
    return partial[gl_LocalInvocationIndex];
}

// Rows of weights for a row of results.
const uint READ = COLUMNS * (GATED ? 2 : 1);

void main() {
    const uint lane = gl_LocalInvocationIndex % SPAN, team = gl_LocalInvocationIndex / SPAN;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint column0 = (group * (gl_WorkGroupSize.x / SPAN) + team) * COLUMNS;

    float sums[ROWS * READ];
    [[unroll]] for (uint i = 0; i < ROWS * READ; ++i) sums[i] = 0.0;
    for (uint chunk = lane; chunk < chunks; chunk += SPAN) {
        vec4 left[8], right[8];
        // One row stays in registers. Of more there is no room for all: they are read again for each column.
        if (ROWS == 1) load_left(chunk, left);
        [[unroll]] for (uint c = 0; c < READ; ++c) {
            const uint row = min(column0 + c % COLUMNS, N - 1) + c / COLUMNS * N;
            load_chunk(row * ROW_BYTES(chunks), chunk, right);
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                if (ROWS > 1) load_left(r * chunks + chunk, left);
                sums[r * READ + c] += product(left, right);
            }
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = column0 + c, at = r * N + column;
            const float sum = together(sums[r * READ + c], lane);
            if (GATED) {
                const float other = together(sums[r * READ + (GATED ? COLUMNS : 0) + c], lane);
                if (lane == 0 && column < N) result[at] = activate(sum, ACTIVATION) * other;
            } else if (lane == 0 && column < N) {
                result[at] = finished(at, column, sum);
            }
        }
    }
}
