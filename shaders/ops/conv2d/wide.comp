// A convolution as a product of matrices, filters times the places' windows, without cooperative matrices: a workgroup
// computes BM filters at BN places, an invocation TM x TN of them, BK terms of the sums at a time. Shared memory holds four
// filters, or four places, in a word of 16 bytes, and the next terms are on their way in registers. Rows before channels only.
// With CUT, PARTS workgroups share the terms too, and what comes out are sums of a part, which matrix_add.comp adds.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint BM = 64;
layout(constant_id = 4) const uint BN = 64;
layout(constant_id = 5) const uint BK = 16;
layout(constant_id = 6) const uint TM = 4;
layout(constant_id = 7) const uint TN = 4;
// The kernel, so that divisions by it are multiplications.
layout(constant_id = 8) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 9) const uint KERNEL_WIDTH = 3;
// Whether the weights of a filter are whole quads.
layout(constant_id = 10) const bool QUADS = false;

#ifdef CUT
layout(constant_id = 11) const uint PARTS = 2;
// Terms of a part, a multiple of BK.
layout(constant_id = 12) const uint PART = 1024;
#endif

#ifdef WEIGHT_QUADS
layout(set = 0, binding = 1) readonly buffer WeightQuads { vec4 weight_quads[]; };
#endif

const uint LANES = (BM / TM) * (BN / TN);
// Rows of the tiles in quads, one for each term; the quad more spreads columns over banks.
const uint WEIGHTS_ROW = BM / 4 + 1, DATA_ROW = BN / 4 + 1;
const uint WEIGHTS_TILE = BK * WEIGHTS_ROW, DATA_TILE = BK * DATA_ROW;
const uint WEIGHTS_EACH = BM * BK / 4 / LANES, DATA_EACH = BN * BK / 4 / LANES;
const uint QM = TM / 4, QN = TN / 4;
const uint DOWN = BM / TM, ACROSS = BN / TN;

shared vec4 tile_weights[2 * WEIGHTS_TILE];
shared vec4 tile_data[2 * DATA_TILE];

vec4 sums[TM * QN];
// Four terms each: of a filter, and of the windows of a place.
vec4 next_weights[WEIGHTS_EACH];
vec4 next_data[DATA_EACH];
uint first, weights_base, data_base, end;
// The place whose windows this invocation reads, by its first row and column.
uint y0, x0;
bool is_place;

void fetch(uint k0) {
    const uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0; i < WEIGHTS_EACH; ++i) {
        const uint at = lane + i * LANES, r = first + at / (BK / 4), k = k0 + at % (BK / 4) * 4;
        vec4 quad = vec4(0.0);
        if (r < filters && k < end) {
            const uint from = weights_base + r * weights_filter + k;
#ifdef WEIGHT_QUADS
            if (QUADS) {
                quad = weight_quads[from / 4];
            } else
#endif
            {
                [[unroll]] for (uint j = 0; j < 4; ++j)
                    if (k + j < end) quad[j] = weight_at(from + j);
            }
        }
        next_weights[i] = quad;
    }
    [[unroll]] for (uint i = 0; i < DATA_EACH; ++i) {
        const uint k = k0 + (lane + i * LANES) / BN * 4;
        const uint taps = KERNEL_HEIGHT * KERNEL_WIDTH, tap = k % taps;
        uint channel = k / taps, ky = tap / KERNEL_WIDTH, kx = tap % KERNEL_WIDTH;
        [[unroll]] for (uint j = 0; j < 4; ++j) {
            const uint y = y0 + ky * dilation_y, x = x0 + kx * dilation_x;
            float value = 0.0;
            if (is_place && k + j < end && y < height && x < width)
                value = float(data[data_base + channel * data_channel + y * width + x]);
            next_data[i][j] = value;
            // The next term is the next tap.
            if (++kx == KERNEL_WIDTH) {
                kx = 0;
                if (++ky == KERNEL_HEIGHT) {
                    ky = 0;
                    ++channel;
                }
            }
        }
    }
}

void keep(uint stage) {
    const uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0; i < WEIGHTS_EACH; ++i) {
        const uint at = lane + i * LANES, r = at / (BK / 4), k = at % (BK / 4) * 4;
        [[unroll]] for (uint j = 0; j < 4; ++j)
            tile_weights[stage * WEIGHTS_TILE + (k + j) * WEIGHTS_ROW + r / 4][r % 4] = next_weights[i][j];
    }
    [[unroll]] for (uint i = 0; i < DATA_EACH; ++i) {
        // A quarter of the tile lies between the places of a quad, so that neighbours store neighbouring results.
        const uint at = lane + i * LANES, place = at % BN, k = at / BN * 4;
        [[unroll]] for (uint j = 0; j < 4; ++j)
            tile_data[stage * DATA_TILE + (k + j) * DATA_ROW + place % (BN / 4)][place / (BN / 4)] = next_data[i][j];
    }
}

