// result[o, j, i] = data[o, indices[j], i]; zeros where the index is out of range.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;

UNITS(0, data, readonly);
INDEX_BUFFER(1, indices);
UNITS(2, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;  // Units of a row, indices, outer.
    uint axis;
};

WORD make(uint index) {
    const uint row = QUOTIENT(index, 0u), outer = QUOTIENT(row, 1u);
    const uint from = WRAPPED(indices, row - outer * sizes[1], axis);
    if (from >= axis) return WORD(0u);
    return TAKE(data, (outer * axis + from) * sizes[0] + (index - row * sizes[0]));
}

void main() {
    MAKE_ALL(result)
}
