// NaN and infinities by their bits: without float controls, a compiler may take them for impossible in comparisons, and
// min and max may return either operand where one is NaN.

#ifndef SPECIAL_GLSL
#define SPECIAL_GLSL

#define NAN uintBitsToFloat(0x7FC00000u)
#define INFINITY uintBitsToFloat(0x7F800000u)

bool is_nan(float v) {
    return (floatBitsToUint(v) & 0x7FFFFFFFu) > 0x7F800000u;
}

bvec4 is_nan(vec4 v) {
    return greaterThan(floatBitsToUint(v) & 0x7FFFFFFFu, uvec4(0x7F800000u));
}

bool is_finite(float v) {
    return (floatBitsToUint(v) & 0x7FFFFFFFu) < 0x7F800000u;
}

// The larger; NaN where one of them is.
vec4 max_or_nan(vec4 a, vec4 b) {
    return mix(mix(max(a, b), b, is_nan(b)), a, is_nan(a));
}

// Natural logarithm, also of what GLSL leaves undefined.
float log_of(float v) {
    if (is_nan(v) || v < 0.0) return NAN;
    if (v == 0.0) return -INFINITY;
    return is_finite(v) ? log(v) : v;
}

// Unsigned numbers in the order of floats, NaN above all; both zeros are the same. Of the bits of a float, or of those of
// a shorter one in the upper half; `infinity` has the bits of its infinity.
uint order_key(uint bits, uint infinity) {
    if ((bits & 0x7FFFFFFFu) > infinity) return 0xFFFFFFFFu;
    return bits == 0x80000000u ? bits : (bits >> 31) == 1u ? ~bits : bits | 0x80000000u;
}

uint order_key(float v) {
    return order_key(floatBitsToUint(v), 0x7F800000u);
}

// What order_key was made of.
float from_order_key(uint key) {
    return key == 0xFFFFFFFFu ? NAN : uintBitsToFloat((key >> 31) == 1u ? key & 0x7FFFFFFFu : ~key);
}

#endif
