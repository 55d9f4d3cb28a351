// Scales, zero points and 8-bit codes of lines. MODE 0 does all of it; long lines take two dispatches: 1 writes the ends of
// each piece, 2 reads those of the whole line and writes the codes of a piece. NORMED: lines are divided by the root of the mean of
// their squares first. GATED: half of what is read gates the other half. Either is computed twice, which takes less time than it
// would to keep it.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef USE_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// The bounds of codes, the bits of the smallest scale, and what is added to means of squares.
#define LINES_PUSH int least_code, most_code; uint smallest; float epsilon;
#include "lines.glsl"
#include "special.glsl"
#include "activation.glsl"

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint RULE = 0;
layout(constant_id = 5) const bool DIVIDE = false;
layout(constant_id = 6) const bool ZERO_FIRST = false;
layout(constant_id = 7) const bool CODES = true;
layout(constant_id = 8) const bool NORMED = false;
layout(constant_id = 9) const bool GATED = false;
layout(constant_id = 10) const uint ACTIVATION = 0;

const uint WHOLE = 0, NEARER = 1, SYMMETRIC = 2, UNCLIPPED = 3, STEPS = 4;
// The bits of infinity and of the smallest normal number.
const uint INFINITE = 0x7F800000u;
const float LEAST_NORMAL = 1.17549435e-38;

LINE_BUFFER(0, elements, readonly, TYPE);
layout(set = 0, binding = 1) buffer Scales { float scales[]; };
layout(set = 0, binding = 2) buffer Zeros { int zeros[]; };
layout(set = 0, binding = 3) buffer Codes { uint codes[]; };    // Any buffer without CODES.
layout(set = 0, binding = 4) buffer Pieces { uvec2 pieces[]; };  // Ends of each piece of each line; any buffer in mode 0.
LINE_BUFFER(5, factors, readonly, TYPE);                         // Of the elements of normalized lines.

// Ends are bits of floats that are at least 0, whose order is that of integers, NaN above all: those below 0 (without their
// sign) and those above.
shared uvec2 tree[ACROSS * ALONG];
shared float sums[NORMED ? ACROSS * ALONG : 1];

// All invocations of a line get its ends.
uvec2 along_line(uvec2 mine) {
#ifdef USE_SUBGROUP
    // ACROSS is 1.
    mine = subgroupMax(mine);
    if (subgroupElect()) tree[gl_SubgroupID] = mine;
    barrier();
    uvec2 ends = tree[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) ends = max(ends, tree[i]);
    return ends;
#else
    tree[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] = max(tree[LANE], tree[LANE + apart * ACROSS]);
    }
    barrier();
    return tree[LANE % ACROSS];
#endif
}

// All invocations of a line get the sum of what each has.
float sum_along_line(float mine) {
#ifdef USE_SUBGROUP
    mine = subgroupAdd(mine);
    if (subgroupElect()) sums[gl_SubgroupID] = mine;
    barrier();
    float sum = sums[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) sum += sums[i];
    return sum;
#else
    sums[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) sums[LANE] += sums[LANE + apart * ACROSS];
    }
    barrier();
    return sums[LANE % ACROSS];
#endif
}

float squares_of(uint base) {
    vec4 sum = vec4(0.0);
    for (EACH_FOUR(at)) {
        const vec4 x = FOUR_LOAD(TYPE, elements, base, at, 0.0);
        sum += x * x;
    }
    return (sum.x + sum.y) + (sum.z + sum.w);
}

// What a line is divided by, inverted.
float inverse_root = 1.0;

// As an operation before would have left it in memory.
vec4 rounded(vec4 x) {
#ifdef TYPE_F16P
    return vec4(unpackHalf2x16(f16_bits(x.x) | f16_bits(x.y) << 16), unpackHalf2x16(f16_bits(x.z) | f16_bits(x.w) << 16));
#else
    return x;
#endif
}

// Four elements of the line that is coded.
vec4 four_of(uint base, uint at) {
    const vec4 x = FOUR_LOAD(TYPE, elements, base, at, 0.0);
    if (GATED) return rounded(activate(x, ACTIVATION) * FOUR_LOAD(TYPE, elements, base + length, at, 0.0));
    if (NORMED) return rounded(x * inverse_root * FOUR_LOAD(TYPE, factors, 0u, at, 0.0));
    return x;
}

