// out[b] = lhs[b] * rhs[b] for processors that run Vulkan: nothing is shared, because barriers are slow there. An
// invocation computes eight rows of two quads of columns, neighbours have neighbouring quads. Any shape. Sums are variables
// of their own and loops are written out, because SwiftShader keeps arrays in memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool RHS_TRANSPOSED = false;
// Whether rows of each tensor are whole quads.
layout(constant_id = 2) const bool RHS_QUADS = false;
layout(constant_id = 3) const bool OUT_QUADS = false;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;

ELEMENT_BUFFER(0, lhs, readonly, LHS);
ELEMENT_BUFFER(1, rhs, readonly, RHS);
ELEMENT_BUFFER(2, result, , OUT);
QUAD_BUFFER(1, rhs4, readonly, RHS);
QUAD_BUFFER(2, result4, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
};

#define ACCUMULATOR CONCAT(REGISTER_, ACC)
#define QUAD CONCAT(QUAD_REGISTER_, ACC)

#define LIMITS_ONLY
#include "product.glsl"

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define RIGHT(at) ACCUMULATOR(CONCAT(LOAD_, RHS)(rhs, at))

// Four columns of a row of the right operand, whose first elements are at c, or at c.x, c.y, c.z and c.w.
QUAD right_quad(uvec4 c) {
    if (RHS_QUADS) return QUAD(CONCAT(LOAD4_, RHS)(rhs4, c.x / 4));
    return QUAD(RIGHT(c.x), RIGHT(c.y), RIGHT(c.z), RIGHT(c.w));
}

void store(uint at, uint c, QUAD value) {
    if (OUT_QUADS) {
        if (c < N) CONCAT(STORE4_, OUT)(result4, at / 4, finished4(at, c, value));
        return;
    }
    for (uint i = 0; i < 4; ++i) {
        if (c + i < N) CONCAT(STORE_, OUT)(result, at + i, finished(at + i, c + i, value[i]));
    }
}

void main() {
    const uint row0 = gl_WorkGroupID.y * 8, batch = gl_WorkGroupID.z, lanes = gl_WorkGroupSize.x;
    const uint column0 = (gl_WorkGroupID.x * 2 * lanes + gl_LocalInvocationIndex) * 4, column1 = column0 + lanes * 4;

    // Outside, elements are those of the last row or column (of the first quad), and their sums are not stored.
    const uvec4 last = uvec4(N - 1), ahead = uvec4(0, 1, 2, 3);
    const uvec4 near = RHS_QUADS ? uvec4(column0 < N ? column0 : 0) : min(column0 + ahead, last);
    const uvec4 far = RHS_QUADS ? uvec4(column1 < N ? column1 : 0) : min(column1 + ahead, last);
    const uint step = RHS_TRANSPOSED ? 1 : N, stride = RHS_TRANSPOSED ? K : 1;
    uvec4 at0 = batch * rhs_stride + near * stride, at1 = batch * rhs_stride + far * stride;

#define START(i) \
    QUAD near##i = QUAD(0), far##i = QUAD(0); \
    const uint left##i = (batch * M + min(row0 + i, M - 1)) * K;
    EACH_ROW(START)

    for (uint k = 0; k < K; ++k) {
        const QUAD b0 = right_quad(at0), b1 = right_quad(at1);
        at0 += step;
        at1 += step;
#define MULTIPLY(i) \
        { \
            const ACCUMULATOR a = ACCUMULATOR(CONCAT(LOAD_, LHS)(lhs, left##i + k)); \
            near##i += a * b0; \
            far##i += a * b1; \
        }
        EACH_ROW(MULTIPLY)
    }

    // The code that stores is there once, and not for every result.
    QUAD results[16];
#define KEEP(i) \
    results[2 * i] = near##i; \
    results[2 * i + 1] = far##i;
    EACH_ROW(KEEP)
    const uint there = min(M - row0, 8) * 2;
    for (uint i = 0; i < there; ++i) {
        const uint c = i % 2 == 0 ? column0 : column1;
        store((batch * M + row0 + i / 2) * N + c, c, results[i]);
    }
}
