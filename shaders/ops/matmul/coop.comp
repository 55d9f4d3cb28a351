// out[b] = lhs[b] * rhs[b] with cooperative matrices: a workgroup computes BM x BN results, a subgroup WM x WN of them
// as matrices of MM x MN, BK of the inner dimension at a time through shared memory, with the next AHEAD tiles on their way
// in registers. Rows of the operands are whole 16-byte words. The edges of results go through shared memory. With PARTS > 1
// the sums are cut: part p of P goes to the p-th of P results, in the type of sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#ifdef OPERAND_I8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#ifdef OPERAND_BF16
#extension GL_EXT_bfloat16 : require
#endif
#ifdef USE_STORAGE_16BIT
#extension GL_EXT_shader_16bit_storage : require
#endif
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 128;
layout(constant_id = 2) const uint BN = 128;
layout(constant_id = 3) const uint BK = 32;
layout(constant_id = 4) const uint WM = 64;
layout(constant_id = 5) const uint WN = 64;
layout(constant_id = 6) const bool RHS_TRANSPOSED = false;
layout(constant_id = 7) const bool WHOLE = false;  // Tiles divide the shape.
layout(constant_id = 8) const uint STAGES = 2;     // Tiles in shared memory at a time, 1 or 2.
layout(constant_id = 9) const uint MM = 16;
layout(constant_id = 10) const uint MN = 16;
layout(constant_id = 11) const uint MK = 16;
layout(constant_id = 12) const uint ADDED = 0;
layout(constant_id = 13) const uint ACTIVATION = 0;
layout(constant_id = 14) const uint PARTS = 1;
layout(constant_id = 15) const uint AHEAD = 1;
layout(constant_id = 16) const bool EVEN_K = false;  // BK divides K.

#include "activation.glsl"
#include "added.glsl"

// Elements in 16 bytes, and whether the right tile lies with k along its rows. Matrices of bytes load slowly across rows,
// so that a right operand that does not lie so is turned on its way.
#ifdef OPERAND_I8
const uint PACK = 16;
const bool ALONG_K = true;
const bool TURNED = !RHS_TRANSPOSED;
#else
const uint PACK = 8;
const bool ALONG_K = RHS_TRANSPOSED;
const bool TURNED = false;
#endif

layout(set = 0, binding = 0) readonly buffer Left { uvec4 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Right { uvec4 rhs[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uvec4 result[]; };
layout(set = 0, binding = 2) writeonly buffer OutElements { OUT elements[]; };
layout(set = 0, binding = 2) writeonly buffer OutSums { ACC part_sums[]; };
layout(set = 0, binding = 3) readonly buffer Bias { uvec4 bias[]; };
layout(set = 0, binding = 3) readonly buffer BiasElements { OUT bias_elements[]; };
layout(set = 0, binding = 4) readonly buffer Residual { uvec4 residual[]; };
layout(set = 0, binding = 4) readonly buffer ResidualElements { OUT residual_elements[]; };

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // 16-byte words from one matrix of the batch to the next; 0 when all share one.
    uint part;        // Terms of a part of the sums, a multiple of BK.
    uint batches;
};

// A row of a tile is a word longer than its elements, which puts neighbouring rows into different banks.
const uint LHS_WORDS = BK / PACK, LHS_ROW = LHS_WORDS + 1;
const uint RHS_ROWS = ALONG_K ? BN : BK;
const uint RHS_WORDS = (ALONG_K ? BK : BN) / PACK, RHS_ROW = RHS_WORDS + 1;
const uint LHS_TILE = BM * LHS_ROW, RHS_TILE = RHS_ROWS * RHS_ROW;
const uint LHS_EACH = BM * LHS_WORDS / gl_WorkGroupSize.x;
const uint RHS_EACH = RHS_ROWS * RHS_WORDS / gl_WorkGroupSize.x;
const uint DOWN = WM / MM, ACROSS = WN / MN;

shared uvec4 tile_lhs[STAGES * LHS_TILE];
shared uvec4 tile_rhs[STAGES * RHS_TILE];

#define SUM coopmat<ACC, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>
#define RESULT coopmat<OUT, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>
// Results in 16 bytes.
const uint OUT_PACK = 16 / OUT_SIZE;

uvec4 next_lhs[AHEAD * LHS_EACH];
uvec4 next_rhs[AHEAD * RHS_EACH];
uint row0, column0, lhs_base, rhs_base;

// Of the `at`-th block of four rows of k and 16 columns in a right tile that is turned: its place along k and along the
// columns. Two neighbours lie side by side, so that they read whole sectors of 32 bytes.
uvec2 turned_place(uint at) {
    return uvec2(at / 2 % (BK / 4), at / (2 * (BK / 4)) * 2 + at % 2);
}

// Where the i-th word of this invocation lies in the right operand: row and word.
uvec2 right_place(uint k0, uint i) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    // Turned: four rows of k below one another, and neighbouring words for neighbouring lanes.
    const uvec2 four = turned_place(lane + i / 4 * lanes);
    const uint at = lane + i * lanes;
    const uint r = TURNED ? k0 + four.x * 4 + i % 4 : (RHS_TRANSPOSED ? column0 : k0) + at / RHS_WORDS;
    const uint word =
        TURNED ? column0 / PACK + four.y : (RHS_TRANSPOSED ? k0 : column0) / PACK + at % RHS_WORDS;
    return uvec2(r, word);
}

