// A transposed convolution with one or two taps a stride apart each way, channels before rows: an invocation computes 16 filters
// for a patch of results a stride apart, ROWS rows of two, and reads each element that they meet once. Such results use the same
// taps: TAPS_Y x TAPS_X of them, from one of COUNT_Y x COUNT_X places of the kernel on, which workgroups share out. For devices
// that run on a CPU, as conv2d's patches: each invocation of a subgroup reads the weights of other filters and gives them to all.
// What lies outside of the image is multiplied as zeros, and results that are no numbers, as infinite weights make them then, are
// computed again. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#define COUNTS_IMAGES
#include "convolution.glsl"
#include "limits.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;
layout(constant_id = 5) const uint TAPS_Y = 2;
layout(constant_id = 6) const uint TAPS_X = 2;
layout(constant_id = 7) const uint FIRST_Y = 0;  // The first place of the kernel that is a first tap.
layout(constant_id = 8) const uint FIRST_X = 0;
layout(constant_id = 9) const uint COUNT_Y = 1;
layout(constant_id = 10) const uint COUNT_X = 1;

const uint ROWS = 4;
const uint FILTERS = 16;

#define EACH_HELD(F) F(0) F(1)
#define EACH_SHARED(F, h) F(h, 0) F(h, 1) F(h, 2) F(h, 3) F(h, 4) F(h, 5) F(h, 6) F(h, 7)
#define EACH_READ(F) F(0) F(1) F(2) F(3) F(4)
#define EACH_COLUMN(F) F(0) F(1) F(2)
// Rows of results, the row under the first tap and the one under the second.
#define EACH_RESULT(F, h, i) F(h, i, 0, 1, 0) F(h, i, 1, 2, 1) F(h, i, 2, 3, 2) F(h, i, 3, 4, 3)

// Of places of the result that a first tap meets: the first one, and the distance of its element from the place's number.
uvec2 phase_of(uint tap, uint stride, uint pad) {
    const uint phase = (tap + stride - pad % stride) % stride;
    return uvec2(phase, (phase + pad) / stride);
}

// A sum with those terms alone that there are, of a filter with the weights from `weight` on; `y` and `x` are those of the element
// under the first tap, `at` where channels begin.
float careful(float sum, uint weight, uint at, uint y, uint x) {
    for (uint tap = 0; tap < TAPS_Y * TAPS_X; ++tap) {
        const uint down = tap / TAPS_X, right = tap % TAPS_X, row = y - down, column = x - right;
        if (row >= height || column >= width) continue;
        const uint from = weight + (down * stride_y * kernel_width + right * stride_x);
        for (uint c = 0; c < channels; ++c) {
            sum = fma(weight_at(from + c * weights_channel), data_at(at + c * data_channel + row * width + column, true), sum);
        }
    }
    return sum;
}

