// A convolution whose groups have one channel each: an invocation computes four results one below the other with one
// filter. With STRIDE (1 or 2, both ways), the kernel is 3 x 3 without dilation, and each element of the input is read once
// for all four; otherwise any kernel, of which each weight is read once for all four.
#version 450
#define DEPTHWISE
#extension GL_GOOGLE_include_directive : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;

#ifdef STRIDE
// Three neighbours in a row: where their columns lie in it, and which of them are inside, is the same for all rows.
vec3 three_at(uint base, int y, uvec3 columns, bvec3 inside) {
    const bool row = uint(y) < height;
    const uint start = base + (row ? uint(y) * width * data_pixel : 0);
    return vec3(data_at(start + columns.x, row && inside.x), data_at(start + columns.y, row && inside.y),
                data_at(start + columns.z, row && inside.z));
}

vec3 taps_at(uint at) {
    return vec3(weight_at(at), weight_at(at + weights_tap), weight_at(at + 2 * weights_tap));
}

void add(inout float sum, vec3 values, vec3 factors) {
    sum = fma(values.x, factors.x, fma(values.y, factors.y, fma(values.z, factors.z, sum)));
}

vec4 sums_of(uint base, uint weight, int y, int x) {
    const vec3 top = taps_at(weight), middle = taps_at(weight + 3 * weights_tap);
    const vec3 bottom = taps_at(weight + 6 * weights_tap);
    const uvec3 column = uvec3(x, x + 1, x + 2);
    const bvec3 inside = lessThan(column, uvec3(width));
    const uvec3 columns = mix(uvec3(0), column * data_pixel, inside);
    vec4 sums = vec4(0);
    vec3 values;
#define ROW(r) values = three_at(base, y + r, columns, inside);
#define TOP(t) add(sums.t, values, top);
#define MIDDLE(t) add(sums.t, values, middle);
#define BOTTOM(t) add(sums.t, values, bottom);
#if STRIDE == 1
    ROW(0) TOP(x)
    ROW(1) MIDDLE(x) TOP(y)
    ROW(2) BOTTOM(x) MIDDLE(y) TOP(z)
    ROW(3) BOTTOM(y) MIDDLE(z) TOP(w)
    ROW(4) BOTTOM(z) MIDDLE(w)
    ROW(5) BOTTOM(w)
#else
    ROW(0) TOP(x)
    ROW(1) MIDDLE(x)
    ROW(2) BOTTOM(x) TOP(y)
    ROW(3) MIDDLE(y)
    ROW(4) BOTTOM(y) TOP(z)
    ROW(5) MIDDLE(z)
    ROW(6) BOTTOM(z) TOP(w)
    ROW(7) MIDDLE(w)
    ROW(8) BOTTOM(w)
#endif
    return sums;
}
#else
float element_at(uint base, int y, int x) {
    const bool inside = uint(y) < height && uint(x) < width;
    return data_at(base + (inside ? (uint(y) * width + uint(x)) * data_pixel : 0), inside);
}

vec4 sums_of(uint base, uint weight, int y, int x) {
    vec4 sums = vec4(0);
    const int step = int(stride_y);
    for (uint ky = 0; ky < kernel_height; ++ky) {
        const int row = y + int(ky * dilation_y);
        for (uint kx = 0; kx < kernel_width; ++kx) {
            const int column = x + int(kx * dilation_x);
            const vec4 values =
                vec4(element_at(base, row, column), element_at(base, row + step, column),
                     element_at(base, row + 2 * step, column), element_at(base, row + 3 * step, column));
            sums = fma(values, vec4(weight_at(weight + (ky * kernel_width + kx) * weights_tap)), sums);
        }
    }
    return sums;
}
#endif

void main() {
    const uint blocks = (out_height + 3) / 4, strips = blocks * out_width;
    // Neighbours are neighbours in memory: columns, or filters where channels are last.
    const bool last = channels_last != 0;
    const uint index = min(gl_GlobalInvocationID.x, all_filters * strips - 1);
    const uint filter_index = last ? index % all_filters : index / strips;
    const uint strip = last ? index / all_filters : index % strips;
    const uint row = strip / out_width * 4, column = strip % out_width;
    const uint group = filter_index / filters;
    const uint weight = group * weights_group + (filter_index % filters) * weights_filter;
    const uint image = gl_WorkGroupID.y;
    const vec4 sums = sums_of(image * data_image + group * data_channel, weight,
                              int(row * stride_y) - int(pad_top), int(column * stride_x) - int(pad_left));
    if (gl_GlobalInvocationID.x != index) return;
    const uint at = image * result_image + filter_index * result_channel + (row * out_width + column) * result_pixel;
    const float results[4] = float[4](sums.x, sums.y, sums.z, sums.w);
    for (uint t = 0; t < min(out_height - row, 4); ++t) {
        finish(filter_index, at + t * out_width * result_pixel, results[t]);
    }
}
