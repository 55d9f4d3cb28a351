// Both operands of a product as 16-bit floats, for kernels that take such: weights in blocks, of which four invocations share a chunk
// of 32, and behind them activations, of which each takes eight.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
// Whether bits are rounded here: for devices whose own rounding makes NaN of infinity, such as SwiftShader.
layout(constant_id = 1) const bool EXACT = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer HalfLeft { uvec4 half_lhs[]; };
layout(set = 0, binding = 3) writeonly buffer HalfWeights { uvec2 half_weights[]; };

layout(push_constant) uniform Shape {
    uint shares;  // Of chunks of weights: four for each.
    uint total;   // Shares and eights of activations.
};

#define BLOCKS_SLOT 1
#define CODEBOOK_SLOT 4
#define BLOCK_SHARE 1
#include "blocks.glsl"
#include "elements.glsl"
#include "quads.glsl"

uvec2 halves(vec4 quad) {
    return EXACT ? f16_bits4(quad) : uvec2(packHalf2x16(quad.xy), packHalf2x16(quad.zw));
}

void main() {
    const uint item = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    if (item < shares) {
        const uint chunk = item / 4, share = item % 4, first = chunk / BLOCK_CHUNKS * BLOCK_CHUNKS;
        vec4 low, high;
        load_pair(ROW_BYTES(first), chunk - first, share, low, high);
        half_weights[chunk * 8 + low_quad(share)] = halves(low);
        half_weights[chunk * 8 + high_quad(share)] = halves(high);
    } else if (item < total) {
        const uint at = item - shares;
        half_lhs[at] = uvec4(halves(lhs[2 * at]), halves(lhs[2 * at + 1]));
    }
}
