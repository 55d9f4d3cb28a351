// Rotary embedding: pairs of elements are turned by an angle that depends on the position and the pair. An invocation
// has one pair at one position, or one element behind the turned ones, in HEADS heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

#ifndef OUT
#define OUT TYPE
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D = 64;
layout(constant_id = 2) const uint PAIRS = 32;
layout(constant_id = 3) const bool INTERLEAVED = false;
layout(constant_id = 4) const bool TABLES = false;
layout(constant_id = 5) const uint POSITION_WORDS = 0;  // Words of a position in the tensor of them; 0 for none.
layout(constant_id = 6) const uint HEADS = 8;

ELEMENT_BUFFER(0, x, readonly, TYPE);
layout(set = 0, binding = 1) readonly buffer Positions { uint positions[]; };
ELEMENT_BUFFER(2, cosines, readonly, TYPE);
ELEMENT_BUFFER(3, sines, readonly, TYPE);
ELEMENT_BUFFER(4, result, , OUT);

layout(push_constant) uniform Shape {
    uint len, heads;
    uint start;       // Position of the first row, without a tensor.
    uint table_rows;
    uvec2 turn;
    uvec2 powers[7];
};

#include "rotary.glsl"

void main() {
    const uint slots = D - PAIRS, item = gl_GlobalInvocationID.x;
    const uint row = item / slots, slot = item % slots, batch = gl_WorkGroupID.z;
    if (row >= len) return;
    const uint first = gl_WorkGroupID.y * HEADS, last = min(first + HEADS, heads);
    if (slot >= PAIRS) {
        for (uint head = first; head < last; ++head) {
            const uint at = ((batch * heads + head) * len + row) * D + PAIRS + slot;
            CONCAT(STORE_, OUT)(result, at, CONCAT(LOAD_, TYPE)(x, at));
        }
        return;
    }
    uint position = start + row;
    if (POSITION_WORDS > 0) position = positions[(batch * len + row) * POSITION_WORDS];
    const vec2 way = direction_of(slot, position);
    const uint a = INTERLEAVED ? 2 * slot : slot, b = INTERLEAVED ? 2 * slot + 1 : slot + PAIRS;
    for (uint head = first; head < last; ++head) {
        const uint base = ((batch * heads + head) * len + row) * D;
        const vec2 value = vec2(CONCAT(LOAD_, TYPE)(x, base + a), CONCAT(LOAD_, TYPE)(x, base + b));
        CONCAT(STORE_, OUT)(result, base + a, value.x * way.x - value.y * way.y);
        CONCAT(STORE_, OUT)(result, base + b, value.x * way.y + value.y * way.x);
    }
}
