// A convolution with groups of few channels as products of matrices of 16x8x16: a workgroup computes 16 filters at ROWS rows of
// SEGMENTS * 8 places of an image. What they read of 16 channels lies in shared memory, channels last, so that each tap of the kernel is
// a matrix there. Filters of several groups share a matrix, with zeros for channels that are not their own.
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
layout(constant_id = 3) const uint ROWS = 8;
layout(constant_id = 4) const uint SEGMENTS = 2;
// Of a group.
layout(constant_id = 5) const uint CHANNELS = 8;
layout(constant_id = 6) const uint FILTERS = 8;
layout(constant_id = 7) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 8) const uint KERNEL_WIDTH = 3;
layout(constant_id = 9) const uint STRIDE_Y = 1;
layout(constant_id = 10) const uint STRIDE_X = 1;
layout(constant_id = 11) const uint DILATION_Y = 1;
layout(constant_id = 12) const uint DILATION_X = 1;
// Blocks of 16 channels that filters of a workgroup read.
layout(constant_id = 13) const uint BLOCKS = 1;

const uint LANES = gl_WorkGroupSize.x, SUBGROUPS = LANES / 32;
const uint TAPS = KERNEL_HEIGHT * KERNEL_WIDTH;
// What is read of the image.
const uint HEIGHT = (ROWS - 1) * STRIDE_Y + (KERNEL_HEIGHT - 1) * DILATION_Y + 1;
const uint WIDTH = (SEGMENTS * 8 - 1) * STRIDE_X + (KERNEL_WIDTH - 1) * DILATION_X + 1;
const uint PIXELS = HEIGHT * WIDTH;
// Matrices of results of a subgroup.
const uint UNITS = ROWS * SEGMENTS / SUBGROUPS;

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define RESULT coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>

// Words of eight channels: two for a pixel, and two for a filter of a tap.
shared uvec4 pixels[PIXELS * 2];
shared uvec4 taps[TAPS * 32];
shared uvec4 sums[SUBGROUPS * 32];
// Whether the workgroup read what is not finite. Zeros for the channels of other groups would make NaN of it.
shared uint infinite;

uint first;          // Filter of the workgroup.
uint all_filters, all_channels;
uint first_channel;  // Of the group of that filter.

uvec4 packed(float eight[8]) {
    return uvec4(packHalf2x16(vec2(eight[0], eight[1])), packHalf2x16(vec2(eight[2], eight[3])),
                 packHalf2x16(vec2(eight[4], eight[5])), packHalf2x16(vec2(eight[6], eight[7])));
}

// Puts the channels of a block in shared memory.
void keep_pixels(uint block, uint image_base, uint top, uint left) {
    for (uint at = gl_LocalInvocationIndex; at < PIXELS * 2; at += LANES) {
        const uint pixel = at % PIXELS, octet = at / PIXELS;
        const uint y = top + pixel / WIDTH, x = left + pixel % WIDTH;  // Beyond all rows and columns where they would be negative.
        const uint channel = first_channel + block * 16 + octet * 8;
        const bool inside = y < height && x < width;
        const uint from = image_base + (inside ? y * width + x : 0);
        float eight[8];
        bool finite = true;
        [[unroll]] for (uint j = 0; j < 8; ++j) {
            const uint c = min(channel + j, all_channels - 1);
            const float value = float(data[from + c * data_channel]);
            eight[j] = inside && channel + j < all_channels ? value : 0.0;
            finite = finite && (floatBitsToUint(eight[j]) & 0x7F800000u) != 0x7F800000u;
        }
        if (!finite) atomicOr(infinite, 1u);
        pixels[pixel * 2 + octet] = packed(eight);
    }
}

void keep_taps(uint block) {
    for (uint at = gl_LocalInvocationIndex; at < TAPS * 32; at += LANES) {
        const uint tap = at / 32, r = at / 2 % 16, octet = at % 2, own = first + r;
        // The filter's own channels begin here, counted from the first of the workgroup.
        const uint begin = (own / FILTERS - first / FILTERS) * CHANNELS;
        float eight[8];
        [[unroll]] for (uint j = 0; j < 8; ++j) {
            const uint channel = block * 16 + octet * 8 + j - begin;
            eight[j] = 0.0;
            if (channel < CHANNELS && own < all_filters) eight[j] = weight_at((own * CHANNELS + channel) * TAPS + tap);
        }
        taps[at] = packed(eight);
    }
}

