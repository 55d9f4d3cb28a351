// The results of parts of the keys become one: a workgroup combines a query.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D = 64;

layout(set = 0, binding = 0) readonly buffer Results { float results[]; };
layout(set = 0, binding = 1) readonly buffer Sums { vec2 sums[]; };  // Greatest score, sum of weights.
ELEMENT_BUFFER(2, result, , TYPE);

layout(push_constant) uniform Shape {
    uint rows;  // Of a part.
    uint splits;
};

const float NONE = uintBitsToFloat(0xFF800000u);

// exp of what is at most 0, or NaN, also where a device's exp has no zero and no NaN.
float weight(float x) {
    if (x > -87.0) return exp(x);
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : 0.0;
}

void main() {
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        float top = NONE;
        for (uint s = 0; s < splits; ++s) top = max(top, sums[s * rows + row].x);
        const float base = top == NONE ? 0.0 : top;
        float total = 0.0;
        for (uint s = 0; s < splits; ++s) {
            const vec2 part = sums[s * rows + row];
            total += weight(part.x - base) * part.y;
        }
        const float factor = total == 0.0 ? 0.0 : 1.0 / total;
        for (uint d = gl_LocalInvocationID.x; d < D; d += gl_WorkGroupSize.x) {
            float value = 0.0;
            for (uint s = 0; s < splits; ++s) {
                const uint at = s * rows + row;
                value += weight(sums[at].x - base) * results[at * D + d];
            }
            CONCAT(STORE_, TYPE)(result, row * D + d, value * factor);
        }
    }
}
