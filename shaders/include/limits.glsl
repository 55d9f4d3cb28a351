// Activations that are limits, without a branch: SwiftShader executes both sides of one, also of one on a constant. LEAST and
// MOST are the bits of the least and the most that is let through, infinities where there is no such limit.

#ifndef LIMITS_GLSL
#define LIMITS_GLSL

// NaN stays NaN.
float limited(float x, uint least, uint most) {
    const float within = clamp(x, uintBitsToFloat(least), uintBitsToFloat(most));
    return mix(within, x, (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u);
}

#define LIMITED_OF(VECTOR, WORDS) \
    VECTOR limited(VECTOR x, uint least, uint most) { \
        const VECTOR within = clamp(x, VECTOR(uintBitsToFloat(least)), VECTOR(uintBitsToFloat(most))); \
        return mix(within, x, greaterThan(floatBitsToUint(x) & 0x7FFFFFFFu, WORDS(0x7F800000u))); \
    }
LIMITED_OF(vec2, uvec2)
LIMITED_OF(vec4, uvec4)

#endif
