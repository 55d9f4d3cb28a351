// A convolution as a product of matrices, filters times the places' windows, that never lie in memory: a workgroup
// computes BM filters at BN places, an invocation TM x TN of them, BK terms of the sums at a time through shared memory.
// Padding and edges are zeros. Any layout; the terms are in the order in which the filters lie.
#version 450
#extension GL_GOOGLE_include_directive : require
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
layout(constant_id = 10) const bool CHANNELS_LAST = false;

shared SUM tile_weights[BK * (BM + 1)];
shared SUM tile_data[BK * (BN + 1)];

// Channel, row and column of a term.
uvec3 term_of(uint k) {
    const uint taps = KERNEL_HEIGHT * KERNEL_WIDTH;
    const uint channel = CHANNELS_LAST ? k % channels : k / taps;
    const uint tap = CHANNELS_LAST ? k / channels : k % taps;
    return uvec3(channel, tap / KERNEL_WIDTH, tap % KERNEL_WIDTH);
}

void main() {
    const uint lanes = gl_WorkGroupSize.x, lane = gl_LocalInvocationID.x, image = gl_WorkGroupID.z;
    const uint blocks = (filters + BM - 1) / BM;
    const uint group = gl_WorkGroupID.y / blocks, first = gl_WorkGroupID.y % blocks * BM;
    const uint place0 = gl_WorkGroupID.x * BN, places = out_height * out_width;
    const uint depth = channels * KERNEL_HEIGHT * KERNEL_WIDTH;
    const uint data_base = image * data_image + group * channels * data_channel;
    const uint weights_base = group * weights_group;

    // An invocation reads the windows of one place; there are as many invocations as places, or a multiple.
    const uint my_place = lane % BN, pixel = min(place0 + my_place, places - 1);
    const uint y0 = pixel / out_width * stride_y - pad_top, x0 = pixel % out_width * stride_x - pad_left;

    const uint across = BN / TN, down = BM / TM;
    const uint my_row = lane / across, my_column = lane % across;
    SUM sums[TM * TN];
    for (uint i = 0; i < TM * TN; ++i) sums[i] = SUM(0);

    for (uint k0 = 0; k0 < depth; k0 += BK) {
        for (uint i = lane; i < BM * BK; i += lanes) {
            const uint r = CHANNELS_LAST ? i % BM : i / BK, k = CHANNELS_LAST ? i / BM : i % BK;
            SUM value = SUM(0);
            if (first + r < filters && k0 + k < depth) {
                // The next term is the next tap, or with channels last the next channel.
                const uint step = CHANNELS_LAST ? weights_channel : weights_tap;
                value = weight_at(weights_base + (first + r) * weights_filter + (k0 + k) * step);
            }
            tile_weights[k * (BM + 1) + r] = value;
        }
        for (uint k = lane / BN; k < BK; k += lanes / BN) {
            SUM value = SUM(0);
            if (k0 + k < depth) {
                const uvec3 term = term_of(k0 + k);
                const uint y = y0 + term.y * dilation_y, x = x0 + term.z * dilation_x;
                if (y < height && x < width) {
                    value = data_at(data_base + term.x * data_channel + (y * width + x) * data_pixel, true);
                }
            }
            tile_data[k * (BN + 1) + my_place] = value;
        }
        barrier();
        for (uint k = 0; k < BK; ++k) {
            SUM left[TM];
            for (uint i = 0; i < TM; ++i) left[i] = tile_weights[k * (BM + 1) + my_row + i * down];
            for (uint j = 0; j < TN; ++j) {
                const SUM right = tile_data[k * (BN + 1) + my_column + j * across];
                for (uint i = 0; i < TM; ++i) sums[i * TN + j] += left[i] * right;
            }
        }
        barrier();
    }

    for (uint i = 0; i < TM; ++i) {
        const uint r = first + my_row + i * down, filter_index = group * filters + r;
        const uint row = image * result_image + filter_index * result_channel;
        for (uint j = 0; j < TN; ++j) {
            const uint place = place0 + my_column + j * across;
            if (r < filters && place < places) finish(filter_index, row + place * result_pixel, sums[i * TN + j]);
        }
    }
}
