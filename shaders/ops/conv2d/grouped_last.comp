// A convolution with groups of few channels, channels last, as products of matrices of 16x8x16: a workgroup computes 16 filters at ROWS
// rows of SEGMENTS * 8 places of an image. What they read of 16 channels lies in shared memory, so that each tap of the kernel is a
// matrix there. Filters of several groups share a matrix, with zeros for channels that are not their own.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#include "convolution.glsl"
#include "quads.glsl"

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

// Words of eight channels of a place, and of eight filters of a channel.
layout(set = 0, binding = 0) readonly buffer Image { uvec4 data8[]; };
layout(set = 0, binding = 1) readonly buffer Taps { uvec4 weights8[]; };
QUAD_BUFFER(2, bias4, readonly, BIAS);
QUAD_BUFFER(3, result4, , OUT);
QUAD_BUFFER(4, residual4, readonly, OUT);

const uint LANES = gl_WorkGroupSize.x, SUBGROUPS = LANES / 32;
const uint TAPS = KERNEL_HEIGHT * KERNEL_WIDTH;
// What is read of the image.
const uint HEIGHT = (ROWS - 1) * STRIDE_Y + (KERNEL_HEIGHT - 1) * DILATION_Y + 1;
const uint WIDTH = (SEGMENTS * 8 - 1) * STRIDE_X + (KERNEL_WIDTH - 1) * DILATION_X + 1;
const uint PIXELS = HEIGHT * WIDTH;
// Matrices of results of a subgroup.
const uint UNITS = ROWS * SEGMENTS / SUBGROUPS;
// Words that an invocation has on their way.
const uint AHEAD = 6;
// Whether a matrix has channels that are not a filter's own. Without ||, of which compilers make no constant.
const bool HAS_OTHERS = CHANNELS % 16 + FILTERS % 16 != 0;

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB>
#define RESULT coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>

// Two words for a pixel, and two for a channel of a tap.
shared uvec4 pixels[PIXELS * 2];
shared uvec4 taps[TAPS * 32];
shared uvec4 sums[SUBGROUPS * 32];
// Whether the workgroup read what is not finite. Zeros for the channels of other groups would make NaN of it.
shared uint infinite;

uint first;          // Filter of the workgroup.
uint all_filters, all_channels;
uint first_channel;  // Of the group of that filter.

// Whether one of eight halves is infinite or NaN: only the largest exponent carries into the sign's place.
bool is_infinite(uvec4 halves) {
    return any(notEqual(((halves & 0x7C007C00u) + 0x04000400u) & 0x80008000u, uvec4(0)));
}

// Puts the channels of a block in shared memory.
void keep_pixels(uint block, uint image_base, uint top, uint left) {
    const uint channel = first_channel + block * 16 + gl_LocalInvocationIndex % 2 * 8;
    bool is_finite = true;
    for (uint begin = 0; begin < PIXELS * 2; begin += LANES * AHEAD) {
        uvec4 words[AHEAD];
        [[unroll]] for (uint j = 0; j < AHEAD; ++j) {
            const uint pixel = (begin + j * LANES + gl_LocalInvocationIndex) / 2;
            const uint y = top + pixel / WIDTH, x = left + pixel % WIDTH;  // Beyond all rows and columns where they would be negative.
            const bool inside = y < height && x < width && channel < all_channels && pixel < PIXELS;
            const uvec4 word = data8[inside ? (image_base + (y * width + x) * all_channels + channel) / 8 : 0];
            words[j] = inside ? word : uvec4(0);
        }
        [[unroll]] for (uint j = 0; j < AHEAD; ++j) {
            const uint at = begin + j * LANES + gl_LocalInvocationIndex;
            if (HAS_OTHERS) is_finite = is_finite && !is_infinite(words[j]);
            if (at < PIXELS * 2) pixels[at] = words[j];
        }
    }
    if (HAS_OTHERS && !is_finite) atomicOr(infinite, 1u);
}

// Of two filters, ones for the halves whose filters are of a group.
uint mask(uint own, uint of_group) {
    return (own / FILTERS == of_group ? 0xFFFFu : 0u) | ((own + 1) / FILTERS == of_group ? 0xFFFF0000u : 0u);
}

