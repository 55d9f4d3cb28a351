// out[b] = lhs[b] * rhs[b] of signed bytes for processors that run Vulkan: as rows.comp, but four terms of a sum are read as a word.
// Products are added as floats, which is exact for up to 1024 of them, and faster than as integers. Rows of the left operand are whole
// words, and those of the right one, whichever way it lies.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool RHS_TRANSPOSED = false;
// Whether rows of results are whole quads.
layout(constant_id = 2) const bool OUT_QUADS = false;
layout(constant_id = 3) const uint ADDED = 0;
layout(constant_id = 4) const uint ACTIVATION = 0;

layout(set = 0, binding = 0) readonly buffer Left { uint lhs[]; };
layout(set = 0, binding = 1) readonly buffer Right { uint rhs[]; };
ELEMENT_BUFFER(2, result, , OUT);
QUAD_BUFFER(2, result4, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
};

#define ACCUMULATOR int
#define QUAD ivec4

#define LIMITS_ONLY
#include "product.glsl"

#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

// Terms whose sum a float holds exactly.
const uint TERMS = 1024;

// Four columns of four rows of the right operand: transposed, a word has four rows of a column, else four columns of a row.
ivec4 right_words(uvec4 at) {
    return ivec4(rhs[at.x], rhs[at.y], rhs[at.z], rhs[at.w]);
}

// Four columns of the j-th of those rows.
vec4 right_row(ivec4 words, int j) {
    if (RHS_TRANSPOSED) return vec4((words << (24 - 8 * j)) >> 24);
    return vec4((ivec4(words[j]) << ivec4(24, 16, 8, 0)) >> 24);
}

void store(uint at, uint c, ivec4 value) {
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

    // Outside, elements are those of the last column or of the first quad, and their sums are not stored.
    const uvec4 ahead = uvec4(0, 1, 2, 3), last = uvec4(N - 1);
    const uvec4 near = RHS_TRANSPOSED ? min(column0 + ahead, last) * (K / 4) : (column0 < N ? column0 : 0) / 4 + ahead * (N / 4);
    const uvec4 far = RHS_TRANSPOSED ? min(column1 + ahead, last) * (K / 4) : (column1 < N ? column1 : 0) / 4 + ahead * (N / 4);
    const uint step = RHS_TRANSPOSED ? 1 : N;
    uvec4 at0 = batch * rhs_stride / 4 + near, at1 = batch * rhs_stride / 4 + far;

#define START(i) \
    ivec4 near##i = ivec4(0), far##i = ivec4(0); \
    const uint left##i = (batch * M + min(row0 + i, M - 1)) * (K / 4);
    EACH_ROW(START)

    for (uint first = 0; first < K; first += TERMS) {
#define BEGIN(i) vec4 near_sum##i = vec4(0), far_sum##i = vec4(0);
        EACH_ROW(BEGIN)
        const uint end = min(K, first + TERMS) / 4;
        for (uint k = first / 4; k < end; ++k) {
            const ivec4 words0 = right_words(at0), words1 = right_words(at1);
            at0 += step;
            at1 += step;
            const vec4 b00 = right_row(words0, 0), b01 = right_row(words0, 1), b02 = right_row(words0, 2), b03 = right_row(words0, 3);
            const vec4 b10 = right_row(words1, 0), b11 = right_row(words1, 1), b12 = right_row(words1, 2), b13 = right_row(words1, 3);
#define MULTIPLY(i) \
            { \
                const int word = int(lhs[left##i + k]); \
                const vec4 a = vec4((ivec4(word) << ivec4(24, 16, 8, 0)) >> 24); \
                near_sum##i += a.x * b00 + a.y * b01 + a.z * b02 + a.w * b03; \
                far_sum##i += a.x * b10 + a.y * b11 + a.z * b12 + a.w * b13; \
            }
            EACH_ROW(MULTIPLY)
        }
#define ADD(i) \
        near##i += ivec4(near_sum##i); \
        far##i += ivec4(far_sum##i);
        EACH_ROW(ADD)
    }

    // The code that stores is there once, and not for every result.
    ivec4 results[16];
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
