// out = lhs * weights for devices that run on a CPU: an invocation has COLUMNS columns of ROWS rows, a chunk of 32 of the inner dimension
// at a time. The invocations of a subgroup read a part of the activations each and give it to the others, as in block_matmul/given.comp.
// Nothing is shared, and there are no barriers. Products of bytes are added as floats, which is exact for a chunk of them.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;  // SUBGROUP.
layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint COLUMNS = 8;
layout(constant_id = 3) const uint BITS = 4;
layout(constant_id = 4) const bool HALF_SCALES = true;
layout(constant_id = 5) const bool ZERO_POINTS = false;
layout(constant_id = 6) const bool LEFT_ZEROS = false;
layout(constant_id = 7) const uint ADDED = 0;
layout(constant_id = 8) const uint ACTIVATION = 0;

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

float scale_of(uint at) {
    return HALF_SCALES ? unpackHalf2x16(scales[at / 2])[at % 2] : uintBitsToFloat(scales[at]);
}

vec4 given[ROWS * 8];

// What all of the subgroup read of a chunk of the rows.
void give(uint row0, uint chunk, uint lane) {
    [[unroll]] for (uint h = 0; h < 8 / SUBGROUP; ++h) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const uint row = min(row0 + r, M - 1);
            vec4 mine = vec4(CONCAT(LOAD4_, LHS)(lhs, (row * chunks + chunk) * 8 + h * SUBGROUP + lane));
            if (LEFT_ZEROS) mine -= float(lhs_zeros[row]);
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) given[r * 8 + h * SUBGROUP + j] = FROM_INVOCATION(mine, j);
        }
    }
}

vec4 codes[8];

// The weights of a chunk of a column, less `zero`.
void take(uint at, float zero) {
    [[unroll]] for (uint i = 0; i < WEIGHT_WORDS; ++i) {
        const uint word = weights[at * WEIGHT_WORDS + i];
        if (BITS == 4) {
            codes[2 * i] = vec4((ivec4(word) >> ivec4(0, 4, 8, 12)) & 15) - zero;
            codes[2 * i + (BITS == 4 ? 1 : 0)] = vec4((ivec4(word) >> ivec4(16, 20, 24, 28)) & 15) - zero;
        } else {
            codes[i] = vec4((ivec4(word) >> ivec4(0, 8, 16, 24)) & 255) - zero;
        }
    }
}

void main() {
    const uint lane = gl_SubgroupInvocationID % SUBGROUP, row0 = gl_WorkGroupID.y * ROWS;
    const uint column0 = (gl_WorkGroupID.x * SUBGROUP + lane) * COLUMNS;
    const uint groups = chunks / group;

    float sums[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i) sums[i] = 0.0;
    for (uint chunk = 0; chunk < chunks; ++chunk) {
        give(row0, chunk, lane);
        const uint in_group = chunk / group;
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = min(column0 + c, N - 1), at = column * groups + in_group;
            const float scale = scale_of(at);
            take(column * chunks + chunk, ZERO_POINTS ? float(LOAD_U8P(zeros, at)) : float(1u << (BITS - 1)));
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                vec4 terms = given[r * 8] * codes[0];
                [[unroll]] for (uint q = 1; q < 8; ++q) terms += given[r * 8 + q] * codes[q];
                sums[r * COLUMNS + c] += scale * ((terms.x + terms.y) + (terms.z + terms.w));
            }
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (row0 + r >= M) break;
#ifdef LHS_I8P
        const float factor = lhs_scales[row0 + r];
#else
        const float factor = 1.0;
#endif
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = column0 + c;
            const uint at = (row0 + r) * N + column;
            if (column < N) CONCAT(STORE_, OUT)(result, at, finished(at, column, factor * sums[r * COLUMNS + c]));
        }
    }
}
