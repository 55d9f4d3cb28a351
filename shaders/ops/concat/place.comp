// A dense source into a part of the result, which has any strides. Elements of less than a word share their words with
// others, so they are stored by atomics.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"

UNITS(0, source, readonly);
#if UNIT < 4
UNITS(1, result, );
#else
UNITS(1, result, writeonly);
#endif

layout(push_constant) uniform Shape {
    PLACES;
    uint offset;      // Of the first unit in the result.
    uint strides[6];  // Of the result, in units; negative ones wrap around.
};

uint target(uint index) {
    uint at = offset, rest = index;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(rest, d);
        at += (rest - next * sizes[d]) * strides[d];
        rest = next;
    }
    return at + rest * strides[DIMS - 1u];
}

WORD make(uint index) {
    return TAKE(source, index);
}

void main() {
    const uint group = gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x;
    const uint first = group * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x;
    WORD taken[ITEMS];
    for (uint i = 0u; i < ITEMS; ++i) {
        const uint index = first + i * gl_WorkGroupSize.x;
        if (index < count) taken[i] = make(index);
    }
    for (uint i = 0u; i < ITEMS; ++i) {
        const uint index = first + i * gl_WorkGroupSize.x;
        if (index >= count) break;
        const uint at = target(index);
        PUT(result, at, taken[i])
    }
}
