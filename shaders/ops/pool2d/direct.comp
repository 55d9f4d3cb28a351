// Pooling: an invocation computes one result of its window; with WIDE, a workgroup computes one of a large window, of which
// each invocation sees a part. Any layout.
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

#ifdef WIDE
shared float partial[128];
shared uint partial_count[128];
#endif

// The largest of two, NaN where one is, or their sum.
float combine(float value, float element) {
    if (KIND != 0) return value + element;
    const bool nan = (floatBitsToUint(element) & 0x7FFFFFFFu) > 0x7F800000u;
    return nan || element > value ? element : value;
}

void main() {
    const uint count = channels * out_height * out_width;
#ifdef WIDE
    const uint index = gl_WorkGroupID.x, first = gl_LocalInvocationID.x, pace = gl_WorkGroupSize.x;
#else
    const uint index = gl_GlobalInvocationID.x, first = 0, pace = 1;
    if (index >= count) return;
#endif
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
        for (uint kx = first; kx < kernel_width; kx += pace) {
            const uint x = x0 + kx * dilation_x;
            const bool inside = y - pad_top < height && x - pad_left < width;
            const bool padded = y < pad_top + height + pad_bottom && x < pad_left + width + pad_right;
            if (KIND == 2 ? padded : inside) ++there;
            if (!inside) continue;
            const float element =
                CONCAT(LOAD_, ELEMENT)(data, base + ((y - pad_top) * width + (x - pad_left)) * step);
            value = combine(value, KIND == 3 ? abs(element) : KIND == 4 ? element * element : element);
        }
    }
#ifdef WIDE
    partial[first] = value;
    partial_count[first] = there;
    barrier();
    for (uint half_size = pace / 2; half_size > 0; half_size /= 2) {
        if (first < half_size) {
            partial[first] = combine(partial[first], partial[first + half_size]);
            partial_count[first] += partial_count[first + half_size];
        }
        barrier();
    }
    if (first != 0) return;
    value = partial[0];
    there = partial_count[0];
#endif
    if (KIND == 1 || KIND == 2) value /= float(there);
    if (KIND == 4) value = sqrt(value);
    CONCAT(STORE_, ELEMENT)(result, image * count + index, value);
}
