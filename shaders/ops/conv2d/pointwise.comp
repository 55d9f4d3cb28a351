// A convolution with a kernel of 1 x 1, strides of 1 and no padding, rows before channels: a product of the filters and
// the images' planes. An invocation computes HELD x SUBGROUP filters at four places: neighbours where planes are whole
// quads and QUADS is set, otherwise as far apart as there are invocations, so that these read neighbours together.
// For devices that run on a CPU: nothing is in shared memory, and what all invocations need is read by one of a subgroup
// of SUBGROUP, which gives it to the others. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "quads.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool QUADS = false;
// Whether filters are whole quads.
layout(constant_id = 4) const bool WEIGHT_QUADS = false;
layout(constant_id = 5) const uint LEAST = 0xFF800000;
layout(constant_id = 6) const uint MOST = 0x7F800000;

QUAD_BUFFER(0, data4, readonly, IN);
QUAD_BUFFER(1, weights4, readonly, FILTER);
QUAD_BUFFER(2, bias4, readonly, BIAS);
QUAD_BUFFER(3, result4, , OUT);
QUAD_BUFFER(4, residual4, readonly, OUT);

#if HELD == 1
#define EACH_HELD(F) F(0)
#elif HELD == 2
#define EACH_HELD(F) F(0) F(1)
#elif HELD == 4
#define EACH_HELD(F) F(0) F(1) F(2) F(3)
#elif HELD == 8
#define EACH_HELD(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#endif
#if SUBGROUP == 4
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3)
#elif SUBGROUP == 8
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6) F(h, 7)
#endif
#define MY_SHARE (gl_SubgroupInvocationID % SUBGROUP)
#define GIVEN(value, i) FROM_INVOCATION(value, i)

const uint FILTERS = HELD * SUBGROUP;

SUM4 finished(SUM4 value) {
    return ACTIVATION > 2 ? activate(value, ACTIVATION) : limited(value, LEAST, MOST);
}

void main() {
    const uint lanes = gl_WorkGroupSize.x, pixels = height * width, image = gl_WorkGroupID.z;
    const uint blocks = (filters + FILTERS - 1) / FILTERS;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * FILTERS;
    // Places that are not there are computed as the first or the last one, and not stored.
    const uint place = QUADS ? gl_GlobalInvocationID.x * 4 : gl_WorkGroupID.x * lanes * 4 + gl_LocalInvocationID.x;
    const uint base = image * data_image + group * channels * data_channel;
    const uvec4 places = QUADS ? uvec4(place < pixels ? place : 0)
                               : min(place + uvec4(0, lanes, 2 * lanes, 3 * lanes), uvec4(pixels - 1));
    uvec4 at = base + places;

#define FIND(h) \
    const uint row##h = group * weights_group + min(first + h * SUBGROUP + MY_SHARE, filters - 1) * weights_filter;
    EACH_HELD(FIND)
// Sums begin with the bias. There is always something to read: without a bias, its buffer is that of the weights.
#define START(h) \
    const SUM bias##h = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + min(first + h * SUBGROUP + MY_SHARE, filters - 1))); \
    const SUM start##h = HAS_BIAS ? bias##h : SUM(0);
    EACH_HELD(START)
    SUM4 placed = SUM4(0);
    if (HAS_PLACE_BIAS) {
#define PLACED(t) SUM(CONCAT(LOAD_, BIAS)(bias, places.t))
        placed = QUADS ? SUM4(CONCAT(LOAD4_, BIAS)(bias4, places.x / 4)) : SUM4(PLACED(x), PLACED(y), PLACED(z), PLACED(w));
    }
#define BEGIN(h, i) SUM4 sum##h##_##i = HAS_PLACE_BIAS ? placed : SUM4(GIVEN(start##h, i));
#define BEGINS(h) EACH_SHARED(BEGIN, h)
    EACH_HELD(BEGINS)

#define READ(v) \
    const SUM4 v = QUADS ? SUM4(CONCAT(LOAD4_, IN)(data4, at.x / 4)) \
                         : SUM4(data_at(at.x, true), data_at(at.y, true), data_at(at.z, true), data_at(at.w, true)); \
    at += data_channel;
    if (WEIGHT_QUADS) {
        // Sums do not fit the registers of a processor: each is fetched once for the products of four channels.
        for (uint c = 0; c < channels; c += 4) {
            READ(v0) READ(v1) READ(v2) READ(v3)
#define HOLD4(h) const SUM4 held##h = SUM4(CONCAT(LOAD4_, FILTER)(weights4, (row##h + c) / 4));
            EACH_HELD(HOLD4)
#define MULTIPLY4(h, i) \
            sum##h##_##i = multiply_add(GIVEN(held##h.x, i), v0, sum##h##_##i); \
            sum##h##_##i = multiply_add(GIVEN(held##h.y, i), v1, sum##h##_##i); \
            sum##h##_##i = multiply_add(GIVEN(held##h.z, i), v2, sum##h##_##i); \
            sum##h##_##i = multiply_add(GIVEN(held##h.w, i), v3, sum##h##_##i);
#define MULTIPLIES4(h) EACH_SHARED(MULTIPLY4, h)
            EACH_HELD(MULTIPLIES4)
        }
    } else {
        for (uint c = 0; c < channels; ++c) {
            READ(v)
#define HOLD(h) const SUM held##h = weight_at(row##h + c);
            EACH_HELD(HOLD)
#define MULTIPLY(h, i) sum##h##_##i = multiply_add(GIVEN(held##h, i), v, sum##h##_##i);
#define MULTIPLIES(h) EACH_SHARED(MULTIPLY, h)
            EACH_HELD(MULTIPLIES)
        }
    }

    const uint filter0 = group * filters + first, there = min(filters - first, FILTERS);
    const uint to = image * result_image + filter0 * result_channel + place;
    // The code that stores is there once, and not for every result.
    SUM4 results[FILTERS];
#define KEEP(h, i) results[h * SUBGROUP + i] = sum##h##_##i;
#define KEEPS(h) EACH_SHARED(KEEP, h)
    EACH_HELD(KEEPS)
    for (uint f = 0; f < there; ++f) {
        const uint row = to + f * result_channel;
        if (QUADS) {
            if (place >= pixels) return;
            SUM4 value = results[f];
            if (HAS_RESIDUAL) value += SUM4(CONCAT(LOAD4_, OUT)(residual4, row / 4));
            CONCAT(STORE4_, OUT)(result4, row / 4, finished(value));
        } else {
            SUM4 value = results[f];
            for (uint t = 0; HAS_RESIDUAL && t < 4; ++t) {
                if (place + t * lanes < pixels) value[t] += SUM(CONCAT(LOAD_, OUT)(residual, row + t * lanes));
            }
            value = finished(value);
            for (uint t = 0; t < 4; ++t) {
                if (place + t * lanes < pixels) CONCAT(STORE_, OUT)(result, row + t * lanes, value[t]);
            }
        }
    }
}
