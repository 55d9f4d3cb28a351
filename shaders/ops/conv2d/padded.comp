// A convolution with strides of 1 as a product on matrix units: filters by places of an image that lies with its padding. Then every
// tap lies at one distance from all places, also from those in the padding of rows, whose results nobody stores. `padded_image.comp`
// wrote the operands: a block of CHANNELS channels of a place side by side, and a filter's taps of such a block one after another.
// A workgroup computes BM x BN results, a subgroup of it WM x WN as matrices of 16x16. A turn takes a row of taps of a block: its
// taps read the same places from shared memory. With PARTS > 1 blocks are shared among workgroups, and their sums added after.
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
layout(constant_id = 1) const uint BM = 64;
layout(constant_id = 2) const uint BN = 128;
layout(constant_id = 3) const uint WM = 32;
layout(constant_id = 4) const uint WN = 64;
layout(constant_id = 5) const uint CHANNELS = 32;     // Of a block, 16 or 32.
layout(constant_id = 6) const uint KERNEL_WIDTH = 3;
layout(constant_id = 7) const uint DILATION = 1;      // Along rows.
layout(constant_id = 8) const uint PIECES = 1;        // In which sums leave: 1, 2 or 4.
layout(constant_id = 9) const uint WORDS = 2048;      // Of shared memory: tiles, and in the end a piece of the sums.
layout(constant_id = 10) const uint PARTS = 1;
layout(constant_id = 11) const uint ADDED = 0;
layout(constant_id = 12) const uint ACTIVATION = 0;
layout(constant_id = 13) const uint SIDE = 1;         // Places of a row that an invocation stores at once: 2 where rows are even.

#include "activation.glsl"
#include "added.glsl"

layout(set = 0, binding = 0) readonly buffer Image { uvec4 image_words[]; };
layout(set = 0, binding = 1) readonly buffer Filters { uvec4 filter_words[]; };
layout(set = 0, binding = 2) writeonly buffer Out { float16_t result[]; };
layout(set = 0, binding = 2) writeonly buffer OutPairs { f16vec2 result_pairs[]; };
layout(set = 0, binding = 2) writeonly buffer OutSums { float part_sums[]; };
layout(set = 0, binding = 3) readonly buffer Bias { float16_t bias[]; };
layout(set = 0, binding = 4) readonly buffer Residual { float16_t residual[]; };
layout(set = 0, binding = 4) readonly buffer ResidualPairs { f16vec2 residual_pairs[]; };

layout(push_constant) uniform Shape {
    uint filters, out_height, out_width;
    uint pitch;          // Places of a row with its padding.
    uint places;         // Places of a block in memory.
    uint blocks;         // Of channels.
    uint part;           // Blocks of a part.
    uint kernel_height;
    uint row_step;       // Places from one row of taps to the next.
};

// Words of 16 bytes in a place's block; rows of tiles are a word longer, which puts neighbours into different banks.
const uint PACK = 8, PLACE = CHANNELS / PACK;
const uint LEFT_WORDS = KERNEL_WIDTH * PLACE, LEFT_ROW = LEFT_WORDS | 1u;
const uint SPAN = BN + (KERNEL_WIDTH - 1) * DILATION, RIGHT_ROW = PLACE + 1;
const uint LEFT_ALL = BM * LEFT_WORDS, RIGHT_ALL = SPAN * PLACE;
const uint RIGHT_BASE = BM * LEFT_ROW;
const uint LANES = gl_WorkGroupSize.x;
const uint LEFT_EACH = (LEFT_ALL + LANES - 1) / LANES, RIGHT_EACH = (RIGHT_ALL + LANES - 1) / LANES;
const uint DOWN = WM / 16, ACROSS = WN / 16;
const uint SUMS_ROW = BN / 4 + 1, STRIP = WM / PIECES, PIECE_ROWS = BM / PIECES;
// Columns of results are shared out first, then rows.
const uint COLUMNS = BN / SIDE, ROWS_AT_ONCE = LANES > COLUMNS ? LANES / COLUMNS : 1u;
// Rows of a column that are on their way at a time.
const uint CHUNK = 4;

shared uvec4 shared_words[WORDS];

#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

uvec4 next_left[LEFT_EACH], next_right[RIGHT_EACH];
uint row0, column0, image, part_index;
SUM sums[DOWN * ACROSS];

// Reads a turn's tiles into registers. Filters beyond the last one have no results, so that they may be any.
void fetch(uint block, uint tap_row) {
    const uint filter_length = blocks * kernel_height * LEFT_WORDS;
    const uint from = (block * kernel_height + tap_row) * LEFT_WORDS;
    [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) {
        const uint at = min(gl_LocalInvocationIndex + i * LANES, LEFT_ALL - 1);
        const uint r = min(row0 + at / LEFT_WORDS, filters - 1);
        next_left[i] = filter_words[r * filter_length + from + at % LEFT_WORDS];
    }
    const uint base = ((image * blocks + block) * places + column0 + tap_row * row_step) * PLACE;
    [[unroll]] for (uint i = 0; i < RIGHT_EACH; ++i)
        next_right[i] = image_words[base + min(gl_LocalInvocationIndex + i * LANES, RIGHT_ALL - 1)];
}

// Moves them to shared memory.
void keep() {
    [[unroll]] for (uint i = 0; i < LEFT_EACH; ++i) {
        const uint at = gl_LocalInvocationIndex + i * LANES;
        if (LEFT_ALL % LANES == 0 || at < LEFT_ALL)
            shared_words[at / LEFT_WORDS * LEFT_ROW + at % LEFT_WORDS] = next_left[i];
    }
    [[unroll]] for (uint i = 0; i < RIGHT_EACH; ++i) {
        const uint at = gl_LocalInvocationIndex + i * LANES;
        if (RIGHT_ALL % LANES == 0 || at < RIGHT_ALL)
            shared_words[RIGHT_BASE + at / PLACE * RIGHT_ROW + at % PLACE] = next_right[i];
    }
}

