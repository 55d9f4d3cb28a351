// A convolution whose groups have one channel each, with a kernel of KERNEL x KERNEL, strides of STRIDE both ways and no
// dilation, channels before rows: an invocation computes four rows of four neighbours of one filter, which a workgroup shares,
// and reads each element that these need once. All is written out by the preprocessor: SwiftShader keeps in memory what loops
// index, and executes both sides of a branch.
#version 450
#define DEPTHWISE
#extension GL_GOOGLE_include_directive : require
#include "exchange.glsl"
#include "convolution.glsl"
#include "limits.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LEAST = 0xFF800000;
layout(constant_id = 4) const uint MOST = 0x7F800000;
// Whether rows of results are whole quads.
layout(constant_id = 5) const bool QUADS = false;

QUAD_BUFFER(3, result4, , OUT);

// Rows of the input under four rows of results, each with the rows of results that it meets and the row of taps that these have
// on it; columns of the input under four results.
#if KERNEL == 5 && STRIDE == 1
#define EACH_ROW(ROW, MEET) \
    ROW(0) MEET(0, 0, 0) ROW(1) MEET(1, 0, 1) MEET(1, 1, 0) ROW(2) MEET(2, 0, 2) MEET(2, 1, 1) MEET(2, 2, 0) ROW(3) \
    MEET(3, 0, 3) MEET(3, 1, 2) MEET(3, 2, 1) MEET(3, 3, 0) ROW(4) MEET(4, 0, 4) MEET(4, 1, 3) MEET(4, 2, 2) \
    MEET(4, 3, 1) ROW(5) MEET(5, 1, 4) MEET(5, 2, 3) MEET(5, 3, 2) ROW(6) MEET(6, 2, 4) MEET(6, 3, 3) ROW(7) \
    MEET(7, 3, 4)
#define EACH_COLUMN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#define EACH_ELEMENT(F, i) \
    F(i, 0) F(i, 1) F(i, 2) F(i, 3) F(i, 4) F(i, 5) F(i, 6) F(i, 7)
#elif KERNEL == 5 && STRIDE == 2
#define EACH_ROW(ROW, MEET) \
    ROW(0) MEET(0, 0, 0) ROW(1) MEET(1, 0, 1) ROW(2) MEET(2, 0, 2) MEET(2, 1, 0) ROW(3) MEET(3, 0, 3) MEET(3, 1, 1) \
    ROW(4) MEET(4, 0, 4) MEET(4, 1, 2) MEET(4, 2, 0) ROW(5) MEET(5, 1, 3) MEET(5, 2, 1) ROW(6) MEET(6, 1, 4) \
    MEET(6, 2, 2) MEET(6, 3, 0) ROW(7) MEET(7, 2, 3) MEET(7, 3, 1) ROW(8) MEET(8, 2, 4) MEET(8, 3, 2) ROW(9) \
    MEET(9, 3, 3) ROW(10) MEET(10, 3, 4)
#define EACH_COLUMN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10)
#define EACH_ELEMENT(F, i) \
    F(i, 0) F(i, 1) F(i, 2) F(i, 3) F(i, 4) F(i, 5) F(i, 6) F(i, 7) F(i, 8) F(i, 9) F(i, 10)
#elif KERNEL == 7 && STRIDE == 1
#define EACH_ROW(ROW, MEET) \
    ROW(0) MEET(0, 0, 0) ROW(1) MEET(1, 0, 1) MEET(1, 1, 0) ROW(2) MEET(2, 0, 2) MEET(2, 1, 1) MEET(2, 2, 0) ROW(3) \
    MEET(3, 0, 3) MEET(3, 1, 2) MEET(3, 2, 1) MEET(3, 3, 0) ROW(4) MEET(4, 0, 4) MEET(4, 1, 3) MEET(4, 2, 2) \
    MEET(4, 3, 1) ROW(5) MEET(5, 0, 5) MEET(5, 1, 4) MEET(5, 2, 3) MEET(5, 3, 2) ROW(6) MEET(6, 0, 6) MEET(6, 1, 5) \
    MEET(6, 2, 4) MEET(6, 3, 3) ROW(7) MEET(7, 1, 6) MEET(7, 2, 5) MEET(7, 3, 4) ROW(8) MEET(8, 2, 6) MEET(8, 3, 5) \
    ROW(9) MEET(9, 3, 6)
#define EACH_COLUMN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
#define EACH_ELEMENT(F, i) \
    F(i, 0) F(i, 1) F(i, 2) F(i, 3) F(i, 4) F(i, 5) F(i, 6) F(i, 7) F(i, 8) F(i, 9)
