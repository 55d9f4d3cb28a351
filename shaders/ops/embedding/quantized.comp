// Rows of a table of quantized weights, as floats: an invocation makes 8 neighbours, which have one scale.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"
#include "moves.glsl"
#include "indices.glsl"

layout(constant_id = 3) const uint INDEX_WORDS = 1;
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const bool SCALES_F16 = true;
layout(constant_id = 6) const bool ZERO_POINTS = false;
layout(constant_id = 7) const uint GROUP = 4;  // Eights that share a scale.

layout(set = 0, binding = 0, std430) restrict readonly buffer weights_block { uint weights[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer scales_block { uint scales[]; };
layout(set = 0, binding = 2, std430) restrict readonly buffer zeros_block { uint zeros[]; };
INDEX_BUFFER(3, indices);
UNITS(4, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;  // Eights of a row, indices.
    uint rows;
};

void main() {
    const uint group = gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x;
    const uint index = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= count) return;
    const uint j = QUOTIENT(index, 0u), eight = index - j * sizes[0];
    const uint row = WRAPPED(indices, j, rows);
    float values[8];
    for (uint t = 0u; t < 8u; ++t) values[t] = 0.0;
    if (row < rows) {
        const uint at = row * sizes[0] + eight, place = at / GROUP;
        const float scale = SCALES_F16 ? unpackHalf2x16(scales[place / 2u])[place % 2u] : uintBitsToFloat(scales[place]);
        uint zero = BITS == 4u ? 8u : 128u;
        if (ZERO_POINTS) zero = bitfieldExtract(zeros[place / 4u], int(8u * (place % 4u)), 8);
        const uint per_word = 32u / BITS;
        for (uint t = 0u; t < 8u; ++t) {
            const uint word = weights[at * (8u / per_word) + t / per_word];
            const uint weight = bitfieldExtract(word, int(BITS * (t % per_word)), int(BITS));
            values[t] = float(int(weight) - int(zero)) * scale;
        }
    }
#ifdef OUT_F32
    for (uint half_ = 0u; half_ < 2u; ++half_) {
        uvec4 bits;
        for (uint t = 0u; t < 4u; ++t) bits[t] = floatBitsToUint(values[half_ * 4u + t]);
        result[index * 2u + half_] = bits;
    }
#else
    uvec4 bits;
    for (uint t = 0u; t < 4u; ++t) bits[t] = OUT_BITS(values[2u * t]) | (OUT_BITS(values[2u * t + 1u]) << 16);
    result[index] = bits;
#endif
}
