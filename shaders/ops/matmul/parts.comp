// The sum of PARTS results of a product whose sums were cut: result[i] = parts[0][i] + parts[1][i] + ….
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint PARTS = 2;

ELEMENT_BUFFER(0, parts, readonly, ACC);
ELEMENT_BUFFER(1, result, , OUT);

layout(push_constant) uniform Shape {
    uint length;
};

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (i >= length) return;
    CONCAT(REGISTER_, ACC) sum = parts[i];
    for (uint p = 1; p < PARTS; ++p) sum += parts[p * length + i];
    CONCAT(STORE_, OUT)(result, i, sum);
}
