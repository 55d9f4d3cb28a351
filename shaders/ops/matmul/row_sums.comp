// Sums of a result's rows and of their squares, 16 columns at a time, behind kernels that do not leave them: an invocation has a row of
// 16 columns.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;

QUAD_BUFFER(0, result, readonly, OUT);
layout(set = 0, binding = 1) writeonly buffer Sums { vec2 sums[]; };

layout(push_constant) uniform Shape {
    uint rows;
    uint groups;  // Of 16 columns.
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= rows * groups) return;
    const uint row = i % rows, group = i / rows;
    vec2 sum = vec2(0.0);
    [[unroll]] for (uint q = 0; q < 4; ++q) {
        const vec4 quad = CONCAT(LOAD4_, OUT)(result, (row * groups + group) * 4 + q);
        sum += vec2((quad.x + quad.y) + (quad.z + quad.w), dot(quad, quad));
    }
    sums[i] = sum;
}
