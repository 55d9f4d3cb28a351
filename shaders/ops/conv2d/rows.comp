// A convolution with a kernel of seven columns and strides of two along rows, as networks for images begin with, channels
// before rows: an invocation computes HELD x SUBGROUP filters at four neighbours, whose windows share what is read of a row.
// For devices that run on a CPU, as patches.comp. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;

const uint ACROSS = 4, STRIDE = 2;

#if HELD == 2
#define EACH_HELD(F) F(0) F(1)
#elif HELD == 4
#define EACH_HELD(F) F(0) F(1) F(2) F(3)
#endif
#if SUBGROUP == 4
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)
#elif SUBGROUP == 8
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6) F(h, 7)
#endif
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define EACH_TAP(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6)
// The elements that the four neighbours meet under each tap.
#define EACH_FOUR(F) \
    F(0, 0, 2, 4, 6) F(1, 1, 3, 5, 7) F(2, 2, 4, 6, 8) F(3, 3, 5, 7, 9) F(4, 4, 6, 8, 10) F(5, 5, 7, 9, 11) \
    F(6, 6, 8, 10, 12)

const uint FILTERS = HELD * SUBGROUP;

void main() {
    const uint blocks = (filters + FILTERS - 1) / FILTERS, image = gl_WorkGroupID.z;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * FILTERS;
    const uint across = (out_width + ACROSS - 1) / ACROSS, count = out_height * across;
    // Places that are not there are computed as the last ones, and not stored.
    const uint index = min(gl_GlobalInvocationID.x, count - 1), out_y = index / across;
    const uint out_x = (index - out_y * across) * ACROSS;
    const int x = int(out_x * STRIDE) - int(pad_left);
#define FIND_COLUMN(c) \
    const bool across##c = uint(x + c) < width; \
    const uint column##c = across##c ? uint(x + c) : 0;
    EACH_COLUMN(FIND_COLUMN)

    // Filters that are not there are computed as the last one, and not stored. Sums begin with the bias. There is always
    // something to read: without a bias, its buffer is that of the weights.
#define FIND(h) \
    const uint filter##h = min(first + h * SUBGROUP + gl_SubgroupInvocationID % SUBGROUP, filters - 1); \
    const uint weight##h = group * weights_group + filter##h * weights_filter; \
    const SUM bias##h = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + filter##h)); \
    const SUM start##h = HAS_BIAS ? bias##h : SUM(0);
    EACH_HELD(FIND)
#define BEGIN(h, i) SUM4 sum##h##_##i = SUM4(FROM_INVOCATION(start##h, i));
#define BEGINS(h) EACH_SHARED(BEGIN, h)
    EACH_HELD(BEGINS)

    for (uint ky = 0; ky < kernel_height; ++ky) {
        const uint y = uint(int(out_y * stride_y + ky * dilation_y) - int(pad_top));
        const bool down = y < height;
        uint row = image * data_image + group * channels * data_channel + (down ? y * width : 0);
        uint tap = ky * 7;
        for (uint c = 0; c < channels; ++c) {
#define READ(c) const SUM value##c = data_at(row + column##c, down && across##c);
            EACH_COLUMN(READ)
#define FOUR(t, a, b, c, d) const SUM4 four##t = SUM4(value##a, value##b, value##c, value##d);
            EACH_FOUR(FOUR)
#define HOLD(h, t) const SUM held##h##_##t = weight_at(weight##h + tap + t);
#define HOLDS(h) EACH_TAP(HOLD, h)
            EACH_HELD(HOLDS)
#define GIVEN(h, t, i) FROM_INVOCATION(held##h##_##t, i)
#define MULTIPLY(h, i) \
            sum##h##_##i = multiply_add(GIVEN(h, 0, i), four0, multiply_add(GIVEN(h, 1, i), four1, \
                multiply_add(GIVEN(h, 2, i), four2, multiply_add(GIVEN(h, 3, i), four3, \
                multiply_add(GIVEN(h, 4, i), four4, multiply_add(GIVEN(h, 5, i), four5, \
                multiply_add(GIVEN(h, 6, i), four6, sum##h##_##i)))))));
#define MULTIPLIES(h) EACH_SHARED(MULTIPLY, h)
            EACH_HELD(MULTIPLIES)
            row += data_channel;
            tap += weights_channel;
        }
    }

    // The code that stores is there once, and not for every result.
    SUM4 results[FILTERS];
#define KEEP(h, i) results[h * SUBGROUP + i] = limited(sum##h##_##i, LEAST, MOST);
#define KEEPS(h) EACH_SHARED(KEEP, h)
    EACH_HELD(KEEPS)
    if (gl_GlobalInvocationID.x != index) return;
    const uint there = min(filters - first, FILTERS);
    uint at = image * result_image + (group * filters + first) * result_channel + out_y * out_width + out_x;
    for (uint f = 0; f < there; ++f) {
        for (uint t = 0; t < min(ACROSS, out_width - out_x); ++t) {
            CONCAT(STORE_, OUT)(result, at + t, results[f][t]);
        }
        at += result_channel;
    }
}
