// A convolution as a product of matrices, filters times the places' windows, with cooperative matrices: a workgroup computes
// BM filters at BN places, BK terms of the sums at a time through shared memory, with the next ones on their way in
// registers. The subgroups of a workgroup share its results, WM x WN each, and its terms, in SLICES parts, so that small
// images keep a device busy too; the parts are added at the end, in shared memory. Rows before channels only.
// With CUT, PARTS workgroups share the terms too, and what comes out are sums of a part, which matrix_add.comp adds.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint BM = 64;
layout(constant_id = 4) const uint BN = 64;
layout(constant_id = 5) const uint BK = 64;
layout(constant_id = 6) const uint WM = 32;
layout(constant_id = 7) const uint WN = 32;
layout(constant_id = 8) const uint SLICES = 2;
// The kernel, so that divisions by it are multiplications.
layout(constant_id = 9) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 10) const uint KERNEL_WIDTH = 3;
// Whether the weights of a filter are whole 16-byte words.
layout(constant_id = 11) const bool WORDS = false;
// Words of shared memory: tiles, and in the end sums.
layout(constant_id = 12) const uint SHARED_WORDS = 2304;

#ifdef CUT
layout(constant_id = 13) const uint PARTS = 2;
// Terms of a part, a multiple of BK.
layout(constant_id = 14) const uint PART = 1024;
#endif

layout(set = 0, binding = 1) readonly buffer WeightWords { uvec4 weight_words[]; };

const uint MM = 16, MN = 16, MK = 16;
const uint PACK = 8;  // Elements in 16 bytes.
// Both tiles lie with the terms along their rows. A row is a word longer than its elements, which puts neighbouring rows
// into different banks.
const uint OCTETS = BK / PACK, ROW = OCTETS + 1;
const uint TILES = (BM + BN) * ROW;
const uint DOWN = WM / MM, ACROSS = WN / MN;
const uint SLICE = BK / SLICES;
const uint SUMS_ROW = BN / 4 + 1;
const uint LANES = (BM / WM) * (BN / WN) * SLICES * 32;
const uint WEIGHTS_EACH = BM * OCTETS / LANES, DATA_EACH = BN * OCTETS / LANES;

shared uvec4 words[SHARED_WORDS];

uvec4 next_weights[WEIGHTS_EACH];
uvec4 next_data[DATA_EACH];
uint depth, first, weights_base, data_base;
// The place whose windows this invocation reads, by its first row and column.
uint y0, x0;
bool is_place;

uint pair(float low, float high) {
    return packHalf2x16(vec2(low, high));
}

void fetch(uint k0) {
    const uint lane = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0; i < WEIGHTS_EACH; ++i) {
        const uint at = lane + i * LANES, r = first + at / OCTETS, k = k0 + at % OCTETS * PACK;
        uvec4 word = uvec4(0);
        if (r < filters && k < depth) {
            const uint from = weights_base + r * weights_filter + k;
            if (WORDS) {
                word = weight_words[from / PACK];
            } else {
                [[unroll]] for (uint j = 0; j < 4; ++j) {
                    const uint k2 = k + 2 * j;
                    const float low = k2 < depth ? weight_at(from + 2 * j) : 0.0;
                    const float high = k2 + 1 < depth ? weight_at(from + 2 * j + 1) : 0.0;
                    word[j] = pair(low, high);
                }
            }
        }
        next_weights[i] = word;
    }
    [[unroll]] for (uint i = 0; i < DATA_EACH; ++i) {
        const uint k = k0 + (lane + i * LANES) / BN * PACK;
        const uint taps = KERNEL_HEIGHT * KERNEL_WIDTH, tap = k % taps;
        uint channel = k / taps, ky = tap / KERNEL_WIDTH, kx = tap % KERNEL_WIDTH;
        float eight[PACK];
        [[unroll]] for (uint j = 0; j < PACK; ++j) {
            const uint y = y0 + ky * dilation_y, x = x0 + kx * dilation_x;
            const bool inside = is_place && k + j < depth && y < height && x < width;
            eight[j] = 0.0;
            if (inside) eight[j] = float(data[data_base + channel * data_channel + y * width + x]);
            // The next term is the next tap.
            if (++kx == KERNEL_WIDTH) {
                kx = 0;
                if (++ky == KERNEL_HEIGHT) {
                    ky = 0;
                    ++channel;
                }
            }
        }
        next_data[i] = uvec4(pair(eight[0], eight[1]), pair(eight[2], eight[3]), pair(eight[4], eight[5]),
                             pair(eight[6], eight[7]));
    }
}

