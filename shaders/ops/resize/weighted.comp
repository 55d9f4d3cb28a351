// Linear and cubic interpolation, separable. Coordinates are exact, as fractions: place p of the result is at
// (p * factor + start) / divisor of the source, so that neighbours are those of the twin; see `Axis` in the crate. An
// invocation makes whole words: two results of 16 bits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "moves.glsl"

layout(constant_id = 3) const uint TAPS = 2;  // In a dimension: 2 linear, 4 cubic.
layout(constant_id = 4) const bool EXCLUDE_OUTSIDE = false;

ELEMENT_BUFFER(0, source, readonly, ELEMENT);
UNITS(1, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;
    uint source_sizes[3], factors[3], starts[3], divisors[3];
    uint inverses[3], inverse_shifts;  // How to divide by the divisors, as `QUOTIENT` does.
    float cubic;  // The coefficient of cubic interpolation.
};

// Cubic convolution (Keys, Cubic Convolution Interpolation for Digital Image Processing), near a place and farther away.
float near(float x) {
    return ((cubic + 2.0) * x - (cubic + 3.0)) * x * x + 1.0;
}

float far(float x) {
    return ((cubic * x - 5.0 * cubic) * x + 8.0 * cubic) * x - 4.0 * cubic;
}

WORD make(uint index) {
    // Of dimensions that there are not, one place with the weight 1.
    uint places[3 * 4];
    float weights[3 * 4];
    uint rest = index, scale = 1u;
    for (uint d = 0u; d < 3u; ++d) {
        places[d * 4u] = 0u;
        weights[d * 4u] = 1.0;
        if (d + 1u >= DIMS) continue;
        const uint next = QUOTIENT(rest, d);
        const int divisor = int(divisors[d]), last = int(source_sizes[d]) - 1;
        const int at = int((rest - next * sizes[d]) * factors[d] + starts[d]);
        const int whole = at < 0 ? -1 : int(quotient(uint(at), inverses[d], (inverse_shifts >> (5u * d)) & 31u));
        const float part = float(at - whole * divisor) / float(divisor);
        const int first = whole - int(TAPS / 2u - 1u);
        float w[4];
        if (TAPS == 2u) {
            w[0] = 1.0 - part;
            w[1] = part;
        } else {
            w[0] = far(1.0 + part);
            w[1] = near(part);
            w[2] = near(1.0 - part);
            w[3] = far(2.0 - part);
        }
        float sum = 0.0;
        for (uint t = 0u; t < TAPS; ++t) {
            const int place = first + int(t);
            if (EXCLUDE_OUTSIDE && (place < 0 || place > last)) w[t] = 0.0;
            sum += w[t];
            places[d * 4u + t] = uint(clamp(place, 0, last)) * scale;
        }
        for (uint t = 0u; t < TAPS; ++t) weights[d * 4u + t] = EXCLUDE_OUTSIDE ? w[t] / sum : w[t];
        scale *= source_sizes[d];
        rest = next;
    }
    const uint image = rest * scale;
    float value = 0.0;
    for (uint z = 0u; z < (DIMS > 3u ? TAPS : 1u); ++z) {
        for (uint y = 0u; y < (DIMS > 2u ? TAPS : 1u); ++y) {
            float row = 0.0;
            for (uint x = 0u; x < TAPS; ++x) {
                const uint at = image + places[8u + z] + places[4u + y] + places[x];
                row += weights[x] * CONCAT(LOAD_, ELEMENT)(source, at);
            }
            value += weights[8u + z] * weights[4u + y] * row;
        }
    }
    return BITS(value);
}

void main() {
    MAKE_ALL(result)
}
