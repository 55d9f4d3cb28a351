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
    // How to divide as `QUOTIENT` does: by twice the divisor where places are rounded, by the divisor itself otherwise.
    uint inverses[3], inverse_shifts;
};

uint parts_of(int n, uint d) {
    return quotient(uint(n), inverses[d], (inverse_shifts >> (5u * d)) & 31u);
}

uint nearest(uint place, uint d) {
    const int divisor = int(divisors[d]), at = int(place * factors[d] + starts[d]);
    uint found;
    if (ROUNDING == 0u) {
        const int below = 2 * at - divisor;
        found = below <= 0 ? 0u : parts_of(below - 1, d) + 1u;
    } else if (ROUNDING == 1u) {
        found = parts_of(max(2 * at + divisor, 0), d);
    } else if (ROUNDING == 2u) {
        found = parts_of(max(at, 0), d);
    } else {
        found = at <= 0 ? 0u : parts_of(at - 1, d) + 1u;
    }
    return min(found, source_sizes[d] - 1u);
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
