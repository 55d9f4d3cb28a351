// Attention of few queries for devices that run on a CPU: a workgroup, which is one subgroup, has four queries of a key-value head
// and all keys that one of them attends to. Its invocations have slices of every row, in whole words of 16 bytes: neighbours read
// neighbours, in loops that are short. Four queries are the parts of vectors.
//
// Where a mask leaves keys out at both ends, as windows do, those are not read. With BLOCKS, keys and values may be in blocks, of
// which eight elements are read at a time.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D = 64;
layout(constant_id = 2) const bool CAUSAL = false;
layout(constant_id = 3) const bool MASK = false;
layout(constant_id = 4) const bool SOFTCAP = false;
layout(constant_id = 5) const bool LENGTHS = false;

layout(set = 0, binding = 0) readonly buffer Queries { uvec4 q[]; };
layout(set = 0, binding = 1) readonly buffer Keys { uvec4 k[]; };
layout(set = 0, binding = 2) readonly buffer Values { uvec4 v[]; };
#if defined(BLOCKS)
layout(constant_id = 6) const uint K_FORMAT = 0;
layout(constant_id = 7) const uint V_FORMAT = 0;
layout(set = 0, binding = 1) readonly buffer KeyWords { uint k_words[]; };
layout(set = 0, binding = 2) readonly buffer ValueWords { uint v_words[]; };
#include "cached.glsl"
#define KEY_OF(row, word) cached_values(key_read(row, word), K_FORMAT)
#define VALUE_OF(row, word) cached_values(value_read(row, word), V_FORMAT)
#else
#define KEY_OF(row, word) unpacked(k[row + word])
#define VALUE_OF(row, word) unpacked(v[row + word])
#endif
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
const uint LANES = gl_WorkGroupSize.x;
const uint WORDS = D / PACK, EACH = (WORDS + LANES - 1) / LANES;  // Of a row, and of an invocation's slices of it.
const uint ROWS = 4;
const uint KEYS = 32;  // Keys whose scores are made together; a multiple of LANES.
const float NONE = uintBitsToFloat(0xFF800000u);

shared vec4 parts[KEYS * LANES];  // What slices add to scores.
shared vec4 weights[KEYS];
shared vec4 gathered[LANES];
shared uvec2 bounds[LANES];

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
vec4 weight(vec4 x) {
    const vec4 e = mix(vec4(0.0), exp(max(x, vec4(-87.0))), greaterThan(x, vec4(-87.0)));
    return mix(e, x, greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u)));
}

// What to subtract from scores: nothing as long as there was none but -infinity.
vec4 base_of(vec4 top) {
    return mix(top, vec4(0.0), equal(top, vec4(NONE)));
}

uint lane, batch;
// Of each query: where its part of the mask begins, and how many keys it sees.
uvec4 mask_row, seen;

// The place of a slice in a row. Slices behind the row are its last word, and count as zeros in queries.
uint place(uint slice) {
    return min(slice * LANES + lane, WORDS - 1);
}

// The first key that a query attends to, and the one behind the last, as the mask has them.
uvec2 attended(uint end) {
    // Of heads that share a mask, queries repeat.
    const uint checked = mask_head == 0 ? min(q_len, ROWS) : ROWS;
    uvec2 own = uvec2(end, 0);
    for (uint key = lane; key < end; key += LANES) {
        bool some = false;
        for (uint r = 0; r < checked; ++r)
            some = some || CONCAT(LOAD_, TYPE)(mask, mask_row[r] + key) != NONE;
        own = some ? uvec2(min(own.x, key), key + 1) : own;
    }
    bounds[lane] = own;
    barrier();
    for (uint i = 0; i < LANES; ++i) own = uvec2(min(own.x, bounds[i].x), max(own.y, bounds[i].y));
    return own;
}

// Scores as the softmax takes them; -infinity for what is not attended to.
vec4 finish(vec4 score, uint key, uint end) {
    score *= scale;
    if (SOFTCAP) {
        const vec4 e = weight(-2.0 * abs(score / softcap));
        score = softcap * sign(score) * ((1.0 - e) / (1.0 + e));
    }
    if (MASK) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r)
            score[r] += CONCAT(LOAD_, TYPE)(mask, mask_row[r] + min(key, end - 1));
    }
    return mix(vec4(NONE), score, lessThan(uvec4(key), min(uvec4(end), seen)));
}

