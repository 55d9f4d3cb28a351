// New rows are turned by rotary embedding and written into a cache of rows, whose rest is left as it is. An invocation has one pair
// of one row, or one element behind the turned ones, in HEADS heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint D = 64;
layout(constant_id = 2) const uint PAIRS = 32;
layout(constant_id = 3) const bool INTERLEAVED = false;
layout(constant_id = 4) const bool STARTS = false;
layout(constant_id = 5) const uint HEADS = 4;
const bool TABLES = true;

#define TYPE ROWS
ELEMENT_BUFFER(0, rows, readonly, ROWS);
layout(set = 0, binding = 1) readonly buffer Starts { uint starts[]; };
layout(set = 0, binding = 2) readonly buffer Positions { uint positions[]; };  // Of two words.
ELEMENT_BUFFER(3, cosines, readonly, ROWS);
ELEMENT_BUFFER(4, sines, readonly, ROWS);
ELEMENT_BUFFER(5, result, , CACHE);

layout(push_constant) uniform Shape {
    uint len, heads, capacity;
    uint start;  // Of all sequences, without a tensor.
    uint table_rows;
};
// What angles without tables are made of.
const uvec2 turn = uvec2(0);
const uvec2 powers[7] = uvec2[7](turn, turn, turn, turn, turn, turn, turn);

#include "rotary.glsl"

void main() {
    const uint slots = D - PAIRS, item = gl_GlobalInvocationID.x;
    const uint row = item / slots, slot = item % slots, batch = gl_WorkGroupID.z;
    const uint first = STARTS ? starts[batch] : start, to = first + row;
    // Rows behind the end of the cache, or of a start that is none, are left out.
    if (row >= len || first >= capacity || to < first || to >= capacity) return;
    const uint head0 = gl_WorkGroupID.y * HEADS, end = min(head0 + HEADS, heads);
    const bool turns = slot < PAIRS;
    const vec2 way = turns ? direction_of(slot, positions[(batch * len + row) * 2]) : vec2(1, 0);
    const uint a = !turns ? PAIRS + slot : INTERLEAVED ? 2 * slot : slot;
    const uint b = !turns ? a : INTERLEAVED ? 2 * slot + 1 : slot + PAIRS;
    for (uint head = head0; head < end; ++head) {
        const uint from = ((batch * heads + head) * len + row) * D, at = ((batch * heads + head) * capacity + to) * D;
        const vec2 value = vec2(CONCAT(LOAD_, ROWS)(rows, from + a), CONCAT(LOAD_, ROWS)(rows, from + b));
        CONCAT(STORE_, CACHE)(result, at + a, value.x * way.x - value.y * way.y);
        if (turns) CONCAT(STORE_, CACHE)(result, at + b, value.x * way.y + value.y * way.x);
    }
}
