// Several rows of activations as `several` takes them: 16-bit floats, in the order in which its lanes have them in right operands of
// 16x8x16. A subgroup has eight rows of a step, which is eight chunks of 32 of the inner dimension: four lanes have a row, and of it
// the chunks that they have in weights, too (block_pairs.glsl).
//
// The activations of a row in a step are multiplied by a power of two that brings the largest below 2^15. NORMED: they are multiplied
// with a scale before, and their squares are added up.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(local_size_x = 32) in;  // A subgroup.
layout(constant_id = 0) const bool NORMED = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Scale { vec4 scales[]; };
layout(set = 0, binding = 2) writeonly buffer Halves { uvec4 halves[]; };
// For each step, eights of rows times eight: what sums are to be multiplied with, and the sums of squares.
layout(set = 0, binding = 3) writeonly buffer Facts { vec2 facts[]; };

layout(push_constant) uniform Shape {
    uint M;
    uint chunks;  // In a row.
};

#define BLOCKS_SLOT 4
#include "blocks.glsl"
#include "block_pairs.glsl"

// Elements 0 and 2, and 1 and 3, of a quad.
uvec2 words_of(vec4 quad) {
    return uvec2(packHalf2x16(quad.xz), packHalf2x16(quad.yw));
}

float largest_of(vec4 quad) {
    const vec4 sizes = abs(quad);
    return max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
}

void main() {
    const uint lane = gl_SubgroupInvocationID, quarter = lane % 4;
    const uint step = gl_WorkGroupID.x, row = gl_WorkGroupID.y * 8 + lane / 4, eights = gl_NumWorkGroups.y;
    vec4 quads[16];
    [[unroll]] for (uint i = 0; i < 16; ++i) {
        const uint chunk = step * 8 + pair_chunk(quarter, i / 8);
        quads[i] = vec4(0.0);
        if (row < M && chunk < chunks) quads[i] = lhs[(row * chunks + chunk) * 8 + i % 8];
    }
    float squares = 0.0, largest = 0.0;
    [[unroll]] for (uint i = 0; i < 16; ++i) {
        if (NORMED) {
            const uint chunk = min(step * 8 + pair_chunk(quarter, i / 8), chunks - 1);
            squares += dot(quads[i], quads[i]);
            quads[i] *= scales[chunk * 8 + i % 8];
        }
        largest = max(largest, largest_of(quads[i]));
    }
    squares = subgroupClusteredAdd(squares, 4);
    const uint exponent = max(floatBitsToUint(subgroupClusteredMax(largest, 4)) >> 23, 15u);
    const float factor = uintBitsToFloat((268u - exponent) << 23);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uvec2 one = words_of(quads[2 * i] * factor), two = words_of(quads[2 * i + 1] * factor);
        halves[((step * 8 + i) * eights + gl_WorkGroupID.y) * 32 + lane] = uvec4(one, two);
    }
    if (quarter == 0) facts[step * eights * 8 + row] = vec2(uintBitsToFloat((exponent - 14u) << 23), squares);
}
