// The same as reduce.comp for lines side by side, whose elements are `inner` apart: an invocation takes four neighbouring lines,
// and four of their elements are under way at once. Here lines and `inner` are counted in fours. What comes of pieces lies as
// the tensor does: outer x pieces x inner.
#version 450
#extension GL_GOOGLE_include_directive : require
#define LINES_PUSH uint total;
#include "lines.glsl"
#include "reductions.glsl"

QUAD_BUFFER(0, elements, readonly, IN);
QUAD_BUFFER(1, result, , OUT);

shared FOUR tree[ACROSS * ALONG];

FOUR read(uint base, uint at) {
    return at < piece_end() ? term(CONCAT(LOAD4_, IN)(elements, base + at * inner)) : FOUR(identity());
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    FOUR sums = FOUR(identity());
    if (line < lines) {
        const uint base = line_base(line);
        for (EACH_FOUR(at)) {
            const FOUR first = combine(read(base, at), read(base, at + ALONG));
            const FOUR second = combine(read(base, at + 2u * ALONG), read(base, at + 3u * ALONG));
            sums = combine(sums, combine(first, second));
        }
    }
    tree[LANE] = sums;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = combine(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    if (PLACE > 0 || line >= lines) return;
    const FOUR all = tree[LANE];
    const uint at = (line / inner * gl_NumWorkGroups.z + gl_WorkGroupID.z) * inner + line % inner;
    CONCAT(STORE4_, OUT)(result, at, FOUR(finished(all.x), finished(all.y), finished(all.z), finished(all.w)));
}
