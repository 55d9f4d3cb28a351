// A product of matrices for devices that run on a CPU: filters and the planes of images for a convolution of 1 x 1 without
// padding, or rows and columns of any product. An invocation computes ROWS filters at four places; what all invocations of a
// subgroup need is read by one of them, which gives it to the others. ROWS is what there is, in equal parts: so nothing is
// computed that is not there, whatever the number of filters, and few rows cost little. Flow is the same for all invocations
// up to the stores; nothing is shared, and there are no barriers.
//
// The four places of an invocation are neighbours with QUADS, otherwise as far apart as there are invocations, so that these
// read neighbours together. With TRANSPOSED, the terms of a place lie next to each other: a product whose right operand is
// transposed.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "quads.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint ROWS = 8;
layout(constant_id = 4) const bool QUADS = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
// Whether filters are whole quads, and with TRANSPOSED places too.
layout(constant_id = 6) const bool TERM_QUADS = false;
// Whether places of the result are those of the image.
layout(constant_id = 7) const bool DENSE = true;
layout(constant_id = 8) const uint LEAST = 0xFF800000;
layout(constant_id = 9) const uint MOST = 0x7F800000;

QUAD_BUFFER(0, data4, readonly, IN);
QUAD_BUFFER(1, weights4, readonly, FILTER);
QUAD_BUFFER(2, bias4, readonly, BIAS);
QUAD_BUFFER(3, result4, , OUT);
#ifndef FEW_ACTIVATIONS
QUAD_BUFFER(4, residual4, readonly, OUT);
#endif

// Reads of filters by an invocation, each of which all others of its subgroup see.
const uint HELD = (ROWS + SUBGROUP - 1) / SUBGROUP;

SUM4 finished(SUM4 value) {
    return ACTIVATION > 2 ? activate(value, ACTIVATION) : limited(value, LEAST, MOST);
}

SUM4 rotated(SUM4 a, SUM4 b, SUM4 c, SUM4 d, uint t) {
    return SUM4(a[t], b[t], c[t], d[t]);
}

void main() {
    const uint lanes = gl_WorkGroupSize.x, pixels = out_height * out_width, image = gl_WorkGroupID.z;
    const uint blocks = (filters + ROWS - 1) / ROWS, group = gl_WorkGroupID.y / blocks;
    const uint first = (gl_WorkGroupID.y - group * blocks) * ROWS, lane = gl_SubgroupInvocationID % SUBGROUP;
    // Places and filters that are not there are computed as the last ones, and not stored.
    const uint place = QUADS ? gl_GlobalInvocationID.x * 4 : gl_WorkGroupID.x * lanes * 4 + gl_LocalInvocationID.x;
    const uvec4 places = QUADS ? uvec4(place < pixels ? place : 0)
                               : min(place + uvec4(0, lanes, 2 * lanes, 3 * lanes), uvec4(pixels - 1));
    uvec4 at = places;
    if (!DENSE) {
        const uvec4 rows = places / out_width;
        at = rows * stride_y * width + (places - rows * out_width) * stride_x;
    }
    at = image * data_image + group * channels * data_channel + at * (TRANSPOSED ? channels : 1);

    uint row[HELD];
    SUM4 sums[ROWS];
    SUM4 placed = SUM4(0);
    if (HAS_PLACE_BIAS) {
#define PLACED(t) SUM(CONCAT(LOAD_, BIAS)(bias, places.t))
        placed = QUADS ? SUM4(CONCAT(LOAD4_, BIAS)(bias4, places.x / 4)) : SUM4(PLACED(x), PLACED(y), PLACED(z), PLACED(w));
    }
    [[unroll]] for (uint h = 0; h < HELD; ++h) {
        const uint filter_index = min(first + h * SUBGROUP + lane, filters - 1);
        row[h] = group * weights_group + filter_index * weights_filter;
        SUM start = SUM(0);
        if (HAS_BIAS) start = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + filter_index));
        [[unroll]] for (uint i = 0; i < SUBGROUP; ++i) {
            if (h * SUBGROUP + i < ROWS) {
                sums[h * SUBGROUP + i] = HAS_BIAS ? placed + FROM_INVOCATION(start, i) : placed;
            }
        }
    }

