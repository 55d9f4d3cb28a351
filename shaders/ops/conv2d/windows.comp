// The windows of images side by side, as rows of a product with filters: the terms of a place are neighbours, in the order in which
// filters have them. An invocation writes what a window has of one channel. Groups are matrices of their own. Channels first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;

ELEMENT_BUFFER(0, data, readonly, IN);
ELEMENT_BUFFER(1, windows, writeonly, IN);

layout(push_constant) uniform Shape {
    uint channels;  // Of a group.
    uint height, width;
    uint groups;
    uint kernel_height, kernel_width;
    uint out_height, out_width;
    uint stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    uint rows;  // Places of all images.
};

void main() {
    const uint item = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    const uint all = groups * channels, row = item / all, channel = item % all;
    if (row >= rows) return;
    const uint places = out_height * out_width, image = row / places, place = row % places;
    const uint y = place / out_width * stride_y - pad_top, x = place % out_width * stride_x - pad_left;
    const uint plane = (image * all + channel) * height;
    const uint matrix = channel / channels * rows + row;
    uint to = (matrix * channels + channel % channels) * kernel_height * kernel_width;
    for (uint ky = 0; ky < kernel_height; ++ky) {
        const uint from_y = y + ky * dilation_y;
        for (uint kx = 0; kx < kernel_width; ++kx) {
            const uint from_x = x + kx * dilation_x;
            // Rows above and columns to the left have wrapped around.
            const bool inside = from_y < height && from_x < width;
            const uint from = (plane + (inside ? from_y : 0)) * width + (inside ? from_x : 0);
            const float value = CONCAT(LOAD_, IN)(data, from);
            CONCAT(STORE_, IN)(windows, to, inside ? value : 0.0);
            ++to;
        }
    }
}
