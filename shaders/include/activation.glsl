// Functions that are applied to results before they are stored. The numbers are those of `Activation` in the crate.
// Comparisons are written so that NaN stays NaN.

#ifndef ACTIVATION_GLSL
#define ACTIVATION_GLSL

float sigmoid(float x) {
    // Beyond 100 the exponential is infinite in f32; devices differ in what they make of infinity.
    if (x < -100.0) return 0.0;
    if (x > 100.0) return 1.0;
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : 1.0 / (1.0 + exp(-x));
}

float activate(float x, uint function) {
    if (function == 1u) return x < 0.0 ? 0.0 : x;
    if (function == 2u) return x < 0.0 ? 0.0 : x > 6.0 ? 6.0 : x;
    if (function == 3u) return x * sigmoid(x);
    if (function == 4u) return sigmoid(x);
    if (function == 5u) {
        const float gate = x < -3.0 ? 0.0 : x > 3.0 ? 1.0 : x / 6.0 + 0.5;
        return x * gate;
    }
    return x;
}

#endif
