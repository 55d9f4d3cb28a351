// out = lhs * weights for few rows of lhs: SPAN neighbouring invocations share the sums of COLUMNS columns, a chunk of 32
// of the inner dimension at a time, and add them through shared memory. Weights are read once, in 16-byte words.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef USE_DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;    // A power of two, from 8 on.
layout(constant_id = 2) const uint COLUMNS = 2;  // Up to SPAN.
layout(constant_id = 3) const uint ROWS = 1;     // Rows of lhs, up to 8.
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const bool HALF_SCALES = true;
layout(constant_id = 6) const bool ZERO_POINTS = false;
layout(constant_id = 7) const bool LEFT_ZEROS = false;
layout(constant_id = 8) const uint ADDED = 0;
layout(constant_id = 9) const uint ACTIVATION = 0;

#include "quantized.glsl"

layout(set = 0, binding = 0) readonly buffer Left { uvec4 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 2) readonly buffer Scales { uint scales[]; };
layout(set = 0, binding = 3) readonly buffer Zeros { uint zeros[]; };      // Any buffer without ZERO_POINTS.
layout(set = 0, binding = 4) readonly buffer LeftScales { float lhs_scales[]; };  // Any buffer unless lhs is i8.
ELEMENT_BUFFER(5, result, , OUT);
layout(set = 0, binding = 6) readonly buffer LeftZeros { int lhs_zeros[]; };  // Any buffer without LEFT_ZEROS.

#define ACCUMULATOR float
#define QUAD vec4
#define BIAS_SLOT 7
#define RESIDUAL_SLOT 8
#include "product.glsl"

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;  // In a row of k.
    uint group;   // Chunks in a group.
};

shared float partial[gl_WorkGroupSize.x * COLUMNS];

#ifdef LHS_F32
#define LHS_WORDS 8
#define VALUE float
#elif defined(LHS_F16P)
#define LHS_WORDS 4
#define VALUE float
#else
#define LHS_WORDS 2
#define VALUE int
#endif

VALUE left[32];
uint packed[8];

// The chunk of a row of lhs.
void load_left(uint at) {
    [[unroll]] for (uint i = 0; i < LHS_WORDS; ++i) {
        const uvec4 words = lhs[at * LHS_WORDS + i];
        [[unroll]] for (uint j = 0; j < 4; ++j) {
#ifdef LHS_F32
            left[i * 4 + j] = uintBitsToFloat(words[j]);
#elif defined(LHS_F16P)
            const vec2 pair = unpackHalf2x16(words[j]);
            left[i * 8 + j * 2] = pair.x;
            left[i * 8 + j * 2 + 1] = pair.y;
#elif defined(USE_DOT)
            packed[i * 4 + j] = words[j];
#else
            [[unroll]] for (uint l = 0; l < 4; ++l) left[i * 16 + j * 4 + l] = int(words[j] << (24 - 8 * l)) >> 24;
#endif
        }
    }
}