void keep_taps(uint block) {
    const uint own = first + gl_LocalInvocationIndex % 2 * 8;
    [[unroll]] for (uint begin = 0; begin < TAPS * 32; begin += LANES) {
        const uint at = begin + gl_LocalInvocationIndex;
        const uint tap = at / 32, channel = block * 16 + at / 2 % 16;
        const uint of_group = first / FILTERS + channel / CHANNELS;
        const uvec4 masks = uvec4(mask(own, of_group), mask(own + 2, of_group), mask(own + 4, of_group), mask(own + 6, of_group));
        const bool is_there = tap < TAPS && own < all_filters && masks != uvec4(0);
        const uvec4 word = weights8[is_there ? ((tap * CHANNELS + channel % CHANNELS) * all_filters + own) / 8 : 0];
        if (tap < TAPS) taps[at] = is_there ? word & masks : uvec4(0);
    }
}

// The sum for a filter and a place without matrices.
float plain(uint filter_index, uint image_base, uint top, uint left) {
    float sum = 0.0;
    const uint from = image_base + filter_index / FILTERS * CHANNELS;
    for (uint tap = 0; tap < TAPS; ++tap) {
        const uint y = top + tap / KERNEL_WIDTH * DILATION_Y, x = left + tap % KERNEL_WIDTH * DILATION_X;
        const bool inside = y < height && x < width;
        for (uint c = 0; c < CHANNELS; ++c) {
            const float value = float(data[from + (inside ? (y * width + x) * all_channels + c : 0)]);
            sum += (inside ? value : 0.0) * weight_at((tap * CHANNELS + c) * all_filters + filter_index);
        }
    }
    return sum;
}

void without_matrices(uint row0, uint column0) {
    const uint across = SEGMENTS * 8;
    for (uint at = gl_LocalInvocationIndex; at < 16 * ROWS * across; at += LANES) {
        const uint filter_index = first + at % 16, x = column0 + at / 16 % across, y = row0 + at / (16 * across);
        if (filter_index >= all_filters || y >= out_height || x >= out_width) continue;
        const uint to = gl_WorkGroupID.z * result_image + (y * out_width + x) * all_filters + filter_index;
        finish(filter_index, to, plain(filter_index, gl_WorkGroupID.z * data_image, y * STRIDE_Y - pad_top, x * STRIDE_X - pad_left));
    }
}

void main() {
    if (gl_LocalInvocationIndex == 0) infinite = 0;
    barrier();
    // Channels are next to each other.
    all_filters = result_pixel;
    all_channels = data_pixel;
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
            coopMatLoad(weights_of, taps, tap * 32, 2, gl_CooperativeMatrixLayoutColumnMajor);
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

    if (HAS_OTHERS && infinite != 0) {
        without_matrices(row0, column0);
        return;
    }
    // Each lane has four neighbouring filters of a place.
    const uint own = gl_SubgroupID * 32, lane = gl_SubgroupInvocationID;
    const uint quad = first / 4 + lane % 4, quads = all_filters / 4;
    const uint to = gl_WorkGroupID.z * (result_image / 4) + quad;
    vec4 more[UNITS];
    uint there[UNITS];
    const vec4 shift = HAS_BIAS && quad < quads ? CONCAT(LOAD4_, BIAS)(bias4, quad) : vec4(0);
    // All are read before any is stored: after a store, a device has to assume that it changed what is read.
    [[unroll]] for (uint u = 0; u < UNITS; ++u) {
        const uint unit = gl_SubgroupID * UNITS + u;
        const uint y = row0 + unit / SEGMENTS, x = column0 + unit % SEGMENTS * 8 + lane / 4;
        const bool inside = quad < quads && y < out_height && x < out_width;
        there[u] = inside ? to + (y * out_width + x) * quads : ~0u;
        more[u] = shift;
        if (HAS_RESIDUAL && inside) more[u] += CONCAT(LOAD4_, OUT)(residual4, there[u]);
    }
    [[unroll]] for (uint u = 0; u < UNITS; ++u) {
        coopMatStore(results[u], sums, own, 4, gl_CooperativeMatrixLayoutColumnMajor);
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
        const vec4 sum = uintBitsToFloat(sums[own + lane]) + more[u];
        if (there[u] != ~0u) CONCAT(STORE4_, OUT)(result4, there[u], activate(sum, ACTIVATION));
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    }
}
