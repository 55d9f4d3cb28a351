// out[b] = lhs[b] * rhs[b] for few rows of 16-bit floats: an invocation reads eight times eight neighbours of the right operand at a
// time, 16 bytes each, for eight columns of all ROWS rows. SLICES of them share the sums, and add them in two steps through
// shared memory. Rows of both operands and of the result are whole octets.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SLICES = 32;  // A power of two, from 8 on.
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool RHS_TRANSPOSED = false;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;

layout(set = 0, binding = 0) readonly buffer lhs_block { uvec4 lhs8[]; };
layout(set = 0, binding = 1) readonly buffer rhs_block { uvec4 rhs8[]; };
QUAD_BUFFER(2, result4, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
};

#define ACCUMULATOR float
#define QUAD vec4

#include "product.glsl"

// Slices that one invocation adds in the first step.
const uint ADDS = 8;

shared vec4 partial[2 * gl_WorkGroupSize.x];
shared vec4 second[2 * gl_WorkGroupSize.x / ADDS];

// Eight halves as floats.
void unpack(uvec4 words, out vec4 low, out vec4 high) {
    low = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    high = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
}

void main() {
    const uint lane = gl_LocalInvocationIndex, teams = gl_WorkGroupSize.x / SLICES;
    // Neighbours read neighbouring elements, whichever way the right operand lies.
    const uint slice = RHS_TRANSPOSED ? lane % SLICES : lane / teams;
    const uint team = RHS_TRANSPOSED ? lane / SLICES : lane % teams;
    const uint batch = gl_WorkGroupID.z;
    // Columns behind the end are those before it again, and are not stored.
    const uint column = min((gl_WorkGroupID.x * teams + team) * 8, N - 8);
    const uint lhs_base = batch * M * (K / 8);
    const uint rhs_base = batch * (rhs_stride / 8);
    // From one of the eight vectors of a turn to the next, and from the first of a turn to that of the next.
    const uint step = RHS_TRANSPOSED ? K / 8 : N / 8, turn = SLICES * (RHS_TRANSPOSED ? 1 : N);
    uint at = rhs_base + (RHS_TRANSPOSED ? column * (K / 8) + slice : slice * N + column / 8);

    vec4 sums[2 * ROWS];
    [[unroll]] for (uint r = 0; r < 2 * ROWS; ++r) sums[r] = vec4(0);

    for (uint k = slice; k < K / 8; k += SLICES, at += turn) {
        uvec4 words[8];
        [[unroll]] for (uint j = 0; j < 8; ++j) words[j] = rhs8[at + j * step];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            vec4 left[2];
            unpack(lhs8[lhs_base + min(r, M - 1) * (K / 8) + k], left[0], left[1]);
            [[unroll]] for (uint j = 0; j < 8; ++j) {
                vec4 low, high;
                unpack(words[j], low, high);
                if (RHS_TRANSPOSED) {
                    sums[2 * r + j / 4][j % 4] += dot(left[0], low) + dot(left[1], high);
                } else {
                    const float factor = left[j / 4][j % 4];
                    sums[2 * r] += factor * low;
                    sums[2 * r + 1] += factor * high;
                }
            }
        }
    }

    const uint width = 2 * teams, quad = lane % width, group = lane / width;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        partial[slice * width + 2 * team] = sums[2 * r];
        partial[slice * width + 2 * team + 1] = sums[2 * r + 1];
        barrier();
        if (group < SLICES / ADDS) {
            vec4 sum = vec4(0);
            [[unroll]] for (uint i = 0; i < ADDS; ++i) sum += partial[(group * ADDS + i) * width + quad];
            second[group * width + quad] = sum;
        }
        barrier();
        const uint c = gl_WorkGroupID.x * teams * 8 + 4 * quad;
        if (group == 0 && c < N && r < M) {
            vec4 sum = second[quad];
            for (uint i = 1; i < SLICES / ADDS; ++i) sum += second[i * width + quad];
            const uint place = (batch * M + r) * N + c;
            CONCAT(STORE4_, OUT)(result4, place / 4, finished4(place, c, sum));
        }
    }
}
