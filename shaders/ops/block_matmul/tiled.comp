// out = lhs * weights, with weights in blocks: a workgroup computes BM x BN results, an invocation TM x 4 of them, a chunk of 32
// of the inner dimension at a time through shared memory, where weights are floats.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 32;
layout(constant_id = 2) const uint BN = 32;
layout(constant_id = 3) const uint TM = 4;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint M, N;
    uint chunks;  // In a row of k.
};

#define BLOCKS_SLOT 1
#include "blocks.glsl"
#include "block_product.glsl"

const uint TN = 4;
const uint LHS_ROW = BM / 4 + 1, RHS_ROW = BN / 4 + 1;
const uint down = BM / TM, across = BN / TN;

shared vec4 tile_lhs[32 * LHS_ROW];
shared vec4 tile_rhs[32 * RHS_ROW];

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint row0 = gl_WorkGroupID.y * BM, column0 = gl_WorkGroupID.x * BN;
    const uint my_row = lane / across, my_column = lane % across;

    vec4 sums[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i) sums[i] = vec4(0);

    for (uint chunk = 0; chunk < chunks; ++chunk) {
        for (uint i = lane; i < BM * 8; i += lanes) {
            const uint r = i / 8, k = i % 8 * 4;
            const vec4 four = lhs[(min(row0 + r, M - 1) * chunks + chunk) * 8 + i % 8];
            [[unroll]] for (uint j = 0; j < 4; ++j) tile_lhs[(k + j) * LHS_ROW + r / 4][r % 4] = four[j];
        }
        for (uint c = lane; c < BN; c += lanes) {
            vec4 values[8];
            load_chunk(min(column0 + c, N - 1) * ROW_BYTES(chunks), chunk, values);
            [[unroll]] for (uint i = 0; i < 8; ++i) {
                [[unroll]] for (uint j = 0; j < 4; ++j)
                    tile_rhs[(i * 4 + j) * RHS_ROW + c / 4][c % 4] = values[i][j];
            }
        }
        barrier();
        for (uint k = 0; k < 32; ++k) {
            const vec4 right = tile_rhs[k * RHS_ROW + my_column];
            [[unroll]] for (uint i = 0; i < TM; i += 4) {
                const vec4 left = tile_lhs[k * LHS_ROW + my_row + i / 4 * down];
                [[unroll]] for (uint j = 0; j < 4; ++j) sums[i + j] += left[j] * right;
            }
        }
        barrier();
    }

    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = row0 + (my_row + i / 4 * down) * 4 + i % 4;
        if (r < M) {
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                const uint c = column0 + my_column * 4 + j;
                if (c < N) result[r * N + c] = finished(r * N + c, c, sums[i][j]);
            }
        }
    }
}