// Adds the products of a row of taps to the sums of a subgroup.
void multiply(uint my_row, uint my_column) {
    [[unroll]] for (uint tap = 0; tap < KERNEL_WIDTH; ++tap) {
        [[unroll]] for (uint k = 0; k < CHANNELS; k += 16) {
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left[DOWN];
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                coopMatLoad(left[i], shared_words, (my_row + i * 16) * LEFT_ROW + tap * PLACE + k / PACK, LEFT_ROW,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right;
                const uint from = my_column + j * 16 + tap * DILATION;
                coopMatLoad(right, shared_words, RIGHT_BASE + from * RIGHT_ROW + k / PACK, RIGHT_ROW,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint i = 0; i < DOWN; ++i)
                    sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
            }
        }
    }
}

// The row of results that a row of a piece has.
uint row_of(uint piece, uint r) {
    return row0 + r / STRIP * WM + piece * STRIP + r % STRIP;
}

// What is added to the results at an index, the second of them only with SIDE 2.
vec2 residual_at(uint at) {
    return SIDE == 2 ? vec2(residual_pairs[at / 2]) : vec2(float(residual[at]), 0.0);
}

// Stores a result or a part of it, and its neighbour with SIDE 2.
void store(vec2 value, uint at) {
    if (PARTS > 1) {
        part_sums[at] = value.x;
        if (SIDE == 2) part_sums[at + 1] = value.y;
    } else if (SIDE == 2) {
        result_pairs[at / 2] = f16vec2(activate(value.x, ACTIVATION), activate(value.y, ACTIVATION));
    } else {
        result[at] = float16_t(activate(value.x, ACTIVATION));
    }
}

// Stores the sums of a column of a piece, whose place `at` the caller knows, in rows from `first`. What is added is read for some rows
// at a time before any of them is stored, as reads do not pass stores.
void store_column(uint piece, uint c, uint at, uint first) {
    const uint places_out = out_height * out_width, plane = filters * places_out;
    const uint base = (PARTS > 1 ? image * PARTS + part_index : image) * plane + at;
    for (uint from = first; from < PIECE_ROWS; from += CHUNK * ROWS_AT_ONCE) {
        vec2 values[CHUNK];
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
            const uint r = min(from + i * ROWS_AT_ONCE, PIECE_ROWS - 1), row = min(row_of(piece, r), filters - 1);
            const uvec4 word = shared_words[r * SUMS_ROW + c / 4];
            values[i] = uintBitsToFloat(uvec2(word[c % 4], SIDE == 2 ? word[c % 4 + 1] : 0u));
            if (PARTS == 1 && HAS_BIAS) values[i] += float(bias[row]);
            if (PARTS == 1 && HAS_RESIDUAL) values[i] += residual_at(base + row * places_out);
        }
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
            const uint r = from + i * ROWS_AT_ONCE, row = row_of(piece, r);
            if (r < PIECE_ROWS && row < filters) store(values[i], base + row * places_out);
        }
    }
}

// Stores the sums of a piece that belong to places of the result. An invocation keeps to its columns, as divisions take long.
void store_all(uint piece) {
    if (gl_LocalInvocationIndex / COLUMNS >= ROWS_AT_ONCE) return;
    for (uint c = SIDE * (gl_LocalInvocationIndex % COLUMNS); c < BN; c += SIDE * LANES) {
        const uint place = column0 + c, y = place / pitch, x = place % pitch;
        if (y >= out_height || x >= out_width) continue;
        store_column(piece, c, y * out_width + x, gl_LocalInvocationIndex / COLUMNS);
    }
}

// Stores the results of a piece. `piece` is a constant at each call, so that sums stay in registers.
void finish(uint piece, uint my_row, uint my_column) {
    barrier();
    [[unroll]] for (uint i = 0; i < DOWN / PIECES; ++i) {
        [[unroll]] for (uint j = 0; j < ACROSS; ++j)
            coopMatStore(sums[(piece * (DOWN / PIECES) + i) * ACROSS + j], shared_words,
                         (my_row / PIECES + i * 16) * SUMS_ROW + (my_column + j * 16) / 4, SUMS_ROW,
                         gl_CooperativeMatrixLayoutRowMajor);
    }
    barrier();
    store_all(piece);
}

void main() {
    image = gl_WorkGroupID.z / PARTS;
    part_index = gl_WorkGroupID.z % PARTS;
    const uint first = part_index * part, end = PARTS == 1 ? blocks : min(blocks, first + part);
    row0 = gl_WorkGroupID.y * BM;
    column0 = gl_WorkGroupID.x * BN;
    const uint my_row = gl_SubgroupID / (BN / WN) * WM, my_column = gl_SubgroupID % (BN / WN) * WN;
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i) sums[i] = SUM(0);

    uint block = first, tap_row = 0;
    const uint turns = first < end ? (end - first) * kernel_height : 0;
    if (turns > 0) {
        fetch(block, tap_row);
        keep();
    }
    barrier();
    for (uint turn = 1; turn <= turns; ++turn) {
        if (++tap_row == kernel_height) {
            tap_row = 0;
            ++block;
        }
        if (turn < turns) fetch(block, tap_row);
        multiply(my_row, my_column);
        barrier();
        if (turn < turns) keep();
        barrier();
    }
    finish(0, my_row, my_column);
    if (PIECES > 1) finish(1, my_row, my_column);
    if (PIECES > 2) finish(2, my_row, my_column);
    if (PIECES > 3) finish(3, my_row, my_column);
}
