// out = softmax(scale * q * kT + mask) * v for devices that run on a CPU: an invocation has QUERIES queries, and computes the
// softmax as keys go by (online). A subgroup of SUBGROUP invocations takes as many keys at a time: each invocation reads
// one key or value, and gives it to the others. Nothing is shared, and there are no barriers. Rows are whole quads; the queries
// and the sums of an invocation are in registers, or where the driver keeps what does not fit them. With BLOCKS, keys and values
// may be in blocks.
//
// Queries of the heads that share a key-value head lie one after the other and are rows of one matrix here.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint QUERIES = 2;
layout(constant_id = 2) const uint D = 64;
layout(constant_id = 3) const bool CAUSAL = false;
layout(constant_id = 4) const bool MASK = false;
layout(constant_id = 5) const bool SOFTCAP = false;
layout(constant_id = 6) const bool LENGTHS = false;

QUAD_BUFFER(0, q, readonly, TYPE);
QUAD_BUFFER(1, k, readonly, TYPE);
QUAD_BUFFER(2, v, readonly, TYPE);
#if defined(BLOCKS)
layout(constant_id = 7) const uint K_FORMAT = 0;
layout(constant_id = 8) const uint V_FORMAT = 0;
layout(set = 0, binding = 1) readonly buffer KeyWords { uint k_words[]; };
layout(set = 0, binding = 2) readonly buffer ValueWords { uint v_words[]; };
#define CACHED_QUADS
#include "cached.glsl"
#define KEY4(row, quad) key_read(row, quad)
#define VALUE4(row, quad) value_read(row, quad)
#else
#define KEY4(row, quad) vec4(LOAD4(k, row + quad))
#define VALUE4(row, quad) vec4(LOAD4(v, row + quad))
#endif
ELEMENT_BUFFER(3, mask, readonly, TYPE);
// In the place of the mask, with LENGTHS: how many keys of each sequence count.
layout(set = 0, binding = 3) readonly buffer Lengths { uint lengths[]; };
QUAD_BUFFER(4, result, , TYPE);

layout(push_constant) uniform Shape {
    uint q_len, kv_len;
    uint group_heads;  // Query heads that share a key-value head.
    uint mask_batch, mask_head;  // Elements of the mask from one batch or head to the next.
    uint mask_batches;           // Elements of the batch after which masks repeat.
    float scale, softcap;
    uint q_first, q_batch, q_head, q_row;  // Where the rows of queries, keys and values lie, in quads.
    uint k_first, k_batch, k_head, k_row;
    uint v_first, v_batch, v_head, v_row;
    uint out_batch, out_head, out_row;  // Where those of results lie.
};

#define LOAD CONCAT(LOAD_, TYPE)
#define LOAD4 CONCAT(LOAD4_, TYPE)

const uint QUADS = D / 4;
const float NONE = uintBitsToFloat(0xFF800000u);

bool is_nan(float x) {
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u;
}

// exp of what is at most 0, or NaN, also where a device's exp has no zero and no NaN.
float weight(float x) {
    const float e = exp(max(x, -87.0));
    return is_nan(x) ? x : x > -87.0 ? e : 0.0;
}

float capped(float x) {
    // tanh by way of a bounded exp, because a device's own may be NaN for large arguments.
    const float e = weight(-2.0 * abs(x / softcap));
    return softcap * sign(x) * ((1.0 - e) / (1.0 + e));
}

