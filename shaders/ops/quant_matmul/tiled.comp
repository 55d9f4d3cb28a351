// out = lhs * weights: a workgroup computes BM x BN results, an invocation TM x TN of them, a chunk of 32 of the inner
// dimension at a time through shared memory, where weights are floats.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 32;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint TM = 4;
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const bool HALF_SCALES = true;
layout(constant_id = 6) const bool ZERO_POINTS = false;
layout(constant_id = 7) const bool LEFT_ZEROS = false;
layout(constant_id = 8) const uint ADDED = 0;
layout(constant_id = 9) const uint ACTIVATION = 0;

#include "quantized.glsl"

QUAD_BUFFER(0, lhs, readonly, LHS);
layout(set = 0, binding = 1) readonly buffer Weights { uint weights[]; };
layout(set = 0, binding = 2) readonly buffer Scales { uint scales[]; };
layout(set = 0, binding = 3) readonly buffer Zeros { uint zeros[]; };             // Any buffer without ZERO_POINTS.
layout(set = 0, binding = 4) readonly buffer LeftScales { float lhs_scales[]; };  // Any buffer unless lhs is i8.
ELEMENT_BUFFER(5, result, , OUT);
layout(set = 0, binding = 6) readonly buffer LeftZeros { int lhs_zeros[]; };  // Any buffer without LEFT_ZEROS.

#define ACCUMULATOR float
#define QUAD vec4
#define BIAS_SLOT 7
#define RESIDUAL_SLOT 8
#include "product.glsl"

layout(push_constant) uniform Shape {
    uint M, N;
    uint chunks;  // In a row of k.
    uint group;   // Chunks in a group.
};

const uint TN = 4;
const uint LHS_ROW = BM / 4 + 1, RHS_ROW = BN / 4 + 1;
const uint down = BM / TM, across = BN / TN;

shared vec4 tile_lhs[32 * LHS_ROW];
shared vec4 tile_rhs[32 * RHS_ROW];

float scale_of(uint at) {
    return HALF_SCALES ? unpackHalf2x16(scales[at / 2])[at % 2] : uintBitsToFloat(scales[at]);
}

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint row0 = gl_WorkGroupID.y * BM, column0 = gl_WorkGroupID.x * BN;
    const uint my_row = lane / across, my_column = lane % across;
    const uint groups = chunks / group;
    const uint each = 32 / WEIGHT_WORDS;

    vec4 sums[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i) sums[i] = vec4(0);

    for (uint chunk = 0; chunk < chunks; ++chunk) {
        for (uint i = lane; i < BM * 8; i += lanes) {
            const uint r = i / 8, k = i % 8 * 4;
            const uint row = min(row0 + r, M - 1);
            vec4 four = vec4(CONCAT(LOAD4_, LHS)(lhs, (row * chunks + chunk) * 8 + i % 8));
            if (LEFT_ZEROS) four -= float(lhs_zeros[row]);
            [[unroll]] for (uint j = 0; j < 4; ++j) tile_lhs[(k + j) * LHS_ROW + r / 4][r % 4] = four[j];
        }
        for (uint i = lane; i < BN * WEIGHT_WORDS; i += lanes) {
            const uint c = i / WEIGHT_WORDS, k = i % WEIGHT_WORDS * each, column = min(column0 + c, N - 1);
            const uint word = weights[(column * chunks + chunk) * WEIGHT_WORDS + i % WEIGHT_WORDS];
            const uint at = column * groups + chunk / group;
            const float scale = scale_of(at);
            const float zero = ZERO_POINTS ? float(LOAD_U8P(zeros, at)) : float(1u << (BITS - 1));
            for (uint j = 0; j < each; ++j)
                tile_rhs[(k + j) * RHS_ROW + c / 4][c % 4] = scale * weight_of(word, j, zero);
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
#ifdef LHS_I8P
            sums[i] *= lhs_scales[r];
#endif
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                const uint c = column0 + my_column * 4 + j;
                if (c < N) CONCAT(STORE_, OUT)(result, r * N + c, finished(r * N + c, c, sums[i][j]));
            }
        }
    }
}
