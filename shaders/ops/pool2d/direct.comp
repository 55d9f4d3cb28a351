// Pooling: an invocation computes one result of its window; with WIDE, a workgroup computes one of a large window, of which
// each invocation sees a part. Any layout.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
// 0: the largest, 1: mean over what is in the input, 2: mean with padding, 3: sum of magnitudes, 4: Euclidean norm.
layout(constant_id = 1) const uint KIND = 0;
// Rows and columns of a small window, so that all its reads are under way at once; 0 where it has any size.
layout(constant_id = 2) const uint TAPS_HEIGHT = 0;
layout(constant_id = 3) const uint TAPS_WIDTH = 0;
// Results of an invocation, a workgroup's size apart.
layout(constant_id = 4) const uint ITEMS = 1;

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

float value;
// Places that a mean counts.
uint there;

// Takes an element of the window, which is in the input or not.
void take(float element, bool inside, bool padded) {
    if (KIND == 2 ? padded : inside) ++there;
    if (inside) value = combine(value, KIND == 3 ? abs(element) : KIND == 4 ? element * element : element);
}

// Where a result's window begins, and whose it is.
struct Place {
    uint y, x, base, step;
};

Place place_of(uint index) {
    const bool last = channels_last != 0;
    const uint pixels = out_height * out_width;
    const uint pixel = last ? index / channels : index % pixels;
    const uint channel = last ? index % channels : index / pixels;
    const uint base = (gl_WorkGroupID.y * channels * height * width) + (last ? channel : channel * height * width);
    return Place(pixel / out_width * stride_y, pixel % out_width * stride_x, base, last ? channels : 1);
}

// The window at a place of the padded input, whose first row of the input itself is `pad_top`; of each row a workgroup's invocations
// take every `pace`th column.
void take_window(Place at, uint first, uint pace) {
    for (uint ky = 0; ky < kernel_height; ++ky) {
        const uint y = at.y + ky * dilation_y;
        for (uint kx = first; kx < kernel_width; kx += pace) {
            const uint x = at.x + kx * dilation_x;
            const bool inside = y - pad_top < height && x - pad_left < width;
            const bool padded = y < pad_top + height + pad_bottom && x < pad_left + width + pad_right;
            float element = 0.0;
            if (inside) element = CONCAT(LOAD_, ELEMENT)(data, at.base + ((y - pad_top) * width + (x - pad_left)) * at.step);
            take(element, inside, padded);
        }
    }
}

#ifndef WIDE
// The same for a small window: what is not in the input is read from the channel's first element.
void take_small_window(Place at) {
    const uint ROOM = TAPS_HEIGHT * TAPS_WIDTH + uint(TAPS_HEIGHT == 0);
    float elements[ROOM];
    bool inside[ROOM];
    [[unroll]] for (uint i = 0; i < TAPS_HEIGHT * TAPS_WIDTH; ++i) {
        const uint y = at.y + i / TAPS_WIDTH * dilation_y - pad_top, x = at.x + i % TAPS_WIDTH * dilation_x - pad_left;
        inside[i] = y < height && x < width;
        elements[i] = CONCAT(LOAD_, ELEMENT)(data, at.base + (inside[i] ? (y * width + x) * at.step : 0u));
    }
    [[unroll]] for (uint i = 0; i < TAPS_HEIGHT * TAPS_WIDTH; ++i) {
        const uint y = at.y + i / TAPS_WIDTH * dilation_y, x = at.x + i % TAPS_WIDTH * dilation_x;
        take(elements[i], inside[i], y < pad_top + height + pad_bottom && x < pad_left + width + pad_right);
    }
}
#endif

void clear() {
    value = KIND == 0 ? uintBitsToFloat(0xFF800000u) : 0.0;
    there = 0;
}

float result_of_window() {
    if (KIND == 1 || KIND == 2) value /= float(there);
    return KIND == 4 ? sqrt(value) : value;
}

#ifdef WIDE
void main() {
    const uint index = gl_WorkGroupID.x, first = gl_LocalInvocationID.x, pace = gl_WorkGroupSize.x;
    const Place at = place_of(index);
    clear();
    take_window(at, first, pace);
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
    CONCAT(STORE_, ELEMENT)(result, gl_WorkGroupID.y * channels * out_height * out_width + index, result_of_window());
}
#else
void main() {
    const uint count = channels * out_height * out_width;
    for (uint i = 0; i < ITEMS; ++i) {
        const uint index = (gl_WorkGroupID.x * ITEMS + i) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (index >= count) return;
        const Place at = place_of(index);
        clear();
        if (TAPS_HEIGHT > 0) take_small_window(at);
        else take_window(at, 0, 1);
        CONCAT(STORE_, ELEMENT)(result, gl_WorkGroupID.y * count + index, result_of_window());
    }
}
#endif
