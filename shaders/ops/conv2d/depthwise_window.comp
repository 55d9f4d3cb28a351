// A convolution whose groups have one channel each, with any kernel, strides and dilations, channels before rows: an
// invocation computes ROWS rows of ACROSS neighbours of one filter, which a workgroup shares, and reads each element that
// these need once. Sizes of the kernel are constants, so that all loops over it are written out. For devices that run on a
// CPU: the weights are read by one invocation of a subgroup each, which gives them to the others.
#version 450
#define DEPTHWISE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "limits.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;
layout(constant_id = 5) const uint ROWS = 4;
layout(constant_id = 6) const uint ACROSS = 4;
layout(constant_id = 7) const uint KERNEL_Y = 3;
layout(constant_id = 8) const uint KERNEL_X = 3;
layout(constant_id = 9) const uint STRIDE_Y = 1;
layout(constant_id = 10) const uint STRIDE_X = 1;
layout(constant_id = 11) const uint DILATION_Y = 1;
layout(constant_id = 12) const uint DILATION_X = 1;
// Whether rows of results are whole quads, and rows of a patch too.
layout(constant_id = 13) const bool QUADS = false;

QUAD_BUFFER(3, result4, , OUT);

const uint TAPS = KERNEL_Y * KERNEL_X;
const uint HELD = (TAPS + SUBGROUP - 1) / SUBGROUP;
// Rows and columns of the input under a patch of results.
const uint DOWN = (ROWS - 1) * STRIDE_Y + (KERNEL_Y - 1) * DILATION_Y + 1;
const uint WIDE = (ACROSS - 1) * STRIDE_X + (KERNEL_X - 1) * DILATION_X + 1;

// Whether some result meets a row or column of those.
bool met(uint at, uint results, uint stride, uint kernel, uint dilation) {
    bool any = false;
    [[unroll]] for (uint r = 0; r < results; ++r) {
        const uint tap = at - r * stride;
        any = any || (at >= r * stride && tap % dilation == 0 && tap / dilation < kernel);
    }
    return any;
}

vec4 finished(vec4 value) {
    return ACTIVATION > 2 ? activate(value, ACTIVATION) : limited(value, LEAST, MOST);
}

void main() {
    const uint filter_index = gl_WorkGroupID.y, image = gl_WorkGroupID.z, group = filter_index / filters;
    const uint lane = gl_SubgroupInvocationID % SUBGROUP;
    // Patches that are not there are computed as the last one, and not stored.
    const uint patches = (out_width + ACROSS - 1) / ACROSS, count = (out_height + ROWS - 1) / ROWS * patches;
    const uint index = min(gl_GlobalInvocationID.x, count - 1), down = index / patches;
    const uint row = down * ROWS, column = (index - down * patches) * ACROSS;
    const int y = int(row * STRIDE_Y) - int(pad_top), x = int(column * STRIDE_X) - int(pad_left);
    const uint base = image * data_image + group * data_channel;

    SUM held[HELD];
    [[unroll]] for (uint h = 0; h < HELD; ++h) held[h] = weight_at(filter_index * TAPS + min(h * SUBGROUP + lane, TAPS - 1));
    SUM start = SUM(0);
    if (HAS_BIAS) start = SUM(CONCAT(LOAD_, BIAS)(bias, filter_index));
    SUM sums[ROWS * ACROSS];
    [[unroll]] for (uint i = 0; i < ROWS * ACROSS; ++i) sums[i] = start;

    [[unroll]] for (uint i = 0; i < DOWN; ++i) {
        if (met(i, ROWS, STRIDE_Y, KERNEL_Y, DILATION_Y)) {
            const bool inside = uint(y + int(i)) < height;
            const uint from = base + (inside ? uint(y + int(i)) * width : 0);
            SUM values[WIDE];
            [[unroll]] for (uint j = 0; j < WIDE; ++j) {
                if (met(j, ACROSS, STRIDE_X, KERNEL_X, DILATION_X)) {
                    const bool there = uint(x + int(j)) < width;
                    values[j] = data_at(from + (there ? uint(x + int(j)) : 0), inside && there);
                }
            }
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                const uint tap = i - r * STRIDE_Y;
                if (i >= r * STRIDE_Y && tap % DILATION_Y == 0 && tap / DILATION_Y < KERNEL_Y) {
                    [[unroll]] for (uint kx = 0; kx < KERNEL_X; ++kx) {
                        const uint t = tap / DILATION_Y * KERNEL_X + kx;
                        const SUM weight = FROM_INVOCATION(held[t / SUBGROUP], t % SUBGROUP);
                        [[unroll]] for (uint a = 0; a < ACROSS; ++a)
                            sums[r * ACROSS + a] = fma(weight, values[a * STRIDE_X + kx * DILATION_X], sums[r * ACROSS + a]);
                    }
                }
            }
        }
    }

    if (gl_GlobalInvocationID.x != index) return;
    const uint to = image * result_image + filter_index * result_channel + row * out_width + column;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (row + r < out_height) {
            if (QUADS) {
                [[unroll]] for (uint a = 0; a < ACROSS; a += 4) {
                    const uint i = r * ACROSS + a;
                    const vec4 four = finished(vec4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
                    if (column + a < out_width) CONCAT(STORE4_, OUT)(result4, (to + r * out_width + a) / 4, four);
                }
            } else {
                [[unroll]] for (uint a = 0; a < ACROSS; ++a) {
                    if (column + a < out_width) {
                        CONCAT(STORE_, OUT)(result, to + r * out_width + a, finished(vec4(sums[r * ACROSS + a])).x);
                    }
                }
            }
        }
    }
}
