// Angles of rotary embedding. A template declares PAIRS, TABLES, the buffers `cosines` and `sines` of elements TYPE, and among its
// push constants
//   uint table_rows;
//   uvec2 turn;       // Turns of pair 0 from one position to the next, as a fraction of 64 bits, the low word first.
//   uvec2 powers[7];  // What turns shrink by, 1, 2, 4, … pairs further.
// before it includes this.

#ifndef ROTARY_GLSL
#define ROTARY_GLSL

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

#endif
