// A convolution of bytes whose groups have one channel each, with a kernel of any size and no dilation across, for devices that
// run on a CPU: an invocation computes four neighbours of a row. Under them it reads words, each once, for four columns of the
// kernel at a time; behind its last one, weights count as zero. Products are those of floats, and exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint KERNEL_HEIGHT = 5;
layout(constant_id = 4) const uint KERNEL_WIDTH = 5;
layout(constant_id = 5) const bool WHOLE_QUADS = false;  // Rows of results are whole quads.
layout(constant_id = 6) const bool UNSIGNED = false;
#include "dots.glsl"
#include "spans.glsl"

void main() {
    // Invocations that are too many compute the last results again, and do not store them.
    const uint image = gl_WorkGroupID.z, across = (out_width + 3) / 4, count = out_height * across;
    const uint invocation = min(gl_GlobalInvocationID.x, result_image / result_channel * count - 1);
    const uint filter_index = invocation / count, index = invocation - filter_index * count, group = filter_index / filters;
    const uint row = index / across, column = (index - row * across) * 4;
    const int y0 = int(row * stride_y) - int(pad_top), x0 = int(column * STRIDE) - int(pad_left);
    const int base = int(image * data_image + group * data_channel) + x0;
    const int last_data = last_word(image, data_image), last_weight = last_word(group, weights_group);
    const int zero = UNSIGNED ? data_zero - 128 : data_zero;
    const uint flip = UNSIGNED ? 0x80808080u : 0u, filler = (uint(zero) & 0xFFu) * 0x01010101u;
    const vec4 less = vec4(float(zero));
    const uint tail = 0xFFFFFFFFu >> (8 * ((4 - KERNEL_WIDTH % 4) % 4));

#define WORD(i) (data[clamp(place + (i), 0, last_data)] ^ flip)
#define BYTES(low, high, x) (bytes_of(padded(joined(low, high, shift), filler, inside_of(x) & there)) - less)
    ivec4 sums = ivec4(0);
    for (uint ky = 0; ky < KERNEL_HEIGHT; ++ky) {
        const int y = y0 + int(ky * dilation_y), from = base + y * int(width);
        const uint there = uint(y) < height ? 0xFFFFFFFFu : 0u, shift = 8 * (uint(from) & 3u);
        int place = from >> 2;
        uint next = WORD(1);
        vec4 near = BYTES(WORD(0), next, x0);
#if STRIDE == 2
        uint behind = WORD(2);
        vec4 middle = BYTES(next, behind, x0 + 4);
#endif
        vec4 row_sums = vec4(0);
        for (uint kx = 0; kx < KERNEL_WIDTH; kx += 4) {
            const uint weight = (filter_index * KERNEL_HEIGHT + ky) * KERNEL_WIDTH + kx, moved = 8 * (weight & 3u);
            const uint low = weights[weight >> 2], high = weights[min(int(weight >> 2) + 1, last_weight)];
            const vec4 factors = bytes_of(joined(low, high, moved) & (kx + 4 > KERNEL_WIDTH ? tail : 0xFFFFFFFFu));
#if STRIDE == 1
            const uint behind = WORD(2);
            const vec4 far = BYTES(next, behind, x0 + int(kx) + 4);
            const vec4 a = near, b = vec4(near.yzw, far.x), c = vec4(near.zw, far.xy), d = vec4(near.w, far.xyz);
            near = far;
            next = behind;
#else
            const uint end = WORD(3);
            const vec4 far = BYTES(behind, end, x0 + int(kx) + 8);
            const vec4 a = vec4(near.xz, middle.xz), b = vec4(near.yw, middle.yw);
            const vec4 c = vec4(near.z, middle.xz, far.x), d = vec4(near.w, middle.yw, far.y);
            near = middle;
            middle = far;
            behind = end;
#endif
            row_sums = fma(factors.xxxx, a, fma(factors.yyyy, b, fma(factors.zzzz, c, fma(factors.wwww, d, row_sums))));
            ++place;
        }
        sums += ivec4(row_sums);
    }

    if (gl_GlobalInvocationID.x != invocation) return;
    const uint to = image * result_image + filter_index * result_channel + row * out_width + column;
    finish4(filter_index, to, min(out_width - column, 4), sums);
}
