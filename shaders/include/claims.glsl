// Claims to places, of which several updates may tell the same: each claims its place with its number and one more, and the greatest
// stays. Who finds its own there afterwards is the last update of the place, and stores it. So results are those of updates that come
// one after the other, and all come at once.

#ifndef CLAIMS_GLSL
#define CLAIMS_GLSL

#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;

INDEX_BUFFER(0, indices);

#ifdef CLAIMING
// The first of two dispatches takes the claims of earlier calls away.
layout(constant_id = 4) const bool CLEARS = false;
layout(set = 0, binding = 1, std430) restrict coherent buffer Claims { uint claims[]; };

void claim(uint place, uint number) {
    atomicMax(claims[place], number + 1u);
}
#else
UNITS(1, updates, readonly);
UNITS(2, result, coherent);
layout(set = 0, binding = 3, std430) restrict readonly buffer Claims { uint claims[]; };

bool is_last(uint place, uint number) {
    return claims[place] == number + 1u;
}

void store(uint at, uint update) {
    const WORD unit = TAKE(updates, update);
    PUT(result, at, unit)
}
#endif

#endif
