// result[..., indices[..., j, ...], ...] is combined with updates[..., j, ...] along one dimension. An invocation has one
// place in the other dimensions and goes along this one, as far as this dispatch does.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "scatters.glsl"

layout(push_constant) uniform Shape {
    PLACES;                   // The other dimensions of the indices, and outermost the invocations that share a place.
    uint index_strides[5];    // Of indices and updates in these dimensions,
    uint result_strides[5];   // and of the result.
    uint first, end;          // The updates of this dispatch along this dimension,
    uint update_stride;
    uint axis, axis_stride;   // Of the result.
    uint shares;              // Invocations that share a place: a power of two.
};

void main() {
    const uint index =
        (gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
    uint from = 0u, to = 0u, share = index;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(share, d), coordinate = share - next * sizes[d];
        from += coordinate * index_strides[d];
        to += coordinate * result_strides[d];
        share = next;
    }
    from += first * update_stride;
    for (uint j = first; j < end; ++j, from += update_stride) {
        const uint place = WRAPPED(indices, from, axis);
        if (place < axis && (place & (shares - 1u)) == share) apply(to + place * axis_stride, from);
    }
}
