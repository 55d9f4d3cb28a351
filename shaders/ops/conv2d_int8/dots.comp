// A convolution of bytes as a product of matrices that never lie in memory: a workgroup computes BM filters at BN places, an
// invocation TM x 4 of them. Four terms of a sum are a word, which one dot product adds; KW words at a time go through shared
// memory, with the next ones on their way in registers. SLICES parts of the workgroup share the terms. Channels come first.
//
// Unsigned bytes become signed ones less 128, which the zero point loses too. The zero point is multiplied by the sum of a
// filter's weights; what lies outside of the image is the zero point itself.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "convolution.glsl"

layout(constant_id = 13) const bool WHOLE_QUADS = false;  // Planes of results are whole quads.
#include "dots.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint BM = 64;
layout(constant_id = 4) const uint BN = 64;
layout(constant_id = 5) const uint KW = 8;
layout(constant_id = 6) const uint TM = 4;
layout(constant_id = 7) const uint SLICES = 1;
layout(constant_id = 8) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 9) const uint KERNEL_WIDTH = 3;
layout(constant_id = 10) const bool UNSIGNED = false;
// Whether a word of data is four places of one channel that are all wanted: a kernel of 1x1 without strides and padding.
layout(constant_id = 11) const bool POINTWISE = false;
layout(constant_id = 12) const bool WHOLE_WORDS = false;   // Filters are whole words.
layout(constant_id = 14) const uint SHARED = 1024;

const uint ACROSS = BN / 4;
const uint TEAM = (BM / TM) * ACROSS;  // Invocations of a slice.
const uint LEFT_EACH = BM * KW / TEAM;
const uint RIGHT_EACH = KW * ACROSS / TEAM;  // Quads.
const uint LEFT_ROW = BM / 4;

shared uvec4 tile[SHARED];
shared int row_sums[BM];

uint lane, place0, first, group, depth, words, data_base, weights_base, filler;
uint left[LEFT_EACH];
uvec4 right[RIGHT_EACH];
int left_sums[LEFT_EACH];

uint byte_of(uint at) {
    return bitfieldExtract(data[at >> 2], int(8 * (at & 3u)), 8);
}

// Four terms of a filter; zeros behind its end.
uint left_word(uint row, uint word) {
    const uint filter_index = first + row;
    if (filter_index >= filters || word >= words) return 0;
    const uint at = weights_base + filter_index * weights_filter + 4 * word;
    if (WHOLE_WORDS) return weights[at >> 2];
    uint value = 0;
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        if (4 * word + i < depth) value |= bitfieldExtract(weights[(at + i) >> 2], int(8 * ((at + i) & 3u)), 8) << (8 * i);
    }
    return value;
}

// The word of four terms at each of four places.
uvec4 right_quad(uint word, uint quad) {
    const uint place = place0 + 4 * quad, places = out_height * out_width;
    if (POINTWISE) {
        const uint at = data_base + min(place, places - 4);
        uvec4 rows;
        // Behind the last channel there are no weights.
        [[unroll]] for (uint i = 0; i < 4; ++i) rows[i] = data[(at + min(4 * word + i, channels - 1) * data_channel) >> 2];
        return turned(rows);
    }
    const uint taps = KERNEL_HEIGHT * KERNEL_WIDTH;
    uvec4 values = uvec4(0);
    uint ys[4], xs[4];
    [[unroll]] for (uint p = 0; p < 4; ++p) {
        const uint pixel = min(place + p, places - 1);
        ys[p] = pixel / out_width * stride_y - pad_top;
        xs[p] = pixel % out_width * stride_x - pad_left;
    }
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint term = min(4 * word + i, depth - 1), channel = term / taps, tap = term % taps;
        const uint down = tap / KERNEL_WIDTH * dilation_y, along = tap % KERNEL_WIDTH * dilation_x;
        [[unroll]] for (uint p = 0; p < 4; ++p) {
            const uint y = ys[p] + down, x = xs[p] + along;
            const bool inside = y < height && x < width;
            const uint value = byte_of(data_base + channel * data_channel + (inside ? y * width + x : 0));
            values[p] |= (inside ? value : filler) << (8 * i);
        }
    }
    return values;
}

