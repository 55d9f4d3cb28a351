// The nearest place of the source for each of the result. Coordinates are exact, as fractions: place p of the result is at
// (p * factor + start) / divisor of the source; see `Axis` in the crate.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"

// What is nearest: 0 rounded, halves down; 1 rounded, halves up; 2 the place before; 3 the place behind.
layout(constant_id = 3) const uint ROUNDING = 0;

UNITS(0, source, readonly);
UNITS(1, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;
    uint source_sizes[3], factors[3], starts[3], divisors[3];
};

uint nearest(uint place, uint d) {
    const int divisor = int(divisors[d]), at = int(place * factors[d] + starts[d]);
    int found;
    if (ROUNDING == 0u) {
        const int below = 2 * at - divisor;
        found = below <= 0 ? 0 : (below - 1) / (2 * divisor) + 1;
    } else if (ROUNDING == 1u) {
        found = max(2 * at + divisor, 0) / (2 * divisor);
    } else if (ROUNDING == 2u) {
        found = max(at, 0) / divisor;
    } else {
        found = at <= 0 ? 0 : (at - 1) / divisor + 1;
    }
    return min(uint(found), source_sizes[d] - 1u);
}

WORD make(uint index) {
    uint at = 0u, rest = index, scale = 1u;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(rest, d);
        at += nearest(rest - next * sizes[d], d) * scale;
        scale *= source_sizes[d];
        rest = next;
    }
    at += rest * scale;
    return TAKE(source, at);
}

void main() {
    MAKE_ALL(result)
}
