// A dense result from a source with any strides: transposed, cut, expanded, reversed.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"

UNITS(0, source, readonly);
UNITS(1, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;
    uint offset;      // Of the first unit.
    uint strides[6];  // Of the source, in units; negative ones wrap around.
};

WORD make(uint index) {
    uint at = offset, rest = index;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(rest, d);
        at += (rest - next * sizes[d]) * strides[d];
        rest = next;
    }
    at += rest * strides[DIMS - 1u];
    return TAKE(source, at);
}

void main() {
    MAKE_ALL(result)
}
