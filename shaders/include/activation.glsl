// Functions that are applied to results before they are stored. The numbers are those of `activation_code` in the crate.
// NaN stays NaN. It is asked for by its bits: NVIDIA's compiler makes minimum and maximum of comparisons with selections,
// and those have no room for NaN.

#ifndef ACTIVATION_GLSL
#define ACTIVATION_GLSL

bool not_a_number(float x) {
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u;
}

// The larger of x and 0, and NaN for NaN and for the lower infinity, which functions below multiply with 0.
float rising(float x) {
    return 0.5 * (x + abs(x));
}

// m / (1 + 2^power).
float falling(float m, float power) {
    const float least = exp2(-power);
    return m * (least / (1.0 + least));
}

// 0 and 1 for infinity: what is multiplied with them may be infinite, too.
float sigmoid(float x) {
    // Beyond 100 the exponential is infinite in f32; devices differ in what they make of infinity.
    if (x < -100.0) return 0.0;
    if (x > 100.0) return 1.0;
    return not_a_number(x) ? x : 1.0 / (1.0 + exp(-x));
}

// x * sigmoid(x), as below: what is beyond 87 is next to nothing.
float silu(float x) {
    const float m = min(abs(x), 87.0);
    return rising(x) - falling(m, m * 1.442695);
}

#ifndef FEW_ACTIVATIONS
// The polynomial is that of elementwise kernels; `emit/transcendental.rs` says where it comes from.
float hyperbolic_tangent(float x) {
    const float square = x * x, magnitude = abs(x);
    const float inner = -0.33333285 + square * (0.13331515 + square * (-0.053745147 + square *
                        (0.020655227 + square * -0.005721638)));
    // Beyond 20 it is 1 in f32.
    const float far = 1.0 - 2.0 / (exp(2.0 * min(magnitude, 20.0)) + 1.0);
    const float value = magnitude < 0.625 ? x + x * (square * inner) : x < 0.0 ? -far : far;
    return not_a_number(x) ? x : value;
}

// x * (1 + erf(x / sqrt(2))) / 2, which is x * F(x) with F of the standard normal distribution, is the larger of x and 0 less |x| * F(-|x|).
// F(-m) is 2 to the power of a polynomial, fitted to log2(erfc(m / sqrt(2)) / 2) from 0 to 6 by iterated least squares, each place
// weighted with m * F(-m): results are within 3e-7, beyond 6 too.
float gelu(float x) {
    const float m = min(abs(x), 6.0);
    const float power = -0.9999945 + m * (-1.1511838 + m * (-0.45884237 + m * (-0.053283723 + m * (0.007962814 + m *
                        (-0.0007122124 + m * (0.000019370545 + m * 0.0000012881139))))));
    return rising(x) - m * exp2(power);
}

// The same with tanh(x * (0.79788456 + 0.03567741 * x * x)) for the error function: (1 + tanh(y)) / 2 is the sigmoid of 2y.
float gelu_tanh(float x) {
    const float m = min(abs(x), 10.0);
    return rising(x) - falling(m, m * (2.3022082 + 0.10294324 * m * m));
}

// x * sigmoid(1.702 * x), as silu.
float quick_gelu(float x) {
    const float m = min(abs(x), 51.0);
    return rising(x) - falling(m, m * 2.4554669);
}

// x * tanh(ln(1 + e^x)): with n = e^x * (e^x + 2) the tangent is n / (n + 2), and 1 in f32 beyond 20.
float mish(float x) {
    const float e = exp(min(x, 20.0)), n = e * (e + 2.0);
    return not_a_number(x) || x > 20.0 ? x : x * (n / (n + 2.0));
}

#endif

float activate(float x, uint function) {
    if (function == 1u) return not_a_number(x) ? x : max(x, 0.0);
    if (function == 2u) return not_a_number(x) ? x : clamp(x, 0.0, 6.0);
    if (function == 3u) return silu(x);
    if (function == 4u) return sigmoid(x);
    if (function == 5u) {
        const float gate = x < -3.0 ? 0.0 : x > 3.0 ? 1.0 : x / 6.0 + 0.5;
        return x * gate;
    }
    // A leaky ReLU: the other bits are those of its slope.
    if ((function & 0x80000000u) != 0) return x < 0.0 ? x * uintBitsToFloat(function & 0x7FFFFFFFu) : x;
#ifndef FEW_ACTIVATIONS
    if (function == 6u) return hyperbolic_tangent(x);
    if (function == 7u) return gelu(x);
    if (function == 8u) return gelu_tanh(x);
    if (function == 9u) return quick_gelu(x);
    if (function == 10u) return mish(x);
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
