// Sums, products and extremes along lines. Long lines are reduced in two dispatches: the first writes what comes of each
// piece (LAST = false), the second reads that (FIRST = false).
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef USE_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#define LINES_PUSH uint total;
#include "lines.glsl"
#include "reductions.glsl"

LINE_BUFFER(0, elements, readonly, IN);
ELEMENT_BUFFER(1, result, , OUT);

shared ONE tree[ACROSS * ALONG];

// The invocations of a line together; the first of each line has the result.
ONE along_line(ONE mine) {
#ifdef USE_SUBGROUP
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
    if (ACROSS > 1) return mine;
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
