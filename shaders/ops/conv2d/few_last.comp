// A convolution of few channels, such as the three of pictures, with the channels last, as a product of places by filters on matrix
// units: a workgroup computes BN filters at BM places of an image. Each invocation puts the window of one place into shared memory, one
// part of its terms after the other, where it is a row of the left matrix; terms lie in the order of the filters: rows, columns, channels.
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
layout(constant_id = 3) const uint BN = 64;
// Terms of a part, a multiple of 16, and parts.
layout(constant_id = 4) const uint BK = 32;
layout(constant_id = 5) const uint PARTS = 1;
layout(constant_id = 6) const uint CHANNELS = 3;
layout(constant_id = 7) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 8) const uint KERNEL_WIDTH = 3;
layout(constant_id = 9) const uint DILATION_Y = 1;
layout(constant_id = 10) const uint DILATION_X = 1;
layout(constant_id = 11) const uint SHARED_WORDS = 1024;

// Words of eight filters of a term, and of eight filters of a place.
layout(set = 0, binding = 1) readonly buffer Taps { uvec4 weights8[]; };
layout(set = 0, binding = 3) buffer Results { uvec4 result8[]; };

const uint BM = gl_WorkGroupSize.x;
const uint PACK = 8;  // Elements in 16 bytes.
// A row is a word longer than its elements, which puts neighbouring rows into different banks.
const uint OCTETS = BK / PACK, ROW = OCTETS + 1, FILTERS_ROW = BN / PACK + 1, SUMS_ROW = BN / 4 + 1;
// Each subgroup has 32 places.
const uint DOWN = 2, ACROSS = BN / 16;
const uint TERMS = KERNEL_HEIGHT * KERNEL_WIDTH * CHANNELS;

#define LEFT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define RIGHT coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define HALVES coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

// Windows and filters of a part; before them the added values of 16 places, and behind them the results.
shared uvec4 words[SHARED_WORDS];

// The first row and column of the window of this invocation's place, and where they are in memory.
uint y0, x0, from;

// A term of the window, and zero outside of the image.
float16_t term(uint k) {
    const uint ky = k / (KERNEL_WIDTH * CHANNELS), kx = k / CHANNELS % KERNEL_WIDTH, channel = k % CHANNELS;
    const uint y = ky * DILATION_Y, x = kx * DILATION_X;
    const bool inside = k < TERMS && y0 + y < height && x0 + x < width;
    const float16_t value = data[inside ? from + (y * width + x) * CHANNELS + channel : 0];
    return inside ? value : float16_t(0);
}

void keep_windows(uint part) {
    [[unroll]] for (uint octet = 0; octet < OCTETS; ++octet) {
        const uint k = part * BK + octet * PACK;
        uvec4 word;
        [[unroll]] for (uint j = 0; j < 4; ++j) word[j] = packFloat2x16(f16vec2(term(k + 2 * j), term(k + 2 * j + 1)));
        words[gl_LocalInvocationIndex * ROW + octet] = word;
    }
}

void keep_filters(uint part, uint first) {
    for (uint at = gl_LocalInvocationIndex; at < BK * (BN / PACK); at += BM) {
        const uint k = part * BK + at / (BN / PACK), filter_index = first + at % (BN / PACK) * PACK;
        const bool inside = k < TERMS && filter_index < filters;
        const uvec4 word = weights8[inside ? (k * filters + filter_index) / PACK : 0];
        words[BM * ROW + at / (BN / PACK) * FILTERS_ROW + at % (BN / PACK)] = inside ? word : uvec4(0);
    }
}

void main() {
    const uint lane = gl_LocalInvocationIndex, places = out_height * out_width;
    const uint place0 = gl_WorkGroupID.x * BM, first = gl_WorkGroupID.y * BN;
    const uint place = min(place0 + lane, places - 1);
    y0 = place / out_width * stride_y - pad_top;
    x0 = place % out_width * stride_x - pad_left;
    from = gl_WorkGroupID.z * data_image + (y0 * width + x0) * CHANNELS;

    for (uint at = lane; at < 16 * (BN / 4); at += BM) {
        const uint filter_index = first + at % (BN / 4) * 4;
        vec4 more = vec4(0);
        if (HAS_BIAS && filter_index < filters) {
            [[unroll]] for (uint j = 0; j < 4; ++j) more[j] = CONCAT(LOAD_, BIAS)(bias, filter_index + j);
        }
        words[at / (BN / 4) * SUMS_ROW + at % (BN / 4)] = floatBitsToUint(more);
    }
    barrier();
    SUMS sums[DOWN * ACROSS];
    [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
        coopMatLoad(sums[j], words, j * 4, SUMS_ROW, gl_CooperativeMatrixLayoutRowMajor);
        sums[ACROSS + j] = sums[j];
    }

    const uint my_row = gl_SubgroupID * 32;
    [[unroll]] for (uint part = 0; part < PARTS; ++part) {
        barrier();
        keep_windows(part);
        keep_filters(part, first);
        barrier();
        [[unroll]] for (uint k = 0; k < BK; k += 16) {
            LEFT left[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                coopMatLoad(left[i], words, (my_row + i * 16) * ROW + k / PACK, ROW, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
                RIGHT right;
                coopMatLoad(right, words, BM * ROW + k * FILTERS_ROW + j * 2, FILTERS_ROW, gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint i = 0; i < DOWN; ++i) sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
            }
        }
    }

    barrier();
    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            for (uint e = 0; e < sums[i * ACROSS + j].length(); ++e)
                sums[i * ACROSS + j][e] = activate(sums[i * ACROSS + j][e], ACTIVATION);
            coopMatStore(HALVES(sums[i * ACROSS + j]), words, (my_row + i * 16) * FILTERS_ROW + j * 2, FILTERS_ROW,
                         gl_CooperativeMatrixLayoutRowMajor);
        }
    }
    barrier();
    for (uint at = lane; at < BM * (BN / PACK); at += BM) {
        const uint r = at / (BN / PACK), filter_index = first + at % (BN / PACK) * PACK;
        if (place0 + r < places && filter_index < filters) {
            const uint to = gl_WorkGroupID.z * result_image + (place0 + r) * filters + filter_index;
            result8[to / PACK] = words[r * FILTERS_ROW + at % (BN / PACK)];
        }
    }
}
