// The sum of PARTS results of a product whose sums were cut, as parts.comp has it, and its rows once more, normalized: by mean and
// deviation (CENTERED) or by the root of the mean of squares. A workgroup has a row, of whose quads each invocation keeps KEPT in
// registers, so that rows are normalized without being read again. The variance is taken around the mean, as norm.comp does it.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 128;  // A multiple of four.
layout(constant_id = 1) const uint PARTS = 2;
layout(constant_id = 2) const uint ADDED = 0;
layout(constant_id = 3) const uint ACTIVATION = 0;
layout(constant_id = 4) const uint KEPT = 1;
layout(constant_id = 5) const bool CENTERED = true;

#define ACCUMULATOR float
#define QUAD vec4
#include "quads.glsl"

QUAD_BUFFER(0, parts, readonly, F32);
QUAD_BUFFER(1, result, , OUT);

#define BIAS_SLOT 2
#define RESIDUAL_SLOT 3
#include "product.glsl"

QUAD_BUFFER(4, scale, readonly, OUT);
QUAD_BUFFER(5, shift, readonly, OUT);
QUAD_BUFFER(6, normed, , OUT);

layout(push_constant) uniform Shape {
    uint rows;
    uint columns;  // A multiple of four.
    uint epsilon;  // Bits of a float.
};

shared vec4 sums[LANES / 4];
shared vec4 squares[LANES / 4];

// What memory makes of a value.
#define ROUNDED_F32(v) (v)
#define ROUNDED_F16P(v) halves4(f16_bits4(v))

float sum_of(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

void main() {
    const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (row >= rows) return;
    const uint lane = gl_LocalInvocationIndex, quads = columns / 4, from = row * quads, length = rows * quads;
    vec4 kept[KEPT];
    vec4 sum = vec4(0.0);
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        const uint q = lane + i * LANES;
        kept[i] = vec4(0.0);
        if (q < quads) {
            vec4 total = parts[from + q];
            [[unroll]] for (uint p = 1; p < PARTS; ++p) total += parts[p * length + from + q];
            total = finished4((from + q) * 4, q * 4, total);
            CONCAT(STORE4_, OUT)(result, from + q, total);
            kept[i] = CONCAT(ROUNDED_, OUT)(total);
        }
        sum += kept[i];
    }
    float mean = 0.0;
    if (CENTERED) {
        sums[lane / 4][lane % 4] = sum_of(sum);
        barrier();
        vec4 all = sums[0];
        for (uint i = 1; i < LANES / 4; ++i) all += sums[i];
        mean = sum_of(all) / float(columns);
    }
    vec4 square = vec4(0.0);
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        const vec4 off = kept[i] - mean;
        if (lane + i * LANES < quads) square += off * off;
    }
    squares[lane / 4][lane % 4] = sum_of(square);
    barrier();
    vec4 all = squares[0];
    for (uint i = 1; i < LANES / 4; ++i) all += squares[i];
    const float factor = inversesqrt(sum_of(all) / float(columns) + uintBitsToFloat(epsilon));
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        const uint q = lane + i * LANES;
        if (q < quads) {
            vec4 value = (kept[i] - mean) * factor * CONCAT(LOAD4_, OUT)(scale, q);
            if (CENTERED) value += CONCAT(LOAD4_, OUT)(shift, q);
            CONCAT(STORE4_, OUT)(normed, from + q, value);
        }
    }
}