void main() {
    lane = gl_LocalInvocationIndex;
    batch = gl_WorkGroupID.z;
    const uint kv_head = gl_WorkGroupID.y, row0 = gl_WorkGroupID.x * ROWS, rows = group_heads * q_len;
    const uint k_base = k_first + batch * k_batch + kv_head * k_head, v_base = v_first + batch * v_batch + kv_head * v_head;
    const uint key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;
    const uvec4 row = min(row0 + uvec4(0, 1, 2, 3), uvec4(rows - 1));
    const uvec4 head = kv_head * group_heads + row / q_len, token = row % q_len;
    seen = CAUSAL ? uvec4(max(ivec4(key_count + token + 1) - int(q_len), ivec4(0))) : uvec4(key_count);
    mask_row = batch % mask_batches * mask_batch + head * mask_head + token * kv_len;
    uint begin = 0, end = max(max(seen.x, seen.y), max(seen.z, seen.w));
    if (MASK) {
        const uvec2 some = attended(end);
        begin = some.x;
        end = some.y;
    }

    vec4 queries[EACH * PACK], acc[EACH * PACK];
    [[unroll]] for (uint w = 0; w < EACH; ++w) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const float[PACK] values = unpacked(q[q_first + batch * q_batch + head[r] * q_head + token[r] * q_row + place(w)]);
            [[unroll]] for (uint e = 0; e < PACK; ++e)
                queries[w * PACK + e][r] = w * LANES + lane < WORDS ? values[e] : 0.0;
        }
        [[unroll]] for (uint e = 0; e < PACK; ++e) acc[w * PACK + e] = vec4(0.0);
    }
    vec4 top = vec4(NONE), total = vec4(0.0);

    for (uint k0 = begin; k0 < end; k0 += KEYS) {
        const uint count = min(KEYS, end - k0);
        for (uint j = 0; j < count; ++j) {
            const uint at = k_base + (k0 + j) * k_row;
            vec4 dots = vec4(0.0);
            [[unroll]] for (uint w = 0; w < EACH; ++w) {
                const float[PACK] values = KEY_OF(at, place(w));
                [[unroll]] for (uint e = 0; e < PACK; ++e) dots += queries[w * PACK + e] * values[e];
            }
            parts[j * LANES + lane] = dots;
        }
        barrier();
        vec4 scores[KEYS / LANES], now = top;
        [[unroll]] for (uint i = 0; i < KEYS / LANES; ++i) {
            const uint j = i * LANES + lane;
            vec4 score = parts[j * LANES];
            [[unroll]] for (uint l = 1; l < LANES; ++l) score += parts[j * LANES + l];
            scores[i] = finish(score, k0 + j, end);
            now = max(now, scores[i]);
        }
        gathered[lane] = now;
        barrier();
        [[unroll]] for (uint l = 0; l < LANES; ++l) now = max(now, gathered[l]);
        const vec4 base = base_of(now), shrink = weight(top - base);
        top = now;
        total *= shrink;
        [[unroll]] for (uint i = 0; i < KEYS / LANES; ++i) {
            const vec4 own = weight(scores[i] - base);
            total += own;
            weights[i * LANES + lane] = own;
        }
        barrier();
        [[unroll]] for (uint e = 0; e < EACH * PACK; ++e) acc[e] *= shrink;
        for (uint j = 0; j < count; ++j) {
            const uint at = v_base + (k0 + j) * v_row;
            const vec4 own = weights[j];
            [[unroll]] for (uint w = 0; w < EACH; ++w) {
                const float[PACK] values = VALUE_OF(at, place(w));
                [[unroll]] for (uint e = 0; e < PACK; ++e) acc[w * PACK + e] += own * values[e];
            }
        }
    }

    barrier();
    gathered[lane] = total;
    barrier();
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint l = 0; l < LANES; ++l) sum += gathered[l];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (row0 + r >= rows) break;
        const float factor = sum[r] == 0.0 ? 0.0 : 1.0 / sum[r];
        const uint to = batch * out_batch + head[r] * out_head + token[r] * out_row;
        [[unroll]] for (uint i = 0; i < EACH * PACK / 4; ++i) {
            const uint w = i / (PACK / 4) * LANES + lane;
            const vec4 own = vec4(acc[i * 4][r], acc[i * 4 + 1][r], acc[i * 4 + 2][r], acc[i * 4 + 3][r]);
            if (w < WORDS) CONCAT(STORE4_, OUT)(result4, to + w * (PACK / 4) + i % (PACK / 4), own * factor);
        }
    }
}
