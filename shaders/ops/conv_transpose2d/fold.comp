// The end of a transposed convolution that is a product of matrices: adds what each tap of each filter gave at the places that meet in
// a result. Taps are rows of `products`, places of the image its columns. One group.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ADDED = 0;
layout(constant_id = 2) const uint ACTIVATION = 0;
layout(constant_id = 3) const uint KERNEL_HEIGHT = 2;
layout(constant_id = 4) const uint KERNEL_WIDTH = 2;
layout(constant_id = 5) const uint STRIDE_Y = 2;
layout(constant_id = 6) const uint STRIDE_X = 2;
layout(constant_id = 7) const uint ITEMS = 1;  // Results of an invocation, a workgroup's size apart.

#include "added.glsl"

ELEMENT_BUFFER(0, products, readonly, F32);
ELEMENT_BUFFER(1, bias, readonly, OUT);
ELEMENT_BUFFER(2, result, , OUT);

layout(push_constant) uniform Shape {
    uint filters, height, width;
    uint out_height, out_width;
    uint dilation_y, dilation_x, pad_top, pad_left;
    uint results;  // Of all images.
};

void fold(uint at) {
    const uint x = at % out_width, y = at / out_width % out_height, plane = at / (out_width * out_height);
    const uint places = height * width, taps = KERNEL_HEIGHT * KERNEL_WIDTH;
    float sum = HAS_BIAS ? CONCAT(LOAD_, OUT)(bias, plane % filters) : 0.0;
    for (uint ky = 0; ky < KERNEL_HEIGHT; ++ky) {
        // Where a tap lies above or to the left, the distance would wrap around.
        const uint down = y + pad_top - ky * dilation_y, row = down / STRIDE_Y;
        if (down % STRIDE_Y != 0 || y + pad_top < ky * dilation_y || row >= height) continue;
        for (uint kx = 0; kx < KERNEL_WIDTH; ++kx) {
            const uint across = x + pad_left - kx * dilation_x, column = across / STRIDE_X;
            if (across % STRIDE_X != 0 || x + pad_left < kx * dilation_x || column >= width) continue;
            const uint tap = ky * KERNEL_WIDTH + kx;
            sum += LOAD_F32(products, (plane * taps + tap) * places + row * width + column);
        }
    }
    CONCAT(STORE_, OUT)(result, at, activate(sum, ACTIVATION));
}

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    for (uint i = 0; i < ITEMS; ++i) {
        const uint at = (group * ITEMS + i) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (at < results) fold(at);
    }
}