void main() {
    const uint kind = gl_WorkGroupID.z;
    const uint tap_y = FIRST_Y + kind / COUNT_X, tap_x = FIRST_X + kind % COUNT_X;
    const uvec2 down = phase_of(tap_y, stride_y, pad_top), right = phase_of(tap_x, stride_x, pad_left);

    const uint blocks = (filters + FILTERS - 1) / FILTERS;
    const uint group = gl_WorkGroupID.y / blocks, first = (gl_WorkGroupID.y - group * blocks) * FILTERS;
    const uint across = (out_width + 2 * stride_x - 1) / (2 * stride_x);
    const uint patches = (out_height + ROWS * stride_y - 1) / (ROWS * stride_y) * across;
    // Patches of all images come one after the other, so that small images fill subgroups.
    const uint image = min(gl_GlobalInvocationID.x / patches, images - 1), number = gl_GlobalInvocationID.x % patches;
    const uint row = number / across * ROWS, column = number % across * 2;
    const uint y = down.x + row * stride_y, x = right.x + column * stride_x;
    const uint base = image * data_image + group * channels * data_channel;

    // Of the element under the second tap of the first result. The numbers wrap around, and are too large where they are negative.
    const uint top = row + down.y - 1, left = column + right.y - 1;
#define FIND_COLUMN(c) \
    const bool across##c = left + c < width; \
    const uint column##c = across##c ? left + c : 0;
#define FIND_ROW(r) \
    const bool down##r = top + r < height; \
    uint row##r = base + (down##r ? (top + r) * width : 0);
    EACH_COLUMN(FIND_COLUMN)
    EACH_READ(FIND_ROW)

    // Filters that are not there are computed as the last one, and not stored. Sums begin with the bias. There is always
    // something to read: without a bias, its buffer is that of the weights.
    const uint tap = tap_y * kernel_width + tap_x, below = stride_y * kernel_width;
#define FIND(h) \
    const uint filter##h = min(first + h * SUBGROUP + gl_SubgroupInvocationID % SUBGROUP, filters - 1); \
    uint weight##h = group * weights_group + filter##h * weights_filter + tap; \
    const SUM bias##h = SUM(CONCAT(LOAD_, BIAS)(bias, group * filters + filter##h)); \
    const SUM start##h = HAS_BIAS ? bias##h : SUM(0);
    EACH_HELD(FIND)
#define BEGIN(h, i, r, p, q) vec2 sum##h##_##i##_##r = vec2(FROM_INVOCATION(start##h, i));
#define BEGINS(h, i) EACH_RESULT(BEGIN, h, i)
#define BEGIN_ALL(h) EACH_SHARED(BEGINS, h)
    EACH_HELD(BEGIN_ALL)

    for (uint c = 0; c < channels; ++c) {
#define AT(r, c) data_at(row##r + column##c, down##r && across##c)
#define READ_ROW(r) \
    const SUM middle##r = AT(r, 1); \
    const vec2 near##r = vec2(middle##r, AT(r, 2)), far##r = vec2(AT(r, 0), middle##r);
        EACH_READ(READ_ROW)
#define HOLD(h) \
    const SUM held##h##_0 = weight_at(weight##h); \
    const SUM held##h##_1 = TAPS_X > 1 ? weight_at(weight##h + stride_x) : SUM(0); \
    const SUM held##h##_2 = TAPS_Y > 1 ? weight_at(weight##h + below) : SUM(0); \
    const SUM held##h##_3 = TAPS_Y > 1 && TAPS_X > 1 ? weight_at(weight##h + below + stride_x) : SUM(0);
        EACH_HELD(HOLD)
#define ADD(h, i, r, weight, values) sum##h##_##i##_##r = fma(vec2(weight), values, sum##h##_##i##_##r);
#define MULTIPLY_0(h, i, r, p, q) ADD(h, i, r, g0, near##p)
#define MULTIPLY_1(h, i, r, p, q) ADD(h, i, r, g1, far##p)
#define MULTIPLY_2(h, i, r, p, q) ADD(h, i, r, g2, near##q)
#define MULTIPLY_3(h, i, r, p, q) ADD(h, i, r, g3, far##q)
#define GIVEN(h, t, i) const SUM g##t = FROM_INVOCATION(held##h##_##t, i);
#define MULTIPLIES(h, i) \
        { \
            GIVEN(h, 0, i) EACH_RESULT(MULTIPLY_0, h, i) \
            if (TAPS_X > 1) { GIVEN(h, 1, i) EACH_RESULT(MULTIPLY_1, h, i) } \
            if (TAPS_Y > 1) { \
                GIVEN(h, 2, i) EACH_RESULT(MULTIPLY_2, h, i) \
                if (TAPS_X > 1) { GIVEN(h, 3, i) EACH_RESULT(MULTIPLY_3, h, i) } \
            } \
        }
#define MULTIPLY_ALL(h) EACH_SHARED(MULTIPLIES, h)
        EACH_HELD(MULTIPLY_ALL)
#define NEXT_ROW(r) row##r += data_channel;
        EACH_READ(NEXT_ROW)
#define NEXT(h) weight##h += weights_channel;
        EACH_HELD(NEXT)
    }

    // The code that stores is there once, and not for every result.
    vec2 results[FILTERS * ROWS];
    uvec2 most = uvec2(0);
#define KEEP(h, i, r, p, q) \
    results[(h * SUBGROUP + i) * ROWS + r] = limited(sum##h##_##i##_##r, LEAST, MOST); \
    most = max(most, floatBitsToUint(sum##h##_##i##_##r) & 0x7FFFFFFFu);
#define KEEPS(h, i) EACH_RESULT(KEEP, h, i)
#define KEEP_ALL(h) EACH_SHARED(KEEPS, h)
    EACH_HELD(KEEP_ALL)
    if (y >= out_height || x >= out_width || gl_GlobalInvocationID.x >= patches * images) return;
    const uint there = min(filters - first, FILTERS), rows = min((out_height - y + stride_y - 1) / stride_y, ROWS);
    if (max(most.x, most.y) > 0x7F800000u) {
        for (uint k = 0; k < there * rows * 2; ++k) {
            const uint f = k / (rows * 2), r = k / 2 % rows, from = group * weights_group + (first + f) * weights_filter + tap;
            const float start = HAS_BIAS ? CONCAT(LOAD_, BIAS)(bias, group * filters + first + f) : 0.0;
            const float sum = careful(start, from, base, top + r + 1, left + k % 2 + 1);
            results[f * ROWS + r][k % 2] = limited(sum, LEAST, MOST);
        }
    }
    uint at = image * result_image + (group * filters + first) * result_channel + y * out_width + x;
    for (uint f = 0; f < there; ++f) {
        for (uint r = 0; r < rows; ++r) {
            const uint here = at + r * stride_y * out_width;
            CONCAT(STORE_, OUT)(result, here, results[f * ROWS + r].x);
            if (x + stride_x < out_width) CONCAT(STORE_, OUT)(result, here + stride_x, results[f * ROWS + r].y);
        }
        at += result_channel;
    }
}
