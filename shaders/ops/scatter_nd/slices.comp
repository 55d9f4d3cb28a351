// result[indices[j, 0], indices[j, 1], …, i] is combined with updates[j, i]. An invocation has one place in the slices and
// goes through those of this dispatch.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scatters.glsl"

// Indices of a slice.
layout(constant_id = 5) const uint DEPTH = 1;

layout(push_constant) uniform Shape {
    PLACES;           // Units of a slice, and invocations that share one: a power of two.
    uint extents[6];  // Of the dimensions that are indexed, the outermost first.
    uint first, end;  // The slices of this dispatch.
    uint shares;
};

void main() {
    const uint index =
        (gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
    const uint share = QUOTIENT(index, 0u), i = index - share * sizes[0];
    for (uint j = first; j < end; ++j) {
        uint slice = 0u;
        bool there = true;
        for (uint k = 0u; k < DEPTH; ++k) {
            const uint place = WRAPPED(indices, j * DEPTH + k, extents[k]);
            there = there && place < extents[k];
            slice = slice * extents[k] + place;
        }
        if (there && (slice & (shares - 1u)) == share) apply(slice * sizes[0] + i, j * sizes[0] + i);
    }
}