uvec2 of_elements(uint base) {
    uvec4 below = uvec4(0u), above = uvec4(0u);
    for (EACH_FOUR(at)) {
        const uvec4 bits = floatBitsToUint(four_of(base, at));
        const uvec4 negative = uvec4(-ivec4(bits >> 31));
        below = max(below, bits & 0x7FFFFFFFu & negative);
        above = max(above, bits & ~negative);
    }
    const uvec2 low = max(below.xy, below.zw), high = max(above.xy, above.zw);
    return uvec2(max(low.x, low.y), max(high.x, high.y));
}

uvec2 of_pieces(uint line) {
    uvec2 ends = uvec2(0u);
    for (uint i = PLACE; i < gl_NumWorkGroups.z; i += ALONG) ends = max(ends, pieces[line * gl_NumWorkGroups.z + i]);
    return ends;
}

struct Chosen {
    float scale, factor, zero;
    bool coded;  // Elements have codes of their own.
};

float nearer(float low, float high) {
    const float least = float(least_code), most = float(most_code);
    precise float sum = low + high;
    precise float from_low = least - low;
    precise float from_high = most - high;
    return roundEven(clamp(sum > -(least + most) ? from_low : from_high, least, most));
}

Chosen choose(uvec2 ends) {
    const float least = float(least_code), most = float(most_code);
    if (max(ends.x, ends.y) > INFINITE) return Chosen(NAN, 0.0, clamp(0.0, least, most), false);
    if (max(ends.x, ends.y) == INFINITE) return Chosen(INFINITY, 0.0, clamp(0.0, least, most), false);
    const float low = -uintBitsToFloat(ends.x), high = uintBitsToFloat(ends.y);
    precise float size = high - low;
    if (!is_finite(size)) return Chosen(INFINITY, 0.0, clamp(0.0, least, most), false);
    if (RULE == STEPS) {
        precise float steps = size < LEAST_NORMAL ? 1.0 : (most - least) / size;
        if (!is_finite(steps)) steps = 1.0;
        precise float scaled_low = low * steps;
        precise float scaled_high = high * steps;
        return Chosen(1.0 / steps, steps, nearer(scaled_low, scaled_high), true);
    }
    precise float scale = size / (most - least);
    if (RULE == SYMMETRIC) scale = max(high, -low) / ((most - least) / 2.0);
    if (RULE == UNCLIPPED) scale = max(low / least, high / most);
    scale = max(scale, uintBitsToFloat(smallest));
    const bool middle = RULE == SYMMETRIC || RULE == UNCLIPPED;
    const float other = middle ? trunc((least + most + 1.0) / 2.0) : least;
    if (scale < LEAST_NORMAL) return Chosen(scale, 0.0, other, false);
    precise float units_low = low / scale;
    precise float units_high = high / scale;
    float zero = other;
    if (RULE == WHOLE) zero = clamp(least - roundEven(units_low), least, most);
    if (RULE == NEARER) zero = nearer(units_low, units_high);
    return Chosen(scale, 1.0 / scale, zero, true);
}

uvec4 codes_of(vec4 x, Chosen by) {
    vec4 whole = vec4(by.zero);
    if (by.coded) {
        precise vec4 part = DIVIDE ? x / by.scale : x * by.factor;
        precise vec4 moved = ZERO_FIRST ? part + by.zero : roundEven(part) + by.zero;
        whole = clamp(ZERO_FIRST ? roundEven(moved) : moved, float(least_code), float(most_code));
    }
    return uvec4(ivec4(whole)) & 0xFFu;
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    const bool here = line < lines;
    const uint base = line * length * (GATED ? 2 : 1), result = line * length;
    if (NORMED) inverse_root = 1.0 / sqrt(sum_along_line(here ? squares_of(base) : 0.0) / float(length) + epsilon);
    uvec2 ends = uvec2(0u);
    if (here) ends = MODE == 2 ? of_pieces(line) : of_elements(base);
    ends = along_line(ends);
    if (!here) return;
    if (MODE == 1) {
        if (PLACE == 0) pieces[line * gl_NumWorkGroups.z + gl_WorkGroupID.z] = ends;
        return;
    }
    const Chosen by = choose(ends);
    if (PLACE == 0 && gl_WorkGroupID.z == 0) {
        scales[line] = by.scale;
        zeros[line] = int(by.zero);
    }
    if (!CODES) return;
    for (EACH_FOUR(at)) {
        const uvec4 four = codes_of(four_of(base, at), by);
#ifdef PACKED
        codes[(result + at) >> 2] = four.x | (four.y << 8) | (four.z << 16) | (four.w << 24);
#else
        FOUR_STORE(U8P, codes, result, at, four);
#endif
    }
}
