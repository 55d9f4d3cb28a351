// out[b] = lhs[b] * rhs[b] for few rows: an invocation computes four columns of all ROWS rows, SLICES of them share the
// sums, four places of the inner dimension at a time, and add them through shared memory. Any shape. With PARTS > 1 the
// sums are cut: part p of P goes to the p-th of P results.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SLICES = 16;  // A power of two.
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool RHS_TRANSPOSED = false;
// Whether rows of each operand are whole quads.
layout(constant_id = 4) const bool LHS_QUADS = false;
layout(constant_id = 5) const bool RHS_QUADS = false;
layout(constant_id = 6) const uint PARTS = 1;
layout(constant_id = 7) const uint ADDED = 0;
layout(constant_id = 8) const uint ACTIVATION = 0;
const bool WHOLE = false;

ELEMENT_BUFFER(0, lhs, readonly, LHS);
ELEMENT_BUFFER(1, rhs, readonly, RHS);
ELEMENT_BUFFER(2, result, , OUT);
QUAD_BUFFER(0, lhs4, readonly, LHS);
QUAD_BUFFER(1, rhs4, readonly, RHS);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
    uint part;        // Terms of a part of the sums; a multiple of 4.
    uint batches;
};

#define ACCUMULATOR CONCAT(REGISTER_, ACC)
#define QUAD CONCAT(QUAD_REGISTER_, ACC)

#include "product.glsl"

// Rows whose sums are added at a time: each addition waits for all invocations.
const uint TOGETHER = ROWS < 4 ? ROWS : 4;

uint lhs_base, rhs_base, end;

#include "operands.glsl"

shared QUAD partial[TOGETHER * gl_WorkGroupSize.x];

void main() {
    // Neighbours read neighbouring elements, whichever way the right operand lies.
    const uint lane = gl_LocalInvocationIndex, teams = gl_WorkGroupSize.x / SLICES;
    const uint slice = RHS_TRANSPOSED ? lane % SLICES : lane / teams;
    const uint team = RHS_TRANSPOSED ? lane / SLICES : lane % teams;
    const uint column = (gl_WorkGroupID.x * teams + team) * 4;
    const uint batch = gl_WorkGroupID.z / PARTS, cut = gl_WorkGroupID.z % PARTS;
    lhs_base = batch * M * K;
    rhs_base = batch * rhs_stride;
    const uint begin = PARTS == 1 ? 0 : cut * part;
    end = PARTS == 1 ? K : min(K, begin + part);

    QUAD sums[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] = QUAD(0);

    for (uint k = begin + slice * 4; k < end; k += SLICES * 4) {
        QUAD right[4];
        [[unroll]] for (uint j = 0; j < 4; ++j)
            right[j] = RHS_TRANSPOSED ? right_quad(k, column + j) : right_quad(k + j, column);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const QUAD left = left_quad(r, k);
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                if (RHS_TRANSPOSED) {
                    const QUAD terms = left * right[j];
                    sums[r][j] += (terms.x + terms.y) + (terms.z + terms.w);
                } else {
                    sums[r] += left[j] * right[j];
                }
            }
        }
    }

    const uint out_base = (cut * batches + batch) * M * N;
    const uint lanes = gl_WorkGroupSize.x, mine = slice * teams + team;
    [[unroll]] for (uint row0 = 0; row0 < ROWS; row0 += TOGETHER) {
        const uint count = min(TOGETHER, ROWS - row0);
        [[unroll]] for (uint r = 0; r < TOGETHER; ++r)
            if (row0 + r < ROWS) partial[r * lanes + mine] = sums[row0 + r];
        barrier();
        for (uint rest = SLICES / 2; rest > 0; rest /= 2) {
            if (slice < rest) {
                for (uint r = 0; r < count; ++r) partial[r * lanes + mine] += partial[r * lanes + mine + rest * teams];
            }
            barrier();
        }
        // The first invocations of all have an element of each row.
        for (uint i = lane; i < teams * 4; i += lanes) {
            const uint c = gl_WorkGroupID.x * teams * 4 + i;
            for (uint r = 0; c < N && r < count; ++r) {
                const uint at = out_base + (row0 + r) * N + c;
                CONCAT(STORE_, OUT)(result, at, finished(at, c, partial[r * lanes + i / 4][i % 4]));
            }
        }
        barrier();
    }
}
