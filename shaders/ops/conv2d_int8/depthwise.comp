// A convolution of bytes whose groups have one channel each: an invocation computes four neighbouring places of a filter.
// Channels come first.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "convolution.glsl"

layout(constant_id = 5) const bool WHOLE_QUADS = false;  // Planes of results are whole quads.
#include "dots.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 4) const uint KERNEL_WIDTH = 3;
layout(constant_id = 6) const bool UNSIGNED = false;

// Of bytes as they lie; unsigned ones less 128.
int byte_of(uint at) {
    const uint word = UNSIGNED ? data[at >> 2] ^ 0x80808080u : data[at >> 2];
    return bitfieldExtract(int(word), int(8 * (at & 3u)), 8);
}

void main() {
    const uint places = out_height * out_width, quads = (places + 3) / 4;
    const uint place = gl_GlobalInvocationID.x * 4, filter_index = gl_WorkGroupID.y, image = gl_WorkGroupID.z;
    if (gl_GlobalInvocationID.x >= quads) return;
    const uint channel = filter_index / filters;
    const uint base = image * data_image + channel * data_channel;
    const uint weight = channel * weights_group + filter_index % filters * weights_filter;
    const int zero = UNSIGNED ? data_zero - 128 : data_zero;

    uvec4 ys, xs;
    [[unroll]] for (uint p = 0; p < 4; ++p) {
        const uint pixel = min(place + p, places - 1), y = pixel / out_width;
        ys[p] = y * stride_y - pad_top;
        xs[p] = (pixel - y * out_width) * stride_x - pad_left;
    }
    ivec4 sums = ivec4(0);
    for (uint ky = 0; ky < KERNEL_HEIGHT; ++ky) {
        const uvec4 y = ys + ky * dilation_y;
        const bvec4 row = lessThan(y, uvec4(height));
        [[unroll]] for (uint kx = 0; kx < KERNEL_WIDTH; ++kx) {
            const int factor = weight_at(weight + (ky * KERNEL_WIDTH + kx) * weights_tap);
            const uvec4 x = xs + kx * dilation_x;
            [[unroll]] for (uint p = 0; p < 4; ++p) {
                const bool inside = row[p] && x[p] < width;
                const int value = byte_of(base + (inside ? y[p] * width + x[p] : 0)) - zero;
                sums[p] += inside ? value * factor : 0;
            }
        }
    }
    finish4(filter_index, image * result_image + filter_index * result_channel + place, min(places - place, 4), sums);
}
