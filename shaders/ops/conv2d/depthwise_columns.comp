// A convolution whose groups have one channel each, without dilation: an invocation computes four rows of ACROSS columns with one
// filter, and reads each element that these need once. Sizes of the window are constants, so that compilers write out all loops:
// what the window meets is known, and reads do not wait for each other.
#version 450
#define DEPTHWISE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint KERNEL_Y = 7;
layout(constant_id = 4) const uint KERNEL_X = 7;
layout(constant_id = 5) const uint STRIDE_Y = 1;
layout(constant_id = 6) const uint STRIDE_X = 1;
layout(constant_id = 7) const uint ACROSS = 2;

const uint ROWS = 4;
// Rows and columns of the input under the results.
const uint HEIGHT = (ROWS - 1) * STRIDE_Y + KERNEL_Y, WIDTH = (ACROSS - 1) * STRIDE_X + KERNEL_X;

void main() {
    const uint blocks = (out_height + ROWS - 1) / ROWS, patches = (out_width + ACROSS - 1) / ACROSS;
    // Neighbours are neighbours in memory: columns, or filters where channels are last.
    const bool last = channels_last != 0;
    const uint index = min(gl_GlobalInvocationID.x, all_filters * blocks * patches - 1);
    const uint filter_index = last ? index % all_filters : index / (blocks * patches);
    const uint patch_index = last ? index / all_filters : index % (blocks * patches);
    const uint row = patch_index / patches * ROWS, column = patch_index % patches * ACROSS;
    const uint group = filter_index / filters, image = gl_WorkGroupID.y;
    const int y = int(row * stride_y) - int(pad_top), x = int(column * stride_x) - int(pad_left);
    const uint base = image * data_image + group * data_channel;
    const uint weight = group * weights_group + filter_index % filters * weights_filter;

    float taps[KERNEL_Y * KERNEL_X];
    [[unroll]] for (uint i = 0; i < KERNEL_Y * KERNEL_X; ++i) taps[i] = weight_at(weight + i * weights_tap);
    // What lies outside is read at the channel's beginning, and is zero.
    uint columns[WIDTH];
    bool inside[WIDTH];
    [[unroll]] for (uint j = 0; j < WIDTH; ++j) {
        inside[j] = uint(x + int(j)) < width;
        columns[j] = inside[j] ? uint(x + int(j)) * data_pixel : 0;
    }
    float sums[ROWS * ACROSS];
    [[unroll]] for (uint i = 0; i < ROWS * ACROSS; ++i) sums[i] = 0.0;
    [[unroll]] for (uint i = 0; i < HEIGHT; ++i) {
        const bool there = uint(y + int(i)) < height;
        const uint start = base + (there ? uint(y + int(i)) * width * data_pixel : 0);
        [[unroll]] for (uint j = 0; j < WIDTH; ++j) {
            const float value = data_at(start + columns[j], there && inside[j]);
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                [[unroll]] for (uint c = 0; c < ACROSS; ++c) {
                    // Wraps around before the window begins.
                    const uint ky = i - r * STRIDE_Y, kx = j - c * STRIDE_X;
                    if (ky < KERNEL_Y && kx < KERNEL_X)
                        sums[r * ACROSS + c] = fma(value, taps[ky * KERNEL_X + kx], sums[r * ACROSS + c]);
                }
            }
        }
    }
    if (gl_GlobalInvocationID.x != index) return;
    const uint at = image * result_image + filter_index * result_channel + (row * out_width + column) * result_pixel;
    for (uint r = 0; r < min(out_height - row, ROWS); ++r) {
        [[unroll]] for (uint c = 0; c < ACROSS; ++c) {
            if (column + c < out_width)
                finish(filter_index, at + (r * out_width + c) * result_pixel, sums[r * ACROSS + c]);
        }
    }
}
