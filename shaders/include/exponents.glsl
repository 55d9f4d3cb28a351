// Sums of exponentials that cannot overflow: (top, sum) stands for sum * exp(top), top being the largest exponent so
// far (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). Where an exponent is NaN, sum is.

#ifndef EXPONENTS_GLSL
#define EXPONENTS_GLSL

#include "special.glsl"

// Nothing added yet.
#define NO_TERMS vec2(-INFINITY, 0.0)

// exp(v - top) where v <= top; the same infinity twice counts as 1. What is below exp(-150) is 0 in f32.
vec4 exp_below(vec4 v, float top) {
    return mix(exp(max(v - top, vec4(-150.0))), vec4(1.0), equal(v, vec4(top)));
}

vec2 add_terms(vec2 sum, vec4 v) {
    if (any(is_nan(v))) return vec2(sum.x, NAN);
    const float top = max(sum.x, max(max(v.x, v.y), max(v.z, v.w)));
    const vec4 terms = exp_below(v, top);
    return vec2(top, sum.y * exp_below(vec4(sum.x), top).x + (terms.x + terms.y) + (terms.z + terms.w));
}

vec2 add_sums(vec2 a, vec2 b) {
    const float top = max(a.x, b.x);
    const vec4 scale = exp_below(vec4(a.x, b.x, top, top), top);
    return vec2(top, a.y * scale.x + b.y * scale.y);
}

#endif
