// A convolution of one group, channels last, as products of places by filters with cooperative matrices: a workgroup computes BM places
// by BN filters. What its places read of BC channels lies in shared memory once, with the halo around them, and each tap of the kernel is
// a matrix there that begins elsewhere.
//
// Places are counted through rows that are PADDED places longer than those of the result, and images that have as many rows more: what
// lies outside of the image on the right is what lies outside on the left of the next row, so that all zeros that taps read are there,
// and each tap lies at one distance from all places. Results at those places are not stored. With strides, places of the image lie in
// STRIDE_Y * STRIDE_X planes, of rows and columns whose numbers have the same remainders.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 128;
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint BC = 32;
layout(constant_id = 4) const uint WM = 64;
layout(constant_id = 5) const uint WN = 32;
layout(constant_id = 6) const uint PIECES = 2;       // Divides a subgroup's matrices below one another; up to 4.
layout(constant_id = 7) const uint ADDED = 0;
layout(constant_id = 8) const uint ACTIVATION = 0;
layout(constant_id = 9) const uint KERNEL_HEIGHT = 3;
layout(constant_id = 10) const uint KERNEL_WIDTH = 3;
layout(constant_id = 11) const uint STRIDE_Y = 1;
layout(constant_id = 12) const uint STRIDE_X = 1;
layout(constant_id = 13) const uint DILATION_Y = 1;
layout(constant_id = 14) const uint DILATION_X = 1;
layout(constant_id = 15) const uint PAD_TOP = 1;
layout(constant_id = 16) const uint PAD_LEFT = 1;
// Places of a plane in shared memory, and how many of them lie before the workgroup's first.
layout(constant_id = 17) const uint HALO = 256;
layout(constant_id = 18) const uint BEFORE = 58;
layout(constant_id = 19) const uint WORDS = 2048;    // Of shared memory.
layout(constant_id = 20) const bool EVEN = false;    // BC divides the channels, and BN the filters.

#define ADDS_BEHIND
#include "activation.glsl"
#include "added.glsl"

