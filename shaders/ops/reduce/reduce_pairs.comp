// Sums, products and extremes of 64-bit integers along lines, as pairs of words, low and high: Vulkan promises no 64-bit
// integers. Long lines are reduced in two dispatches, as in reduce.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#define LINES_PUSH uint total;
#include "lines.glsl"

layout(constant_id = 3) const uint KIND = 0;
layout(constant_id = 4) const bool FIRST = true;

// Numbered as in reduce.comp; the others are for floats.
const uint SUM = 0, SUM_SQUARE = 2, L1 = 3, PROD = 6, MAX = 7, MIN = 8;

layout(set = 0, binding = 0) readonly buffer Elements {
    uvec2 elements[];
};
layout(set = 0, binding = 1) buffer Result {
    uvec2 result[];
};

shared uvec2 tree[ACROSS * ALONG];

// The least value is the sign bit alone, or none.
#ifdef UNSIGNED
const uvec2 LEAST = uvec2(0);
#else
const uvec2 LEAST = uvec2(0, 0x80000000u);
#endif

bool is_less(uvec2 a, uvec2 b) {
    a ^= LEAST;
    b ^= LEAST;
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

uvec2 added(uvec2 a, uvec2 b) {
    uint carry;
    const uint low = uaddCarry(a.x, b.x, carry);
    return uvec2(low, a.y + b.y + carry);
}

uvec2 multiplied(uvec2 a, uvec2 b) {
    uint high, low;
    umulExtended(a.x, b.x, high, low);
    return uvec2(low, high + a.x * b.y + a.y * b.x);
}

uvec2 identity() {
    if (KIND == PROD) return uvec2(1, 0);
    if (KIND == MAX) return LEAST;
    return KIND == MIN ? ~LEAST : uvec2(0);
}

uvec2 combine(uvec2 a, uvec2 b) {
    if (KIND == PROD) return multiplied(a, b);
    if (KIND == MAX) return is_less(a, b) ? b : a;
    if (KIND == MIN) return is_less(b, a) ? b : a;
    return added(a, b);
}

// What is summed up for an element.
uvec2 term(uvec2 v) {
    if (!FIRST) return v;
    if (KIND == SUM_SQUARE) return multiplied(v, v);
#ifndef UNSIGNED
    if (KIND == L1 && v.y >= 0x80000000u) return added(~v, uvec2(1, 0));
#endif
    return v;
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    uvec2 mine = identity();
    if (line < lines) {
        const uint base = line_base(line);
        for (uint at = piece_start() + PLACE; at < piece_end(); at += ALONG) {
            mine = combine(mine, term(elements[base + at * inner]));
        }
    }
    tree[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = combine(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    if (PLACE == 0 && line < lines) result[line * gl_NumWorkGroups.z + gl_WorkGroupID.z] = tree[LANE];
}
