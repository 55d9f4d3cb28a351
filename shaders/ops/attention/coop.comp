// Attention with cooperative matrices of 16x16x16: a subgroup of 32 has TM * 16 queries with their result in registers,
// the workgroup's subgroups share tiles of keys and values in shared memory, with the next tile on its way in
// registers. Teams of subgroups have the same queries and BK keys of a tile each, and join what they have at the end: for queries
// that are too few to keep a device busy. Rows of the operands are whole words of 8 bytes, and of 16 where LENGTH is a multiple of 8; shared
// memory has zeros behind them, up to whole matrices.
//
// The weights leave the first product as an accumulator and enter the second as a left operand. Where both lie in
// registers alike, element by element, and as below - which the kernel finds out by loading matrices of positions -
// they and the row-wise arithmetic stay in registers; otherwise they go through a subgroup's piece of shared memory.
//   element e of lane l: row l / 4 + (e & 4) * 2, column l % 4 * 2 + (e & 1) + (e & 2) * 4
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#ifdef OPERAND_BF16
#extension GL_EXT_bfloat16 : require
#endif
#pragma use_vulkan_memory_model
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TM = 1;
layout(constant_id = 2) const uint BK = 64;
layout(constant_id = 3) const uint D = 64;
layout(constant_id = 4) const bool CAUSAL = false;
layout(constant_id = 5) const bool MASK = false;
layout(constant_id = 6) const bool SOFTCAP = false;
layout(constant_id = 7) const bool LENGTHS = false;
layout(constant_id = 8) const bool DIRECT = true;  // Weights may stay in registers.
layout(constant_id = 9) const uint TEAMS = 1;
layout(constant_id = 10) const uint LENGTH = 64;  // Elements of a row, of which there are D in shared memory.

layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
ELEMENT_BUFFER(3, mask, readonly, TYPE);
// In the place of the mask, with LENGTHS: how many keys of each sequence count.
layout(set = 0, binding = 3) readonly buffer Lengths { uint lengths[]; };
layout(set = 0, binding = 4) writeonly buffer Result { uvec4 result[]; };
// The same for rows of words of 8 bytes.
layout(set = 0, binding = 0) readonly buffer QueryHalves { uvec2 q_halves[]; };
layout(set = 0, binding = 1) readonly buffer KeyHalves { uvec2 k_halves[]; };
layout(set = 0, binding = 2) readonly buffer ValueHalves { uvec2 v_halves[]; };
layout(set = 0, binding = 4) writeonly buffer ResultHalves { uvec2 result_halves[]; };

layout(push_constant) uniform Shape {
    uint q_len, kv_len;
    uint group_heads;            // Query heads that share a key-value head.
    uint mask_batch, mask_head;  // Elements of the mask from one batch or head to the next.
    uint mask_batches;           // Elements of the batch after which masks repeat.
    float scale, softcap;
    uint q_first, q_batch, q_head, q_row;  // Where the rows of queries, keys and values lie, in words.
    uint k_first, k_batch, k_head, k_row;
    uint v_first, v_batch, v_head, v_row;
    uint out_batch, out_head, out_row;  // Where those of results lie.
};

const uint LANES = gl_WorkGroupSize.x, SUBGROUPS = LANES / 32;
const uint SEATS = SUBGROUPS / TEAMS;          // Subgroups of a team.
const uint MINE = TM * 16, BQ = SEATS * MINE;  // Queries of a subgroup and of the workgroup.
const uint WORDS = D / 8, ROW = WORDS + 1;     // Of a row; in shared memory one more, for the banks.
const uint KEYS = TEAMS * BK, TILE = KEYS * ROW, TILE_WORDS = KEYS * WORDS;
const uint WIDE_ROW = D / 4 + 1;  // Of a row of 32-bit results.
const uint EACH = (TILE_WORDS + LANES - 1) / LANES;
const uint DT = D / 16, KT = BK / 16;
const float NONE = uintBitsToFloat(0xFF800000u), LOG2_E = 1.44269504;

#define LEFT coopmat<OPERAND, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<OPERAND, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define NARROW coopmat<OPERAND, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

