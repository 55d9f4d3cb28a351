// A convolution of bytes as spans.comp, with its loops written out, as SwiftShader runs loops as they are: eight filters at
// eight neighbouring places. KERNEL is 1, for kernels of 1x1 over whole words of channels, or the three columns of a kernel of any
// height with strides of STRIDE. Products are those of floats, and exact for CHUNK steps.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint CHUNK = 128;
layout(constant_id = 4) const bool UNSIGNED = false;
layout(constant_id = 5) const bool WHOLE_QUADS = false;  // Rows of results are whole quads.
#include "dots.glsl"
#include "spans.glsl"

#define EACH_HELD(F) F(0) F(1)
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)
const uint FILTERS = 8;

#if KERNEL == 1
#define TERMS 4
#define EACH_TERM(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)
#else
#define TERMS 3
#define EACH_TERM(F, h) F(h, 0) F(h, 1) F(h, 2)
#endif

void main() {
    const uint image = gl_WorkGroupID.z, blocks = (filters + FILTERS - 1) / FILTERS, group = gl_WorkGroupID.y / blocks;
    const uint first = (gl_WorkGroupID.y - group * blocks) * FILTERS, lane = gl_SubgroupInvocationID % SUBGROUP;
    // Places and filters that are not there are computed as the last ones, and not stored.
    const uint across = (out_width + 7) / 8, count = out_height * across;
    const uint index = min(gl_GlobalInvocationID.x, count - 1), row = index / across, column = (index - row * across) * 8;
    const int last_data = last_word(image, data_image);
    const uint last_weight = uint(last_word(group, weights_group));
    const int zero = UNSIGNED ? data_zero - 128 : data_zero;
    const uint flip = UNSIGNED ? 0x80808080u : 0u, filler = (uint(zero) & 0xFFu) * 0x01010101u;
    const vec4 less = vec4(float(zero));
    uint channel_at = image * data_image + group * channels * data_channel;
#if KERNEL == 1
    const uint steps = channels / 4;
    channel_at += row * width + column;
#else
    const uint steps = channels * kernel_height;
    const int y0 = int(row * stride_y) - int(pad_top), x0 = int(column * STRIDE) - int(pad_left);
    const uint inside0 = inside_of(x0), inside1 = inside_of(x0 + 4), inside2 = inside_of(x0 + 8);
    uint ky = 0;
#if STRIDE == 2
    const uint inside3 = inside_of(x0 + 12), inside4 = inside_of(x0 + 16);
#endif
#endif

#define FIND(h) \
    uint weight##h = group * weights_group + min(first + h * SUBGROUP + lane, filters - 1) * weights_filter;
    EACH_HELD(FIND)
#define BEGIN(h, i) ivec4 total##h##_##i##_0 = ivec4(0), total##h##_##i##_1 = ivec4(0);
#define BEGINS(h) EACH_SHARED(BEGIN, h)
    EACH_HELD(BEGINS)

    for (uint begin = 0; begin < steps; begin += CHUNK) {
        const uint end = min(begin + CHUNK, steps);
#define CLEAR(h, i) vec4 sum##h##_##i##_0 = vec4(0.0), sum##h##_##i##_1 = vec4(0.0);
#define CLEARS(h) EACH_SHARED(CLEAR, h)
        EACH_HELD(CLEARS)
        for (uint s = begin; s < end; ++s) {
#if KERNEL == 1
#define WORD(at) data[min(at, uint(last_data))]
#ifdef ALIGNED
#define READ(h, t) \
            const uint place##t = (channel_at + t * data_channel) >> 2; \
            const uint word##t##_0 = WORD(place##t) ^ flip, word##t##_1 = WORD(place##t + 1) ^ flip;
#else
#define READ(h, t) \
            const uint from##t = channel_at + t * data_channel, place##t = from##t >> 2, shift##t = 8 * (from##t & 3u); \
            const uint a##t = WORD(place##t), b##t = WORD(place##t + 1), c##t = WORD(place##t + 2); \
            const uint word##t##_0 = joined(a##t, b##t, shift##t) ^ flip, word##t##_1 = joined(b##t, c##t, shift##t) ^ flip;
#endif
            EACH_TERM(READ, 0)
            channel_at += 4 * data_channel;
#define FOUR(h, t) const vec4 four##t##_0 = bytes_of(word##t##_0) - less, four##t##_1 = bytes_of(word##t##_1) - less;
            EACH_TERM(FOUR, 0)
#define HOLD(h) const uint held##h = weights[weight##h >> 2];
            EACH_HELD(HOLD)
#else
            const int y = y0 + int(ky * dilation_y), from = int(channel_at) + y * int(width) + x0, place = from >> 2;
            const uint shift = 8 * (uint(from) & 3u), there = uint(y) < height ? 0xFFFFFFFFu : 0u;
#define WORD(n) data[clamp(place + n, 0, last_data)] ^ flip
            const uint a = WORD(0), b = WORD(1), c = WORD(2), d = WORD(3);
            const vec4 v0 = bytes_of(padded(joined(a, b, shift), filler, inside0 & there)) - less;
            const vec4 v1 = bytes_of(padded(joined(b, c, shift), filler, inside1 & there)) - less;
#if STRIDE == 1
            const vec4 v2 = bytes_of(padded(joined(c, d, shift), filler, inside2 & there)) - less;
            const vec4 four0_0 = v0, four1_0 = vec4(v0.yzw, v1.x), four2_0 = vec4(v0.zw, v1.xy);
            const vec4 four0_1 = v1, four1_1 = vec4(v1.yzw, v2.x), four2_1 = vec4(v1.zw, v2.xy);
#else
            const uint e = WORD(4);
            const vec4 v2 = bytes_of(padded(joined(c, d, shift), filler, inside2 & there)) - less;
            const vec4 v3 = bytes_of(padded(joined(d, e, shift), filler, inside3 & there)) - less;
            const float last = byte_of(padded(e >> shift, filler, inside4 & there), 0) - less.x;
            const vec4 four0_0 = vec4(v0.xz, v1.xz), four1_0 = vec4(v0.yw, v1.yw), four2_0 = vec4(four0_0.yzw, v2.x);
            const vec4 four0_1 = vec4(v2.xz, v3.xz), four1_1 = vec4(v2.yw, v3.yw), four2_1 = vec4(four0_1.yzw, last);
#endif
            const bool turn = ++ky == kernel_height;
            ky = turn ? 0 : ky;
            channel_at += turn ? data_channel : 0;
#define HOLD(h) \
            const uint low##h = weights[weight##h >> 2]; \
            const uint held##h = joined(low##h, weights[min((weight##h >> 2) + 1, last_weight)], 8 * (weight##h & 3u));
            EACH_HELD(HOLD)
#endif
#define UNPACK(h, t) const float held##h##_##t = byte_of(held##h, t);
#define UNPACKS(h) weight##h += TERMS; EACH_TERM(UNPACK, h)
            EACH_HELD(UNPACKS)
#if KERNEL == 1
#define PRODUCTS(h, i, p) fma(g0, four0_##p, fma(g1, four1_##p, fma(g2, four2_##p, fma(g3, four3_##p, sum##h##_##i##_##p))))
#else
#define PRODUCTS(h, i, p) fma(g0, four0_##p, fma(g1, four1_##p, fma(g2, four2_##p, sum##h##_##i##_##p)))
#endif
#define MULTIPLY(h, i) \
            { \
                const vec4 g0 = vec4(FROM_INVOCATION(held##h##_0, i)), g1 = vec4(FROM_INVOCATION(held##h##_1, i)); \
                const vec4 g2 = vec4(FROM_INVOCATION(held##h##_2, i)); \
                FOURTH(h, i) \
                sum##h##_##i##_0 = PRODUCTS(h, i, 0); \
                sum##h##_##i##_1 = PRODUCTS(h, i, 1); \
            }
#if KERNEL == 1
#define FOURTH(h, i) const vec4 g3 = vec4(FROM_INVOCATION(held##h##_3, i));
#else
#define FOURTH(h, i)
#endif
#define MULTIPLIES(h) EACH_SHARED(MULTIPLY, h)
            EACH_HELD(MULTIPLIES)
        }
#define KEEP(h, i) \
        total##h##_##i##_0 += ivec4(sum##h##_##i##_0); \
        total##h##_##i##_1 += ivec4(sum##h##_##i##_1);
#define KEEPS(h) EACH_SHARED(KEEP, h)
        EACH_HELD(KEEPS)
    }

    if (gl_GlobalInvocationID.x != index) return;
    const uint filter0 = group * filters + first, there = min(filters - first, FILTERS);
    const uint to = image * result_image + filter0 * result_channel + row * out_width + column;
    // The code that stores is there once, and not for every result.
    ivec4 results[2 * FILTERS];
#define PUT(h, i) \
    results[2 * (h * SUBGROUP + i)] = total##h##_##i##_0; \
    results[2 * (h * SUBGROUP + i) + 1] = total##h##_##i##_1;
#define PUTS(h) EACH_SHARED(PUT, h)
    EACH_HELD(PUTS)
    for (uint i = 0; i < 2 * there; ++i) {
        const uint along = column + i % 2 * 4;
        if (along < out_width)
            finish4(filter0 + i / 2, to + i / 2 * result_channel + i % 2 * 4, min(out_width - along, 4), results[i]);
    }
}