void keep(uint stage) {
    const uint lane = gl_LocalInvocationIndex, base = stage * TILES;
    [[unroll]] for (uint i = 0; i < WEIGHTS_EACH; ++i) {
        const uint at = lane + i * LANES;
        words[base + at / OCTETS * ROW + at % OCTETS] = next_weights[i];
    }
    [[unroll]] for (uint i = 0; i < DATA_EACH; ++i) {
        const uint at = lane + i * LANES;
        words[base + (BM + at % BN) * ROW + at / BN] = next_data[i];
    }
}

// A sum of the workgroup's, from its parts in shared memory.
float sum_of(uint r, uint c) {
    float sum = 0.0;
    [[unroll]] for (uint s = 0; s < SLICES; ++s)
        sum += uintBitsToFloat(words[(s * BM + r) * SUMS_ROW + c / 4][c % 4]);
    return sum;
}

#ifndef CUT
// Results that are finished at a time.
const uint EACH = BM * BN / LANES, CHUNK = EACH < 16 ? EACH : 16;
float next_added[CHUNK];

float added_to(uint e, uint group, uint to, uint place0, uint places) {
    const uint r = e / BN, c = e % BN;
    const bool inside = first + r < filters && place0 + c < places;
    return inside ? added(group * filters + first + r, to + (first + r) * result_channel + c) : 0.0;
}
#endif

void main() {
    const uint lane = gl_LocalInvocationIndex;
#ifdef CUT
    const uint image = gl_WorkGroupID.z / PARTS, begin = gl_WorkGroupID.z % PARTS * PART;
#else
    const uint image = gl_WorkGroupID.z, begin = 0;
#endif
    const uint blocks = (filters + BM - 1) / BM;
    const uint group = gl_WorkGroupID.y / blocks;
    const uint place0 = gl_WorkGroupID.x * BN, places = out_height * out_width;
    first = gl_WorkGroupID.y % blocks * BM;
    depth = channels * KERNEL_HEIGHT * KERNEL_WIDTH;
    data_base = image * data_image + group * channels * data_channel;
    weights_base = group * weights_group;

    const uint place = place0 + lane % BN;
    is_place = place < places;
    y0 = place / out_width * stride_y - pad_top;
    x0 = place % out_width * stride_x - pad_left;

    const uint tiles_across = BN / WN, tiles = BM / WM * tiles_across;
    const uint slice = gl_SubgroupID / tiles, tile = gl_SubgroupID % tiles;
    const uint my_row = tile / tiles_across * WM, my_column = tile % tiles_across * WN;

    coopmat<float, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator> sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i)
        sums[i] = coopmat<float, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>(0);

#ifdef CUT
    const uint end = min(depth, begin + PART);
#else
    const uint end = depth;
#endif
    if (begin < end) {
        fetch(begin);
        keep(0);
    }
    barrier();
    uint stage = 0;
    for (uint k0 = begin; k0 < end; k0 += BK) {
        const bool more = k0 + BK < end;
        if (more) fetch(k0 + BK);
        const uint base = stage * TILES;
        [[unroll]] for (uint k = 0; k < SLICE; k += MK) {
            const uint octet = (slice * SLICE + k) / PACK;
            coopmat<float16_t, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA> left[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                coopMatLoad(left[i], words, base + (my_row + i * MM) * ROW + octet, ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB> right;
                coopMatLoad(right, words, base + (BM + my_column + j * MN) * ROW + octet, ROW,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; ++i)
                    sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
            }
        }
        stage ^= 1;
        if (more) keep(stage);
        barrier();
    }

    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            const uint r = slice * BM + my_row + i * MM, c = my_column + j * MN;
            coopMatStore(sums[i * ACROSS + j], words, r * SUMS_ROW + c / 4, SUMS_ROW, gl_CooperativeMatrixLayoutRowMajor);
        }
    }
#ifdef CUT
    const uint to = gl_WorkGroupID.z * result_image + group * filters * result_channel + place0;
    barrier();
    for (uint e = lane; e < BM * BN; e += LANES) {
        const uint r = e / BN, c = e % BN;
        if (first + r < filters && place0 + c < places) result[to + (first + r) * result_channel + c] = sum_of(r, c);
    }
#else
    const uint to = image * result_image + group * filters * result_channel + place0;
    [[unroll]] for (uint i = 0; i < CHUNK; ++i) next_added[i] = added_to(lane + i * LANES, group, to, place0, places);
    barrier();
    for (uint e0 = lane; e0 < BM * BN; e0 += CHUNK * LANES) {
        if (e0 >= CHUNK * LANES)
            [[unroll]] for (uint i = 0; i < CHUNK; ++i) next_added[i] = added_to(e0 + i * LANES, group, to, place0, places);
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
            const uint e = e0 + i * LANES, r = e / BN, c = e % BN;
            if (first + r < filters && place0 + c < places)
                CONCAT(STORE_, OUT)(result, to + (first + r) * result_channel + c, activate(sum_of(r, c) + next_added[i], ACTIVATION));
        }
    }
#endif
}
