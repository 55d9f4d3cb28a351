// Attention of few queries to keys that are not many: a workgroup has RB queries of a key-value head and all keys. T neighbouring
// lanes share a key, whose row is whole 16-byte words, and keep sums, greatest scores and results of their own until the end: nothing
// waits for others before. AHEAD keys of such a team are on their way at once.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RB = 1;
layout(constant_id = 2) const uint AHEAD = 8;
layout(constant_id = 3) const uint D = 64;
layout(constant_id = 4) const bool CAUSAL = false;
layout(constant_id = 5) const bool MASK = false;
layout(constant_id = 6) const bool SOFTCAP = false;
layout(constant_id = 7) const bool LENGTHS = false;
layout(constant_id = 8) const uint T = 8;  // Words of a row; they divide subgroups.
layout(constant_id = 9) const uint SUBGROUPS = 16;

layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
ELEMENT_BUFFER(3, mask, readonly, TYPE);
// In the place of the mask, with LENGTHS: how many keys of each sequence count.
layout(set = 0, binding = 3) readonly buffer Lengths { uint lengths[]; };
QUAD_BUFFER(4, result4, , OUT);

layout(push_constant) uniform Shape {
    uint q_len, kv_len;
    uint group_heads;            // Query heads that share a key-value head.
    uint mask_batch, mask_head;  // Elements of the mask from one batch or head to the next.
    uint mask_batches;           // Elements of the batch after which masks repeat.
    float scale, softcap;
    uint q_first, q_batch, q_head, q_row;  // Where the rows of queries, keys and values lie, in words.
    uint k_first, k_batch, k_head, k_row;
    uint v_first, v_batch, v_head, v_row;
    uint out_batch, out_head, out_row;     // Where the rows of results lie, in quads.
};

#if defined(WIDE)
const uint PACK = 4;  // Elements of a word.
#else
const uint PACK = 8;
#endif
const float NONE = uintBitsToFloat(0xFF800000u);
// What subgroups have of a row: results, and greatest scores with sums of weights.
shared float gathered[RB * D * SUBGROUPS];
shared vec2 sums[RB * SUBGROUPS];

float[PACK] unpacked(uvec4 word) {
    float[PACK] values;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
#if defined(WIDE)
        values[i] = uintBitsToFloat(word[i]);
#elif defined(BRAIN)
        values[2 * i] = uintBitsToFloat(word[i] << 16);
        values[2 * i + 1] = uintBitsToFloat(word[i] & 0xFFFF0000u);
#else
        const vec2 pair = unpackHalf2x16(word[i]);
        values[2 * i] = pair.x;
        values[2 * i + 1] = pair.y;
#endif
    }
    return values;
}

// exp of what is at most 0, or NaN, also where a device's exp has no zero and no NaN.
float weight(float x) {
    if (x > -87.0) return exp(x);
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : 0.0;
}

// What to subtract from scores: nothing as long as there was none but -infinity.
float base_of(float top) {
    return top == NONE ? 0.0 : top;
}

// Keys that count.
uint key_count;

// A score as the softmax takes it; -infinity for what is not attended to.
float finish(float score, uint row, uint rows, uint key, uint batch, uint head0) {
    if (row >= rows || key >= key_count) return NONE;
    const uint i = row % q_len;
    if (CAUSAL && key + q_len > key_count + i) return NONE;
    score *= scale;
    if (SOFTCAP) {
        const float e = weight(-2.0 * abs(score / softcap));
        score = softcap * sign(score) * ((1.0 - e) / (1.0 + e));
    }
    if (MASK)
        score += CONCAT(LOAD_, TYPE)(mask, batch % mask_batches * mask_batch + (head0 + row / q_len) * mask_head + i * kv_len + key);
    return score;
}

