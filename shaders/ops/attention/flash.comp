// out = softmax(scale * q * kT + mask) * v with the softmax computed as keys go by (online): a workgroup computes BQ
// queries, BK keys at a time, and 32 dimensions at a time through shared memory. Eight lanes share the queries
// `group`, `group + groups`, …: of a tile of scores each has every eighth key, of a result every eighth vector of four.
//
// Queries of the heads that share a key-value head lie one after the other and are rows of one matrix here. With SPLIT,
// keys are divided among workgroups, which leave sums, greatest scores and unscaled results for `combine`.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_clustered : require
#endif
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BQ = 32;
layout(constant_id = 2) const uint BK = 32;
layout(constant_id = 3) const uint D = 64;
layout(constant_id = 4) const bool CAUSAL = false;
layout(constant_id = 5) const bool MASK = false;
layout(constant_id = 6) const bool SOFTCAP = false;
layout(constant_id = 7) const bool LENGTHS = false;

ELEMENT_BUFFER(0, q, readonly, TYPE);
ELEMENT_BUFFER(1, k, readonly, TYPE);
ELEMENT_BUFFER(2, v, readonly, TYPE);
ELEMENT_BUFFER(3, mask, readonly, TYPE);
// In the place of the mask, with LENGTHS: how many keys of each sequence count.
layout(set = 0, binding = 3) readonly buffer Lengths { uint lengths[]; };
#ifdef SPLIT
layout(set = 0, binding = 4) writeonly buffer Results { float results[]; };
layout(set = 0, binding = 5) writeonly buffer Sums { vec2 sums[]; };  // Greatest score, sum of weights.
#else
ELEMENT_BUFFER(4, result, , TYPE);
#endif

layout(push_constant) uniform Shape {
    uint q_len, kv_len;
    uint group_heads;  // Query heads that share a key-value head.
    uint mask_batch, mask_head;  // Elements of the mask from one batch or head to the next.
    uint mask_batches;           // Elements of the batch after which masks repeat.
    uint splits, split_len;      // Parts of the keys, and keys of a part.
    float scale, softcap;
    uint q_first, q_batch, q_head, q_row;  // Where the rows of queries, keys and values lie.
    uint k_first, k_batch, k_head, k_row;
    uint v_first, v_batch, v_head, v_row;
#ifndef SPLIT
    uint out_batch, out_head, out_row;  // Where those of results lie.
#endif
};

#define LOAD CONCAT(LOAD_, TYPE)

const uint LANES = gl_WorkGroupSize.x, GROUPS = LANES / 8;
const uint TQ = BQ / GROUPS, TK = BK / 8;
const uint CHUNKS = (D + 31) / 32;
const uint ROW = 9;  // Vectors of a row of a tile; one more than there are, for the banks.
const float NONE = uintBitsToFloat(0xFF800000u);

shared vec4 tile_q[BQ * ROW];
shared vec4 tile_k[BK * ROW];  // Keys, and after the softmax values.
shared float weights[BQ * (BK + 1)];
#ifndef SUBGROUP
shared float largest[BQ * 8];
#endif

uint lane, eighth, group;
uint rows, row0, q_base, k_base, v_base;
float scores[TQ * TK];
float values[TQ];  // One for each of the lane's queries; what the reductions work on.

// exp of what is at most 0, or NaN, also where a device's exp has no zero and no NaN.
float weight(float x) {
    if (x > -87.0) return exp(x);
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : 0.0;
}

float capped(float x) {
    // tanh by way of a bounded exp, because a device's own may be NaN for large arguments.
    const float e = weight(-2.0 * abs(x / softcap));
    return softcap * sign(x) * ((1.0 - e) / (1.0 + e));
}

// Where a query lies: those of several heads are rows here.
uint query(uint row) {
    return q_base + (group_heads == 1 ? row * q_row : row / q_len * q_head + row % q_len * q_row);
}

// Copies 32 dimensions from `from` of rows r, of which `count` are there and each begins at `base`, to a tile.
#define STAGE(tile, tile_rows, source, base, count, from) \
    for (uint i = lane; i < (tile_rows) * 32; i += LANES) { \
        const uint r = i / 32, d = i % 32; \
        float value = 0.0; \
        if (r < (count) && (from) + d < D) value = LOAD(source, (base) + (from) + d); \
        tile[r * ROW + d / 4][d % 4] = value; \
    }

// The greatest of a row, which eight lanes share.
void reduce_largest() {
#ifdef SUBGROUP
    for (uint i = 0; i < TQ; ++i) values[i] = subgroupClusteredMax(values[i], 8);
#else
    for (uint i = 0; i < TQ; ++i) largest[(group + i * GROUPS) * 8 + eighth] = values[i];
    barrier();
    for (uint i = 0; i < TQ; ++i)
        for (uint other = 0; other < 8; ++other)
            values[i] = max(values[i], largest[(group + i * GROUPS) * 8 + other]);
#endif
}

void reduce_sum() {
#ifdef SUBGROUP
    for (uint i = 0; i < TQ; ++i) values[i] = subgroupClusteredAdd(values[i], 8);
#else
    barrier();
    for (uint i = 0; i < TQ; ++i) largest[(group + i * GROUPS) * 8 + eighth] = values[i];
    barrier();
    for (uint i = 0; i < TQ; ++i) {
        values[i] = 0.0;
        for (uint other = 0; other < 8; ++other) values[i] += largest[(group + i * GROUPS) * 8 + other];
    }
#endif
}