#define ONES(c) \
    (TRANSPOSED ? SUM4(data_at(at.x + (c), true), data_at(at.y + (c), true), data_at(at.z + (c), true), data_at(at.w + (c), true)) \
     : QUADS    ? SUM4(CONCAT(LOAD4_, IN)(data4, (at.x + (c) * data_channel) / 4)) \
                : SUM4(data_at(at.x + (c) * data_channel, true), data_at(at.y + (c) * data_channel, true), \
                       data_at(at.z + (c) * data_channel, true), data_at(at.w + (c) * data_channel, true)))
    const uint fours = TERM_QUADS ? channels : 0;
    for (uint c = 0; c < fours; c += 4) {
        SUM4 value[4];
        if (TRANSPOSED) {
            const SUM4 a = SUM4(CONCAT(LOAD4_, IN)(data4, (at.x + c) / 4)), b = SUM4(CONCAT(LOAD4_, IN)(data4, (at.y + c) / 4));
            const SUM4 d = SUM4(CONCAT(LOAD4_, IN)(data4, (at.z + c) / 4)), e = SUM4(CONCAT(LOAD4_, IN)(data4, (at.w + c) / 4));
            [[unroll]] for (uint t = 0; t < 4; ++t) value[t] = rotated(a, b, d, e, t);
        } else {
            [[unroll]] for (uint t = 0; t < 4; ++t) value[t] = ONES(c + t);
        }
        [[unroll]] for (uint h = 0; h < HELD; ++h) {
            const SUM4 held = SUM4(CONCAT(LOAD4_, FILTER)(weights4, (row[h] + c) / 4));
            // Sums do not fit the registers of a processor: each is fetched once for four products.
            [[unroll]] for (uint i = 0; i < SUBGROUP; ++i) {
                if (h * SUBGROUP + i < ROWS) {
                    SUM4 sum = sums[h * SUBGROUP + i];
                    [[unroll]] for (uint t = 0; t < 4; ++t) sum = multiply_add(FROM_INVOCATION(held[t], i), value[t], sum);
                    sums[h * SUBGROUP + i] = sum;
                }
            }
        }
    }
    if (!TERM_QUADS) {
        for (uint c = 0; c < channels; ++c) {
            const SUM4 value = ONES(c);
            [[unroll]] for (uint h = 0; h < HELD; ++h) {
                const SUM held = weight_at(row[h] + c);
                [[unroll]] for (uint i = 0; i < SUBGROUP; ++i) {
                    if (h * SUBGROUP + i < ROWS) {
                        sums[h * SUBGROUP + i] = multiply_add(FROM_INVOCATION(held, i), value, sums[h * SUBGROUP + i]);
                    }
                }
            }
        }
    }

    const uint filter0 = group * filters + first, there = min(filters - first, ROWS);
    const uint to = image * result_image + filter0 * result_channel + place;
    // The code that stores is there once, and not for every result.
    SUM4 results[ROWS];
    [[unroll]] for (uint f = 0; f < ROWS; ++f) results[f] = sums[f];
    for (uint f = 0; f < there; ++f) {
        const uint result_row = to + f * result_channel;
        SUM4 value = results[f];
        if (QUADS) {
            if (place >= pixels) return;
#ifndef FEW_ACTIVATIONS
            if (HAS_RESIDUAL) value += SUM4(CONCAT(LOAD4_, OUT)(residual4, result_row / 4));
#endif
            CONCAT(STORE4_, OUT)(result4, result_row / 4, finished(value));
        } else {
#ifndef FEW_ACTIVATIONS
            for (uint t = 0; HAS_RESIDUAL && t < 4; ++t) {
                if (place + t * lanes < pixels) value[t] += SUM(CONCAT(LOAD_, OUT)(residual, result_row + t * lanes));
            }
#endif
            value = finished(value);
            for (uint t = 0; t < 4; ++t) {
                if (place + t * lanes < pixels) CONCAT(STORE_, OUT)(result, result_row + t * lanes, value[t]);
            }
        }
    }
}
