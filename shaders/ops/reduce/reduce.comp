// Sums, products and extremes along lines. Long lines are reduced in two dispatches: the first writes what comes of each
// piece (LAST = false), the second reads that (FIRST = false).
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef USE_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#define LINES_PUSH uint total;
#include "lines.glsl"
#include "special.glsl"

layout(constant_id = 3) const uint KIND = 0;
layout(constant_id = 4) const bool FIRST = true;
layout(constant_id = 5) const bool LAST = true;

const uint SUM = 0, MEAN = 1, SUM_SQUARE = 2, L1 = 3, L2 = 4, LOG_SUM = 5, PROD = 6, MAX = 7, MIN = 8;

LINE_BUFFER(0, elements, readonly, IN);
ELEMENT_BUFFER(1, result, , OUT);

#define ONE CONCAT(REGISTER_, ACC)
#define FOUR CONCAT(QUAD_REGISTER_, ACC)

shared ONE tree[ACROSS * ALONG];

// Minima are maxima of what has the opposite order.
#ifdef INTEGER
#ifdef UNSIGNED
#define LEAST 0u
#define MAGNITUDE(v) (v)
#else
#define LEAST int(0x80000000u)
#define MAGNITUDE(v) abs(v)
#endif
#define OPPOSITE(v) (~(v))
#define LARGER(a, b) max(a, b)
#else
#define LEAST (-INFINITY)
#define MAGNITUDE(v) abs(v)
#define OPPOSITE(v) (-(v))
#define LARGER(a, b) max_or_nan(a, b)
#endif

ONE identity() {
    if (KIND == PROD) return ONE(1);
    return KIND == MAX || KIND == MIN ? LEAST : ONE(0);
}

FOUR combine(FOUR a, FOUR b) {
    if (KIND == PROD) return a * b;
    if (KIND == MAX || KIND == MIN) return LARGER(a, b);
    return a + b;
}

ONE combine(ONE a, ONE b) {
    return combine(FOUR(a), FOUR(b)).x;
}

// What is summed up for an element. What is not there counts as nothing.
FOUR term(FOUR v) {
    if (!FIRST) return v;
    if (KIND == SUM_SQUARE || KIND == L2) return v * v;
    if (KIND == L1) return MAGNITUDE(v);
    return KIND == MIN ? OPPOSITE(v) : v;
}

ONE fill() {
    if (!FIRST || KIND != MIN) return identity();
    return OPPOSITE(identity());
}

ONE finished(ONE v) {
    if (!LAST) return v;
    if (KIND == MIN) return OPPOSITE(v);
#ifndef INTEGER
    if (KIND == MEAN) return total == 0u ? NAN : v / float(total);
    if (KIND == L2) return is_finite(v) ? sqrt(v) : v;
    if (KIND == LOG_SUM) return log_of(v);
#endif
    return v;
}

// The invocations of a line together; the first of each line has the result.
ONE along_line(ONE mine) {
#ifdef USE_SUBGROUP
    // ACROSS is 1.
    if (KIND == PROD) {
        mine = subgroupMul(mine);
    } else if (KIND == MAX || KIND == MIN) {
#ifdef INTEGER
        mine = subgroupMax(mine);
#else
        mine = from_order_key(subgroupMax(order_key(mine)));
#endif
    } else {
        mine = subgroupAdd(mine);
    }
    if (subgroupElect()) tree[gl_SubgroupID] = mine;
    barrier();
    mine = tree[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) mine = combine(mine, tree[i]);
    return mine;
#else
    tree[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = combine(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    return tree[LANE];
#endif
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    FOUR sums = FOUR(identity());
    if (line < lines) {
        const uint base = line_base(line);
        for (EACH_FOUR(at)) sums = combine(sums, term(FOUR_LOAD(IN, elements, base, at, fill())));
    }
    const ONE both = combine(combine(sums.x, sums.y), combine(sums.z, sums.w));
    const ONE all = along_line(both);
    if (PLACE == 0 && line < lines) {
        CONCAT(STORE_, OUT)(result, line * gl_NumWorkGroups.z + gl_WorkGroupID.z, finished(all));
    }
}
