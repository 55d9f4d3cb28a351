// Multiply-adds in registers and nothing else: eight independent chains in each invocation, ROUNDS * 32 steps in all. What is
// stored depends on every step, and what is multiplied is not known when the kernel is compiled.
#version 450
#ifdef KIND_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROUNDS = 64;

layout(set = 0, binding = 0) writeonly buffer Out { uint result[]; };

layout(push_constant) uniform Factors {
    uint factor_bits, addend_bits;  // The bits of two floats.
};

#if defined(KIND_F32)
#define VALUE float
#define FROM(bits) uintBitsToFloat(bits)
#define STEP(a) a = fma(a, factor, addend)
#define BITS(a) floatBitsToUint(a)
#elif defined(KIND_F16)
#define VALUE f16vec2
#define FROM(bits) f16vec2(uintBitsToFloat(bits))
#define STEP(a) a = fma(a, factor, addend)
#define BITS(a) packFloat2x16(a)
#else
#define VALUE uint
#define FROM(bits) bits
#define STEP(a) a = a * factor + addend
#define BITS(a) a
#endif

#define STEPS STEP(a); STEP(b); STEP(c); STEP(d); STEP(e); STEP(f); STEP(g); STEP(h)

void main() {
    const VALUE factor = FROM(factor_bits), addend = FROM(addend_bits), one = VALUE(gl_GlobalInvocationID.x & 7u);
    VALUE a = one, b = a + one, c = b + one, d = c + one, e = d + one, f = e + one, g = f + one, h = g + one;
    for (uint i = 0; i < ROUNDS; ++i) {
        STEPS;
        STEPS;
        STEPS;
        STEPS;
    }
    result[gl_GlobalInvocationID.x] = BITS(a + b + c + d + e + f + g + h);
}
