// Adds the parts of sums that matrix.comp and wide.comp leave, and makes results of a convolution of them: an invocation for each result.
// Rows before channels only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ADDED = 0;
layout(constant_id = 2) const uint ACTIVATION = 0;
layout(constant_id = 3) const uint PARTS = 2;

#include "added.glsl"

ELEMENT_BUFFER(0, sums, readonly, F32);
ELEMENT_BUFFER(1, bias, readonly, BIAS);
ELEMENT_BUFFER(2, result, , OUT);
ELEMENT_BUFFER(3, residual, readonly, OUT);

layout(push_constant) uniform Shape {
    uint images, filters, places;
};

void main() {
    const uint at = gl_GlobalInvocationID.x, plane = filters * places;
    if (at >= images * plane) return;
    const uint image = at / plane, rest = at % plane;
    float sum = 0.0;
    for (uint part = 0; part < PARTS; ++part) sum += LOAD_F32(sums, (image * PARTS + part) * plane + rest);
    if (HAS_BIAS) sum += CONCAT(LOAD_, BIAS)(bias, rest / places);
    if (HAS_RESIDUAL) sum += CONCAT(LOAD_, OUT)(residual, at);
    CONCAT(STORE_, OUT)(result, at, activate(sum, ACTIVATION));
}
