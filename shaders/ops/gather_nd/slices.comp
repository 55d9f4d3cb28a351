// result[b, j, i] = data[b, indices[b, j, 0], indices[b, j, 1], …, i]; zeros where an index is out of range.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;
// Indices of a slice.
layout(constant_id = 4) const uint DEPTH = 1;

UNITS(0, data, readonly);
INDEX_BUFFER(1, indices);
UNITS(2, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;           // Units of a slice, slices in a batch, batches.
    uint extents[6];  // Of the dimensions that are indexed, the outermost first.
};

WORD make(uint index) {
    const uint slice = QUOTIENT(index, 0u);
    uint at = QUOTIENT(slice, 1u);
    bool there = true;
    for (uint k = 0u; k < DEPTH; ++k) {
        const uint from = WRAPPED(indices, slice * DEPTH + k, extents[k]);
        there = there && from < extents[k];
        at = at * extents[k] + from;
    }
    if (!there) return WORD(0u);
    return TAKE(data, at * sizes[0] + (index - slice * sizes[0]));
}

void main() {
    MAKE_ALL(result)
}