void main() {
    const uint lane = gl_SubgroupInvocationID % SUBGROUP;
    const uint kv_head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
    const uint key_count = LENGTHS ? min(lengths[batch], kv_len) : kv_len;
    const uint rows = group_heads * q_len, row0 = gl_WorkGroupID.x * (QUERIES * SUBGROUP);
    const uint q_base = q_first + batch * q_batch, to = batch * out_batch;
    const uint k_base = k_first + batch * k_batch + kv_head * k_head, v_base = v_first + batch * v_batch + kv_head * v_head;

    // Keys that a query sees end before `seen`; those that no query of the workgroup sees are not read.
    uint row[QUERIES], seen[QUERIES], mask_row[QUERIES], out_at[QUERIES];
    vec4 query[QUERIES * QUADS], acc[QUERIES * QUADS];
    float top[QUERIES], total[QUERIES];
    [[unroll]] for (uint r = 0; r < QUERIES; ++r) {
        row[r] = min(row0 + r * SUBGROUP + lane, rows - 1);
        const uint head = kv_head * group_heads + row[r] / q_len, i = row[r] % q_len;
        seen[r] = CAUSAL ? uint(max(int(key_count + i + 1) - int(q_len), 0)) : key_count;
        mask_row[r] = batch % mask_batches * mask_batch + head * mask_head + i * kv_len;
        const uint from = q_base + head * q_head + i * q_row;
        out_at[r] = to + head * out_head + i * out_row;
        [[unroll]] for (uint c = 0; c < QUADS; ++c) {
            query[r * QUADS + c] = vec4(LOAD4(q, from + c));
            acc[r * QUADS + c] = vec4(0.0);
        }
        top[r] = NONE;
        total[r] = 0.0;
    }
    uint end = key_count;
    const uint last = min(row0 + QUERIES * SUBGROUP, rows) - 1;
    if (CAUSAL && row0 / q_len == last / q_len) end = uint(max(int(key_count + last % q_len + 1) - int(q_len), 0));

    for (uint key0 = 0; key0 < end; key0 += SUBGROUP) {
        const bool there = key0 + lane < end;
        const uint key = min(key0 + lane, end - 1), k_at = k_base + key * k_row, v_at = v_base + key * v_row;
        float scores[QUERIES * SUBGROUP];
        [[unroll]] for (uint i = 0; i < QUERIES * SUBGROUP; ++i) scores[i] = 0.0;
        [[unroll]] for (uint c = 0; c < QUADS; ++c) {
            const vec4 mine = KEY4(k_at, c);
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) {
                const vec4 given = FROM_INVOCATION(mine, j);
                [[unroll]] for (uint r = 0; r < QUERIES; ++r) {
                    const vec4 mul = query[r * QUADS + c];
                    float sum = scores[r * SUBGROUP + j];
                    sum = fma(mul.x, given.x, sum);
                    sum = fma(mul.y, given.y, sum);
                    sum = fma(mul.z, given.z, sum);
                    scores[r * SUBGROUP + j] = fma(mul.w, given.w, sum);
                }
            }
        }
        [[unroll]] for (uint r = 0; r < QUERIES; ++r) {
            float largest = top[r];
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) {
                float score = scores[r * SUBGROUP + j] * scale;
                if (SOFTCAP) score = capped(score);
                if (MASK) score += LOAD(mask, mask_row[r] + min(key0 + j, end - 1));
                score = key0 + j < min(end, seen[r]) ? score : NONE;
                scores[r * SUBGROUP + j] = score;
                largest = max(largest, score);
            }
            // A row that has seen nothing but -infinity has no greatest score to subtract.
            const float base = largest == NONE ? 0.0 : largest;
            const float shrink = weight(top[r] - base);
            top[r] = largest;
            float sum = total[r] * shrink;
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) {
                const float w = weight(scores[r * SUBGROUP + j] - base);
                scores[r * SUBGROUP + j] = w;
                sum += w;
            }
            total[r] = sum;
            [[unroll]] for (uint c = 0; c < QUADS; ++c) acc[r * QUADS + c] *= shrink;
        }
        [[unroll]] for (uint c = 0; c < QUADS; ++c) {
            const vec4 read = VALUE4(v_at, c), mine = there ? read : vec4(0.0);
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) {
                const vec4 value = FROM_INVOCATION(mine, j);
                [[unroll]] for (uint r = 0; r < QUERIES; ++r)
                    acc[r * QUADS + c] = fma(vec4(scores[r * SUBGROUP + j]), value, acc[r * QUADS + c]);
            }
        }
    }

    [[unroll]] for (uint r = 0; r < QUERIES; ++r) {
        const float factor = total[r] == 0.0 ? 0.0 : 1.0 / total[r];
        if (row0 + r * SUBGROUP + lane < rows) {
            [[unroll]] for (uint c = 0; c < QUADS; ++c)
                CONCAT(STORE4_, TYPE)(result, out_at[r] + c, acc[r * QUADS + c] * factor);
        }
    }
}