// Reads a tile into the registers of `slot`. What lies outside is read at the edge: rows and columns outside have no
// results, and `keep` clears what lies beyond K.
void fetch(uint k0, uint slot) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        uint r = row0 + at / LHS_WORDS, word = k0 / PACK + at % LHS_WORDS;
        if (!WHOLE) r = min(r, M - 1);
        if (!EVEN_K) word = min(word, K / PACK - 1);
        next_lhs[slot * LHS_EACH + i] = lhs[lhs_base + r * (K / PACK) + word];
    }
    const uint rows = RHS_TRANSPOSED ? N : K, words = (RHS_TRANSPOSED ? K : N) / PACK;
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        uvec2 place = right_place(k0, i);
        if (!WHOLE || !EVEN_K) place = min(place, uvec2(rows, words) - 1);
        next_rhs[slot * RHS_EACH + i] = rhs[rhs_base + place.x * words + place.y];
    }
}

// Zeroes for what a tile has beyond K.
void clear(uint k0, uint slot) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        if (k0 / PACK + at % LHS_WORDS >= K / PACK) next_lhs[slot * LHS_EACH + i] = uvec4(0);
    }
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uvec2 place = right_place(k0, i);
        if (RHS_TRANSPOSED ? place.y >= K / PACK : place.x >= K) next_rhs[slot * RHS_EACH + i] = uvec4(0);
    }
}

// The columns of four rows of four bytes.
uvec4 turned(uint a, uint b, uint c, uint d) {
    const uint even = 0x00FF00FFu;
    const uint ab02 = (a & even) | ((b & even) << 8), ab13 = ((a >> 8) & even) | (b & ~even);
    const uint cd02 = (c & even) | ((d & even) << 8), cd13 = ((c >> 8) & even) | (d & ~even);
    return uvec4((ab02 & 0xFFFFu) | (cd02 << 16), (ab13 & 0xFFFFu) | (cd13 << 16), (ab02 >> 16) | (cd02 & 0xFFFF0000u),
                 (ab13 >> 16) | (cd13 & 0xFFFF0000u));
}

// Moves a tile from the registers of `slot` to shared memory.
void keep(uint k0, uint slot, uint stage) {
    if (!EVEN_K && k0 + BK > K) clear(k0, slot);
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        tile_lhs[stage * LHS_TILE + at / LHS_WORDS * LHS_ROW + at % LHS_WORDS] = next_lhs[slot * LHS_EACH + i];
    }
    if (TURNED) {
        [[unroll]] for (uint i = 0; i < RHS_EACH; i += 4) {
            const uvec2 four = turned_place(lane + i / 4 * lanes);
            const uint k = four.x, c = four.y * PACK;
            // Every other lane begins with the other four columns: those of neighbours would lie in the same banks.
            const bool odd = four.y % 2 == 1;
            uvec4 rows[4];
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                const uvec4 words = next_rhs[slot * RHS_EACH + i + j];
                rows[j] = odd ? words.yxwz : words;
            }
            [[unroll]] for (uint q = 0; q < 4; ++q) {
                const uvec4 columns = turned(rows[0][q], rows[1][q], rows[2][q], rows[3][q]);
                const uint first = c + (q ^ uint(odd)) * 4;
                [[unroll]] for (uint l = 0; l < 4; ++l)
                    tile_rhs[stage * RHS_TILE + (first + l) * RHS_ROW + k / 4][k % 4] = columns[l];
            }
        }
        return;
    }
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        tile_rhs[stage * RHS_TILE + at / RHS_WORDS * RHS_ROW + at % RHS_WORDS] = next_rhs[slot * RHS_EACH + i];
    }
}

// Workgroups in bands of eight rows, so that those that run at a time share operands in the cache.
uvec2 place() {
    const uint across = gl_NumWorkGroups.x, id = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    const uint first = id / (8 * across) * 8, rows = min(8, gl_NumWorkGroups.y - first), rest = id % (8 * across);
    return uvec2(rest / rows, first + rest % rows);
}

// Results from element `at` on, in columns from `c` on, where rows of results are whole words.
RESULT finished(SUM sum, uint at, uint c) {
    RESULT added;
    if (HAS_BIAS) {
        // Every row of this matrix is the same one.
        coopMatLoad(added, bias, c / OUT_PACK, 0, gl_CooperativeMatrixLayoutRowMajor);
        sum += SUM(added);
    }
    if (HAS_RESIDUAL) {
        coopMatLoad(added, residual, at / OUT_PACK, N / OUT_PACK, gl_CooperativeMatrixLayoutRowMajor);
        sum += SUM(added);
    }
    if (ACTIVATION != 0) {
        [[unroll]] for (uint i = 0; i < sum.length(); ++i) sum[i] = activate(sum[i], ACTIVATION);
    }
    return RESULT(sum);
}

