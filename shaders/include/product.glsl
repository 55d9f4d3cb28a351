// What becomes of the sums of a matrix product before they are stored: a value for each column and a tensor like the result
// are added, and a function is applied. A template declares the constants ADDED and ACTIVATION, OUT (a type of elements.glsl),
// and ACCUMULATOR and QUAD, the types of sums, before it includes this. With LIMITS_ONLY, there is no residual, and functions are
// limits: SwiftShader executes both sides of a branch on a constant, too. With ADDS_BEHIND, the tensor may be added behind the function.

#ifndef PRODUCT_GLSL
#define PRODUCT_GLSL

#include "elements.glsl"
#include "quads.glsl"
#ifndef LIMITS_ONLY
#include "activation.glsl"
#endif
#include "added.glsl"

#ifndef BIAS_SLOT
#define BIAS_SLOT 3
#define RESIDUAL_SLOT 4
#endif
ELEMENT_BUFFER(BIAS_SLOT, bias, readonly, OUT);
QUAD_BUFFER(BIAS_SLOT, bias4, readonly, OUT);
#ifdef LIMITS_ONLY
vec4 activate(vec4 x, uint function) {
    const vec4 within = function == 0u ? x : max(x, 0.0);
    const vec4 limited = function == 2u ? min(within, 6.0) : within;
    return mix(limited, x, greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, uvec4(0x7F800000u)));
}

float activate(float x, uint function) {
    return activate(vec4(x), function).x;
}

// Sums of integers are stored as they are.
int activate(int x, uint function) {
    return x;
}

ivec4 activate(ivec4 x, uint function) {
    return x;
}
#else
ELEMENT_BUFFER(RESIDUAL_SLOT, residual, readonly, OUT);
QUAD_BUFFER(RESIDUAL_SLOT, residual4, readonly, OUT);
#endif

// The result at element `at`, in column `c`.
ACCUMULATOR finished(uint at, uint c, ACCUMULATOR sum) {
    if (HAS_BIAS) sum += ACCUMULATOR(CONCAT(LOAD_, OUT)(bias, c));
#ifndef LIMITS_ONLY
#ifdef ADDS_BEHIND
    if (HAS_RESIDUAL && RESIDUAL_BEHIND)
        return activate(sum, ACTIVATION) + ACCUMULATOR(CONCAT(LOAD_, OUT)(residual, at));
#endif
    if (HAS_RESIDUAL) sum += ACCUMULATOR(CONCAT(LOAD_, OUT)(residual, at));
#endif
    return activate(sum, ACTIVATION);
}

// The same of four neighbours that are whole quads in memory.
QUAD finished4(uint at, uint c, QUAD sum) {
    if (HAS_BIAS) sum += QUAD(CONCAT(LOAD4_, OUT)(bias4, c / 4));
#ifndef LIMITS_ONLY
#ifdef ADDS_BEHIND
    if (HAS_RESIDUAL && RESIDUAL_BEHIND)
        return activate(sum, ACTIVATION) + QUAD(CONCAT(LOAD4_, OUT)(residual4, at / 4));
#endif
    if (HAS_RESIDUAL) sum += QUAD(CONCAT(LOAD4_, OUT)(residual4, at / 4));
#endif
    return activate(sum, ACTIVATION);
}

#endif