void main() {
    const uint teams = gl_SubgroupSize / T, part = gl_SubgroupInvocationID % T, team = gl_SubgroupInvocationID / T;
    const uint kv_head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
    const uint rows = group_heads * q_len, row0 = gl_WorkGroupID.x * RB;
    const uint q_base = q_first + batch * q_batch + kv_head * group_heads * q_head;
    const uint k_base = k_first + batch * k_batch + kv_head * k_head;
    const uint v_base = v_first + batch * v_batch + kv_head * v_head;
    key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;

    float queries[RB * PACK], acc[RB * PACK], top[RB], total[RB];
    [[unroll]] for (uint r = 0; r < RB; ++r) {
        const uint row = min(row0 + r, rows - 1);
        const float[PACK] values = unpacked(q[q_base + row / q_len * q_head + row % q_len * q_row + part]);
        [[unroll]] for (uint e = 0; e < PACK; ++e) {
            queries[r * PACK + e] = values[e];
            acc[r * PACK + e] = 0.0;
        }
        top[r] = NONE;
        total[r] = 0.0;
    }

    // Neighbouring teams have neighbouring keys, subgroups whole blocks of them.
    const uint block = teams * AHEAD;
    for (uint k0 = gl_SubgroupID * block; k0 < key_count; k0 += SUBGROUPS * block) {
        uvec4 keys[AHEAD], held[AHEAD];
        // Rows behind the last are read as the last, and not attended to.
        [[unroll]] for (uint a = 0; a < AHEAD; ++a)
            keys[a] = k[k_base + min(k0 + a * teams + team, key_count - 1) * k_row + part];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a)
            held[a] = v[v_base + min(k0 + a * teams + team, key_count - 1) * v_row + part];
        float scores[RB * AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const float[PACK] values = unpacked(keys[a]);
            [[unroll]] for (uint r = 0; r < RB; ++r) {
                float dot = 0.0;
                [[unroll]] for (uint e = 0; e < PACK; ++e) dot += queries[r * PACK + e] * values[e];
                [[unroll]] for (uint apart = 1; apart < T; apart *= 2) dot += subgroupShuffleXor(dot, apart);
                scores[r * AHEAD + a] = finish(dot, row0 + r, rows, k0 + a * teams + team, batch, kv_head * group_heads);
            }
        }
        [[unroll]] for (uint r = 0; r < RB; ++r) {
            float now = top[r];
            [[unroll]] for (uint a = 0; a < AHEAD; ++a) now = max(now, scores[r * AHEAD + a]);
            const float base = base_of(now), shrink = weight(top[r] - base);
            top[r] = now;
            total[r] *= shrink;
            [[unroll]] for (uint e = 0; e < PACK; ++e) acc[r * PACK + e] *= shrink;
            [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
                scores[r * AHEAD + a] = weight(scores[r * AHEAD + a] - base);
                total[r] += scores[r * AHEAD + a];
            }
        }
        [[unroll]] for (uint a = 0; a < AHEAD; ++a) {
            const float[PACK] values = unpacked(held[a]);
            [[unroll]] for (uint r = 0; r < RB; ++r)
                [[unroll]] for (uint e = 0; e < PACK; ++e) acc[r * PACK + e] += scores[r * AHEAD + a] * values[e];
        }
    }

    // What the teams of a subgroup have, then what subgroups have.
    [[unroll]] for (uint r = 0; r < RB; ++r) {
        for (uint apart = T; apart < gl_SubgroupSize; apart *= 2) {
            const float other = subgroupShuffleXor(top[r], apart), now = max(top[r], other);
            const float base = base_of(now), mine = weight(top[r] - base), theirs = weight(other - base);
            total[r] = mine * total[r] + theirs * subgroupShuffleXor(total[r], apart);
            [[unroll]] for (uint e = 0; e < PACK; ++e)
                acc[r * PACK + e] = mine * acc[r * PACK + e] + theirs * subgroupShuffleXor(acc[r * PACK + e], apart);
            top[r] = now;
        }
        if (team == 0) {
            [[unroll]] for (uint e = 0; e < PACK; ++e)
                gathered[(gl_SubgroupID * RB + r) * D + part * PACK + e] = acc[r * PACK + e];
            if (part == 0) sums[gl_SubgroupID * RB + r] = vec2(top[r], total[r]);
        }
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < RB * D / 4; i += gl_WorkGroupSize.x) {
        const uint r = i / (D / 4), unit = i % (D / 4), row = row0 + r;
        float most = NONE;
        for (uint s = 0; s < SUBGROUPS; ++s) most = max(most, sums[s * RB + r].x);
        const float base = base_of(most);
        float sum = 0.0;
        vec4 value = vec4(0);
        for (uint s = 0; s < SUBGROUPS; ++s) {
            const vec2 own = sums[s * RB + r];
            const float share = weight(own.x - base);
            const uint at = (s * RB + r) * D + unit * 4;
            sum += share * own.y;
            value += share * vec4(gathered[at], gathered[at + 1], gathered[at + 2], gathered[at + 3]);
        }
        if (row >= rows) continue;
        const uint to = batch * out_batch + (kv_head * group_heads + row / q_len) * out_head + row % q_len * out_row;
        CONCAT(STORE4_, OUT)(result4, to + unit, value * (sum == 0.0 ? 0.0 : 1.0 / sum));
    }
}
