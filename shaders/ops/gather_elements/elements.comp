// result[..., j, ...] = data[..., indices[..., j, ...], ...] along one dimension; zero where the index is out of range.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;

UNITS(0, data, readonly);
INDEX_BUFFER(1, indices);
UNITS(2, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;
    uint strides[6];  // Of the data; 0 along the dimension that indices replace.
    uint axis, axis_stride;
};

WORD make(uint index) {
    uint at = 0u, rest = index;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(rest, d);
        at += (rest - next * sizes[d]) * strides[d];
        rest = next;
    }
    at += rest * strides[DIMS - 1u];
    const uint from = WRAPPED(indices, index, axis);
    if (from >= axis) return WORD(0u);
    return TAKE(data, at + from * axis_stride);
}

void main() {
    MAKE_ALL(result)
}
