// Attention of few queries to many keys, which are read once in whole 16-byte words: a workgroup has RB queries of a
// key-value head and a part of the keys, KB at a time. T lanes share a key for the scores; for the results a lane has one
// word of every row and some of the rows. Leaves sums, greatest scores and unscaled results for `combine`. With BLOCKS, keys and
// values may be in blocks, of which eight elements are what a word is else.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RB = 4;
layout(constant_id = 2) const uint KB = 64;
layout(constant_id = 3) const uint D = 64;
layout(constant_id = 4) const bool CAUSAL = false;
layout(constant_id = 5) const bool MASK = false;
layout(constant_id = 6) const bool SOFTCAP = false;
layout(constant_id = 7) const bool LENGTHS = false;
layout(constant_id = 8) const uint T = 8;

layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
#if defined(BLOCKS)
layout(constant_id = 9) const uint K_FORMAT = 0;
layout(constant_id = 10) const uint V_FORMAT = 0;
layout(set = 0, binding = 1) readonly buffer KeyWords { uint k_words[]; };
layout(set = 0, binding = 2) readonly buffer ValueWords { uint v_words[]; };
#include "cached.glsl"
#define KEY_READ(row, word) key_read(row, word)
#define VALUE_READ(row, word) value_read(row, word)
#define KEY_VALUES(read) cached_values(read, K_FORMAT)
#define VALUE_VALUES(read) cached_values(read, V_FORMAT)
#else
#define KEY_READ(row, word) k[row + word]
#define VALUE_READ(row, word) v[row + word]
#define KEY_VALUES(read) unpacked(read)
#define VALUE_VALUES(read) unpacked(read)
#endif
ELEMENT_BUFFER(3, mask, readonly, TYPE);
// In the place of the mask, with LENGTHS: how many keys of each sequence count.
layout(set = 0, binding = 3) readonly buffer Lengths { uint lengths[]; };
layout(set = 0, binding = 4) writeonly buffer Results { float results[]; };
layout(set = 0, binding = 5) writeonly buffer Sums { vec2 sums[]; };  // Greatest score, sum of weights.

layout(push_constant) uniform Shape {
    uint q_len, kv_len;
    uint group_heads;            // Query heads that share a key-value head.
    uint mask_batch, mask_head;  // Elements of the mask from one batch or head to the next.
    uint mask_batches;           // Elements of the batch after which masks repeat.
    uint splits, split_len;      // Parts of the keys, and keys of a part.
    float scale, softcap;
    uint q_first, q_batch, q_head, q_row;  // Where the rows of queries, keys and values lie, in words.
    uint k_first, k_batch, k_head, k_row;
    uint v_first, v_batch, v_head, v_row;
};

#if defined(WIDE)
const uint PACK = 4;  // Elements of a word.
#else
const uint PACK = 8;
#endif
const uint LANES = gl_WorkGroupSize.x;
const uint WORDS = D / PACK, EACH = WORDS / T;  // Of a row, and of a lane's part of it.
const uint KEYS = LANES / T;                    // Keys at a time for scores.
const uint STREAMS = LANES / WORDS;             // Rows at a time for results.
const uint TEAM = LANES / RB;                   // Lanes of a query's softmax.
const float NONE = uintBitsToFloat(0xFF800000u);

const uint KEY_ROUNDS = KB / KEYS, VALUE_ROUNDS = KB / STREAMS;
// Whether registers hold all keys and values of a block, whose reads are then under way together.
const bool EARLY = KEY_ROUNDS * EACH + VALUE_ROUNDS <= 16;
const uint PART = RB * KB + 32 / T;  // Scores of a part of the row; those more spread parts over banks.

shared float parts[T * PART];
shared float tops[LANES];
shared float weights[KB * RB];
shared float shrinks[RB];
shared float gathered[LANES * PACK];

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

// Keys that count.
uint key_count;