layout(set = 0, binding = 0) readonly buffer Image { uvec4 image[]; };
layout(set = 0, binding = 1) readonly buffer Filters { uvec4 weights[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uvec2 result[]; };
layout(set = 0, binding = 3) readonly buffer Bias { uvec2 bias[]; };
layout(set = 0, binding = 4) readonly buffer Residual { uvec2 residual[]; };

layout(push_constant) uniform Shape {
    uint images, height, width, out_height, out_width;
    uint pitch, lines;    // Places of a row, and rows of an image, as they are counted.
    uint channel_words;   // Words of eight channels, and of eight filters.
    uint filter_words;
    // Words before the first of the image, and from one place to the next; quads before the first result, and from one to the next.
    uint first, place_words, out_first, out_quads;
};

const uint TAPS = KERNEL_HEIGHT * KERNEL_WIDTH, PLANES = STRIDE_Y * STRIDE_X;
const uint LANES = gl_WorkGroupSize.x;
// Rows are a word longer than their channels or filters: neighbours lie in different banks.
const uint PLACE = BC / 8 + 1, ROW = BN / 8 + 1;
const uint IMAGE_WORDS = PLANES * HALO * PLACE, TAP = BC * ROW;
const uint DOWN = WM / 16, ACROSS = WN / 16;
// Words of a tap's filters for each invocation.
const uint EACH = (BC * (BN / 8) + LANES - 1) / LANES;
// Words of the image that an invocation has on their way.
const uint AHEAD = 12;
const uint SUMS_ROW = BN / 4 + 1, STRIP = WM / PIECES, PIECE_QUADS = BM / PIECES * (BN / 4);
const uint CHUNK = 4;

// Places of the image, the filters of two taps, and in the end sums.
shared uvec4 words[WORDS];

#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

uvec4 next_taps[EACH];
uint place0, filter0;
SUM sums[DOWN * ACROSS];

// The larger whole number that is not above a / b.
int floor_divide(int a, int b) {
    return (a + b * 1024) / b - 1024;
}

// Reads the filters of a tap for some channels.
void fetch_taps(uint tap, uint channel0) {
    [[unroll]] for (uint i = 0; i < EACH; ++i) {
        const uint at = gl_LocalInvocationIndex + i * LANES;
        const uint channel = channel0 + at / (BN / 8), word = filter0 / 8 + at % (BN / 8);
        const bool inside = EVEN || channel < channel_words * 8 && word < filter_words;
        const uint from = (tap * channel_words * 8 + channel) * filter_words + word;
        if (BC * (BN / 8) % LANES == 0 || at < BC * (BN / 8)) next_taps[i] = weights[inside ? from : 0];
        if (!inside) next_taps[i] = uvec4(0);
    }
}

void keep_taps(uint stage) {
    [[unroll]] for (uint i = 0; i < EACH; ++i) {
        const uint at = gl_LocalInvocationIndex + i * LANES;
        if (BC * (BN / 8) % LANES == 0 || at < BC * (BN / 8))
            words[IMAGE_WORDS + stage * TAP + at / (BN / 8) * ROW + at % (BN / 8)] = next_taps[i];
    }
}

// Puts some channels of all that the places read into shared memory.
void keep_image(uint channel0) {
    const uint count = PLANES * HALO * (BC / 8);
    for (uint begin = 0; begin < count; begin += LANES * AHEAD) {
        uvec4 read[AHEAD];
        [[unroll]] for (uint j = 0; j < AHEAD; ++j) {
            const uint at = begin + j * LANES + gl_LocalInvocationIndex;
            const uint of = at / (BC / 8), word = channel0 / 8 + at % (BC / 8);
            const uint plane = of / HALO;
            // Where it is among all places of the plane. Those before the first are beyond all images.
            const uint place = place0 + of % HALO - BEFORE;
            const uint line = place / pitch;
            const uint y = line % lines * STRIDE_Y + plane / STRIDE_X, x = place % pitch * STRIDE_X + plane % STRIDE_X;
            const bool inside = line / lines < images && y < height && x < width && line % lines < out_height && place % pitch < out_width
                                && word < channel_words && at < count;
            const uint from = ((line / lines * height + y) * width + x) * place_words + word;
            read[j] = image[first + (inside ? from : 0)];
            if (!inside) read[j] = uvec4(0);
        }
        [[unroll]] for (uint j = 0; j < AHEAD; ++j) {
            const uint at = begin + j * LANES + gl_LocalInvocationIndex;
            if (at < count) words[at / (BC / 8) * PLACE + at % (BC / 8)] = read[j];
        }
    }
}

// Adds the products of a tap to the sums of a subgroup.
void multiply(uint tap, uint stage, uint my_row, uint my_column) {
    const int down = int(tap / KERNEL_WIDTH * DILATION_Y) - int(PAD_TOP), right = int(tap % KERNEL_WIDTH * DILATION_X) - int(PAD_LEFT);
    const int lines_down = floor_divide(down, int(STRIDE_Y)), columns_right = floor_divide(right, int(STRIDE_X));
    const uint plane = uint(down - lines_down * int(STRIDE_Y)) * STRIDE_X + uint(right - columns_right * int(STRIDE_X));
    const uint begin = plane * HALO + uint(int(BEFORE) + lines_down * int(pitch) + columns_right) + my_row;
    [[unroll]] for (uint c = 0; c < BC; c += 16) {
        coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left[DOWN];
        [[unroll]] for (uint i = 0; i < DOWN; ++i)
            coopMatLoad(left[i], words, (begin + i * 16) * PLACE + c / 8, PLACE, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right_of;
            coopMatLoad(right_of, words, IMAGE_WORDS + stage * TAP + c * ROW + (my_column + j * 16) / 8, ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < DOWN; ++i) sums[i * ACROSS + j] = coopMatMulAdd(left[i], right_of, sums[i * ACROSS + j]);
        }
    }
}

vec4 unpacked(uvec2 quad) {
    return vec4(unpackFloat2x16(quad.x), unpackFloat2x16(quad.y));
}

// Of a quad of a piece: its place among all as they are counted, and its filter.
uvec2 quad_place(uint piece, uint quad) {
    const uint r = quad / (BN / 4);
    return uvec2(place0 + r / STRIP * WM + piece * STRIP + r % STRIP, filter0 + quad % (BN / 4) * 4);
}

// The number of a result's place; none where there is no result.
uint result_place(uvec2 at) {
    const uint line = at.x / pitch, x = at.x % pitch, y = line % lines, number = line / lines;
    const bool inside = number < images && y < out_height && x < out_width && at.y < filter_words * 8;
    return inside ? (number * out_height + y) * out_width + x : ~0u;
}

// Stores the results of a piece. `piece` is a constant at each call: sums whose index compilers do not know go to memory.
void finish(uint piece, uint my_row, uint my_column) {
    barrier();
    [[unroll]] for (uint i = 0; i < DOWN / PIECES; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j)
            coopMatStore(sums[(piece * (DOWN / PIECES) + i) * ACROSS + j], words,
                         (my_row / PIECES + i * 16) * SUMS_ROW + (my_column + j * 16) / 4, SUMS_ROW, gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    for (uint begin = gl_LocalInvocationIndex; begin < PIECE_QUADS; begin += CHUNK * LANES) {
        uint places[CHUNK];
        uvec2 more[CHUNK];
        vec4 values[CHUNK];
        // All are read before any is stored: after a store, a device has to assume that it changed what is read.
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
            const uint quad = begin + i * LANES;
            const uvec2 at = quad_place(piece, quad);
            places[i] = quad < PIECE_QUADS ? result_place(at) : ~0u;
            const uint known = places[i] == ~0u ? 0 : 1;
            values[i] = vec4(0.0);
            if (HAS_BIAS) values[i] = unpacked(bias[known * at.y / 4]);
            if (HAS_RESIDUAL) more[i] = residual[known * (places[i] * filter_words * 2 + at.y / 4)];
        }
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
            if (places[i] == ~0u) continue;
            const uint quad = begin + i * LANES;
            vec4 sum = uintBitsToFloat(words[quad / (BN / 4) * SUMS_ROW + quad % (BN / 4)]) + values[i];
            if (HAS_RESIDUAL && !RESIDUAL_BEHIND) sum += unpacked(more[i]);
            sum = activate(sum, ACTIVATION);
            if (HAS_RESIDUAL && RESIDUAL_BEHIND) sum += unpacked(more[i]);
            result[out_first + places[i] * out_quads + (filter0 + quad % (BN / 4) * 4) / 4] =
                uvec2(packFloat2x16(f16vec2(sum.xy)), packFloat2x16(f16vec2(sum.zw)));
        }
    }
}

void main() {
    place0 = gl_WorkGroupID.x * BM;
    filter0 = gl_WorkGroupID.y * BN;
    const uint my_row = gl_SubgroupID / (BN / WN) * WM, my_column = gl_SubgroupID % (BN / WN) * WN;
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i) sums[i] = SUM(0.0);
    const uint channels = channel_words * 8;
    uint stage = 0;
    fetch_taps(0, 0);
    for (uint channel0 = 0; channel0 < channels; channel0 += BC) {
        keep_image(channel0);
        keep_taps(stage);
        barrier();
        [[unroll]] for (uint tap = 0; tap < TAPS; ++tap) {
            const bool last = tap + 1 == TAPS;
            if (!last) {
                fetch_taps(tap + 1, channel0);
            } else if (channel0 + BC < channels) {
                fetch_taps(0, channel0 + BC);
            }
            multiply(tap, stage, my_row, my_column);
            stage ^= 1;
            if (!last) keep_taps(stage);
            barrier();
        }
    }
    finish(0, my_row, my_column);
    if (PIECES > 1) finish(1, my_row, my_column);
    if (PIECES > 2) finish(2, my_row, my_column);
    if (PIECES > 3) finish(3, my_row, my_column);
}
