// A convolution whose groups have one channel each, with the channels last and without dilation: an invocation computes four channels
// at ACROSS neighbouring places of a row. A workgroup has a tile of the image, so that what its windows share is read from afar once.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define IN_RUNS
#include "convolution.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint KERNEL_Y = 3;
layout(constant_id = 4) const uint KERNEL_X = 3;
layout(constant_id = 5) const uint STRIDE_X = 1;
layout(constant_id = 6) const uint ACROSS = 4;

layout(set = 0, binding = 0) readonly buffer Words { uvec2 data_words[]; };
QUAD_BUFFER(1, weights4, readonly, FILTER);
QUAD_BUFFER(2, bias4, readonly, BIAS);
QUAD_BUFFER(3, result4, , OUT);
QUAD_BUFFER(4, residual4, readonly, OUT);

// Quads of channels, which are 64 bytes, and rows of a workgroup; and its places in a row, ACROSS each.
const uint QUADS = 8, ROWS = 8, BLOCKS = gl_WorkGroupSize.x / (QUADS * ROWS);
// Columns of the image under the results.
const uint WIDTH = (ACROSS - 1) * STRIDE_X + KERNEL_X;

void main() {
    const uint lane = gl_LocalInvocationIndex, image = gl_WorkGroupID.y;
    const uint quads = weights_tap / 4, tiles_of_quads = (quads + QUADS - 1) / QUADS;
    const uint tiles_across = (out_width + BLOCKS * ACROSS - 1) / (BLOCKS * ACROSS);
    const uint tile = gl_WorkGroupID.x / tiles_of_quads;
    const uint quad = gl_WorkGroupID.x % tiles_of_quads * QUADS + lane % QUADS;
    const uint row = tile / tiles_across * ROWS + lane / (QUADS * BLOCKS);
    const uint column = (tile % tiles_across * BLOCKS + lane / QUADS % BLOCKS) * ACROSS;
    if (quad >= quads || row >= out_height || column >= out_width) return;
    const int y = int(row * stride_y) - int(pad_top), x = int(column * STRIDE_X) - int(pad_left);
    const uint base = image * (data_image / 4) + data_first + quad, pixel = data_pixel / 4;

    vec4 sums[ACROSS];
    [[unroll]] for (uint c = 0; c < ACROSS; ++c) sums[c] = vec4(0);
    [[unroll]] for (uint ky = 0; ky < KERNEL_Y; ++ky) {
        const bool there = uint(y + int(ky)) < height;
        const uint start = base + (there ? uint(y + int(ky)) * width * pixel : 0);
        vec4 values[WIDTH];
        // What lies outside is read at the row's beginning, and is zero.
        [[unroll]] for (uint j = 0; j < WIDTH; ++j) {
            const bool inside = there && uint(x + int(j)) < width;
            uvec2 word = data_words[start + (inside ? uint(x + int(j)) * pixel : 0)];
            word = inside ? word : uvec2(0);
            values[j] = vec4(unpackHalf2x16(word.x), unpackHalf2x16(word.y));
        }
        [[unroll]] for (uint kx = 0; kx < KERNEL_X; ++kx) {
            const vec4 tap = CONCAT(LOAD4_, FILTER)(weights4, (ky * KERNEL_X + kx) * quads + quad);
            [[unroll]] for (uint c = 0; c < ACROSS; ++c) sums[c] = fma(values[c * STRIDE_X + kx], tap, sums[c]);
        }
    }

    const uint place = (image * out_height + row) * out_width + column;
    const uint last = out_width - 1 - column;
    if (HAS_BIAS) {
        const vec4 more = CONCAT(LOAD4_, BIAS)(bias4, quad);
        [[unroll]] for (uint c = 0; c < ACROSS; ++c) sums[c] += more;
    }
    // All are read before any is stored: after a store, a device has to assume that it changed what is read.
    if (HAS_RESIDUAL) {
        [[unroll]] for (uint c = 0; c < ACROSS; ++c) sums[c] += CONCAT(LOAD4_, OUT)(residual4, (place + min(c, last)) * quads + quad);
    }
    [[unroll]] for (uint c = 0; c < ACROSS; ++c) {
        if (c <= last) CONCAT(STORE4_, OUT)(result4, (place + c) * (result_pixel / 4) + result_first + quad, activate(sums[c], ACTIVATION));
    }
}
