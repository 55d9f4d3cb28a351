// Updates of a result at places that indices tell. An element has one invocation that makes all of its updates, in their
// order: no update is lost, the last one wins, and sums are the same in every run. Invocations that share the places which
// the same indices tell divide them among themselves by their last bits.
//
// With UNIT alone elements are replaced, whatever they are. With ELEMENT, a type of elements.glsl, old and new are
// combined; IS_FLOAT says that it is a float type.

#ifndef SCATTERS_GLSL
#define SCATTERS_GLSL

#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;

INDEX_BUFFER(0, indices);

#ifdef ELEMENT
#include "elements.glsl"
// As `Reduction` in the crate: 1 add, 2 multiply, 3 the smaller, 4 the larger.
layout(constant_id = 4) const uint REDUCTION = 1;

ELEMENT_BUFFER(1, updates, readonly, ELEMENT);
ELEMENT_BUFFER(2, result, coherent, ELEMENT);
#define VALUE CONCAT(REGISTER_, ELEMENT)

#ifdef IS_FLOAT
#define IS_NAN(x) ((floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u)
#else
#define IS_NAN(x) false
#endif

void apply(uint at, uint update) {
    const VALUE was = CONCAT(LOAD_, ELEMENT)(result, at), value = CONCAT(LOAD_, ELEMENT)(updates, update);
    VALUE now = was;
    if (REDUCTION == 1u) now = was + value;
    if (REDUCTION == 2u) now = was * value;
    if (REDUCTION == 3u && (IS_NAN(value) || value < was)) now = value;
    if (REDUCTION == 4u && (IS_NAN(value) || value > was)) now = value;
    CONCAT(STORE_, ELEMENT)(result, at, now);
}
#else
UNITS(1, updates, readonly);
UNITS(2, result, coherent);

void apply(uint at, uint update) {
    const WORD unit = TAKE(updates, update);
    PUT(result, at, unit)
}
#endif

#endif
