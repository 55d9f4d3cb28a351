// Rotary embedding: pairs of elements are turned by an angle that depends on the position and the pair. An invocation
// has one pair at one position, or one element behind the turned ones, in HEADS heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

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
ELEMENT_BUFFER(4, result, , TYPE);

layout(push_constant) uniform Shape {
    uint len, heads;
    uint start;       // Position of the first row, without a tensor.
    uint table_rows;
    uvec2 turn;       // Turns of pair 0 from one position to the next, as a fraction of 64 bits, the low word first.
    uvec2 powers[7];  // What turns shrink by, 1, 2, 4, … pairs further.
};

// The upper half of a product of fractions, but for the last bit.
uvec2 product(uvec2 a, uvec2 b) {
    uint high, low, high1, low1, high2, low2, carry1, carry2;
    umulExtended(a.y, b.y, high, low);
    umulExtended(a.y, b.x, high1, low1);
    umulExtended(a.x, b.y, high2, low2);
    low = uaddCarry(low, high1, carry1);
    low = uaddCarry(low, high2, carry2);
    return uvec2(low, high + carry1 + carry2);
}

// (cos, sin) of an angle in turns of 2^32. Devices' own are off by up to 2^-11.
vec2 direction(uint phase) {
    const uint quarter = (phase + 0x20000000u) >> 30;
    // Between -pi / 4 and pi / 4, where series end soon.
    const float a = float(int(phase - (quarter << 30))) * 1.4629180792671596e-9;
    const float b = a * a;
    const float s = a * (1.0 + b * (-1.6666667e-1 + b * (8.3333333e-3 + b * (-1.9841270e-4 + b * 2.7557319e-6))));
    const float c = 1.0 + b * (-0.5 + b * (4.1666667e-2 + b * (-1.3888889e-3 + b * (2.4801587e-5 + b * -2.7557319e-7))));
    const vec2 turned = (quarter & 1u) == 0 ? vec2(c, s) : vec2(-s, c);
    return (quarter & 2u) == 0 ? turned : -turned;
}

vec2 direction_of(uint pair, uint position) {
    if (TABLES) {
        const uint at = min(position, table_rows - 1) * PAIRS + pair;
        return vec2(CONCAT(LOAD_, TYPE)(cosines, at), CONCAT(LOAD_, TYPE)(sines, at));
    }
    uvec2 each = turn;
    for (uint bit = 0; bit < 7; ++bit)
        if (((pair >> bit) & 1u) != 0) each = product(each, powers[bit]);
    uint high, low;
    umulExtended(position, each.x, high, low);
    return direction(position * each.y + high);
}

void main() {
    const uint slots = D - PAIRS, item = gl_GlobalInvocationID.x;
    const uint row = item / slots, slot = item % slots, batch = gl_WorkGroupID.z;
    if (row >= len) return;
    const uint first = gl_WorkGroupID.y * HEADS, last = min(first + HEADS, heads);
    if (slot >= PAIRS) {
        for (uint head = first; head < last; ++head) {
            const uint at = ((batch * heads + head) * len + row) * D + PAIRS + slot;
            CONCAT(STORE_, TYPE)(result, at, CONCAT(LOAD_, TYPE)(x, at));
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
        CONCAT(STORE_, TYPE)(result, base + a, value.x * way.x - value.y * way.y);
        CONCAT(STORE_, TYPE)(result, base + b, value.x * way.y + value.y * way.x);
    }
}
