// A convolution with a kernel of 3 x 3, strides of 1 and no dilation: an invocation computes eight filters at four places, one
// below the other, whose windows share what is read of the input: six elements and three weights of each filter for
// 96 products. Any layout, by strides. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#include "exchange.glsl"
#endif
#include "convolution.glsl"

layout(local_size_x_id = 0) in;

const uint CHANNELS = 8;

// Filters that are not there are computed as the last one, and not stored.
uint row_of(uint group, uint filter_index) {
    return group * weights_group + min(filter_index, filters - 1) * weights_filter;
}

#if defined(SUBGROUP) && SUBGROUP == 8
// Each invocation reads the weight of another filter and gives it to all, as in direct.comp.
#define FIND_ROWS const uint row0 = row_of(group, first + gl_SubgroupInvocationID);
#define FOUR(h, i) \
    SUM4(FROM_INVOCATION(h, i), FROM_INVOCATION(h, i + 1), FROM_INVOCATION(h, i + 2), FROM_INVOCATION(h, i + 3))
#define READ_WEIGHTS(ky) \
    const SUM held##ky = weight_at(row0 + weight + ky * tap_row); \
    const SUM4 upper##ky = FOUR(held##ky, 0), lower##ky = FOUR(held##ky, 4);
#elif defined(SUBGROUP) && SUBGROUP == 4
#define FIND_ROWS \
    const uint row0 = row_of(group, first + gl_SubgroupInvocationID); \
    const uint row1 = row_of(group, first + 4 + gl_SubgroupInvocationID);
#define FOUR(h) \
    SUM4(FROM_INVOCATION(h, 0), FROM_INVOCATION(h, 1), FROM_INVOCATION(h, 2), FROM_INVOCATION(h, 3))
#define READ_WEIGHTS(ky) \
    const SUM held##ky##_0 = weight_at(row0 + weight + ky * tap_row); \
    const SUM held##ky##_1 = weight_at(row1 + weight + ky * tap_row); \
    const SUM4 upper##ky = FOUR(held##ky##_0), lower##ky = FOUR(held##ky##_1);
#else
#define FIND_ROWS \
    const uvec4 row0 = uvec4(row_of(group, first), row_of(group, first + 1), row_of(group, first + 2), \
                             row_of(group, first + 3)); \
    const uvec4 row1 = uvec4(row_of(group, first + 4), row_of(group, first + 5), row_of(group, first + 6), \
                             row_of(group, first + 7));
#define FOUR(rows, at) \
    SUM4(weight_at(rows.x + at), weight_at(rows.y + at), weight_at(rows.z + at), weight_at(rows.w + at))
#define READ_WEIGHTS(ky) \
    const SUM4 upper##ky = FOUR(row0, weight + ky * tap_row), lower##ky = FOUR(row1, weight + ky * tap_row);
#endif

#define EACH_ROW(F) F(0) F(1) F(2) F(3) F(4) F(5)
#define EACH_PLACE(F) F(0) F(1) F(2) F(3)

void main() {
    const uint blocks = (filters + CHANNELS - 1) / CHANNELS;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * CHANNELS;
    const uint image = gl_WorkGroupID.z, tap_row = 3 * weights_tap;
    const uint base = image * data_image + group * channels * data_channel;
    const uint strips = (out_height + 3) / 4 * out_width, strip = min(gl_GlobalInvocationID.x, strips - 1);
    const uint out_y = strip / out_width * 4, out_x = strip % out_width;
    FIND_ROWS
    // What lies above and on the left of the input are large numbers, and so outside.
    const uint top = out_y - pad_top, left = out_x - pad_left;

#define ZERO(t) SUM4 upper_sum##t = SUM4(0), lower_sum##t = SUM4(0);
    EACH_PLACE(ZERO)
    for (uint kx = 0; kx < 3; ++kx) {
        const uint x = left + kx;
#define AIM(r) \
    const bool inside##r = x < width && top + r < height; \
    uint at##r = base + (inside##r ? ((top + r) * width + x) * data_pixel : 0);
        EACH_ROW(AIM)
        uint weight = kx * weights_tap;
        for (uint c = 0; c < channels; ++c) {
#define READ(r) const SUM value##r = data_at(at##r, inside##r); at##r += data_channel;
            EACH_ROW(READ)
            READ_WEIGHTS(0) READ_WEIGHTS(1) READ_WEIGHTS(2)
#define ADD(t, ky, r) \
    upper_sum##t = multiply_add(value##r, upper##ky, upper_sum##t); \
    lower_sum##t = multiply_add(value##r, lower##ky, lower_sum##t);
            ADD(0, 0, 0) ADD(1, 0, 1) ADD(2, 0, 2) ADD(3, 0, 3)
            ADD(0, 1, 1) ADD(1, 1, 2) ADD(2, 1, 3) ADD(3, 1, 4)
            ADD(0, 2, 2) ADD(1, 2, 3) ADD(2, 2, 4) ADD(3, 2, 5)
            weight += weights_channel;
        }
    }

    SUM results[4 * CHANNELS];
#define KEEP(t) \
    results[t * 8] = upper_sum##t.x; \
    results[t * 8 + 1] = upper_sum##t.y; \
    results[t * 8 + 2] = upper_sum##t.z; \
    results[t * 8 + 3] = upper_sum##t.w; \
    results[t * 8 + 4] = lower_sum##t.x; \
    results[t * 8 + 5] = lower_sum##t.y; \
    results[t * 8 + 6] = lower_sum##t.z; \
    results[t * 8 + 7] = lower_sum##t.w;
    EACH_PLACE(KEEP)
    if (gl_GlobalInvocationID.x != strip) return;
    const uint filter0 = group * filters + first, there = min(filters - first, CHANNELS);
    for (uint t = 0; t < min(out_height - out_y, 4); ++t) {
        uint at = image * result_image + filter0 * result_channel + ((out_y + t) * out_width + out_x) * result_pixel;
        for (uint i = 0; i < there; ++i) {
            finish(filter0 + i, at, results[t * CHANNELS + i]);
            at += result_channel;
        }
    }
}
