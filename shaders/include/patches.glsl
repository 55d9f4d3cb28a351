// Patches of results that one invocation computes of a convolution with a kernel of 3 x 3, channels before rows: ROWS rows of
// ACROSS (1, 2 or 4) neighbours, and what they read of one channel, each element once. STRIDE is 1 or 2, both ways.
// Neighbouring invocations have neighbouring patches. With DILATED, neighbours of a patch lie a dilation apart: between two taps
// lie the results of other patches.

#ifndef PATCHES_GLSL
#define PATCHES_GLSL

#include "convolution.glsl"

const uint ROWS = 4;

// From one neighbour of a patch to the next.
#ifdef DILATED
#define APART_Y dilation_y
#define APART_X dilation_x
#else
#define APART_Y 1
#define APART_X 1
#endif

// A row of results, and the elements under one tap of it.
#if ACROSS == 1
#define ROW_OF float
#elif ACROSS == 2
#define ROW_OF vec2
#elif ACROSS == 4
#define ROW_OF vec4
#endif

// Rows of the input that are read; rows of results with the three that they need; columns that are read.
#if STRIDE == 1
#define EACH_READ(F) F(0) F(1) F(2) F(3) F(4) F(5)
#define EACH_RESULT(F, a, b) F(a, b, 0, 0, 1, 2) F(a, b, 1, 1, 2, 3) F(a, b, 2, 2, 3, 4) F(a, b, 3, 3, 4, 5)
#elif STRIDE == 2
#define EACH_READ(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#define EACH_RESULT(F, a, b) F(a, b, 0, 0, 1, 2) F(a, b, 1, 2, 3, 4) F(a, b, 2, 4, 5, 6) F(a, b, 3, 6, 7, 8)
#endif
#if ACROSS == 1
#define EACH_COLUMN(F) F(0) F(1) F(2)
#elif ACROSS == 2 && STRIDE == 1
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3)
#elif ACROSS == 2
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4)
#elif ACROSS == 4 && STRIDE == 1
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4) F(5)
#elif ACROSS == 4
#define EACH_COLUMN(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
#endif

#define AT(r, c) data_at(row##r + column##c, down##r && across##c)
// What a row of results meets of a row of the input, by the tap's column.
#if ACROSS == 1
#define READ_ROW(r) const float left##r = AT(r, 0), middle##r = AT(r, 1), right##r = AT(r, 2);
#elif ACROSS == 2 && STRIDE == 1
#define READ_ROW(r) \
    const vec2 left##r = vec2(AT(r, 0), AT(r, 1)), right##r = vec2(AT(r, 2), AT(r, 3)); \
    const vec2 middle##r = vec2(left##r.y, right##r.x);
#elif ACROSS == 2
#define READ_ROW(r) \
    const vec2 left##r = vec2(AT(r, 0), AT(r, 2)), middle##r = vec2(AT(r, 1), AT(r, 3)); \
    const vec2 right##r = vec2(left##r.y, AT(r, 4));
#elif ACROSS == 4 && STRIDE == 1
#define READ_ROW(r) \
    const vec4 left##r = vec4(AT(r, 0), AT(r, 1), AT(r, 2), AT(r, 3)); \
    const vec2 last##r = vec2(AT(r, 4), AT(r, 5)); \
    const vec4 middle##r = vec4(left##r.yzw, last##r.x), right##r = vec4(left##r.zw, last##r);
#elif ACROSS == 4
#define READ_ROW(r) \
    const vec4 left##r = vec4(AT(r, 0), AT(r, 2), AT(r, 4), AT(r, 6)); \
    const vec4 middle##r = vec4(AT(r, 1), AT(r, 3), AT(r, 5), AT(r, 7)), right##r = vec4(left##r.yzw, AT(r, 8));
#endif

// The sum and the products of nine weights, `g0` to `g8`, with three rows that were read.
#define NINE(p, q, s, sum) \
    add(g0, left##p, add(g1, middle##p, add(g2, right##p, add(g3, left##q, add(g4, middle##q, add(g5, right##q, \
        add(g6, left##s, add(g7, middle##s, add(g8, right##s, sum)))))))))

ROW_OF add(SUM weight, ROW_OF values, ROW_OF sum) {
    return fma(ROW_OF(weight), values, sum);
}

struct Patch {
    uint row, column;  // Of the first result.
    int y, x;          // Of the first element that is read.
    bool valid;        // Those that are not there are computed as the last one, and not stored.
};

#ifdef DILATED
// Patches of all places that begin a tap apart come one after the other, in rows and in columns.
Patch patch_of(uint index) {
    const uint across = (out_width + ACROSS * dilation_x - 1) / (ACROSS * dilation_x) * dilation_x;
    const uint count = (out_height + ROWS * dilation_y - 1) / (ROWS * dilation_y) * dilation_y * across;
    const uint at = min(index, count - 1), down = at / across, right = at - down * across;
    const uint row = down / dilation_y * ROWS * dilation_y + down % dilation_y;
    const uint column = right / dilation_x * ACROSS * dilation_x + right % dilation_x;
    const bool valid = index < count && row < out_height && column < out_width;
    return Patch(row, column, int(row) - int(pad_top), int(column) - int(pad_left), valid);
}
#else
Patch patch_of(uint index) {
    const uint across = (out_width + ACROSS - 1) / ACROSS, count = (out_height + ROWS - 1) / ROWS * across;
    const uint at = min(index, count - 1), down = at / across;
    const uint row = down * ROWS, column = (at - down * across) * ACROSS;
    return Patch(row, column, int(row * STRIDE) - int(pad_top), int(column * STRIDE) - int(pad_left), index < count);
}
#endif

// Where the columns and rows of a patch lie, and which of them are inside.
#define FIND_COLUMN(c) \
    const bool across##c = uint(place.x + c * APART_X) < width; \
    const uint column##c = across##c ? uint(place.x + c * APART_X) : 0;
#define FIND_ROW(r) \
    const bool down##r = uint(place.y + r * APART_Y) < height; \
    uint row##r = base + (down##r ? uint(place.y + r * APART_Y) * width : 0);

// Stores a row of results from element `at` on, as far as it is there.
void store_row(uint at, uint column, ROW_OF values) {
#if ACROSS == 1
    CONCAT(STORE_, OUT)(result, at, values);
#else
    CONCAT(STORE_, OUT)(result, at, values.x);
    if (column + APART_X < out_width) CONCAT(STORE_, OUT)(result, at + APART_X, values.y);
#if ACROSS == 4
    if (column + 2 * APART_X < out_width) CONCAT(STORE_, OUT)(result, at + 2 * APART_X, values.z);
    if (column + 3 * APART_X < out_width) CONCAT(STORE_, OUT)(result, at + 3 * APART_X, values.w);
#endif
#endif
}

#endif
