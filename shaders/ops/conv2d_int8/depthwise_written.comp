// A convolution of bytes whose groups have one channel each, with a kernel of 3x3 and no dilation, for SwiftShader, which runs
// loops as they are: an invocation computes four rows of four neighbours of a filter, which a workgroup shares. Of each row
// under them it reads the words once. Products are those of floats, and exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool UNSIGNED = false;
layout(constant_id = 4) const bool WHOLE_QUADS = false;  // Rows of results are whole quads.
#include "dots.glsl"
#include "spans.glsl"

#if STRIDE == 1
#define EACH_READ(F) F(0) F(1) F(2) F(3) F(4) F(5)
#define EACH_RESULT(F) F(0, 0, 1, 2) F(1, 1, 2, 3) F(2, 2, 3, 4) F(3, 3, 4, 5)
#else
#define EACH_READ(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#define EACH_RESULT(F) F(0, 0, 1, 2) F(1, 2, 3, 4) F(2, 4, 5, 6) F(3, 6, 7, 8)
#endif

void main() {
    const uint filter_index = gl_WorkGroupID.y, image = gl_WorkGroupID.z, group = filter_index / filters;
    // Places that are not there are computed as the last ones, and not stored.
    const uint across = (out_width + 3) / 4, count = (out_height + 3) / 4 * across;
    const uint index = min(gl_GlobalInvocationID.x, count - 1), block = index / across;
    const uint row = block * 4, column = (index - block * across) * 4;
    const int y0 = int(row * STRIDE) - int(pad_top), x0 = int(column * STRIDE) - int(pad_left);
    const int base = int(image * data_image + group * data_channel) + y0 * int(width) + x0;
    const int last_data = last_word(image, data_image);
    const int zero = UNSIGNED ? data_zero - 128 : data_zero;
    const uint flip = UNSIGNED ? 0x80808080u : 0u, filler = (uint(zero) & 0xFFu) * 0x01010101u;
    const vec4 less = vec4(float(zero));
    const uint inside0 = inside_of(x0), inside1 = inside_of(x0 + 4);
#if STRIDE == 2
    const uint inside2 = inside_of(x0 + 8);
#endif

    const uint weight = filter_index * 9, moved = 8 * (weight & 3u), last_weight = uint(last_word(group, weights_group));
    const uint w0 = weights[weight >> 2], w1 = weights[min((weight >> 2) + 1, last_weight)];
    const uint w2 = weights[min((weight >> 2) + 2, last_weight)];
    const uint weights0 = joined(w0, w1, moved), weights1 = joined(w1, w2, moved);
    const vec4 g0 = vec4(byte_of(weights0, 0)), g1 = vec4(byte_of(weights0, 1)), g2 = vec4(byte_of(weights0, 2));
    const vec4 g3 = vec4(byte_of(weights0, 3)), g4 = vec4(byte_of(weights1, 0)), g5 = vec4(byte_of(weights1, 1));
    const vec4 g6 = vec4(byte_of(weights1, 2)), g7 = vec4(byte_of(weights1, 3)), g8 = vec4(byte_of(w2 >> moved, 0));

#define READ_WORDS(i) \
    const int from##i = base + i * int(width), place##i = from##i >> 2; \
    const uint shift##i = 8 * (uint(from##i) & 3u), there##i = uint(y0 + i) < height ? 0xFFFFFFFFu : 0u; \
    const uint a##i = data[clamp(place##i, 0, last_data)] ^ flip, b##i = data[clamp(place##i + 1, 0, last_data)] ^ flip; \
    const uint c##i = data[clamp(place##i + 2, 0, last_data)] ^ flip; \
    const uint word0##i = padded(joined(a##i, b##i, shift##i), filler, inside0 & there##i); \
    const uint word1##i = padded(joined(b##i, c##i, shift##i), filler, inside1 & there##i); \
    const vec4 near##i = vec4(byte_of(word0##i, 0), byte_of(word0##i, 1), byte_of(word0##i, 2), byte_of(word0##i, 3)) - less;
#if STRIDE == 1
#define READ_ROW(i) \
    READ_WORDS(i) \
    const vec2 next##i = vec2(byte_of(word1##i, 0), byte_of(word1##i, 1)) - less.xy; \
    const vec4 left##i = near##i, middle##i = vec4(near##i.yzw, next##i.x), right##i = vec4(near##i.zw, next##i);
#else
#define READ_ROW(i) \
    READ_WORDS(i) \
    const vec4 far##i = vec4(byte_of(word1##i, 0), byte_of(word1##i, 1), byte_of(word1##i, 2), byte_of(word1##i, 3)) - less; \
    const float last##i = byte_of(padded(c##i >> shift##i, filler, inside2 & there##i), 0) - less.x; \
    const vec4 left##i = vec4(near##i.xz, far##i.xz), middle##i = vec4(near##i.yw, far##i.yw); \
    const vec4 right##i = vec4(left##i.yzw, last##i);
#endif
    EACH_READ(READ_ROW)

    ivec4 results[4];
#define MULTIPLY(r, p, q, s) \
    results[r] = ivec4(fma(g0, left##p, fma(g1, middle##p, fma(g2, right##p, fma(g3, left##q, fma(g4, middle##q, \
        fma(g5, right##q, fma(g6, left##s, fma(g7, middle##s, g8 * right##s)))))))));
    EACH_RESULT(MULTIPLY)

    if (gl_GlobalInvocationID.x != index) return;
    const uint to = image * result_image + filter_index * result_channel + row * out_width + column;
    for (uint r = 0; r < min(out_height - row, 4); ++r)
        finish4(filter_index, to + r * out_width, min(out_width - column, 4), results[r]);
}
