// result[indices[j, 0], indices[j, 1], …, i] = updates[j, i] for all j at once, of which the last stays where several have the same
// indices. CLAIMING: an invocation has a slice and claims it. Else one has a unit of a slice, and stores it where the claim is held.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "claims.glsl"

// Indices of a slice.
layout(constant_id = 5) const uint DEPTH = 1;

layout(push_constant) uniform Shape {
    PLACES;           // Slices of the updates, and of these the units; or claims to clear.
    uint extents[6];  // Of the dimensions that are indexed, the outermost first.
};

// The slice that update j tells of; false where an index is out of range.
bool slice_of(uint j, out uint slice) {
    bool there = true;
    slice = 0u;
    for (uint k = 0u; k < DEPTH; ++k) {
        const uint place = WRAPPED(indices, j * DEPTH + k, extents[k]);
        there = there && place < extents[k];
        slice = slice * extents[k] + place;
    }
    return there;
}

void main() {
    const uint index =
        (gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
    uint slice;
#ifdef CLAIMING
    if (CLEARS) {
        claims[index] = 0u;
    } else if (slice_of(index, slice)) {
        claim(slice, index);
    }
#else
    const uint j = QUOTIENT(index, 0u), i = index - j * sizes[0];
    if (slice_of(j, slice) && is_last(slice, j)) store(slice * sizes[0] + i, index);
#endif
}