void fetch(uint word0) {
    [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) {
        const uint at = lane + i * TEAM;
        left[i] = left_word(at / KW, word0 + at % KW);
    }
    [[unroll]] for (uint i = 0; i < RIGHT_EACH; ++i) {
        const uint at = lane + i * TEAM;
        right[i] = right_quad(word0 + at / ACROSS, at % ACROSS);
        if (UNSIGNED) right[i] ^= 0x80808080u;
    }
}

void main() {
    const uint slice = gl_LocalInvocationIndex / TEAM;
    lane = gl_LocalInvocationIndex % TEAM;
    const uint blocks = (filters + BM - 1) / BM, image = gl_WorkGroupID.z;
    group = gl_WorkGroupID.y / blocks;
    first = gl_WorkGroupID.y % blocks * BM;
    place0 = gl_WorkGroupID.x * BN;
    depth = channels * KERNEL_HEIGHT * KERNEL_WIDTH;
    words = (depth + 3) / 4;
    data_base = image * data_image + group * channels * data_channel;
    weights_base = group * weights_group;
    filler = uint(data_zero) & 0xFFu;

    const uint my_row = lane / ACROSS * TM, my_quad = lane % ACROSS;
    const uint left_base = slice * (KW * (BM + BN) / 4), right_base = left_base + KW * LEFT_ROW;
    ivec4 sums[TM];
    [[unroll]] for (uint i = 0; i < TM; ++i) sums[i] = ivec4(0);
    [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) left_sums[i] = 0;
    for (uint i = gl_LocalInvocationIndex; i < BM; i += gl_WorkGroupSize.x) row_sums[i] = 0;

    const uint turns = (words + KW * SLICES - 1) / (KW * SLICES);
    fetch(slice * KW);
    for (uint turn = 0; turn < turns; ++turn) {
        barrier();
        [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) {
            const uint at = lane + i * TEAM, row = at / KW;
            tile[left_base + at % KW * LEFT_ROW + row / 4][row % 4] = left[i];
            left_sums[i] += dot_of(left[i], 0x01010101u);
        }
        [[unroll]] for (uint i = 0; i < RIGHT_EACH; ++i) tile[right_base + lane + i * TEAM] = right[i];
        barrier();
        if (turn + 1 < turns) fetch((turn + 1) * KW * SLICES + slice * KW);
        [[unroll]] for (uint k = 0; k < KW; ++k) {
            const uvec4 b = tile[right_base + k * ACROSS + my_quad];
            [[unroll]] for (uint i = 0; i < TM; i += 4) {
                const uvec4 a = tile[left_base + k * LEFT_ROW + (my_row + i) / 4];
                [[unroll]] for (uint r = 0; r < 4; ++r) {
                    [[unroll]] for (uint c = 0; c < 4; ++c) sums[i + r][c] += dot_of(a[r], b[c]);
                }
            }
        }
    }
    [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) atomicAdd(row_sums[(lane + i * TEAM) / KW], left_sums[i]);
    barrier();
    if (SLICES > 1) {
        [[unroll]] for (uint i = 0; i < TM; ++i) tile[(slice * TM + i) * TEAM + lane] = uvec4(sums[i]);
        barrier();
    }

    const int zero = UNSIGNED ? data_zero - 128 : data_zero;
    const uint place = place0 + 4 * my_quad;
    [[unroll]] for (uint i = 0; i < TM; ++i) {
        if (i % SLICES != slice) continue;
        ivec4 sum = sums[i];
        if (SLICES > 1) {
            sum = ivec4(0);
            [[unroll]] for (uint s = 0; s < SLICES; ++s) sum += ivec4(tile[(s * TM + i) * TEAM + lane]);
        }
        const uint row = my_row + i;
        const uint places = out_height * out_width;
        if (first + row >= filters || place >= places) continue;
        const uint filter_index = group * filters + first + row;
        finish4(filter_index, image * result_image + filter_index * result_channel + place, min(places - place, 4),
                sum - zero * row_sums[row]);
    }
}