#elif KERNEL == 7 && STRIDE == 2
#define EACH_ROW(ROW, MEET) \
    ROW(0) MEET(0, 0, 0) ROW(1) MEET(1, 0, 1) ROW(2) MEET(2, 0, 2) MEET(2, 1, 0) ROW(3) MEET(3, 0, 3) MEET(3, 1, 1) \
    ROW(4) MEET(4, 0, 4) MEET(4, 1, 2) MEET(4, 2, 0) ROW(5) MEET(5, 0, 5) MEET(5, 1, 3) MEET(5, 2, 1) ROW(6) \
    MEET(6, 0, 6) MEET(6, 1, 4) MEET(6, 2, 2) MEET(6, 3, 0) ROW(7) MEET(7, 1, 5) MEET(7, 2, 3) MEET(7, 3, 1) ROW(8) \
    MEET(8, 1, 6) MEET(8, 2, 4) MEET(8, 3, 2) ROW(9) MEET(9, 2, 5) MEET(9, 3, 3) ROW(10) MEET(10, 2, 6) \
    MEET(10, 3, 4) ROW(11) MEET(11, 3, 5) ROW(12) MEET(12, 3, 6)
#define EACH_COLUMN(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define EACH_ELEMENT(F, i) \
    F(i, 0) F(i, 1) F(i, 2) F(i, 3) F(i, 4) F(i, 5) F(i, 6) F(i, 7) F(i, 8) F(i, 9) F(i, 10) F(i, 11) F(i, 12)
#endif
// The taps of a row; the reads of weights by an invocation; the weights by row, column, read and the invocation that reads.
#if KERNEL == 5
#define EACH_TAP(F, i, r, ky) \
    F(i, r, ky, 0) F(i, r, ky, 1) F(i, r, ky, 2) F(i, r, ky, 3) F(i, r, ky, 4)
#define EACH_HELD(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6)
#define EACH_WEIGHT(F) \
    F(0, 0, 0, 0) F(0, 1, 0, 1) F(0, 2, 0, 2) F(0, 3, 0, 3) F(0, 4, 1, 0) F(1, 0, 1, 1) F(1, 1, 1, 2) F(1, 2, 1, 3) \
    F(1, 3, 2, 0) F(1, 4, 2, 1) F(2, 0, 2, 2) F(2, 1, 2, 3) F(2, 2, 3, 0) F(2, 3, 3, 1) F(2, 4, 3, 2) F(3, 0, 3, 3) \
    F(3, 1, 4, 0) F(3, 2, 4, 1) F(3, 3, 4, 2) F(3, 4, 4, 3) F(4, 0, 5, 0) F(4, 1, 5, 1) F(4, 2, 5, 2) F(4, 3, 5, 3) \
    F(4, 4, 6, 0)
#elif KERNEL == 7
#define EACH_TAP(F, i, r, ky) \
    F(i, r, ky, 0) F(i, r, ky, 1) F(i, r, ky, 2) F(i, r, ky, 3) F(i, r, ky, 4) F(i, r, ky, 5) F(i, r, ky, 6)
#define EACH_HELD(F) \
    F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define EACH_WEIGHT(F) \
    F(0, 0, 0, 0) F(0, 1, 0, 1) F(0, 2, 0, 2) F(0, 3, 0, 3) F(0, 4, 1, 0) F(0, 5, 1, 1) F(0, 6, 1, 2) F(1, 0, 1, 3) \
    F(1, 1, 2, 0) F(1, 2, 2, 1) F(1, 3, 2, 2) F(1, 4, 2, 3) F(1, 5, 3, 0) F(1, 6, 3, 1) F(2, 0, 3, 2) F(2, 1, 3, 3) \
    F(2, 2, 4, 0) F(2, 3, 4, 1) F(2, 4, 4, 2) F(2, 5, 4, 3) F(2, 6, 5, 0) F(3, 0, 5, 1) F(3, 1, 5, 2) F(3, 2, 5, 3) \
    F(3, 3, 6, 0) F(3, 4, 6, 1) F(3, 5, 6, 2) F(3, 6, 6, 3) F(4, 0, 7, 0) F(4, 1, 7, 1) F(4, 2, 7, 2) F(4, 3, 7, 3) \
    F(4, 4, 8, 0) F(4, 5, 8, 1) F(4, 6, 8, 2) F(5, 0, 8, 3) F(5, 1, 9, 0) F(5, 2, 9, 1) F(5, 3, 9, 2) F(5, 4, 9, 3) \
    F(5, 5, 10, 0) F(5, 6, 10, 1) F(6, 0, 10, 2) F(6, 1, 10, 3) F(6, 2, 11, 0) F(6, 3, 11, 1) F(6, 4, 11, 2) \
    F(6, 5, 11, 3) F(6, 6, 12, 0)
