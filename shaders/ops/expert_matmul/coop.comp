// Products with weights of chosen experts for many rows, with cooperative matrices of 16x16x16: a workgroup of four subgroups has BN
// columns of up to BM rows of the result that chose the same expert (rows.comp). It computes two chunks of 32 of the inner dimension at a
// time through shared memory, where both operands are halves. So an expert's weights are read once for BM rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;  // Four subgroups of 32.
layout(constant_id = 1) const uint BM = 64;  // A multiple of 32.
layout(constant_id = 2) const uint BN = 64;  // As many as half of the invocations.

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) readonly buffer Tiles { uvec4 found_tiles[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 4) readonly buffer Rows { uint rows[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;   // In a row of k.
    uint sharing;  // Rows of the result with one row of lhs.
    uint first;    // Number of the first expert.
    uint experts;  // Experts whose weights are there.
};

#define BLOCKS_SLOT 1
#define CODEBOOK_SLOT 5
#include "expert_rows.glsl"

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

// Words of 16 bytes of a row of a tile: 64 halves, and one so that neighbouring rows are in other banks. The same for sums.
const uint ROW = 9, SUMS_ROW = BN / 4 + 1;
// Matrices of a subgroup, which has a quarter of the tile.
const uint DOWN = BM / 32, ACROSS = BN / 32;

// Rows of the left tile, then columns of the right one; in the end sums.
shared uvec4 tiles[(BM + BN) * ROW];
// The rows of the tile.
shared uint found[BM];

uvec4 halves_of(vec4 one, vec4 two) {
    return uvec4(packHalf2x16(one.xy), packHalf2x16(one.zw), packHalf2x16(two.xy), packHalf2x16(two.zw));
}

// Puts two chunks of both operands into shared memory.
void stage(uint here, uint expert, uint chunk0) {
    const uint lane = gl_LocalInvocationIndex;
    for (uint i = lane; i < BM * 8; i += gl_WorkGroupSize.x) {
        const uint r = i / 8, chunk = chunk0 + i % 8 / 4;
        uvec4 eight = uvec4(0);
        if (r < here && chunk < chunks) {
            const uint quad = (found[r] / sharing * chunks + chunk) * 8 + i % 4 * 2;
            eight = halves_of(lhs[quad], lhs[quad + 1]);
        }
        tiles[r * ROW + i % 8] = eight;
    }
    const uint column = lane / 2, chunk = chunk0 + lane % 2;
    vec4 values[8];
    [[unroll]] for (uint i = 0; i < 8; ++i) values[i] = vec4(0.0);
    if (chunk < chunks)
        load_chunk((expert * N + min(gl_WorkGroupID.x * BN + column, N - 1)) * ROW_BYTES(chunks), chunk, values);
    [[unroll]] for (uint i = 0; i < 4; ++i)
        tiles[(BM + column) * ROW + lane % 2 * 4 + i] = halves_of(values[2 * i], values[2 * i + 1]);
}

// Computes the first `here` rows of the tile.
void tile(uint here, uint expert) {
    const uint my_row = gl_SubgroupID / 2 * (BM / 2), my_column = gl_SubgroupID % 2 * (BN / 2);
    SUM sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i) sums[i] = SUM(0.0);
    for (uint chunk = 0; chunk < chunks; chunk += 2) {
        stage(here, expert, chunk);
        barrier();
        [[unroll]] for (uint k = 0; k < 4; ++k) {
            LEFT left[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                coopMatLoad(left[i], tiles, (my_row + i * 16) * ROW + k * 2, ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
                RIGHT right;
                coopMatLoad(right, tiles, (BM + my_column + j * 16) * ROW + k * 2, ROW, gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; ++i)
                    sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
            }
        }
        barrier();
    }
    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j)
            coopMatStore(sums[i * ACROSS + j], tiles, (my_row + i * 16) * SUMS_ROW + (my_column + j * 16) / 4, SUMS_ROW,
                         gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < here * (BN / 4); i += gl_WorkGroupSize.x) {
        const uint r = i / (BN / 4), quad = i % (BN / 4), column = gl_WorkGroupID.x * BN + quad * 4;
        const vec4 four = uintBitsToFloat(tiles[r * SUMS_ROW + quad]);
        [[unroll]] for (uint j = 0; j < 4; ++j) {
            if (column + j < N) result[found[r] * N + column + j] = four[j];
        }
    }
}

void main() {
    const uvec4 own = found_tiles[gl_WorkGroupID.y];
    const uint expert = own.x, here = own.z;
    if (here == 0) return;
    if (gl_LocalInvocationIndex < here) found[gl_LocalInvocationIndex] = rows[own.y + gl_LocalInvocationIndex];
    barrier();
    if (expert < experts) {
        tile(here, expert);
        return;
    }
    for (uint i = gl_LocalInvocationIndex; i < here * BN; i += gl_WorkGroupSize.x) {
        const uint column = gl_WorkGroupID.x * BN + i % BN;
        if (column < N) result[found[i / BN] * N + column] = 0.0;
    }
}
