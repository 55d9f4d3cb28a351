// out[b] = lhs[b] * rhs[b]: a workgroup computes BM x BN results, an invocation TM x TN of them, BK of the inner
// dimension at a time through shared memory. Any shape; the edges are padded with zeros. product.glsl finishes the sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint BK = 16;
layout(constant_id = 4) const uint TM = 4;
layout(constant_id = 5) const uint TN = 4;
layout(constant_id = 6) const bool RHS_TRANSPOSED = false;
layout(constant_id = 7) const uint ADDED = 0;
layout(constant_id = 8) const uint ACTIVATION = 0;

ELEMENT_BUFFER(0, lhs, readonly, LHS);
ELEMENT_BUFFER(1, rhs, readonly, RHS);
ELEMENT_BUFFER(2, result, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
};

#define ACCUMULATOR CONCAT(REGISTER_, ACC)
#define QUAD CONCAT(QUAD_REGISTER_, ACC)

#include "product.glsl"

shared ACCUMULATOR tile_lhs[BK * (BM + 1)];
shared ACCUMULATOR tile_rhs[BK * (BN + 1)];

void main() {
    const uint lanes = gl_WorkGroupSize.x;
    const uint lane = gl_LocalInvocationID.x;
    const uint row0 = gl_WorkGroupID.y * BM, column0 = gl_WorkGroupID.x * BN, batch = gl_WorkGroupID.z;
    const uint lhs_base = batch * M * K, rhs_base = batch * rhs_stride, out_base = batch * M * N;
    const uint across = BN / TN;
    const uint my_row = lane / across, my_column = lane % across;
    const uint down = BM / TM;

    ACCUMULATOR sums[TM * TN];
    for (uint i = 0; i < TM * TN; ++i) sums[i] = ACCUMULATOR(0);

    for (uint k0 = 0; k0 < K; k0 += BK) {
        for (uint i = lane; i < BM * BK; i += lanes) {
            const uint r = i / BK, k = i % BK;
            const bool inside = row0 + r < M && k0 + k < K;
            ACCUMULATOR value = ACCUMULATOR(0);
            if (inside) value = ACCUMULATOR(CONCAT(LOAD_, LHS)(lhs, lhs_base + (row0 + r) * K + k0 + k));
            tile_lhs[k * (BM + 1) + r] = value;
        }
        for (uint i = lane; i < BN * BK; i += lanes) {
            // Neighbouring invocations read neighbouring elements, whichever way the matrix lies.
            const uint k = RHS_TRANSPOSED ? i % BK : i / BN, c = RHS_TRANSPOSED ? i / BK : i % BN;
            const bool inside = column0 + c < N && k0 + k < K;
            const uint at = RHS_TRANSPOSED ? (column0 + c) * K + k0 + k : (k0 + k) * N + column0 + c;
            ACCUMULATOR value = ACCUMULATOR(0);
            if (inside) value = ACCUMULATOR(CONCAT(LOAD_, RHS)(rhs, rhs_base + at));
            tile_rhs[k * (BN + 1) + c] = value;
        }
        barrier();
        for (uint k = 0; k < BK; ++k) {
            ACCUMULATOR left[TM];
            for (uint i = 0; i < TM; ++i) left[i] = tile_lhs[k * (BM + 1) + my_row + i * down];
            for (uint j = 0; j < TN; ++j) {
                const ACCUMULATOR right = tile_rhs[k * (BN + 1) + my_column + j * across];
                for (uint i = 0; i < TM; ++i) sums[i * TN + j] += left[i] * right;
            }
        }
        barrier();
    }

    for (uint i = 0; i < TM; ++i) {
        const uint r = row0 + my_row + i * down;
        for (uint j = 0; j < TN; ++j) {
            const uint c = column0 + my_column + j * across;
            const uint at = out_base + r * N + c;
            if (r < M && c < N) CONCAT(STORE_, OUT)(result, at, finished(at, c, sums[i * TN + j]));
        }
    }
}