shared uvec4 tiles[2 * TILE];             // Keys, then values.
shared uvec4 scratch[SUBGROUPS * 64];     // A matrix of 32-bit values for each subgroup.
shared vec2 moments[TEAMS > 1 ? SUBGROUPS * MINE : 1];  // The greatest score and the sum of each team's rows.

uvec4 next[EACH];
uint lane, piece, rows, my_row, head0, batch;
float factor;  // From scores to powers of two.

// Words of 16 bytes of rows, all of them whole or not, and the last whole word or half of one.
const bool WHOLE = LENGTH == D, HALVES = LENGTH % 8 != 0;
const uint LAST_WORD = LENGTH / 8 - (HALVES ? 0 : 1), LAST_HALF = LENGTH / 4 - 1;

// The word `w` of a row that begins at `from`, with zeros behind its elements. A read behind a branch would wait for the one before.
#define WORD(source, from, w) \
    (HALVES ? uvec4(source##_halves[(from) + min((w) * 2, LAST_HALF)] * uint((w) * 2 <= LAST_HALF), \
                    source##_halves[(from) + min((w) * 2 + 1, LAST_HALF)] * uint((w) * 2 < LAST_HALF)) \
     : WHOLE ? source[(from) + (w)] : source[(from) + min(w, LAST_WORD)] * uint((w) <= LAST_WORD))

// Rows beyond the last are read at the last, and cleared by `keep`.
#define FETCH(source, base, row, first, count) \
    [[unroll]] for (uint i = 0; i < EACH; ++i) { \
        const uint at = gl_LocalInvocationIndex + i * LANES, r = min((first) + at / WORDS, (count) - 1); \
        next[i] = WORD(source, (base) + r * (row), at % WORDS); \
    }

// Writes the word `w` of a row of results that begins at `to`, as far as the row goes.
void leave(uint to, uint w, uvec4 word) {
    if (HALVES) {
        if (w * 2 <= LAST_HALF) result_halves[to + w * 2] = word.xy;
        if (w * 2 < LAST_HALF) result_halves[to + w * 2 + 1] = word.zw;
    } else if (WHOLE || w <= LAST_WORD) {
        result[to + w] = word;
    }
}

// Moves what was read from row `first` on to shared memory.
void keep(uint tile, uint first, uint count) {
    [[unroll]] for (uint i = 0; i < EACH; ++i) {
        const uint at = gl_LocalInvocationIndex + i * LANES;
        if (first + KEYS > count && first + at / WORDS >= count) next[i] = uvec4(0);
        if (TILE_WORDS % LANES == 0 || at < TILE_WORDS) tiles[tile + at / WORDS * ROW + at % WORDS] = next[i];
    }
}

void together() {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

float from_scratch(uint row, uint column) {
    const uint at = row * 16 + column;
    return uintBitsToFloat(scratch[piece + at / 4][at % 4]);
}

void to_scratch(uint row, uint column, float value) {
    const uint at = row * 16 + column;
    scratch[piece + at / 4][at % 4] = floatBitsToUint(value);
}

// Two neighbours as the operand's type.
uint packed(float a, float b) {
#ifdef OPERAND_BF16
    return bf16_bits(a) | (bf16_bits(b) << 16);
#else
    return packHalf2x16(vec2(a, b));
#endif
}

// Keys that count.
uint key_count;

// Where the mask of a row begins. A row beyond the last has the last's, so that reads need no branch.
uint mask_row(uint row) {
    const uint at = min(row, rows - 1);
    return batch % mask_batches * mask_batch + (head0 + at / q_len) * mask_head + at % q_len * kv_len;
}

float mask_at(uint first, uint key) {
    return CONCAT(LOAD_, TYPE)(mask, first + min(key, kv_len - 1));
}

// How many keys a row attends to: those before this one.
uint keys_of(uint row) {
    if (row >= rows) return 0;
    return CAUSAL ? uint(max(int(key_count + row % q_len) + 1 - int(q_len), 0)) : key_count;
}

// A score with its mask, in units of which `factor` makes powers of two; -infinity from the key `most` on.
float finish(float score, float added, uint key, uint most) {
    if (SOFTCAP || MASK) score *= scale;
    if (SOFTCAP) {
        const float e = exp2(-2.0 * LOG2_E * abs(score / softcap));
        score = softcap * sign(score) * ((1.0 - e) / (1.0 + e));
    }
    if (MASK) score += added;
    return key < most ? score : NONE;
}

// What to subtract from scores: nothing as long as there was none but -infinity.
float base_of(float top) {
    return top == NONE ? 0.0 : top * factor;
}

// Whether matrices lie in registers as said above.
bool lies_directly() {
    const uint first = lane * 8;
    [[unroll]] for (uint i = 0; i < 8; ++i) to_scratch((first + i) / 16, (first + i) % 16, float(first + i));
    together();
    SUM sum;
    coopMatLoad(sum, scratch, piece, 4, gl_CooperativeMatrixLayoutRowMajor);
    together();
    uvec4 words;
    [[unroll]] for (uint i = 0; i < 4; ++i) words[i] = packed(float(first + 2 * i), float(first + 2 * i + 1));
    scratch[piece + lane] = words;
    together();
    LEFT left;
    coopMatLoad(left, scratch, piece, 2, gl_CooperativeMatrixLayoutRowMajor);
    together();
    bool same = left.length() == 8 && sum.length() == 8;
    [[unroll]] for (uint e = 0; e < 8; ++e) {
        const uint row = lane / 4 + (e & 4) * 2, column = lane % 4 * 2 + (e & 1) + (e & 2) * 4;
        const float wanted = float(row * 16 + column);
        same = same && sum[e] == wanted && float(left[e]) == wanted;
    }
    return subgroupAll(same);
}

// The row of a subgroup that a lane's i-th greatest score is of.
uint row_of(uint i, bool direct) {
    return i / 2 * 16 + (direct ? lane / 4 + i % 2 * 8 : lane / 2);
}

// What a team's sums of a row of the workgroup are of those of all, divided by the sum of all weights.
float share_of(float mine, uint row) {
    float most = NONE, all = 0.0;
    [[unroll]] for (uint t = 0; t < TEAMS; ++t) most = max(most, moments[t * BQ + row].x);
    const float base = base_of(most);
    [[unroll]] for (uint t = 0; t < TEAMS; ++t) {
        const vec2 of_team = moments[t * BQ + row];
        all += of_team.y * exp2(of_team.x * factor - base);
    }
    return all == 0.0 ? 0.0 : exp2(mine * factor - base) / all;
}

// A word of the results of a row, out of those of all teams.
uvec4 joined(uint row, uint word) {
    vec4 low = vec4(0.0), high = vec4(0.0);
    [[unroll]] for (uint t = 0; t < TEAMS; ++t) {
        const uint at = (t * BQ + row) * WIDE_ROW + word * 2;
        low += uintBitsToFloat(tiles[at]);
        high += uintBitsToFloat(tiles[at + 1]);
    }
    return uvec4(packed(low.x, low.y), packed(low.z, low.w), packed(high.x, high.y), packed(high.z, high.w));
}

void main() {
    lane = gl_SubgroupInvocationID;
    piece = gl_SubgroupID * 64;
    batch = gl_WorkGroupID.z;
    key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;
    head0 = gl_WorkGroupID.y * group_heads;
    rows = group_heads * q_len;
    // Causal queries with the most keys go first.
    const uint block = CAUSAL ? gl_NumWorkGroups.x - 1 - gl_WorkGroupID.x : gl_WorkGroupID.x;
    const uint row0 = block * BQ;
    const uint team = gl_SubgroupID / SEATS, seat = gl_SubgroupID % SEATS;
    my_row = row0 + seat * MINE;
    const uint q_base = q_first + batch * q_batch + head0 * q_head;
    const uint k_base = k_first + batch * k_batch + gl_WorkGroupID.y * k_head;
    const uint v_base = v_first + batch * v_batch + gl_WorkGroupID.y * v_head;
    const uint out_base = batch * out_batch + head0 * out_head;
    factor = SOFTCAP || MASK ? LOG2_E : scale * LOG2_E;
    const bool direct = DIRECT && lies_directly();

    // Keys that any of the workgroup's, any of the subgroup's, and all of the subgroup's queries attend to.
    uint end = key_count, my_end = my_row < rows ? key_count : 0, all_end = SOFTCAP || MASK ? 0 : key_count;
    if (CAUSAL) {
        const int before = int(key_count) - int(q_len) + 1;
        const uint last = min(row0 + BQ, rows) - 1, my_last = min(my_row + MINE, rows) - 1;
        if (row0 / q_len == last / q_len) end = uint(max(before + int(last % q_len), 0));
        if (my_row / q_len == my_last / q_len) {
            if (my_row < rows) my_end = uint(max(before + int(my_last % q_len), 0));
            all_end = min(all_end, uint(max(before + int(my_row % q_len), 0)));
        } else {
            all_end = 0;
        }
    }

    if (end > 0) {
        FETCH(k, k_base, k_row, 0, key_count)
    }
    // Queries into registers, by way of the tiles.
    for (uint at = gl_LocalInvocationIndex; at < BQ * WORDS; at += LANES) {
        const uint r = at / WORDS;
        uvec4 word = uvec4(0);
        const uint row = row0 + r;
        if (row < rows) word = WORD(q, q_base + row / q_len * q_head + row % q_len * q_row, at % WORDS);
        tiles[r * ROW + at % WORDS] = word;
    }
    barrier();
    LEFT queries[TM * DT];
    [[unroll]] for (uint t = 0; t < TM; ++t)
        [[unroll]] for (uint n = 0; n < DT; ++n)
            coopMatLoad(queries[t * DT + n], tiles, (seat * MINE + t * 16) * ROW + n * 2, ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
    barrier();

    // Of a lane's two rows of each matrix: where their masks begin, how many keys they attend to.
    uint masks[TM * 2], most[TM * 2];
    [[unroll]] for (uint i = 0; i < TM * 2; ++i) {
        const uint row = my_row + i / 2 * 16 + lane / 4 + i % 2 * 8;
        masks[i] = MASK ? mask_row(row) : 0;
        most[i] = keys_of(row);
    }

    SUM results[TM * DT];
    [[unroll]] for (uint i = 0; i < TM * DT; ++i) results[i] = SUM(0.0);
    // Of a lane's two rows of each matrix; of its one row, in the first, when they do not lie as said above.
    float top[TM * 2], total[TM * 2];
    [[unroll]] for (uint i = 0; i < TM * 2; ++i) {
        top[i] = NONE;
        total[i] = 0.0;
    }

    if (end > 0) keep(0, 0, key_count);
    barrier();
    for (uint tile0 = 0; tile0 < end; tile0 += KEYS) {
        FETCH(v, v_base, v_row, tile0, key_count)
        LEFT weights[TM * KT];
        const uint k0 = tile0 + team * BK;
        if (k0 < my_end) {
            // Of the mask, all at once and before the products: a read behind a branch waits for the one before.
            float added[MASK ? TM * KT * 8 : 1];
            if (MASK && direct) {
                [[unroll]] for (uint i = 0; i < TM * KT; ++i)
                    [[unroll]] for (uint e = 0; e < 8; ++e)
                        added[i * 8 + e] = mask_at(masks[i / KT * 2 + e / 4],
                                                   k0 + i % KT * 16 + lane % 4 * 2 + (e & 1) + (e & 2) * 4);
            }
            SUM scores[TM * KT];
            [[unroll]] for (uint i = 0; i < TM * KT; ++i) scores[i] = SUM(0.0);
            [[unroll]] for (uint n = 0; n < DT; ++n) {
                [[unroll]] for (uint j = 0; j < KT; ++j) {
                    RIGHT keys;
                    coopMatLoad(keys, tiles, (team * BK + j * 16) * ROW + n * 2, ROW, gl_CooperativeMatrixLayoutColumnMajor);
                    [[unroll]] for (uint t = 0; t < TM; ++t)
                        scores[t * KT + j] = coopMatMulAdd(queries[t * DT + n], keys, scores[t * KT + j]);
                }
            }
            if (direct) {
                if (k0 + BK > all_end) {
                    [[unroll]] for (uint i = 0; i < TM * KT; ++i) {
                        [[unroll]] for (uint e = 0; e < 8; ++e) {
                            const uint key = k0 + i % KT * 16 + lane % 4 * 2 + (e & 1) + (e & 2) * 4;
                            scores[i][e] = finish(scores[i][e], added[MASK ? i * 8 + e : 0], key, most[i / KT * 2 + e / 4]);
                        }
                    }
                }
                [[unroll]] for (uint t = 0; t < TM; ++t) {
                    float base[2], shrink[2];
                    [[unroll]] for (uint h = 0; h < 2; ++h) {
                        float now = top[t * 2 + h];
                        [[unroll]] for (uint j = 0; j < KT; ++j)
                            [[unroll]] for (uint e = 0; e < 4; ++e)
                                now = max(now, scores[t * KT + j][h * 4 + e]);
                        now = subgroupClusteredMax(now, 4);
                        base[h] = base_of(now);
                        shrink[h] = exp2(top[t * 2 + h] * factor - base[h]);
                        top[t * 2 + h] = now;
                        total[t * 2 + h] *= shrink[h];
                    }
                    [[unroll]] for (uint j = 0; j < KT; ++j) {
                        [[unroll]] for (uint e = 0; e < 8; ++e) {
                            const uint h = e / 4;
                            const float w = exp2(scores[t * KT + j][e] * factor - base[h]);
                            total[t * 2 + h] += w;
                            weights[t * KT + j][e] = OPERAND(w);
                        }
                    }
                    // The greatest scores seldom change after the first tiles.
                    if (!subgroupAll(shrink[0] == 1.0 && shrink[1] == 1.0)) {
                        [[unroll]] for (uint n = 0; n < DT; ++n)
                            [[unroll]] for (uint e = 0; e < 8; ++e) results[t * DT + n][e] *= shrink[e / 4];
                    }
                }
            } else {
                // Two lanes have a row.
                const uint r = lane / 2, c = lane % 2 * 8;
                [[unroll]] for (uint t = 0; t < TM; ++t) {
                    const uint row = my_row + t * 16 + r, first = MASK ? mask_row(row) : 0, last = keys_of(row);
                    float now = top[t * 2];
                    [[unroll]] for (uint j = 0; j < KT; ++j) {
                        coopMatStore(scores[t * KT + j], scratch, piece, 4, gl_CooperativeMatrixLayoutRowMajor);
                        together();
                        for (uint e = 0; e < 8; ++e) {
                            const uint key = k0 + j * 16 + c + e;
                            now = max(now, finish(from_scratch(r, c + e), MASK ? mask_at(first, key) : 0.0, key, last));
                        }
                        together();
                    }
                    now = subgroupClusteredMax(now, 2);
                    const float base = base_of(now), shrink = exp2(top[t * 2] * factor - base);
                    top[t * 2] = now;
                    total[t * 2] *= shrink;
                    [[unroll]] for (uint j = 0; j < KT; ++j) {
                        coopMatStore(scores[t * KT + j], scratch, piece, 4, gl_CooperativeMatrixLayoutRowMajor);
                        together();
                        float w[8];
                        for (uint e = 0; e < 8; ++e) {
                            const uint key = k0 + j * 16 + c + e;
                            const float score = finish(from_scratch(r, c + e), MASK ? mask_at(first, key) : 0.0, key, last);
                            w[e] = exp2(score * factor - base);
                            total[t * 2] += w[e];
                        }
                        together();
                        scratch[piece + lane] =
                            uvec4(packed(w[0], w[1]), packed(w[2], w[3]), packed(w[4], w[5]), packed(w[6], w[7]));
                        together();
                        coopMatLoad(weights[t * KT + j], scratch, piece, 2, gl_CooperativeMatrixLayoutRowMajor);
                        together();
                    }
                    for (uint e = 0; e < 8; ++e) to_scratch(r, c + e, shrink);
                    together();
                    SUM shrinks;
                    coopMatLoad(shrinks, scratch, piece, 4, gl_CooperativeMatrixLayoutRowMajor);
                    together();
                    [[unroll]] for (uint n = 0; n < DT; ++n) results[t * DT + n] = results[t * DT + n] * shrinks;
                }
            }
        }
        keep(TILE, tile0, key_count);
        barrier();
        const bool more = tile0 + KEYS < end;
        if (more) {
            FETCH(k, k_base, k_row, tile0 + KEYS, key_count)
        }
        if (k0 < my_end) {
            [[unroll]] for (uint j = 0; j < KT; ++j) {
                [[unroll]] for (uint n = 0; n < DT; ++n) {
                    RIGHT values;
                    coopMatLoad(values, tiles, TILE + (team * BK + j * 16) * ROW + n * 2, ROW, gl_CooperativeMatrixLayoutRowMajor);
                    [[unroll]] for (uint t = 0; t < TM; ++t)
                        results[t * DT + n] = coopMatMulAdd(weights[t * KT + j], values, results[t * DT + n]);
                }
            }
        }
        if (more) keep(0, tile0 + KEYS, key_count);
        barrier();
    }

    // Results go through the tiles, which all have done with.
    [[unroll]] for (uint i = 0; i < TM * 2; ++i)
        total[i] = direct ? subgroupClusteredAdd(total[i], 4) : subgroupClusteredAdd(total[i], 2);
    if (TEAMS > 1) {
        const uint leader = direct ? 4 : 2;
        [[unroll]] for (uint i = 0; i < TM * 2; ++i)
            if (lane % leader == 0 && (direct || i % 2 == 0))
                moments[gl_SubgroupID * MINE + row_of(i, direct)] = vec2(top[i], total[i]);
        barrier();
    }
    [[unroll]] for (uint t = 0; t < TM; ++t) {
        float inverse[2];
        [[unroll]] for (uint h = 0; h < 2; ++h) {
            const uint i = t * 2 + h;
            inverse[h] = TEAMS > 1 ? share_of(top[i], seat * MINE + row_of(i, direct))
                                   : total[i] == 0.0 ? 0.0 : 1.0 / total[i];
        }
        SUM inverses;
        if (direct) {
            [[unroll]] for (uint e = 0; e < 8; ++e) inverses[e] = inverse[e / 4];
        } else {
            for (uint e = 0; e < 8; ++e) to_scratch(lane / 2, lane % 2 * 8 + e, inverse[0]);
            together();
            coopMatLoad(inverses, scratch, piece, 4, gl_CooperativeMatrixLayoutRowMajor);
            together();
        }
        const uint row = gl_SubgroupID * MINE + t * 16;
        [[unroll]] for (uint n = 0; n < DT; ++n) {
            const SUM scaled = results[t * DT + n] * inverses;
            if (TEAMS > 1)
                coopMatStore(scaled, tiles, row * WIDE_ROW + n * 4, WIDE_ROW, gl_CooperativeMatrixLayoutRowMajor);
            else
                coopMatStore(NARROW(scaled), tiles, row * ROW + n * 2, ROW, gl_CooperativeMatrixLayoutRowMajor);
        }
    }
    if (TEAMS > 1) {
        barrier();
        for (uint at = gl_LocalInvocationIndex; at < BQ * WORDS; at += LANES) {
            const uint row = row0 + at / WORDS;
            if (row < rows)
                leave(out_base + row / q_len * out_head + row % q_len * out_row, at % WORDS, joined(at / WORDS, at % WORDS));
        }
        return;
    }
    together();
    for (uint at = lane; at < MINE * WORDS; at += 32) {
        const uint r = at / WORDS, row = my_row + r;
        if (row < rows)
            leave(out_base + row / q_len * out_head + row % q_len * out_row, at % WORDS,
                  tiles[(gl_SubgroupID * MINE + r) * ROW + at % WORDS]);
    }
}
