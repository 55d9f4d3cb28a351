// out[b] = lhs[b] * rhs[b]: as tiled.comp, with four neighbouring elements at a time in memory, shared memory and
// registers, and with the next tile on its way while one is computed with. Any shape: rows whose length is no multiple of
// four are read element by element. With PARTS > 1 the sums are cut: part p of P goes to the p-th of P results.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint BK = 16;
layout(constant_id = 4) const uint TM = 4;
layout(constant_id = 5) const uint TN = 4;
layout(constant_id = 6) const bool RHS_TRANSPOSED = false;
// Whether rows of each tensor are whole quads, and whether tiles divide the shape.
layout(constant_id = 7) const bool LHS_QUADS = false;
layout(constant_id = 8) const bool RHS_QUADS = false;
layout(constant_id = 9) const bool OUT_QUADS = false;
layout(constant_id = 10) const bool WHOLE = false;
layout(constant_id = 11) const uint PARTS = 1;
layout(constant_id = 12) const uint UNROLLED = 1;  // Steps along k that are written out; divides BK.
layout(constant_id = 13) const uint ADDED = 0;
layout(constant_id = 14) const uint ACTIVATION = 0;

ELEMENT_BUFFER(0, lhs, readonly, LHS);
ELEMENT_BUFFER(1, rhs, readonly, RHS);
ELEMENT_BUFFER(2, result, , OUT);
QUAD_BUFFER(0, lhs4, readonly, LHS);
QUAD_BUFFER(1, rhs4, readonly, RHS);
QUAD_BUFFER(2, result4, , OUT);

layout(push_constant) uniform Shape {
    uint M, N, K;
    uint rhs_stride;  // Elements from one matrix of the batch to the next; 0 when all share one.
    uint part;        // Terms of a part of the sums; a multiple of BK.
    uint batches;
};

#define ACCUMULATOR CONCAT(REGISTER_, ACC)
#define QUAD CONCAT(QUAD_REGISTER_, ACC)

#include "product.glsl"

// Rows of the tiles in quads; the quad more spreads columns over banks.
const uint LHS_ROW = BM / 4 + 1, RHS_ROW = BN / 4 + 1;
const uint LHS_TILE = BK * LHS_ROW, RHS_TILE = BK * RHS_ROW;
const uint LHS_EACH = BM * BK / 4 / gl_WorkGroupSize.x, RHS_EACH = BN * BK / 4 / gl_WorkGroupSize.x;
const uint QM = TM / 4, QN = TN / 4;
// Invocations along the sides of the tile.
const uint down = BM / TM, across = BN / TN;

shared QUAD tile_lhs[2 * LHS_TILE];
shared QUAD tile_rhs[2 * RHS_TILE];

QUAD sums[TM * QN];
QUAD next_lhs[LHS_EACH];
QUAD next_rhs[RHS_EACH];

uint row0, column0, lhs_base, rhs_base, end;

#include "operands.glsl"

void fetch(uint k0) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        next_lhs[i] = left_quad(row0 + at / (BK / 4), k0 + at % (BK / 4) * 4);
    }
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        if (RHS_TRANSPOSED) {
            next_rhs[i] = right_quad(k0 + at % (BK / 4) * 4, column0 + at / (BK / 4));
        } else {
            next_rhs[i] = right_quad(k0 + at / (BN / 4), column0 + at % (BN / 4) * 4);
        }
    }
}

void keep(uint stage) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = lane + i * lanes, r = at / (BK / 4), k = at % (BK / 4) * 4;
        [[unroll]] for (uint j = 0; j < 4; ++j)
            tile_lhs[stage * LHS_TILE + (k + j) * LHS_ROW + r / 4][r % 4] = next_lhs[i][j];
    }
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uint at = lane + i * lanes;
        if (RHS_TRANSPOSED) {
            const uint c = at / (BK / 4), k = at % (BK / 4) * 4;
            [[unroll]] for (uint j = 0; j < 4; ++j)
                tile_rhs[stage * RHS_TILE + (k + j) * RHS_ROW + c / 4][c % 4] = next_rhs[i][j];
        } else {
            tile_rhs[stage * RHS_TILE + at / (BN / 4) * RHS_ROW + at % (BN / 4)] = next_rhs[i];
        }
    }
}

// Adds the products of one place along k.
void multiply(uint stage, uint k, uint my_row, uint my_column) {
    QUAD left[QM], right[QN];
    [[unroll]] for (uint i = 0; i < QM; ++i)
        left[i] = tile_lhs[stage * LHS_TILE + k * LHS_ROW + my_row + i * down];
    [[unroll]] for (uint j = 0; j < QN; ++j)
        right[j] = tile_rhs[stage * RHS_TILE + k * RHS_ROW + my_column + j * across];
    [[unroll]] for (uint i = 0; i < TM; ++i)
        [[unroll]] for (uint j = 0; j < QN; ++j) sums[i * QN + j] += left[i / 4][i % 4] * right[j];
}

void main() {
    const uint lane = gl_LocalInvocationIndex;
    // Neighbours form blocks of 8 x 4 where they can: fewer different addresses in shared memory at a time.
    const bool blocks = across % 8 == 0 && down % 4 == 0;
    const uint block = lane / 32;
    const uint my_row = blocks ? block / (across / 8) * 4 + lane / 8 % 4 : lane / across;
    const uint my_column = blocks ? block % (across / 8) * 8 + lane % 8 : lane % across;

    const uint batch = gl_WorkGroupID.z / PARTS, slice = gl_WorkGroupID.z % PARTS;
    row0 = gl_WorkGroupID.y * BM;
    column0 = gl_WorkGroupID.x * BN;
    lhs_base = batch * M * K;
    rhs_base = batch * rhs_stride;
    const uint begin = PARTS == 1 ? 0 : slice * part;
    end = PARTS == 1 ? K : min(K, begin + part);

    [[unroll]] for (uint i = 0; i < TM * QN; ++i) sums[i] = QUAD(0);

    if (begin < end) {
        fetch(begin);
        keep(0);
    }
    barrier();
    uint stage = 0;
    for (uint k0 = begin; k0 < end; k0 += BK) {
        const bool more = k0 + BK < end;
        if (more) fetch(k0 + BK);
        for (uint k = 0; k < BK; k += UNROLLED) {
            [[unroll]] for (uint l = 0; l < UNROLLED; ++l) multiply(stage, k + l, my_row, my_column);
        }
        stage ^= 1;
        if (more) keep(stage);
        barrier();
    }

    const uint out_base = (slice * batches + batch) * M * N;
    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = row0 + (my_row + i / 4 * down) * 4 + i % 4;
        [[unroll]] for (uint j = 0; j < QN; ++j) {
            const uint c = column0 + (my_column + j * across) * 4, at = out_base + r * N + c;
            const QUAD value = sums[i * QN + j];
            if (OUT_QUADS) {
                if (WHOLE || (r < M && c < N)) CONCAT(STORE4_, OUT)(result4, at / 4, finished4(at, c, value));
            } else if (r < M) {
                [[unroll]] for (uint l = 0; l < 4; ++l)
                    if (c + l < N) CONCAT(STORE_, OUT)(result, at + l, finished(at + l, c + l, value[l]));
            }
        }
    }
}
