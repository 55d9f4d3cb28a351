// A convolution with a kernel of 3 x 3, channels before rows, and with strides of 1 any dilation: an invocation computes HELD x SUBGROUP filters
// for a patch of results (patches.glsl), each with all nine products of a channel at a time. For devices that run on a CPU:
// these read for each invocation apart, so that reads are what costs; nothing is in shared memory, and each invocation of a
// subgroup reads the weights of other filters and gives them to all. Sums lie on the stack, which is cheap for nine products.
// Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#if STRIDE == 1
#define DILATED
#endif
#include "patches.glsl"
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
#define EACH_TAP(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6) F(h, 7) F(h, 8)

const uint FILTERS = HELD * SUBGROUP;

void main() {
    const uint blocks = (filters + FILTERS - 1) / FILTERS, image = gl_WorkGroupID.z;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * FILTERS;
    const Patch place = patch_of(gl_GlobalInvocationID.x);
    const uint base = image * data_image + group * channels * data_channel;
    EACH_COLUMN(FIND_COLUMN)
    EACH_READ(FIND_ROW)

    // Filters that are not there are computed as the last one, and not stored. Sums begin with the bias. There is always
    // something to read: without a bias, its buffer is that of the weights.
#define FIND(h) \
    const uint filter##h = min(first + h * SUBGROUP + gl_SubgroupInvocationID % SUBGROUP, filters - 1); \
    uint weight##h = group * weights_group + filter##h * weights_filter; \
    const SUM bias##h = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + filter##h)); \
    const SUM start##h = HAS_BIAS ? bias##h : SUM(0);
    EACH_HELD(FIND)
#define BEGIN(h, i, r, p, q, s) ROW_OF sum##h##_##i##_##r = ROW_OF(FROM_INVOCATION(start##h, i));
#define BEGINS(h, i) EACH_RESULT(BEGIN, h, i)
#define BEGIN_ALL(h) EACH_SHARED(BEGINS, h)
    EACH_HELD(BEGIN_ALL)

    for (uint c = 0; c < channels; ++c) {
        EACH_READ(READ_ROW)
#define HOLD(h, t) const SUM held##h##_##t = weight_at(weight##h + t);
#define HOLDS(h) EACH_TAP(HOLD, h)
        EACH_HELD(HOLDS)
#define GIVEN(h, t, i) FROM_INVOCATION(held##h##_##t, i)
#define MULTIPLY(h, i, r, p, q, s) sum##h##_##i##_##r = NINE(p, q, s, sum##h##_##i##_##r);
#define MULTIPLIES(h, i) \
        { \
            const SUM g0 = GIVEN(h, 0, i), g1 = GIVEN(h, 1, i), g2 = GIVEN(h, 2, i), g3 = GIVEN(h, 3, i); \
            const SUM g4 = GIVEN(h, 4, i), g5 = GIVEN(h, 5, i), g6 = GIVEN(h, 6, i), g7 = GIVEN(h, 7, i); \
            const SUM g8 = GIVEN(h, 8, i); \
            EACH_RESULT(MULTIPLY, h, i) \
        }
#define MULTIPLY_ALL(h) EACH_SHARED(MULTIPLIES, h)
        EACH_HELD(MULTIPLY_ALL)
#define NEXT_ROW(r) row##r += data_channel;
        EACH_READ(NEXT_ROW)
#define NEXT(h) weight##h += weights_channel;
        EACH_HELD(NEXT)
    }

    // The code that stores is there once, and not for every result.
    ROW_OF results[FILTERS * ROWS];
#define KEEP(h, i, r, p, q, s) results[(h * SUBGROUP + i) * ROWS + r] = limited(sum##h##_##i##_##r, LEAST, MOST);
#define KEEPS(h, i) EACH_RESULT(KEEP, h, i)
#define KEEP_ALL(h) EACH_SHARED(KEEPS, h)
    EACH_HELD(KEEP_ALL)
    if (!place.valid) return;
    const uint there = min(filters - first, FILTERS), rows = min((out_height - place.row + APART_Y - 1) / APART_Y, ROWS);
    uint at = image * result_image + (group * filters + first) * result_channel + place.row * out_width + place.column;
    for (uint f = 0; f < there; ++f) {
        for (uint r = 0; r < rows; ++r) store_row(at + r * APART_Y * out_width, place.column, results[f * ROWS + r]);
        at += result_channel;
    }
}
