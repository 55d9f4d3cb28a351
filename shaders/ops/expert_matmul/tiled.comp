// Products with weights of chosen experts for many rows: a workgroup has BN columns of one expert. It looks for the rows of the
// result that chose it, and computes BM of them at a time, a chunk of 32 of the inner dimension at a time through shared memory,
// where weights are floats. So an expert's weights are read once for BM rows.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 32;  // At most as many as invocations.
layout(constant_id = 2) const uint BN = 32;
layout(constant_id = 3) const uint TM = 4;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) readonly buffer Experts { int chosen[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint M, N;
    uint chunks;   // In a row of k.
    uint sharing;  // Rows of the result with one row of lhs.
    uint first;    // Number of the first expert.
    uint experts;  // Experts whose weights are there.
    uint ROWS;     // Rows of the result that a workgroup looks through.
};

#define BLOCKS_SLOT 1
#define CODEBOOK_SLOT 4
#include "expert_rows.glsl"

const uint TN = 4;
const uint LHS_ROW = BM / 4 + 1, RHS_ROW = BN / 4 + 1;
const uint down = BM / TM, across = BN / TN;

shared vec4 tile_lhs[32 * LHS_ROW];
shared vec4 tile_rhs[32 * RHS_ROW];
// Rows that chose this expert and are not computed yet, in any order.
shared uint found[BM + gl_WorkGroupSize.x];
shared uint count;

// Computes up to BM of the rows that were found, from a place on.
void tile(uint place, uint here, uint expert) {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint column0 = gl_WorkGroupID.x * BN;
    const uint my_row = lane / across, my_column = lane % across;
    vec4 sums[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i) sums[i] = vec4(0);

    for (uint chunk = 0; chunk < chunks; ++chunk) {
        for (uint i = lane; i < BM * 8; i += lanes) {
            const uint r = i / 8, k = i % 8 * 4;
            const uint row = found[place + min(r, here - 1)] / sharing;
            const vec4 four = lhs[(row * chunks + chunk) * 8 + i % 8];
            [[unroll]] for (uint j = 0; j < 4; ++j) tile_lhs[(k + j) * LHS_ROW + r / 4][r % 4] = four[j];
        }
        for (uint c = lane; c < BN; c += lanes) {
            vec4 values[8];
            load_chunk((expert * N + min(column0 + c, N - 1)) * ROW_BYTES(chunks), chunk, values);
            [[unroll]] for (uint i = 0; i < 8; ++i) {
                [[unroll]] for (uint j = 0; j < 4; ++j)
                    tile_rhs[(i * 4 + j) * RHS_ROW + c / 4][c % 4] = values[i][j];
            }
        }
        barrier();
        for (uint k = 0; k < 32; ++k) {
            const vec4 right = tile_rhs[k * RHS_ROW + my_column];
            [[unroll]] for (uint i = 0; i < TM; i += 4) {
                const vec4 left = tile_lhs[k * LHS_ROW + my_row + i / 4 * down];
                [[unroll]] for (uint j = 0; j < 4; ++j) sums[i + j] += left[j] * right;
            }
        }
        barrier();
    }

    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = (my_row + i / 4 * down) * 4 + i % 4;
        if (r < here) {
            const uint row = found[place + r];
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                const uint c = column0 + my_column * 4 + j;
                if (c < N) result[row * N + c] = sums[i][j];
            }
        }
    }
}

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint expert = gl_WorkGroupID.y, column0 = gl_WorkGroupID.x * BN;
    if (lane == 0) count = 0;
    barrier();
    const uint from = gl_WorkGroupID.z * ROWS, end = min(from + ROWS, M);
    for (uint base = from; base < end; base += lanes) {
        if (base + lane < end) {
            const uint own = uint(chosen[base + lane]) - first;
            if (own == expert) found[atomicAdd(count, 1)] = base + lane;
            // Rows of experts that are not there are zeros.
            if (expert == 0 && own >= experts) {
                for (uint c = column0; c < min(column0 + BN, N); ++c) result[(base + lane) * N + c] = 0.0;
            }
        }
        barrier();
        const uint all = count;
        const bool last = base + lanes >= end;
        uint done = 0;
        while (all - done >= BM || (last && all > done)) {
            const uint here = min(BM, all - done);
            tile(done, here, expert);
            done += here;
        }
        // What is left waits for more: fewer than BM.
        const uint rest = all - done;
        uint kept = 0;
        if (lane < rest) kept = found[done + lane];
        barrier();
        if (lane < rest) found[lane] = kept;
        if (lane == 0) count = rest;
        barrier();
    }
}