#ifdef USE_DOT
// The sum of the products of a chunk, with four products an instruction; both sides less their zero points.
float products(uint words[8], int zero, int left_zero) {
    int sum = 0, total = 0;
    uint all = 0u;
    if (LEFT_ZEROS) {
        [[unroll]] for (uint i = 0; i < WEIGHT_WORDS; ++i) {
            if (BITS == 8) {
                all = dotPacked4x8EXT(words[i], 0x01010101u) + all;
            } else {
                all = dotPacked4x8EXT(words[i] & 0x0F0F0F0Fu, 0x01010101u) + all;
                all = dotPacked4x8EXT((words[i] >> 4) & 0x0F0F0F0Fu, 0x01010101u) + all;
            }
        }
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        total = dotPacked4x8EXT(int(packed[i]), 0x01010101u) + total;
        if (BITS == 8) sum = dotPacked4x8EXT(int(packed[i]), words[i]) + sum;
    }
    if (BITS == 4) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            // Even and odd places of eight.
            const uint a = packed[2 * i], b = packed[2 * i + 1];
            const uint even = (a & 0xFFu) | ((a >> 8) & 0xFF00u) | ((b & 0xFFu) << 16) | ((b << 8) & 0xFF000000u);
            const uint odd = ((a >> 8) & 0xFFu) | ((a >> 16) & 0xFF00u) | ((b << 8) & 0xFF0000u) | (b & 0xFF000000u);
            sum = dotPacked4x8EXT(int(even), words[i] & 0x0F0F0F0Fu) + sum;
            sum = dotPacked4x8EXT(int(odd), (words[i] >> 4) & 0x0F0F0F0Fu) + sum;
        }
    }
    return float(sum - zero * total - left_zero * (int(all) - 32 * zero));
}
#elif defined(LHS_I8P)
float products(uint words[8], int zero, int left_zero) {
    int sum = 0;
    const uint each = 32 / WEIGHT_WORDS;
    [[unroll]] for (uint i = 0; i < WEIGHT_WORDS; ++i) {
        [[unroll]] for (uint j = 0; j < each; ++j)
            sum += (left[i * each + j] - left_zero) * (int(bitfieldExtract(words[i], int(BITS * j), int(BITS))) - zero);
    }
    return float(sum);
}
#else
float products(uint words[8], float zero, int left_zero) {
    return chunk_products(left, words, zero);
}
#endif

float scale_of(uint at) {
    return HALF_SCALES ? unpackHalf2x16(scales[at / 2])[at % 2] : uintBitsToFloat(scales[at]);
}

void main() {
    const uint lane = gl_LocalInvocationIndex % SPAN, team = gl_LocalInvocationIndex / SPAN;
    const uint teams = gl_WorkGroupSize.x / SPAN;
    const uint column0 = (gl_WorkGroupID.x * teams + team) * COLUMNS;
    const uint groups = chunks / group;

    float sums[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i) sums[i] = 0.0;

    int left_zero[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) left_zero[r] = LEFT_ZEROS ? lhs_zeros[r] : 0;

    for (uint chunk = lane; chunk < chunks; chunk += SPAN) {
        uint words[COLUMNS][8];
        float scale[COLUMNS];
        VALUE zero[COLUMNS];
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = min(column0 + c, N - 1);
            [[unroll]] for (uint i = 0; i < WEIGHT_WORDS / 4; ++i) {
                const uvec4 four = weights[(column * chunks + chunk) * (WEIGHT_WORDS / 4) + i];
                [[unroll]] for (uint j = 0; j < 4; ++j) words[c][i * 4 + j] = four[j];
            }
            const uint at = column * groups + chunk / group;
            scale[c] = scale_of(at);
            zero[c] = ZERO_POINTS ? VALUE(LOAD_U8P(zeros, at)) : VALUE(1u << (BITS - 1));
        }
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            load_left(r * chunks + chunk);
            [[unroll]] for (uint c = 0; c < COLUMNS; ++c)
                sums[r * COLUMNS + c] += scale[c] * products(words[c], zero[c], left_zero[r]);
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c)
            partial[(team * COLUMNS + c) * SPAN + lane] = sums[r * COLUMNS + c];
        barrier();
        for (uint rest = SPAN / 2; rest >= 4; rest /= 2) {
            if (lane < rest) {
                [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
                    const uint at = (team * COLUMNS + c) * SPAN + lane;
                    partial[at] += partial[at + rest];
                }
            }
            barrier();
        }
        if (lane < COLUMNS && column0 + lane < N) {
            const uint at = (team * COLUMNS + lane) * SPAN;
            float sum = (partial[at] + partial[at + 1]) + (partial[at + 2] + partial[at + 3]);
#ifdef LHS_I8P
            sum *= lhs_scales[r];
#endif
            const uint column = column0 + lane;
            CONCAT(STORE_, OUT)(result, r * N + column, finished(r * N + column, column, sum));
        }
        barrier();
    }
}
