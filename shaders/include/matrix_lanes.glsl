// Products of matrices of 16x8x16 whose elements lanes know, for templates of few rows: what lane l of a subgroup of 32 has
//   left, element e: row l / 4 + (e & 4) * 2, column l % 4 * 2 + (e & 1) + (e & 2) * 4
//   right: row l % 4 * 2 + (e & 1) + (e & 2) * 4, column l / 4; sum: row l / 4 + (e & 2) * 4, column l % 4 * 2 + (e & 1)
// lies_as_said() tells whether that is so. A template sets `lane` and `quarter` first.

#ifndef MATRIX_LANES_GLSL
#define MATRIX_LANES_GLSL

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>

uint lane, quarter;  // Of the subgroup, and of the four lanes that share a row of the left operand.

void subgroup_barrier() {
    controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
}

// Four elements of the right operand.
RIGHT right_of(uvec2 words) {
    const f16vec2 low = unpackFloat2x16(words.x), high = unpackFloat2x16(words.y);
    RIGHT right;
    right[0] = low.x;
    right[1] = low.y;
    right[2] = high.x;
    right[3] = high.y;
    return right;
}

// Whether products are as said, in all places that are not zero.
bool lies_as_said() {
    LEFT numbers;
    if (numbers.length() != 8) return false;
    const uint row = lane / 4;
    [[unroll]] for (uint e = 0; e < 8; ++e)
        numbers[e] = float16_t((row + (e & 4) * 2) * 16 + quarter * 2 + (e & 1) + (e & 2) * 4);
    bool same = true;
    [[unroll]] for (uint other = 0; other < 4; ++other) {
        // In each column one of the four rows that count.
        RIGHT one;
        SUM sum = SUM(0.0);
        if (one.length() != 4 || sum.length() != 4) return false;
        [[unroll]] for (uint e = 0; e < 4; ++e) {
            const uint k = quarter * 2 + (e & 1) + (e & 2) * 4;
            one[e] = float16_t(k == ((row ^ (other & 1)) + (other & 2) * 4) ? 1.0 : 0.0);
        }
        sum = coopMatMulAdd(numbers, one, sum);
        [[unroll]] for (uint e = 0; e < 4; ++e) {
            const uint k = ((quarter * 2 + (e & 1)) ^ (other & 1)) + (other & 2) * 4;
            same = same && sum[e] == float((row + (e & 2) * 4) * 16 + k);
        }
    }
    return subgroupAll(same);
}

#endif
