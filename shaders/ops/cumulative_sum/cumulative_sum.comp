// Sums of all elements up to each one. The invocations of a line take four neighbouring elements each, tile after tile, and
// carry the sum on. MODE 0 does all of it; long lines take two dispatches: 1 writes the sum of each piece, 2 begins with
// the sum of all pieces before its own.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lines.glsl"

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const bool EXCLUSIVE = false;  // Without the element itself.
layout(constant_id = 5) const bool REVERSE = false;    // From the end.

#define ONE CONCAT(REGISTER_, TYPE)
#define FOUR CONCAT(QUAD_REGISTER_, TYPE)

LINE_BUFFER(0, elements, readonly, TYPE);
LINE_BUFFER(1, result, , TYPE);
layout(set = 0, binding = 2) buffer Pieces {
    ONE pieces[];
};

shared ONE tree[ACROSS * ALONG];

// The element that is number `at` in the order of summation.
uint index_of(uint base, uint at) {
    return base + (REVERSE ? length - 1 - at : at) * inner;
}

FOUR load(uint base, uint at) {
    if (at >= piece_end()) return FOUR(0);
#ifdef PACKED
    const FOUR v = CONCAT(LOAD4_, TYPE)(elements, (base + (REVERSE ? length - 4 - at : at)) >> 2);
    return REVERSE ? v.wzyx : v;
#else
    FOUR v = FOUR(0);
    for (uint i = 0; i < 4; ++i) {
        if (at + i < piece_end()) v[i] = CONCAT(LOAD_, TYPE)(elements, index_of(base, at + i));
    }
    return v;
#endif
}

void store(uint base, uint at, FOUR v) {
    if (at >= piece_end()) return;
#ifdef PACKED
    if (REVERSE) v = v.wzyx;
    CONCAT(STORE4_, TYPE)(result, (base + (REVERSE ? length - 4 - at : at)) >> 2, v);
#else
    for (uint i = 0; i < 4; ++i) {
        if (at + i < piece_end()) CONCAT(STORE_, TYPE)(result, index_of(base, at + i), v[i]);
    }
#endif
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line(), base = line_base(line), chunks = gl_NumWorkGroups.z;
    const bool here = line < lines;
    ONE carried = ONE(0);
    if (MODE == 2 && here) {
        for (uint i = 0; i < gl_WorkGroupID.z; ++i) carried += pieces[line * chunks + i];
    }
    for (uint tile = piece_start(); tile < piece_end(); tile += 4 * ALONG) {
        const uint at = tile + 4 * PLACE;
        FOUR v = here ? load(base, at) : FOUR(0);
        v.y += v.x;
        v.z += v.y;
        v.w += v.z;
        // Sums of all invocations up to each (Hillis and Steele, Data parallel algorithms, 1986).
        tree[LANE] = v.w;
        for (uint apart = 1; apart < ALONG; apart *= 2) {
            barrier();
            const ONE other = PLACE >= apart ? tree[LANE - apart * ACROSS] : ONE(0);
            barrier();
            tree[LANE] += other;
        }
        barrier();
        const ONE before = carried + (PLACE > 0 ? tree[LANE - ACROSS] : ONE(0));
        carried += tree[(ALONG - 1) * ACROSS + LANE % ACROSS];
        barrier();
        if (MODE == 1 || !here) continue;
        if (EXCLUSIVE) v = FOUR(ONE(0), v.xyz);
        store(base, at, v + before);
    }
    if (MODE == 1 && here && PLACE == 0) pieces[line * chunks + gl_WorkGroupID.z] = carried;
}
