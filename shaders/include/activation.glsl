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

#ifndef FEW_ACTIVATIONS
// The polynomials of the next two are those of elementwise kernels; `emit/transcendental.rs` says where they come from.
float hyperbolic_tangent(float x) {
    const float square = x * x, magnitude = abs(x);
    const float inner = -0.33333285 + square * (0.13331515 + square * (-0.053745147 + square *
                        (0.020655227 + square * -0.005721638)));
    // Beyond 20 it is 1 in f32.
    const float far = 1.0 - 2.0 / (exp(2.0 * min(magnitude, 20.0)) + 1.0);
    const float value = magnitude < 0.625 ? x + x * (square * inner) : x < 0.0 ? -far : far;
    return not_a_number(x) ? x : value;
}

float error_function(float x) {
    const float square = x * x, magnitude = min(abs(x), 4.0);
    const float near = 1.1283792 + square * (-0.3761263 + square * (0.112836 + square * (-0.026854444 + square *
                       (0.0051895355 + square * (-0.0008020843 + square * 0.000078891244)))));
    const float exponent = 0.00035374074 + magnitude * (1.12704 + magnitude * (0.6382258 + magnitude *
                           (0.10303725 + magnitude * (-0.021805262 + magnitude *
                           (0.0029395938 + magnitude * -0.00018557266)))));
    const float far = 1.0 - exp(-exponent);
    const float value = magnitude < 1.0 ? x * near : x < 0.0 ? -far : far;
    return not_a_number(x) ? x : value;
}

#endif

float activate(float x, uint function) {
    if (function == 1u) return not_a_number(x) ? x : max(x, 0.0);
    if (function == 2u) return not_a_number(x) ? x : clamp(x, 0.0, 6.0);
    if (function == 3u) return x * sigmoid(x);
    if (function == 4u) return sigmoid(x);
    if (function == 5u) {
        const float gate = x < -3.0 ? 0.0 : x > 3.0 ? 1.0 : x / 6.0 + 0.5;
        return x * gate;
    }
#ifndef FEW_ACTIVATIONS
    if (function == 6u) return hyperbolic_tangent(x);
    if (function == 7u) return 0.5 * x * (1.0 + error_function(x * 0.70710678));
    if (function == 8u) return 0.5 * x * (1.0 + hyperbolic_tangent(x * (0.7978846 + 0.03567741 * x * x)));
#endif
    return x;
}

vec4 activate(vec4 x, uint function) {
    return vec4(activate(x.x, function), activate(x.y, function), activate(x.z, function), activate(x.w, function));
}

// Sums of integers are stored as they are.
int activate(int x, uint function) {
    return x;
}

ivec4 activate(ivec4 x, uint function) {
    return x;
}

#endif
