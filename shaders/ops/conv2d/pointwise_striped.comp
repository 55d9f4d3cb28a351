// A convolution with a kernel of 1 x 1, strides of 1 and no padding, rows before channels, as pointwise.comp, for SwiftShader:
// an invocation computes HELD x SUBGROUP filters at four places that are as far apart as there are invocations. SwiftShader
// makes some 800 bytes of machine code of each read, executes both sides of a branch and a loop once too often, and is slow
// where code does not fit the processor's first cache: so there is one loop, over single channels, and no other code for the
// places at the edge.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 5) const uint LEAST = 0xFF800000;
layout(constant_id = 6) const uint MOST = 0x7F800000;

#if HELD == 2
#define EACH_HELD(F) F(0) F(1)
#elif HELD == 4
#define EACH_HELD(F) F(0) F(1) F(2) F(3)
#elif HELD == 8
#define EACH_HELD(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#endif
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)

const uint FILTERS = HELD * SUBGROUP;

void main() {
    const uint lanes = gl_WorkGroupSize.x, pixels = height * width, image = gl_WorkGroupID.z;
    const uint blocks = (filters + FILTERS - 1) / FILTERS;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * FILTERS;
    const uint place = gl_WorkGroupID.x * lanes * 4 + gl_LocalInvocationID.x;
    const uvec4 places = place + uvec4(0, lanes, 2 * lanes, 3 * lanes);
    // Places and filters that are not there are computed as the last ones, and not stored.
    uvec4 at = image * data_image + group * channels * data_channel + min(places, uvec4(pixels - 1));

    // Sums begin with the bias. There is always something to read: without a bias, its buffer is that of the weights.
#define FIND(h) \
    const uint filter##h = min(first + h * SUBGROUP + gl_SubgroupInvocationID % SUBGROUP, filters - 1); \
    const uint row##h = group * weights_group + filter##h * weights_filter; \
    const SUM bias##h = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + filter##h)); \
    const SUM start##h = HAS_BIAS ? bias##h : SUM(0);
    EACH_HELD(FIND)
    const uvec4 columns = HAS_PLACE_BIAS ? min(places, uvec4(pixels - 1)) : uvec4(0);
#define PLACED(t) SUM(CONCAT(LOAD_, BIAS)(bias, columns.t))
    const SUM4 of_places = SUM4(PLACED(x), PLACED(y), PLACED(z), PLACED(w));
    const SUM4 placed = HAS_PLACE_BIAS ? of_places : SUM4(0);
#define BEGIN(h, i) SUM4 sum##h##_##i = placed + FROM_INVOCATION(start##h, i);
#define BEGINS(h) EACH_SHARED(BEGIN, h)
    EACH_HELD(BEGINS)

    for (uint c = 0; c < channels; ++c) {
        const SUM4 value = SUM4(data_at(at.x, true), data_at(at.y, true), data_at(at.z, true), data_at(at.w, true));
        at += data_channel;
#define HOLD(h) const SUM held##h = weight_at(row##h + c);
        EACH_HELD(HOLD)
#define MULTIPLY(h, i) sum##h##_##i = multiply_add(FROM_INVOCATION(held##h, i), value, sum##h##_##i);
#define MULTIPLIES(h) EACH_SHARED(MULTIPLY, h)
        EACH_HELD(MULTIPLIES)
    }

    const uint to = image * result_image + (group * filters + first) * result_channel + place;
    const bvec4 there = lessThan(places, uvec4(pixels));
#define STORE(h, i) \
    if (first + h * SUBGROUP + i < filters) { \
        const SUM4 results = limited(sum##h##_##i, LEAST, MOST); \
        const uint row = to + (h * SUBGROUP + i) * result_channel; \
        if (there.x) CONCAT(STORE_, OUT)(result, row, results.x); \
        if (there.y) CONCAT(STORE_, OUT)(result, row + lanes, results.y); \
        if (there.z) CONCAT(STORE_, OUT)(result, row + 2 * lanes, results.z); \
        if (there.w) CONCAT(STORE_, OUT)(result, row + 3 * lanes, results.w); \
    }
#define STORES(h) EACH_SHARED(STORE, h)
    EACH_HELD(STORES)
}
