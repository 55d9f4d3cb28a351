// out = lhs * weights for rows of bytes: as tiled.comp, but what is shared stays packed, and the products of a chunk are
// summed as whole numbers, four at a time. A word of eight 4-bit weights becomes a word of the even and a word of the odd
// ones, so the bytes of lhs are put into that order, too.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_integer_dot_product : require
#include "elements.glsl"

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

layout(set = 0, binding = 0) readonly buffer Left { uvec2 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uint weights[]; };
layout(set = 0, binding = 2) readonly buffer Scales { uint scales[]; };
layout(set = 0, binding = 3) readonly buffer Zeros { uint zeros[]; };  // Any buffer without ZERO_POINTS.
layout(set = 0, binding = 4) readonly buffer LeftScales { float lhs_scales[]; };
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

const uint WORDS = 8;  // Of a chunk, four bytes each.
const uint TN = 4;
const uint LHS_ROW = BM / 4 + 1, RHS_ROW = BN / 4 + 1;
const uint down = BM / TM, across = BN / TN;

shared uvec4 tile_lhs[WORDS * LHS_ROW];
shared uvec4 tile_rhs[WORDS * RHS_ROW];
shared vec4 tile_scales[BN / 4];
shared ivec4 tile_zeros[BN / 4];  // Above the middle of weights.
shared ivec4 tile_totals[BM / 4];
shared ivec4 tile_right_totals[BN / 4];

float scale_of(uint at) {
    return HALF_SCALES ? unpackHalf2x16(scales[at / 2])[at % 2] : uintBitsToFloat(scales[at]);
}

// Nibbles in bytes less 8. No byte borrows from another.
uint less_eight(uint bytes) {
    return ((bytes | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
}

void stage_left(uint row0, uint chunk) {
    for (uint i = gl_LocalInvocationIndex; i < BM * WORDS / 2; i += gl_WorkGroupSize.x) {
        const uint r = i / (WORDS / 2), p = i % (WORDS / 2);
        const uvec2 two = lhs[(min(row0 + r, M - 1) * chunks + chunk) * (WORDS / 2) + p];
        uvec2 words = two;
        if (BITS == 4) {
            const uvec2 even = (two & 0xFFu) | ((two >> 8) & 0xFF00u);
            const uvec2 odd = ((two >> 8) & 0xFFu) | ((two >> 16) & 0xFF00u);
            words = uvec2(even.x | (even.y << 16), odd.x | (odd.y << 16));
        }
        tile_lhs[(2 * p) * LHS_ROW + r / 4][r % 4] = words.x;
        tile_lhs[(2 * p + 1) * LHS_ROW + r / 4][r % 4] = words.y;
    }
}

void stage_right(uint column0, uint chunk) {
    for (uint i = gl_LocalInvocationIndex; i < BN * BITS; i += gl_WorkGroupSize.x) {
        const uint c = i / BITS, w = i % BITS, column = min(column0 + c, N - 1);
        const uint word = weights[(column * chunks + chunk) * BITS + w];
        if (BITS == 4) {
            tile_rhs[(2 * w) * RHS_ROW + c / 4][c % 4] = less_eight(word & 0x0F0F0F0Fu);
            tile_rhs[(2 * w + 1) * RHS_ROW + c / 4][c % 4] = less_eight((word >> 4) & 0x0F0F0F0Fu);
        } else {
            tile_rhs[w * RHS_ROW + c / 4][c % 4] = word ^ 0x80808080u;
        }
    }
    const uint groups = chunks / group;
    for (uint c = gl_LocalInvocationIndex; c < BN; c += gl_WorkGroupSize.x) {
        const uint at = min(column0 + c, N - 1) * groups + chunk / group;
        tile_scales[c / 4][c % 4] = scale_of(at);
        if (ZERO_POINTS) tile_zeros[c / 4][c % 4] = int(LOAD_U8P(zeros, at)) - (1 << (BITS - 1));
    }
}

// Sums of rows, which zero points are multiplied with.
void stage_totals(uint row0) {
    for (uint r = gl_LocalInvocationIndex; r < BM; r += gl_WorkGroupSize.x) {
        int total = 0;
        [[unroll]] for (uint w = 0; w < WORDS; ++w)
            total += dotPacked4x8EXT(int(tile_lhs[w * LHS_ROW + r / 4][r % 4]), 0x01010101);
        // Less the zero point of the row, as often as there are elements.
        tile_totals[r / 4][r % 4] = LEFT_ZEROS ? total - 32 * lhs_zeros[min(row0 + r, M - 1)] : total;
    }
}

// Sums of columns, which zero points of rows are multiplied with.
void stage_right_totals() {
    for (uint c = gl_LocalInvocationIndex; c < BN; c += gl_WorkGroupSize.x) {
        int total = 0;
        [[unroll]] for (uint w = 0; w < WORDS; ++w)
            total += dotPacked4x8EXT(int(tile_rhs[w * RHS_ROW + c / 4][c % 4]), 0x01010101);
        tile_right_totals[c / 4][c % 4] = total;
    }
}

void main() {
    const uint lane = gl_LocalInvocationIndex;
    const uint row0 = gl_WorkGroupID.y * BM, column0 = gl_WorkGroupID.x * BN;
    const uint my_row = lane / across, my_column = lane % across;

    vec4 sums[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i) sums[i] = vec4(0);

    int left_zeros[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i)
        left_zeros[i] = LEFT_ZEROS ? lhs_zeros[min(row0 + (my_row + i / 4 * down) * 4 + i % 4, M - 1)] : 0;

    for (uint chunk = 0; chunk < chunks; ++chunk) {
        stage_left(row0, chunk);
        stage_right(column0, chunk);
        if (ZERO_POINTS || LEFT_ZEROS) barrier();
        if (ZERO_POINTS) stage_totals(row0);
        if (LEFT_ZEROS) stage_right_totals();
        barrier();
        ivec4 whole[TM];
        [[unroll]] for (uint i = 0; i < TM; ++i) whole[i] = ivec4(0);
        [[unroll]] for (uint w = 0; w < WORDS; ++w) {
            const uvec4 right = tile_rhs[w * RHS_ROW + my_column];
            [[unroll]] for (uint i = 0; i < TM; i += 4) {
                const uvec4 left = tile_lhs[w * LHS_ROW + my_row + i / 4 * down];
                [[unroll]] for (uint j = 0; j < 4; ++j) {
                    [[unroll]] for (uint l = 0; l < TN; ++l)
                        whole[i + j][l] += dotPacked4x8EXT(int(left[j]), int(right[l]));
                }
            }
        }
        [[unroll]] for (uint i = 0; i < TM; ++i) {
            if (ZERO_POINTS)
                whole[i] -= tile_zeros[my_column] * tile_totals[my_row + i / 4 * down][i % 4];
            if (LEFT_ZEROS) whole[i] -= left_zeros[i] * tile_right_totals[my_column];
            sums[i] += vec4(whole[i]) * tile_scales[my_column];
        }
        barrier();
    }

    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = row0 + (my_row + i / 4 * down) * 4 + i % 4;
        if (r < M) {
            sums[i] *= lhs_scales[r];
            [[unroll]] for (uint j = 0; j < TN; ++j) {
                const uint c = column0 + my_column * 4 + j;
                if (c < N) CONCAT(STORE_, OUT)(result, r * N + c, finished(r * N + c, c, sums[i][j]));
            }
        }
    }
}