// Adds the products of one term.
void multiply(uint stage, uint k, uint my_row, uint my_column) {
    vec4 left[QM], right[QN];
    [[unroll]] for (uint i = 0; i < QM; ++i)
        left[i] = tile_weights[stage * WEIGHTS_TILE + k * WEIGHTS_ROW + my_row + i * DOWN];
    [[unroll]] for (uint j = 0; j < QN; ++j)
        right[j] = tile_data[stage * DATA_TILE + k * DATA_ROW + my_column + j * ACROSS];
    [[unroll]] for (uint i = 0; i < TM; ++i)
        [[unroll]] for (uint j = 0; j < QN; ++j) sums[i * QN + j] += left[i / 4][i % 4] * right[j];
}

void main() {
    const uint lane = gl_LocalInvocationIndex;
    // Neighbours form blocks of 8 x 4 where they can: fewer different addresses in shared memory at a time.
    const bool in_blocks = ACROSS % 8 == 0 && DOWN % 4 == 0;
    const uint block = lane / 32;
    const uint my_row = in_blocks ? block / (ACROSS / 8) * 4 + lane / 8 % 4 : lane / ACROSS;
    const uint my_column = in_blocks ? block % (ACROSS / 8) * 8 + lane % 8 : lane % ACROSS;

    const uint depth = channels * KERNEL_HEIGHT * KERNEL_WIDTH;
#ifdef CUT
    const uint image = gl_WorkGroupID.z / PARTS, begin = gl_WorkGroupID.z % PARTS * PART;
    end = min(depth, begin + PART);
#else
    const uint image = gl_WorkGroupID.z, begin = 0;
    end = depth;
#endif
    const uint blocks = (filters + BM - 1) / BM;
    const uint group = gl_WorkGroupID.y / blocks;
    const uint place0 = gl_WorkGroupID.x * BN, places = out_height * out_width;
    first = gl_WorkGroupID.y % blocks * BM;
    data_base = image * data_image + group * channels * data_channel;
    weights_base = group * weights_group;

    const uint place = place0 + lane % BN;
    is_place = place < places;
    y0 = place / out_width * stride_y - pad_top;
    x0 = place % out_width * stride_x - pad_left;

    [[unroll]] for (uint i = 0; i < TM * QN; ++i) sums[i] = vec4(0.0);

    if (begin < end) {
        fetch(begin);
        keep(0);
    }
    barrier();
    uint stage = 0;
    for (uint k0 = begin; k0 < end; k0 += BK) {
        const bool more = k0 + BK < end;
        if (more) fetch(k0 + BK);
        [[unroll]] for (uint k = 0; k < BK; ++k) multiply(stage, k, my_row, my_column);
        stage ^= 1;
        if (more) keep(stage);
        barrier();
    }

#ifdef CUT
    const uint to = gl_WorkGroupID.z * result_image + group * filters * result_channel;
#else
    const uint to = image * result_image + group * filters * result_channel;
    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = first + (my_row + i / 4 * DOWN) * 4 + i % 4;
        [[unroll]] for (uint j = 0; j < QN; ++j) {
            [[unroll]] for (uint l = 0; l < 4; ++l) {
                const uint c = place0 + my_column + j * ACROSS + l * (BN / 4);
                if (r < filters && c < places) sums[i * QN + j][l] += added(group * filters + r, to + r * result_channel + c);
            }
        }
    }
#endif
    [[unroll]] for (uint i = 0; i < TM; ++i) {
        const uint r = first + (my_row + i / 4 * DOWN) * 4 + i % 4;
        [[unroll]] for (uint j = 0; j < QN; ++j) {
            [[unroll]] for (uint l = 0; l < 4; ++l) {
                const uint c = place0 + my_column + j * ACROSS + l * (BN / 4);
                if (r >= filters || c >= places) continue;
#ifdef CUT
                result[to + r * result_channel + c] = sums[i * QN + j][l];
#else
                CONCAT(STORE_, OUT)(result, to + r * result_channel + c, activate(sums[i * QN + j][l], ACTIVATION));
#endif
            }
        }
    }
}
