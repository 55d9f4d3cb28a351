// Pooling: an invocation computes one result of its window. Any layout, by strides.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
// 0: the largest, 1: mean over what is in the input, 2: mean with padding, 3: sum of magnitudes, 4: Euclidean norm.
layout(constant_id = 1) const uint KIND = 0;

ELEMENT_BUFFER(0, data, readonly, ELEMENT);
ELEMENT_BUFFER(1, result, , ELEMENT);

layout(push_constant) uniform Shape {
    uint channels, height, width, kernel_height, kernel_width, out_height, out_width;
    uint stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left, pad_bottom, pad_right;
    uint channels_last;
};

void main() {
    const uint count = channels * out_height * out_width;
    const uint index = gl_GlobalInvocationID.x;
    if (index >= count) return;
    const bool last = channels_last != 0;
    const uint pixels = out_height * out_width;
    const uint pixel = last ? index / channels : index % pixels;
    const uint channel = last ? index % channels : index / pixels;
    const uint y0 = pixel / out_width * stride_y, x0 = pixel % out_width * stride_x;
    const uint image = gl_WorkGroupID.y;
    const uint base = (image * channels * height * width) + (last ? channel : channel * height * width);
    const uint step = last ? channels : 1;

    float value = KIND == 0 ? uintBitsToFloat(0xFF800000u) : 0.0;
    uint there = 0;
    for (uint ky = 0; ky < kernel_height; ++ky) {
        // In the padded input, where the first row of the input itself is `pad_top`.
        const uint y = y0 + ky * dilation_y;
        for (uint kx = 0; kx < kernel_width; ++kx) {
            const uint x = x0 + kx * dilation_x;
            const bool inside = y - pad_top < height && x - pad_left < width;
            const bool padded = y < pad_top + height + pad_bottom && x < pad_left + width + pad_right;
            if (KIND == 2 ? padded : inside) ++there;
            if (!inside) continue;
            const float element =
                CONCAT(LOAD_, ELEMENT)(data, base + ((y - pad_top) * width + (x - pad_left)) * step);
            if (KIND == 0) {
                const bool nan = (floatBitsToUint(element) & 0x7FFFFFFFu) > 0x7F800000u;
                if (nan || element > value) value = element;
            } else if (KIND == 3) {
                value += abs(element);
            } else if (KIND == 4) {
                value = fma(element, element, value);
            } else {
                value += element;
            }
        }
    }
    if (KIND == 1 || KIND == 2) value /= float(there);
    if (KIND == 4) value = sqrt(value);
    CONCAT(STORE_, ELEMENT)(result, image * count + index, value);
}
