// (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]; four elements for each invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool SCALED = false;
layout(constant_id = 2) const bool BIASED = false;

layout(push_constant) uniform Shape {
    uint total, channels, spatial, epsilon;  // Element i has channel i / spatial % channels; epsilon is a float's bits.
};

#ifdef PACKED
QUAD_BUFFER(0, elements, readonly, TYPE);
QUAD_BUFFER(5, result, , TYPE);
#else
ELEMENT_BUFFER(0, elements, readonly, TYPE);
ELEMENT_BUFFER(5, result, , TYPE);
#endif
ELEMENT_BUFFER(1, mean, readonly, TYPE);
ELEMENT_BUFFER(2, variance, readonly, TYPE);
ELEMENT_BUFFER(3, scale, readonly, TYPE);
ELEMENT_BUFFER(4, bias, readonly, TYPE);

float of_channel(float v, uint c) {
    v = (v - CONCAT(LOAD_, TYPE)(mean, c)) * inversesqrt(CONCAT(LOAD_, TYPE)(variance, c) + uintBitsToFloat(epsilon));
    if (SCALED) v *= CONCAT(LOAD_, TYPE)(scale, c);
    if (BIASED) v += CONCAT(LOAD_, TYPE)(bias, c);
    return v;
}

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
#ifdef PACKED
    const uint at = 4 * (group * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
    if (at >= total) return;
    vec4 v = CONCAT(LOAD4_, TYPE)(elements, at >> 2);
    for (uint i = 0; i < 4; ++i) v[i] = of_channel(v[i], (at + i) / spatial % channels);
    CONCAT(STORE4_, TYPE)(result, at >> 2, v);
#else
    for (uint i = 0; i < 4; ++i) {
        const uint at = (4 * group + i) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (at >= total) return;
        const float v = of_channel(CONCAT(LOAD_, TYPE)(elements, at), at / spatial % channels);
        CONCAT(STORE_, TYPE)(result, at, v);
    }
#endif
}
