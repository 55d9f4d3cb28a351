// result[..., indices[..., j, ...], ...] = updates[..., j, ...] along one dimension for all j at once, of which the last stays where
// several have the same index. CLAIMING: an invocation has an update and claims its place. Else one stores it where the claim is held.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "claims.glsl"

layout(push_constant) uniform Shape {
    PLACES;                   // The other dimensions of the indices, and outermost this one; or claims to clear.
    uint index_strides[5];    // Of indices and updates in the other dimensions,
    uint result_strides[5];   // and of the result.
    uint update_stride;       // In this dimension,
    uint axis, axis_stride;   // and of the result, with its size.
};

void main() {
    const uint index =
        (gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
#ifdef CLAIMING
    if (CLEARS) {
        claims[index] = 0u;
        return;
    }
#endif
    uint from = 0u, to = 0u, j = index;
    for (uint d = 0u; d + 1u < DIMS; ++d) {
        const uint next = QUOTIENT(j, d), coordinate = j - next * sizes[d];
        from += coordinate * index_strides[d];
        to += coordinate * result_strides[d];
        j = next;
    }
    from += j * update_stride;
    const uint place = WRAPPED(indices, from, axis);
    if (place >= axis) return;
    to += place * axis_stride;
#ifdef CLAIMING
    claim(to, j);
#else
    if (is_last(to, j)) store(to, from);
#endif
}
