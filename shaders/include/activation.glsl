// Functions that are applied to results before they are stored. The numbers are those of `Activation` in the crate.
// NaN stays NaN. It is asked for by its bits: NVIDIA's compiler makes minimum and maximum of comparisons with selections,
// and those have no room for NaN.

#ifndef ACTIVATION_GLSL
#define ACTIVATION_GLSL

bool not_a_number(float x) {
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u;
}

float sigmoid(float x) {
    // Beyond 100 the exponential is infinite in f32; devices differ in what they make of infinity.
    if (x < -100.0) return 0.0;
    if (x > 100.0) return 1.0;
    return not_a_number(x) ? x : 1.0 / (1.0 + exp(-x));
}

float activate(float x, uint function) {
    if (function == 1u) return not_a_number(x) ? x : max(x, 0.0);
    if (function == 2u) return not_a_number(x) ? x : clamp(x, 0.0, 6.0);
    if (function == 3u) return x * sigmoid(x);
    if (function == 4u) return sigmoid(x);
    if (function == 5u) {
        const float gate = x < -3.0 ? 0.0 : x > 3.0 ? 1.0 : x / 6.0 + 0.5;
        return x * gate;
    }
    return x;
}

#endif
