// out = lhs * weights for SwiftShader: as given.comp, but what is held has names, as an array there is memory that each invocation reads
// by itself. An invocation has four columns of HELD rows (1 or 8). Of eight rows, an invocation of the subgroup reads two; of one row,
// two quads. Weights are multiplied by their scale, once for all rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;  // SUBGROUP.
layout(constant_id = 1) const uint BITS = 4;
layout(constant_id = 2) const bool HALF_SCALES = true;
layout(constant_id = 3) const bool ZERO_POINTS = false;
layout(constant_id = 4) const bool LEFT_ZEROS = false;
layout(constant_id = 5) const uint ADDED = 0;
layout(constant_id = 6) const uint ACTIVATION = 0;

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

#if HELD == 8
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH_ROW(X) X(0)
#endif

float scale_of(uint at) {
    return HALF_SCALES ? unpackHalf2x16(scales[at / 2])[at % 2] : uintBitsToFloat(scales[at]);
}

float zero_of(uint at) {
    return ZERO_POINTS ? float(LOAD_U8P(zeros, at)) : float(1u << (BITS - 1));
}

vec4 left(uint quad, float zero) {
    return vec4(CONCAT(LOAD4_, LHS)(lhs, quad)) - zero;
}

float left_zero(uint row) {
    return LEFT_ZEROS ? float(lhs_zeros[row]) : 0.0;
}

// One of the four weights of a quad of each column. `first`: its lowest bit.
vec4 place(ivec4 words, int first, vec4 scale, vec4 zero) {
    return vec4((words >> first) & int((1u << BITS) - 1u)) * scale - zero;
}

void main() {
    const uint lane = gl_SubgroupInvocationID % SUBGROUP, row0 = gl_WorkGroupID.y * HELD;
    const uint column0 = (gl_WorkGroupID.x * SUBGROUP + lane) * 4;
    const uvec4 columns = min(uvec4(column0) + uvec4(0, 1, 2, 3), uvec4(N - 1));
    const uint groups = chunks / group;

#define START(i) vec4 sum##i = vec4(0);
    EACH_ROW(START)
    const uint near_row = min(row0 + lane, M - 1), far_row = min(row0 + lane + SUBGROUP, M - 1);
    const uint near = near_row * chunks * 8, far = far_row * chunks * 8;
    // Of one row, all have that.
    const float near_zero = left_zero(HELD == 1 ? row0 : near_row), far_zero = left_zero(far_row);

    vec4 scale = vec4(0), zero = vec4(0);
    for (uint chunk = 0; chunk < chunks; ++chunk) {
        if (chunk % group == 0) {
            const uvec4 at = columns * groups + chunk / group;
            scale = vec4(scale_of(at.x), scale_of(at.y), scale_of(at.z), scale_of(at.w));
            zero = vec4(zero_of(at.x), zero_of(at.y), zero_of(at.z), zero_of(at.w)) * scale;
        }
        uvec4 words_at = (columns * chunks + chunk) * WEIGHT_WORDS;
        ivec4 words = ivec4(0);
#if HELD == 1
        const uint row = (row0 * chunks + chunk) * 8 + lane;
        const vec4 first_half = left(row, near_zero), second_half = left(row + SUBGROUP, near_zero);
#endif
        for (uint q = 0; q < 8; ++q) {
            if (BITS == 8 || q % 2 == 0) {
                words = ivec4(weights[words_at.x], weights[words_at.y], weights[words_at.z], weights[words_at.w]);
                words_at += 1;
            } else {
                words >>= 16;
            }
            const vec4 b0 = place(words, 0, scale, zero), b1 = place(words, int(BITS), scale, zero);
            const vec4 b2 = place(words, int(2 * BITS), scale, zero), b3 = place(words, int(3 * BITS), scale, zero);
#if HELD == 8
            const vec4 mine0 = left(near + chunk * 8 + q, near_zero), mine1 = left(far + chunk * 8 + q, far_zero);
#define MULTIPLY(i) \
            { \
                const vec4 a = FROM_INVOCATION(i < SUBGROUP ? mine0 : mine1, i % SUBGROUP); \
                sum##i += a.x * b0 + a.y * b1 + a.z * b2 + a.w * b3; \
            }
            EACH_ROW(MULTIPLY)
#else
            const vec4 a = FROM_INVOCATION(q < SUBGROUP ? first_half : second_half, q % SUBGROUP);
            sum0 += a.x * b0 + a.y * b1 + a.z * b2 + a.w * b3;
#endif
        }
    }

    // The code that stores is there once, and not for every result.
    vec4 results[HELD];
#define KEEP(i) results[i] = sum##i;
    EACH_ROW(KEEP)
    const uint there = min(M - row0, HELD);
    for (uint i = 0; i < there; ++i) {
#ifdef LHS_I8P
        const vec4 all = results[i] * lhs_scales[row0 + i];
#else
        const vec4 all = results[i];
#endif
        for (uint j = 0; j < 4; ++j) {
            const uint column = column0 + j, at = (row0 + i) * N + column;
            if (column < N) CONCAT(STORE_, OUT)(result, at, finished(at, column, all[j]));
        }
    }
}
