// A convolution with KERNEL columns and no dilation, channels before rows: an invocation computes HELD x SUBGROUP filters at
// four or eight neighbours, whose windows share what is read of a row. Seven columns with strides of two, as networks for
// images begin with, or three with strides of one or two. For devices that run on a CPU, as patches.comp, in code that is
// small enough for SwiftShader. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;

#if HELD == 1
#define EACH_HELD(F) F(0)
#elif HELD == 2
#define EACH_HELD(F) F(0) F(1)
#elif HELD == 4
#define EACH_HELD(F) F(0) F(1) F(2) F(3)
#endif
#if SUBGROUP == 4
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)
#elif SUBGROUP == 8
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6) F(h, 7)
#endif
// Columns that are read; parts of four neighbours; the columns that a part meets under each tap; its products.
#if KERNEL == 7 && STRIDE == 2
const uint ACROSS = 4;
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define EACH_TAP(F, h, i) F(h, i, 0) F(h, i, 1) F(h, i, 2) F(h, i, 3) F(h, i, 4) F(h, i, 5) F(h, i, 6)
#define EACH_PART(F, h, i) F(h, i, 0)
#define EACH_FOUR(F) \
    F(0, 0, 0, 2, 4, 6) F(0, 1, 1, 3, 5, 7) F(0, 2, 2, 4, 6, 8) F(0, 3, 3, 5, 7, 9) F(0, 4, 4, 6, 8, 10) \
    F(0, 5, 5, 7, 9, 11) F(0, 6, 6, 8, 10, 12)
#define PRODUCTS(p, sum) \
    PRODUCT(p, 0, PRODUCT(p, 1, PRODUCT(p, 2, PRODUCT(p, 3, PRODUCT(p, 4, PRODUCT(p, 5, PRODUCT(p, 6, sum)))))))
#elif KERNEL == 3
const uint ACROSS = 8;
#define EACH_TAP(F, h, i) F(h, i, 0) F(h, i, 1) F(h, i, 2)
#define EACH_PART(F, h, i) F(h, i, 0) F(h, i, 1)
#if STRIDE == 1
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
#define EACH_FOUR(F) \
    F(0, 0, 0, 1, 2, 3) F(0, 1, 1, 2, 3, 4) F(0, 2, 2, 3, 4, 5) F(1, 0, 4, 5, 6, 7) F(1, 1, 5, 6, 7, 8) \
    F(1, 2, 6, 7, 8, 9)
#elif STRIDE == 2
#define EACH_COLUMN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16)
#define EACH_FOUR(F) \
    F(0, 0, 0, 2, 4, 6) F(0, 1, 1, 3, 5, 7) F(0, 2, 2, 4, 6, 8) F(1, 0, 8, 10, 12, 14) F(1, 1, 9, 11, 13, 15) \
    F(1, 2, 10, 12, 14, 16)
#endif
#define PRODUCTS(p, sum) PRODUCT(p, 0, PRODUCT(p, 1, PRODUCT(p, 2, sum)))
#endif
#define PRODUCT(p, t, sum) multiply_add(given##t, four##p##_##t, sum)

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
#define BEGIN(h, i, p) SUM4 sum##h##_##i##_##p = SUM4(FROM_INVOCATION(start##h, i));
#define BEGINS(h, i) EACH_PART(BEGIN, h, i)
#define BEGIN_ALL(h) EACH_SHARED(BEGINS, h)
    EACH_HELD(BEGIN_ALL)

    for (uint ky = 0; ky < kernel_height; ++ky) {
        const uint y = uint(int(out_y * stride_y + ky * dilation_y) - int(pad_top));
        const bool down = y < height;
        uint row = image * data_image + group * channels * data_channel + (down ? y * width : 0);
        uint tap = ky * KERNEL;
        for (uint c = 0; c < channels; ++c) {
#define READ(c) const SUM value##c = data_at(row + column##c, down && across##c);
            EACH_COLUMN(READ)
#define FOUR(p, t, a, b, c, d) const SUM4 four##p##_##t = SUM4(value##a, value##b, value##c, value##d);
            EACH_FOUR(FOUR)
#define HOLD(h, i, t) const SUM held##h##_##t = weight_at(weight##h + tap + t);
#define HOLDS(h) EACH_TAP(HOLD, h, 0)
            EACH_HELD(HOLDS)
#define GIVE(h, i, t) const SUM given##t = FROM_INVOCATION(held##h##_##t, i);
#define MULTIPLY(h, i, p) sum##h##_##i##_##p = PRODUCTS(p, sum##h##_##i##_##p);
#define MULTIPLIES(h, i) { EACH_TAP(GIVE, h, i) EACH_PART(MULTIPLY, h, i) }
#define MULTIPLY_ALL(h) EACH_SHARED(MULTIPLIES, h)
            EACH_HELD(MULTIPLY_ALL)
            row += data_channel;
            tap += weights_channel;
        }
    }

    if (gl_GlobalInvocationID.x != index) return;
    const uint to = image * result_image + (group * filters + first) * result_channel + out_y * out_width + out_x;
    const uint there = out_width - out_x;
#define STORE(h, i, p) \
        { \
            const SUM4 results = limited(sum##h##_##i##_##p, LEAST, MOST); \
            const uint at = to + (h * SUBGROUP + i) * result_channel + p * 4; \
            if (p * 4 < there) CONCAT(STORE_, OUT)(result, at, results.x); \
            if (p * 4 + 1 < there) CONCAT(STORE_, OUT)(result, at + 1, results.y); \
            if (p * 4 + 2 < there) CONCAT(STORE_, OUT)(result, at + 2, results.z); \
            if (p * 4 + 3 < there) CONCAT(STORE_, OUT)(result, at + 3, results.w); \
        }
#define STORES(h, i) if (first + h * SUBGROUP + i < filters) { EACH_PART(STORE, h, i) }
#define STORE_ALL(h) EACH_SHARED(STORES, h)
    EACH_HELD(STORE_ALL)
}