ACC finished_element(ACC sum, uint at, uint c) {
    if (HAS_BIAS) sum += ACC(bias_elements[c]);
    if (HAS_RESIDUAL) sum += ACC(residual_elements[at]);
    return activate(sum, ACTIVATION);
}

SUM sums[DOWN * ACROSS];

// Adds the products of a tile in shared memory to the sums of a subgroup.
void multiply(uint stage, uint my_row, uint my_column) {
    [[unroll]] for (uint k = 0; k < BK; k += MK) {
        coopmat<OPERAND, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA> left[DOWN];
        [[unroll]] for (uint i = 0; i < DOWN; ++i)
            coopMatLoad(left[i], tile_lhs, stage * LHS_TILE + (my_row + i * MM) * LHS_ROW + k / PACK, LHS_ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            coopmat<OPERAND, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB> right;
            const uint c = my_column + j * MN;
            if (ALONG_K) {
                coopMatLoad(right, tile_rhs, stage * RHS_TILE + c * RHS_ROW + k / PACK, RHS_ROW,
                            gl_CooperativeMatrixLayoutColumnMajor);
            } else {
                coopMatLoad(right, tile_rhs, stage * RHS_TILE + k * RHS_ROW + c / PACK, RHS_ROW,
                            gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
        }
    }
}

void main() {
    const uint batch = gl_WorkGroupID.z / PARTS, slice = gl_WorkGroupID.z % PARTS;
    const uint begin = PARTS == 1 ? 0 : slice * part, end = PARTS == 1 ? K : min(K, begin + part);
    const uvec2 tile = place();
    row0 = tile.y * BM;
    column0 = tile.x * BN;
    lhs_base = batch * M * (K / PACK);
    rhs_base = batch * rhs_stride;
    const uint my_row = gl_SubgroupID / (BN / WN) * WM, my_column = gl_SubgroupID % (BN / WN) * WN;

    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i) sums[i] = SUM(0);

    [[unroll]] for (uint slot = 0; slot < AHEAD; ++slot) {
        if (begin + slot * BK < end) fetch(begin + slot * BK, slot);
    }
    if (begin < end) keep(begin, 0, 0);
    barrier();
    uint stage = 0;
    for (uint first = begin; first < end; first += AHEAD * BK) {
        [[unroll]] for (uint slot = 0; slot < AHEAD; ++slot) {
            const uint k0 = first + slot * BK;
            if (k0 >= end) break;
            if (k0 + AHEAD * BK < end) fetch(k0 + AHEAD * BK, slot);
            multiply(stage, my_row, my_column);
            if (STAGES == 1) {
                barrier();
            } else {
                stage ^= 1;
            }
            if (k0 + BK < end) keep(k0 + BK, (slot + 1) % AHEAD, stage);
            barrier();
        }
    }

    const uint out_base = (slice * batches + batch) * M * N;
    // Rows of results must be whole words to be stored as matrices.
    const uint words = PARTS == 1 ? OUT_PACK : 4;
    const bool aligned = WHOLE || N % words == 0;
    // A subgroup's own piece of shared memory: one matrix of 32-bit values.
    const uint scratch = gl_SubgroupID * (MM * MN / 4);
    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            const uint r = row0 + my_row + i * MM, c = column0 + my_column + j * MN;
            if (!WHOLE && (r >= M || c >= N)) continue;
            if (WHOLE || (aligned && r + MM <= M && c + MN <= N)) {
                const uint at = out_base + r * N + c;
                if (PARTS > 1) {
                    coopMatStore(sums[i * ACROSS + j], result, at / 4, N / 4, gl_CooperativeMatrixLayoutRowMajor);
                    continue;
                }
                coopMatStore(finished(sums[i * ACROSS + j], at, c), result, at / OUT_PACK, N / OUT_PACK,
                             gl_CooperativeMatrixLayoutRowMajor);
                continue;
            }
            coopMatStore(sums[i * ACROSS + j], tile_lhs, scratch, MN / 4, gl_CooperativeMatrixLayoutRowMajor);
            controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
            for (uint e = gl_SubgroupInvocationID; e < MM * MN; e += gl_SubgroupSize) {
                const uint er = r + e / MN, ec = c + e % MN;
                const uint bits = tile_lhs[scratch + e / 4][e % 4];
                const uint at = out_base + er * N + ec;
                if (er >= M || ec >= N) continue;
                if (PARTS > 1) {
                    part_sums[at] = FROM_BITS(bits);
                } else {
                    elements[at] = OUT(finished_element(FROM_BITS(bits), at, ec));
                }
            }
            controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
        }
    }
}
