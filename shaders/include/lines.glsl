// How a workgroup shares the lines of a tensor of outer x length x inner elements. A line is `length` elements, `inner`
// apart; there are outer * inner of them. A workgroup has ACROSS neighbouring lines and ALONG invocations (a power of
// two) for each of them; along z, workgroups share pieces of `chunk` elements of the same lines. An invocation takes four
// elements at a time: neighbours when PACKED is defined (lines of a multiple of four elements, inner = 1), otherwise
// ALONG apart, so that neighbouring invocations read neighbouring elements and four reads are under way at once.
//
// With USE_SUBGROUP, a workgroup has one line, or (ACROSS is more than 1) each of its subgroups has one: ALONG is their size
// then, and they wait for nobody.
//
// A template defines LINES_PUSH, its own push constants, before it includes this; its own constants begin with id 3. Where the
// elements of a line are not `inner` apart, it defines READ_STEP and WRITE_STEP.

#ifndef LINES_GLSL
#define LINES_GLSL

#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACROSS = 1;
layout(constant_id = 2) const uint ALONG = 128;

#ifndef LINES_PUSH
#define LINES_PUSH
#endif

#ifndef READ_STEP
#define READ_STEP inner
#define WRITE_STEP inner
#endif

layout(push_constant) uniform Lines {
    uint lines, length, inner, chunk;
    LINES_PUSH
};

#define LANE gl_LocalInvocationIndex
// The invocation's place among those of its line, and the line's among those of the workgroup.
#ifdef USE_SUBGROUP
#define PLACE (ACROSS > 1 ? gl_SubgroupInvocationID : LANE)
#define OWN_LINE (ACROSS > 1 ? gl_SubgroupID : 0u)
#else
#define PLACE (LANE / ACROSS)
#define OWN_LINE (LANE % ACROSS)
#endif

// The first of the workgroup's lines. All are behind the last when the grid is larger than the work.
uint first_line() {
    return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * ACROSS;
}

// The invocation's line.
uint my_line() {
    return first_line() + OWN_LINE;
}

// Index of a line's first element.
uint line_base(uint line) {
    return (line / inner) * length * inner + line % inner;
}

uint piece_start() {
    return gl_WorkGroupID.z * chunk;
}

uint piece_end() {
    return min(piece_start() + chunk, length);
}

// for (EACH_FOUR(at)) visits the invocation's elements of its piece, four at a time. A buffer is read with
// FOUR_LOAD(TYPE, buffer, base, at, fill), `fill` standing for what is not there, and written with FOUR_STORE.
#ifdef PACKED
#define EACH_FOUR(at) uint at = piece_start() + 4u * PLACE; at < piece_end(); at += 4u * ALONG
#define LINE_BUFFER(slot, name, qualifier, TYPE) QUAD_BUFFER(slot, name, qualifier, TYPE)
#define FOUR_LOAD(TYPE, b, base, at, fill) CONCAT(LOAD4_, TYPE)(b, ((base) + (at)) >> 2)
#define FOUR_STORE(TYPE, b, base, at, v) CONCAT(STORE4_, TYPE)(b, ((base) + (at)) >> 2, v)
#else
#define EACH_FOUR(at) uint at = piece_start() + PLACE; at < piece_end(); at += 4u * ALONG
#define LINE_BUFFER(slot, name, qualifier, TYPE) ELEMENT_BUFFER(slot, name, qualifier, TYPE)
#define ONE_LOAD_(TYPE, b, base, at, fill) \
    ((at) < piece_end() ? CONCAT(LOAD_, TYPE)(b, (base) + (at) * READ_STEP) : (fill))
#define FOUR_LOAD(TYPE, b, base, at, fill) \
    CONCAT(QUAD_REGISTER_, TYPE)(ONE_LOAD_(TYPE, b, base, at, fill), ONE_LOAD_(TYPE, b, base, (at) + ALONG, fill), \
        ONE_LOAD_(TYPE, b, base, (at) + 2u * ALONG, fill), ONE_LOAD_(TYPE, b, base, (at) + 3u * ALONG, fill))
#define ONE_STORE_(TYPE, b, base, at, v) \
    if ((at) < piece_end()) CONCAT(STORE_, TYPE)(b, (base) + (at) * WRITE_STEP, v)
#define FOUR_STORE(TYPE, b, base, at, v) \
    { \
        ONE_STORE_(TYPE, b, base, at, (v).x); \
        ONE_STORE_(TYPE, b, base, (at) + ALONG, (v).y); \
        ONE_STORE_(TYPE, b, base, (at) + 2u * ALONG, (v).z); \
        ONE_STORE_(TYPE, b, base, (at) + 3u * ALONG, (v).w); \
    }
#endif

#endif
