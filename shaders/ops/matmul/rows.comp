// out[b] = lhs[b] * rhs[b] for processors that run Vulkan: nothing is shared, because barriers are slow there; an invocation
// computes TM rows of TN columns, and neighbours have neighbouring columns, so that the elements of lhs are the same for
// all of a workgroup. Any shape.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TM = 4;
layout(constant_id = 2) const uint TN = 2;
layout(constant_id = 3) const bool RHS_TRANSPOSED = false;

ELEMENT_BUFFER(0, lhs, readonly, LHS);
ELEMENT_BUFFER(1, rhs, readonly, RHS);
ELEMENT_BUFFER(2, result, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
};

#define ACCUMULATOR CONCAT(REGISTER_, ACC)

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint row0 = gl_WorkGroupID.y * TM, batch = gl_WorkGroupID.z;
    const uint column0 = gl_WorkGroupID.x * lanes * TN + lane;

    uint left[TM], right[TN];
    [[unroll]] for (uint i = 0; i < TM; ++i) left[i] = (batch * M + min(row0 + i, M - 1)) * K;
    [[unroll]] for (uint j = 0; j < TN; ++j) {
        const uint column = min(column0 + j * lanes, N - 1);
        right[j] = batch * rhs_stride + (RHS_TRANSPOSED ? column * K : column);
    }
    const uint step = RHS_TRANSPOSED ? 1 : N;

    ACCUMULATOR sums[TM * TN];
    [[unroll]] for (uint i = 0; i < TM * TN; ++i) sums[i] = ACCUMULATOR(0);
    for (uint k = 0; k < K; ++k) {
        ACCUMULATOR b[TN];
        [[unroll]] for (uint j = 0; j < TN; ++j) b[j] = ACCUMULATOR(CONCAT(LOAD_, RHS)(rhs, right[j] + k * step));
        [[unroll]] for (uint i = 0; i < TM; ++i) {
            const ACCUMULATOR a = ACCUMULATOR(CONCAT(LOAD_, LHS)(lhs, left[i] + k));
            [[unroll]] for (uint j = 0; j < TN; ++j) sums[i * TN + j] += a * b[j];
        }
    }

    [[unroll]] for (uint i = 0; i < TM; ++i) {
        [[unroll]] for (uint j = 0; j < TN; ++j) {
            const uint c = column0 + j * lanes;
            if (row0 + i < M && c < N) CONCAT(STORE_, OUT)(result, (batch * M + row0 + i) * N + c, sums[i * TN + j]);
        }
    }
}
