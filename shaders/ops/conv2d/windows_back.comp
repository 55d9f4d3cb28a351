// Results of a convolution out of the product of its windows and filters: places of a filter become neighbours again, and what is
// added to sums and the function come here. An invocation for each result. Channels first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ADDED = 0;
layout(constant_id = 2) const uint ACTIVATION = 0;

#include "added.glsl"

ELEMENT_BUFFER(0, sums, readonly, OUT);
ELEMENT_BUFFER(1, bias, readonly, BIAS);
ELEMENT_BUFFER(2, result, , OUT);
ELEMENT_BUFFER(3, residual, readonly, OUT);

layout(push_constant) uniform Shape {
    uint rows;     // Places of all images.
    uint groups;
    uint filters;  // Of a group.
    uint places;   // Of an image.
};

void main() {
    const uint at = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    const uint all = groups * filters;
    if (at >= rows * all) return;
    const uint place = at % places, channel = at / places % all, image = at / (places * all);
    const uint row = channel / filters * rows + image * places + place;
    float sum = CONCAT(LOAD_, OUT)(sums, row * filters + channel % filters);
    if (HAS_BIAS) sum += CONCAT(LOAD_, BIAS)(bias, channel);
    if (HAS_RESIDUAL) sum += CONCAT(LOAD_, OUT)(residual, at);
    CONCAT(STORE_, OUT)(result, at, activate(sum, ACTIVATION));
}
