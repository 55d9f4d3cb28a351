// log(sum(exp(x))) along lines, without overflow. Long lines take two dispatches: the first writes (top, sum) of each
// piece (PARTIAL), as pairs of f32, which the second reads (PAIRS).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lines.glsl"
#include "exponents.glsl"

LINE_BUFFER(0, elements, readonly, IN);
ELEMENT_BUFFER(1, result, , OUT);

shared vec2 tree[ACROSS * ALONG];

vec2 mine(uint base) {
    vec2 sum = NO_TERMS;
#ifdef PAIRS
    for (uint at = PLACE; at < length; at += ALONG) {
        sum = add_sums(sum, vec2(elements[2 * (base + at)], elements[2 * (base + at) + 1]));
    }
#else
    for (EACH_FOUR(at)) sum = add_terms(sum, FOUR_LOAD(IN, elements, base, at, -INFINITY));
#endif
    return sum;
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    tree[LANE] = line < lines ? mine(line_base(line)) : NO_TERMS;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = add_sums(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    if (PLACE > 0 || line >= lines) return;
    const vec2 sum = tree[LANE];
    const uint at = line * gl_NumWorkGroups.z + gl_WorkGroupID.z;
#ifdef PARTIAL
    result[2 * at] = sum.x;
    result[2 * at + 1] = sum.y;
#else
    float value = is_nan(sum.y) || !is_finite(sum.x) ? sum.x : sum.x + log_of(sum.y);
    if (is_nan(sum.y)) value = NAN;
    CONCAT(STORE_, OUT)(result, at, value);
#endif
}
