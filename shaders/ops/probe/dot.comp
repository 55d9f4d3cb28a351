// Dot products of four packed 8-bit integers in registers and nothing else: eight independent sums in each invocation,
// ROUNDS * 8 dot products in all.
#version 450
#extension GL_EXT_integer_dot_product : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ROUNDS = 64;

layout(set = 0, binding = 0) writeonly buffer Out { int result[]; };

layout(push_constant) uniform Factors {
    uint left_bits, right_bits;
};

// The last sum is an operand of the next product, or all products would be the same.
#define STEP(a) a += dotPacked4x8EXT(a, right)

void main() {
    const int right = int(right_bits), one = int(left_bits + gl_GlobalInvocationID.x);
    int a = one, b = a + one, c = b + one, d = c + one, e = d + one, f = e + one, g = f + one, h = g + one;
    for (uint i = 0; i < ROUNDS; ++i) {
        STEP(a);
        STEP(b);
        STEP(c);
        STEP(d);
        STEP(e);
        STEP(f);
        STEP(g);
        STEP(h);
    }
    result[gl_GlobalInvocationID.x] = a + b + c + d + e + f + g + h;
}
