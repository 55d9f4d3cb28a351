// exp(x - top) / sum along lines, or its logarithm, where x may have a mask added. MODE 0 does all of it; long lines take
// two dispatches: 1 writes (top, sum) of each piece, 2 reads those of the whole line and writes the results of a piece.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef USE_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// Line number l has the mask's line (l / (mask_rows * mask_heads)) * mask_rows + l % mask_rows.
#define LINES_PUSH uint mask_rows, mask_heads;
#include "lines.glsl"
#include "exponents.glsl"

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const bool LOG = false;
layout(constant_id = 5) const bool MASKED = false;
layout(constant_id = 6) const uint HELD = 0;  // Fours that an invocation keeps in registers; 0: all are read twice.

LINE_BUFFER(0, elements, readonly, TYPE);
LINE_BUFFER(1, mask, readonly, TYPE);
LINE_BUFFER(2, result, , TYPE);
layout(set = 0, binding = 3) buffer Pieces {
    float pieces[];  // (top, sum) of each piece of each line.
};

shared vec2 tree[ACROSS * ALONG];

// Where the first of the fours lies that an invocation holds.
#ifdef PACKED
#define HELD_AT(i) (piece_start() + 4 * (PLACE + (i) * ALONG))
#else
#define HELD_AT(i) (piece_start() + PLACE + (i) * 4 * ALONG)
#endif

vec4 masked(uint base, uint mask_base, uint at) {
    vec4 v = FOUR_LOAD(TYPE, elements, base, at, -INFINITY);
    if (MASKED) v += FOUR_LOAD(TYPE, mask, mask_base, at, 0.0);
    return v;
}

vec4 finished(vec4 v, float top, float log_sum, float scale) {
    return LOG ? v - top - log_sum : exp_below(v, top) * scale;
}

// All invocations of a line get the result.
vec2 along_line(vec2 mine) {
#ifdef USE_SUBGROUP
    // Tops are never NaN.
    const float top = subgroupMax(mine.x);
    mine = vec2(top, subgroupAdd(mine.y * exp_below(mine.xxxx, top).x));
    if (ACROSS > 1) return mine;
    if (subgroupElect()) tree[gl_SubgroupID] = mine;
    barrier();
    vec2 sum = tree[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) sum = add_sums(sum, tree[i]);
    return sum;
#else
    tree[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = add_sums(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    barrier();
    return tree[LANE % ACROSS];
#endif
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    const bool here = line < lines;
    const uint base = line_base(line), chunks = gl_NumWorkGroups.z;
    const uint mask_base = MASKED ? (line / (mask_rows * mask_heads) * mask_rows + line % mask_rows) * length : 0u;
    vec2 sum = NO_TERMS;
    vec4 held[HELD > 0 ? HELD : 1];
    if (here && MODE == 2) {
        for (uint i = PLACE; i < chunks; i += ALONG) {
            const uint at = 2 * (line * chunks + i);
            sum = add_sums(sum, vec2(pieces[at], pieces[at + 1]));
        }
    } else if (here) {
        if (HELD == 0) {
            for (EACH_FOUR(at)) sum = add_terms(sum, masked(base, mask_base, at));
        } else {
            [[unroll]] for (uint i = 0; i < HELD; ++i) {
                const uint at = HELD_AT(i);
                held[i] = vec4(-INFINITY);
                if (at < piece_end()) held[i] = masked(base, mask_base, at);
            }
            [[unroll]] for (uint i = 0; i < HELD; ++i) {
                const uint at = HELD_AT(i);
                if (at < piece_end()) sum = add_terms(sum, held[i]);
            }
        }
    }
    sum = along_line(sum);
    if (!here) return;
    if (MODE == 1) {
        if (PLACE > 0) return;
        const uint at = 2 * (line * chunks + gl_WorkGroupID.z);
        pieces[at] = sum.x;
        pieces[at + 1] = sum.y;
        return;
    }
    // An infinity less itself is NaN, and so is the sum that all results are divided by.
    const bool none = is_nan(sum.y) || !is_finite(sum.x);
    const float log_sum = log_of(sum.y), scale = 1.0 / sum.y;
    if (HELD == 0) {
        for (EACH_FOUR(at)) {
            const vec4 p = finished(masked(base, mask_base, at), sum.x, log_sum, scale);
            FOUR_STORE(TYPE, result, base, at, none ? vec4(NAN) : p);
        }
        return;
    }
    [[unroll]] for (uint i = 0; i < HELD; ++i) {
        const uint at = HELD_AT(i);
        const vec4 p = finished(held[i], sum.x, log_sum, scale);
        if (at < piece_end()) FOUR_STORE(TYPE, result, base, at, none ? vec4(NAN) : p);
    }
}