#endif
// What four results meet of a row by the tap's column.
#if STRIDE == 1
#define FOUR_0(i) SUM4(value##i##_0, value##i##_1, value##i##_2, value##i##_3)
#define FOUR_1(i) SUM4(value##i##_1, value##i##_2, value##i##_3, value##i##_4)
#define FOUR_2(i) SUM4(value##i##_2, value##i##_3, value##i##_4, value##i##_5)
#define FOUR_3(i) SUM4(value##i##_3, value##i##_4, value##i##_5, value##i##_6)
#define FOUR_4(i) SUM4(value##i##_4, value##i##_5, value##i##_6, value##i##_7)
#define FOUR_5(i) SUM4(value##i##_5, value##i##_6, value##i##_7, value##i##_8)
#define FOUR_6(i) SUM4(value##i##_6, value##i##_7, value##i##_8, value##i##_9)
#elif STRIDE == 2
#define FOUR_0(i) SUM4(value##i##_0, value##i##_2, value##i##_4, value##i##_6)
#define FOUR_1(i) SUM4(value##i##_1, value##i##_3, value##i##_5, value##i##_7)
#define FOUR_2(i) SUM4(value##i##_2, value##i##_4, value##i##_6, value##i##_8)
#define FOUR_3(i) SUM4(value##i##_3, value##i##_5, value##i##_7, value##i##_9)
#define FOUR_4(i) SUM4(value##i##_4, value##i##_6, value##i##_8, value##i##_10)
#define FOUR_5(i) SUM4(value##i##_5, value##i##_7, value##i##_9, value##i##_11)
#define FOUR_6(i) SUM4(value##i##_6, value##i##_8, value##i##_10, value##i##_12)
#endif

SUM4 finished(SUM4 value) {
    return ACTIVATION > 2 ? activate(value, ACTIVATION) : limited(value, LEAST, MOST);
}

void main() {
    const uint filter_index = gl_WorkGroupID.y, image = gl_WorkGroupID.z, group = filter_index / filters;
    const uint lane = gl_SubgroupInvocationID % SUBGROUP;
    // Patches that are not there are computed as the last one, and not stored.
    const uint patches = (out_width + 3) / 4, count = (out_height + 3) / 4 * patches;
    const uint index = min(gl_GlobalInvocationID.x, count - 1), down = index / patches;
    const uint row = down * 4, column = (index - down * patches) * 4;
    const int y = int(row * STRIDE) - int(pad_top), x = int(column * STRIDE) - int(pad_left);
    const uint base = image * data_image + group * data_channel, weight = filter_index * (KERNEL * KERNEL);

    // The weights, read by one invocation of a subgroup each.
#define HOLD(h) const SUM held##h = weight_at(weight + min(h * SUBGROUP + lane, KERNEL * KERNEL - 1));
    EACH_HELD(HOLD)
#define GIVE(ky, kx, h, l) const SUM weight##ky##_##kx = FROM_INVOCATION(held##h, l);
    EACH_WEIGHT(GIVE)
#define FIND_COLUMN(j) \
    const bool across##j = uint(x + j) < width; \
    const uint column##j = across##j ? uint(x + j) : 0;
    EACH_COLUMN(FIND_COLUMN)
    // There is always something to read: without a bias, its buffer is that of the weights.
    const SUM added = SUM(CONCAT(LOAD_, BIAS)(bias, filter_index));
    const SUM4 start = SUM4(HAS_BIAS ? added : SUM(0));
    SUM4 sum0 = start, sum1 = start, sum2 = start, sum3 = start;

#define READ(i, j) const SUM value##i##_##j = data_at(from##i + column##j, down##i && across##j);
#define ROW(i) \
    const bool down##i = uint(y + i) < height; \
    const uint from##i = base + (down##i ? uint(y + i) * width : 0); \
    EACH_ELEMENT(READ, i)
#define TAP(i, r, ky, kx) sum##r = multiply_add(weight##ky##_##kx, FOUR_##kx(i), sum##r);
#define MEET(i, r, ky) EACH_TAP(TAP, i, r, ky)
    EACH_ROW(ROW, MEET)

    if (gl_GlobalInvocationID.x != index) return;
    const uint to = image * result_image + filter_index * result_channel + row * out_width + column;
#define STORE_ONE(at, c, part) if (column + c < out_width) CONCAT(STORE_, OUT)(result, at + c, part);
#define STORE(r) \
    if (row + r < out_height) { \
        const SUM4 four = finished(sum##r); \
        const uint at = to + r * out_width; \
        if (QUADS) CONCAT(STORE4_, OUT)(result4, at / 4, four); \
        else { \
            STORE_ONE(at, 0, four.x) STORE_ONE(at, 1, four.y) STORE_ONE(at, 2, four.z) STORE_ONE(at, 3, four.w) \
        } \
    }
    STORE(0) STORE(1) STORE(2) STORE(3)
}
