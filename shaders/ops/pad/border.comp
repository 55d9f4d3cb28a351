// A dense result of which a source is the middle. MODE says what is around it.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "moves.glsl"

// 0: a constant, 1: the nearest element, 2: mirrored at the outermost elements, 3: repeated.
layout(constant_id = 3) const uint MODE = 0;

UNITS(0, source, readonly);
UNITS(1, result, writeonly);

layout(push_constant) uniform Shape {
    PLACES;
    uint source_sizes[6];
    // With a constant or the nearest element, the source's first place in the result, which may be negative; else what is
    // added to a place before it is taken modulo the period.
    uint starts[6];
    uint value[4];  // The constant, as often as it fits.
};

// The coordinate in the source; not below its size where there is none.
uint inside(uint place, uint d) {
    const uint size = source_sizes[d];
    if (MODE == 0u) return place - starts[d];
    if (MODE == 1u) return uint(clamp(int(place - starts[d]), 0, int(size) - 1));
    if (MODE == 3u) return (place + starts[d]) % size;
    const uint period = max(2u * size - 2u, 1u);
    const uint t = (place + starts[d]) % period;
    return t < size ? t : period - t;
}

WORD make(uint index) {
    uint at = 0u, rest = index, scale = 1u;
    bool there = true;
    for (uint d = 0u; d < DIMS; ++d) {
        uint place = rest;
        if (d + 1u < DIMS) {
            rest = QUOTIENT(rest, d);
            place -= rest * sizes[d];
        }
        const uint coordinate = inside(place, d);
        there = there && coordinate < source_sizes[d];
        at += coordinate * scale;
        scale *= source_sizes[d];
    }
#if UNIT == 16
    const WORD constant = uvec4(value[0], value[1], value[2], value[3]);
#elif UNIT == 8
    const WORD constant = uvec2(value[0], value[1]);
#elif UNIT == 4
    const WORD constant = value[0];
#else
    const WORD constant = bitfieldExtract(value[0], 0, 8 * UNIT);
#endif
    if (!there) return constant;
    return TAKE(source, at);
}

void main() {
    MAKE_ALL(result)
}