// The sum for a filter and a place without matrices.
float plain(uint filter_index, uint image_base, uint top, uint left) {
    float sum = 0.0;
    for (uint c = 0; c < CHANNELS; ++c) {
        const uint from = image_base + (filter_index / FILTERS * CHANNELS + c) * data_channel;
        for (uint tap = 0; tap < TAPS; ++tap) {
            const uint y = top + tap / KERNEL_WIDTH * DILATION_Y, x = left + tap % KERNEL_WIDTH * DILATION_X;
            const bool inside = y < height && x < width;
            const float value = float(data[from + (inside ? y * width + x : 0)]);
            sum += (inside ? value : 0.0) * weight_at((filter_index * CHANNELS + c) * TAPS + tap);
        }
    }
    return sum;
}

void without_matrices(uint row0, uint column0) {
    const uint across = SEGMENTS * 8;
    for (uint at = gl_LocalInvocationIndex; at < 16 * ROWS * across; at += LANES) {
        const uint filter_index = first + at / (ROWS * across), y = row0 + at / across % ROWS, x = column0 + at % across;
        if (filter_index >= all_filters || y >= out_height || x >= out_width) continue;
        const uint to = gl_WorkGroupID.z * result_image + filter_index * result_channel + y * out_width + x;
        finish(filter_index, to, plain(filter_index, gl_WorkGroupID.z * data_image, y * STRIDE_Y - pad_top, x * STRIDE_X - pad_left));
    }
}

void main() {
    if (gl_LocalInvocationIndex == 0) infinite = 0;
    barrier();
    all_filters = result_image / result_channel;
    all_channels = data_image / data_channel;
    first = gl_WorkGroupID.y * 16;
    first_channel = first / FILTERS * CHANNELS;
    const uint across = (out_width + SEGMENTS * 8 - 1) / (SEGMENTS * 8);
    const uint row0 = gl_WorkGroupID.x / across * ROWS, column0 = gl_WorkGroupID.x % across * (SEGMENTS * 8);
    const uint top = row0 * STRIDE_Y - pad_top, left = column0 * STRIDE_X - pad_left;

    RESULT results[UNITS];
    [[unroll]] for (uint u = 0; u < UNITS; ++u) results[u] = RESULT(0.0);
    for (uint block = 0; block < BLOCKS; ++block) {
        if (block > 0) barrier();
        keep_pixels(block, gl_WorkGroupID.z * data_image, top, left);
        keep_taps(block);
        barrier();
        [[unroll]] for (uint tap = 0; tap < TAPS; ++tap) {
            LEFT weights_of;
            coopMatLoad(weights_of, taps, tap * 32, 2, gl_CooperativeMatrixLayoutRowMajor);
            const uint down = tap / KERNEL_WIDTH * DILATION_Y, right = tap % KERNEL_WIDTH * DILATION_X;
            [[unroll]] for (uint u = 0; u < UNITS; ++u) {
                const uint unit = gl_SubgroupID * UNITS + u;
                const uint y = unit / SEGMENTS * STRIDE_Y + down, x = unit % SEGMENTS * 8 * STRIDE_X + right;
                RIGHT places;
                coopMatLoad(places, pixels, (y * WIDTH + x) * 2, STRIDE_X * 2, gl_CooperativeMatrixLayoutColumnMajor);
                results[u] = coopMatMulAdd(weights_of, places, results[u]);
            }
        }
    }

    if (infinite != 0) {
        without_matrices(row0, column0);
        return;
    }
    // Each lane has four neighbours of a filter.
    const uint own = gl_SubgroupID * 32, lane = gl_SubgroupInvocationID;
    const uint filter_index = first + lane / 2;
    const uint to = gl_WorkGroupID.z * result_image + filter_index * result_channel;
    [[unroll]] for (uint u = 0; u < UNITS; ++u) {
        const uint unit = gl_SubgroupID * UNITS + u;
        const uint y = row0 + unit / SEGMENTS, x = column0 + unit % SEGMENTS * 8 + lane % 2 * 4;
        coopMatStore(results[u], sums, own, 2, gl_CooperativeMatrixLayoutRowMajor);
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
        const vec4 sum = uintBitsToFloat(sums[own + lane]);
        const bool inside = filter_index < all_filters && y < out_height;
        float more[4];
        [[unroll]] for (uint j = 0; j < 4; ++j)
            more[j] = inside && x + j < out_width ? added(filter_index, to + y * out_width + x + j) : 0.0;
        [[unroll]] for (uint j = 0; j < 4; ++j)
            if (inside && x + j < out_width)
                CONCAT(STORE_, OUT)(result, to + y * out_width + x + j, activate(sum[j] + more[j], ACTIVATION));
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    }
}