// Products of the tile's queries and the keys from k0.
void multiply_keys(uint k0, uint end) {
    for (uint i = 0; i < TQ * TK; ++i) scores[i] = 0.0;
    const uint q_count = rows - row0, k_count = end - k0;
    for (uint c = 0; c < CHUNKS; ++c) {
        barrier();
        STAGE(tile_q, BQ, q, query(row0 + r), q_count, c * 32)
        STAGE(tile_k, BK, k, k_base + (k0 + r) * k_row, k_count, c * 32)
        barrier();
        for (uint part = 0; part < 8; ++part) {
            vec4 left[TQ];
            for (uint i = 0; i < TQ; ++i) left[i] = tile_q[(group + i * GROUPS) * ROW + part];
            for (uint j = 0; j < TK; ++j) {
                const vec4 right = tile_k[(eighth + j * 8) * ROW + part];
                for (uint i = 0; i < TQ; ++i) scores[i * TK + j] += dot(left[i], right);
            }
        }
    }
}

// Keys that count.
uint key_count;

// A score as the softmax takes it; -infinity for what is not attended to.
float finish(float score, uint row, uint key, uint end, uint batch, uint head0) {
    if (row >= rows || key >= end) return NONE;
    const uint i = row % q_len;
    if (CAUSAL && key + q_len > key_count + i) return NONE;
    score *= scale;
    if (SOFTCAP) score = capped(score);
    if (MASK) score += LOAD(mask, batch % mask_batches * mask_batch + (head0 + row / q_len) * mask_head + i * kv_len + key);
    return score;
}

void main() {
#ifdef SUBGROUP
    lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#else
    lane = gl_LocalInvocationID.x;
#endif
    eighth = lane % 8;
    group = lane / 8;
    const uint kv_heads = gl_NumWorkGroups.y, kv_head = gl_WorkGroupID.y;
    const uint batch = gl_WorkGroupID.z / splits, split = gl_WorkGroupID.z % splits;
    key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;
    const uint part_len = LENGTHS ? (key_count + splits * BK - 1) / (splits * BK) * BK : split_len;
    rows = group_heads * q_len;
    row0 = gl_WorkGroupID.x * BQ;
    q_base = q_first + batch * q_batch + kv_head * group_heads * q_head;
    k_base = k_first + batch * k_batch + kv_head * k_head;
    v_base = v_first + batch * v_batch + kv_head * v_head;
#ifdef SPLIT
    const uint first_row = (batch * kv_heads + kv_head) * rows;
#endif

    uint end = key_count;
    const uint last = min(row0 + BQ, rows) - 1;
    // Keys behind those of the last query of a tile that lies within one head.
    if (CAUSAL && row0 / q_len == last / q_len) end = uint(max(int(key_count + last % q_len + 1) - int(q_len), 0));
    const uint begin = split * part_len;
    end = min(end, begin + part_len);

    vec4 acc[TQ * CHUNKS];
    float top[TQ], total[TQ];
    for (uint i = 0; i < TQ * CHUNKS; ++i) acc[i] = vec4(0.0);
    for (uint i = 0; i < TQ; ++i) {
        top[i] = NONE;
        total[i] = 0.0;
    }

    for (uint k0 = begin; k0 < end; k0 += BK) {
        multiply_keys(k0, end);
        for (uint i = 0; i < TQ; ++i) {
            values[i] = top[i];
            for (uint j = 0; j < TK; ++j) {
                const uint row = row0 + group + i * GROUPS, key = k0 + eighth + j * 8;
                scores[i * TK + j] = finish(scores[i * TK + j], row, key, end, batch, kv_head * group_heads);
                values[i] = max(values[i], scores[i * TK + j]);
            }
        }
        reduce_largest();
        for (uint i = 0; i < TQ; ++i) {
            // A row that has seen nothing but -infinity has no greatest score to subtract.
            const float base = values[i] == NONE ? 0.0 : values[i];
            const float shrink = weight(top[i] - base);
            top[i] = values[i];
            total[i] *= shrink;
            for (uint j = 0; j < TK; ++j) {
                const float w = weight(scores[i * TK + j] - base);
                total[i] += w;
                weights[(group + i * GROUPS) * (BK + 1) + eighth + j * 8] = w;
            }
            for (uint c = 0; c < CHUNKS; ++c) acc[i * CHUNKS + c] *= shrink;
        }
        for (uint c = 0; c < CHUNKS; ++c) {
            barrier();
            STAGE(tile_k, BK, v, v_base + (k0 + r) * v_row, end - k0, c * 32)
            barrier();
            for (uint key = 0; key < BK; ++key) {
                const vec4 value = tile_k[key * ROW + eighth];
                for (uint i = 0; i < TQ; ++i)
                    acc[i * CHUNKS + c] += weights[(group + i * GROUPS) * (BK + 1) + key] * value;
            }
        }
    }

    for (uint i = 0; i < TQ; ++i) values[i] = total[i];
    reduce_sum();
    for (uint i = 0; i < TQ; ++i) {
        const uint row = row0 + group + i * GROUPS;
        if (row >= rows) continue;
#ifdef SPLIT
        const uint part = split * (gl_NumWorkGroups.z / splits * kv_heads * rows) + first_row + row;
        if (eighth == 0) sums[part] = vec2(top[i], values[i]);
        const uint to = part * D;
#else
        const float factor = values[i] == 0.0 ? 0.0 : 1.0 / values[i];
        const uint to = batch * out_batch + (kv_head * group_heads + row / q_len) * out_head + row % q_len * out_row;
#endif
        for (uint c = 0; c < CHUNKS; ++c) {
            for (uint e = 0; e < 4; ++e) {
                const uint d = c * 32 + eighth * 4 + e;
#ifdef SPLIT
                if (d < D) results[to + d] = acc[i * CHUNKS + c][e];
#else
                if (d < D) CONCAT(STORE_, TYPE)(result, to + d, acc[i * CHUNKS + c][e] * factor);
#endif
            }
        }
    }
}
