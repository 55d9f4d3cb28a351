// Operands of a matrix product, four neighbouring elements at a time, with zeros outside. The template declares, with
// quads.glsl: buffers lhs, lhs4, rhs and rhs4 of types LHS and RHS; M, N, K; constants WHOLE (nothing is outside),
// LHS_QUADS and RHS_QUADS (rows are whole quads), RHS_TRANSPOSED; ACCUMULATOR and QUAD, the types of values; and
// lhs_base, rhs_base, the first elements, and end, the end of the sums.

#ifndef OPERANDS_GLSL
#define OPERANDS_GLSL

// Four elements of the left side from (r, k) on; zeros behind the end of the sums.
QUAD left_quad(uint r, uint k) {
    if (!WHOLE) r = min(r, M - 1);
    const uint at = lhs_base + r * K + k;
    if (LHS_QUADS) {
        if (WHOLE || k < end) return QUAD(CONCAT(LOAD4_, LHS)(lhs4, at / 4));
        return QUAD(0);
    }
    QUAD value = QUAD(0);
    [[unroll]] for (uint i = 0; i < 4; ++i)
        if (k + i < end) value[i] = ACCUMULATOR(CONCAT(LOAD_, LHS)(lhs, at + i));
    return value;
}

// Four elements of the right side from (k, c) on, along k when it is transposed and along c when not.
QUAD right_quad(uint k, uint c) {
    if (!WHOLE && RHS_TRANSPOSED) c = min(c, N - 1);
    const uint at = rhs_base + (RHS_TRANSPOSED ? c * K + k : k * N + c);
    if (RHS_QUADS) {
        if (WHOLE || (k < end && c < N)) return QUAD(CONCAT(LOAD4_, RHS)(rhs4, at / 4));
        return QUAD(0);
    }
    QUAD value = QUAD(0);
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const bool inside = RHS_TRANSPOSED ? k + i < end : k < end && c + i < N;
        if (inside) value[i] = ACCUMULATOR(CONCAT(LOAD_, RHS)(rhs, at + i));
    }
    return value;
}

#endif