// A score as the softmax takes it; -infinity for what is not attended to.
float finish(float score, uint row, uint rows, uint key, uint end, uint batch, uint head0) {
    if (row >= rows || key >= end) return NONE;
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
    const uint lane = gl_LocalInvocationID.x;
    const uint kv_heads = gl_NumWorkGroups.y, kv_head = gl_WorkGroupID.y;
    const uint batch = gl_WorkGroupID.z / splits, split = gl_WorkGroupID.z % splits;
    const uint rows = group_heads * q_len, row0 = gl_WorkGroupID.x * RB;
    const uint first_row = (batch * kv_heads + kv_head) * rows;
    const uint q_base = q_first + batch * q_batch + kv_head * group_heads * q_head;
    const uint k_base = k_first + batch * k_batch + kv_head * k_head;
    const uint v_base = v_first + batch * v_batch + kv_head * v_head;
    key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;
    const uint part_len = LENGTHS ? (key_count + splits * KB - 1) / (splits * KB) * KB : split_len;
    const uint begin = split * part_len, end = min(key_count, begin + part_len);

    const uint part = lane % T, stream = lane / WORDS, word = lane % WORDS;
    float queries[RB * EACH * PACK];
    [[unroll]] for (uint r = 0; r < RB; ++r) {
        [[unroll]] for (uint w = 0; w < EACH; ++w) {
            const uint row = min(row0 + r, rows - 1);
            const uint at = q_base + row / q_len * q_head + row % q_len * q_row;
            const float[PACK] values = unpacked(q[at + w * T + part]);
            [[unroll]] for (uint e = 0; e < PACK; ++e) queries[(r * EACH + w) * PACK + e] = values[e];
        }
    }
    float acc[RB * PACK];
    [[unroll]] for (uint i = 0; i < RB * PACK; ++i) acc[i] = 0.0;
    // Of the query whose softmax the lane shares.
    const uint mine = lane / TEAM;
    float top = NONE, total = 0.0;

    for (uint k0 = begin; k0 < end; k0 += KB) {
        // Rows behind the last are read as the last, and not attended to.
        uvec4 keys[EARLY ? KEY_ROUNDS * EACH : 1], held[EARLY ? VALUE_ROUNDS : 1];
        if (EARLY) {
            [[unroll]] for (uint i = 0; i < KEY_ROUNDS * EACH; ++i)
                keys[i] = KEY_READ(k_base + min(k0 + i / EACH * KEYS + lane / T, end - 1) * k_row, i % EACH * T + part);
            [[unroll]] for (uint i = 0; i < VALUE_ROUNDS; ++i)
                held[i] = VALUE_READ(v_base + min(k0 + i * STREAMS + stream, end - 1) * v_row, word);
        }
        [[unroll]] for (uint i = 0; i < KEY_ROUNDS; ++i) {
            const uint j = i * KEYS + lane / T, key = min(k0 + j, end - 1);
            float dots[RB];
            [[unroll]] for (uint r = 0; r < RB; ++r) dots[r] = 0.0;
            [[unroll]] for (uint w = 0; w < EACH; ++w) {
                uvec4 packed;
                if (EARLY) {
                    packed = keys[i * EACH + w];
                } else {
                    packed = KEY_READ(k_base + key * k_row, w * T + part);
                }
                const float[PACK] values = KEY_VALUES(packed);
                [[unroll]] for (uint r = 0; r < RB; ++r)
                    [[unroll]] for (uint e = 0; e < PACK; ++e)
                        dots[r] += queries[(r * EACH + w) * PACK + e] * values[e];
            }
            [[unroll]] for (uint r = 0; r < RB; ++r) parts[part * PART + r * KB + j] = dots[r];
        }
        barrier();
        // Scores of the lane's query that are its own.
        float scores[KB / TEAM], mine_top = NONE;
        [[unroll]] for (uint i = 0; i < KB / TEAM; ++i) {
            const uint j = i * TEAM + lane % TEAM;
            float score = 0.0;
            [[unroll]] for (uint t = 0; t < T; ++t) score += parts[t * PART + mine * KB + j];
            scores[i] = finish(score, row0 + mine, rows, k0 + j, end, batch, kv_head * group_heads);
            mine_top = max(mine_top, scores[i]);
        }
        tops[lane] = mine_top;
        barrier();
        float now = top;
        [[unroll]] for (uint i = 0; i < TEAM; ++i) now = max(now, tops[mine * TEAM + i]);
        // A row that has seen nothing but -infinity has no greatest score to subtract.
        const float base = now == NONE ? 0.0 : now;
        const float shrink = weight(top - base);
        top = now;
        total *= shrink;
        if (lane % TEAM == 0) shrinks[mine] = shrink;
        [[unroll]] for (uint i = 0; i < KB / TEAM; ++i) {
            const float w = weight(scores[i] - base);
            total += w;
            weights[(i * TEAM + lane % TEAM) * RB + mine] = w;
        }
        barrier();
        [[unroll]] for (uint r = 0; r < RB; ++r)
            [[unroll]] for (uint e = 0; e < PACK; ++e) acc[r * PACK + e] *= shrinks[r];
        [[unroll]] for (uint i = 0; i < VALUE_ROUNDS; ++i) {
            const uint j = i * STREAMS + stream;
            uvec4 packed;
            if (EARLY) {
                packed = held[i];
            } else {
                packed = VALUE_READ(v_base + min(k0 + j, end - 1) * v_row, word);
            }
            const float[PACK] values = VALUE_VALUES(packed);
            [[unroll]] for (uint r = 0; r < RB; ++r) {
                const float w = weights[j * RB + r];
                [[unroll]] for (uint e = 0; e < PACK; ++e) acc[r * PACK + e] += w * values[e];
            }
        }
    }

    const uint part0 = split * (gl_NumWorkGroups.z / splits * kv_heads * rows) + first_row + row0;
    barrier();
    tops[lane] = total;
    barrier();
    if (lane % TEAM == 0 && row0 + mine < rows) {
        float sum = 0.0;
        for (uint i = 0; i < TEAM; ++i) sum += tops[lane + i];
        sums[part0 + mine] = vec2(top, sum);
    }
    // Written out, because registers have no index: a loop would keep `acc` in memory.
    [[unroll]] for (uint r = 0; r < RB; ++r) {
        if (row0 + r >= rows) break;
        barrier();
        [[unroll]] for (uint e = 0; e < PACK; ++e) gathered[lane * PACK + e] = acc[r * PACK + e];
        barrier();
        for (uint d = lane; d < D; d += LANES) {
            float sum = 0.0;
            for (uint s = 0; s < STREAMS; ++s) sum += gathered[s * D + d];
            results[(part0 + r) * D + d] = sum;
        }
    }
}
