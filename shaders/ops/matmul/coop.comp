// out[b] = lhs[b] * rhs[b] with cooperative matrices: a workgroup computes BM x BN results. SLICES teams of subgroups share
// the inner dimension, in turns of BK; a subgroup of a team has WM x WN results as matrices of MM x MN. A team moves its tiles
// through shared memory of its own, with the next AHEAD tiles on their way in registers; a team of one subgroup waits for
// nobody. In the end sums go through shared memory: in PIECES, where teams' sums are added and neighbours are stored together, or by
// strips of each subgroup.
// Rows of operands are read in 16-byte words where they are whole ones, or else in smaller ones. With PARTS > 1 the sums are
// cut: part p of P goes to the p-th of P results, in the type of sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#if defined(FRAGMENTS) && !defined(IMAGE)
#extension GL_KHR_shader_subgroup_clustered : require
#endif
#extension GL_EXT_control_flow_attributes : require
#ifdef OPERAND_I8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#else
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#ifdef OPERAND_BF16
#extension GL_EXT_bfloat16 : require
#endif
#ifdef USE_STORAGE_16BIT
#extension GL_EXT_shader_16bit_storage : require
#endif
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 128;
layout(constant_id = 2) const uint BN = 128;
layout(constant_id = 3) const uint BK = 32;
layout(constant_id = 4) const uint WM = 64;
layout(constant_id = 5) const uint WN = 64;
layout(constant_id = 6) const bool RHS_TRANSPOSED = false;
layout(constant_id = 7) const bool WHOLE = false;  // Tiles divide the shape.
layout(constant_id = 8) const uint STAGES = 2;     // Tiles in shared memory at a time, 1 or 2.
layout(constant_id = 9) const uint MM = 16;
layout(constant_id = 10) const uint MN = 16;
layout(constant_id = 11) const uint MK = 16;
layout(constant_id = 12) const uint ADDED = 0;
layout(constant_id = 13) const uint ACTIVATION = 0;
layout(constant_id = 14) const uint PARTS = 1;
layout(constant_id = 15) const uint AHEAD = 1;
layout(constant_id = 16) const bool EVEN_K = false;  // BK divides K.
layout(constant_id = 17) const uint SLICES = 1;
layout(constant_id = 18) const uint PIECES = 1;      // Up to 6; divides a subgroup's matrices below one another.
layout(constant_id = 19) const uint WORDS = 2048;    // Of shared memory: tiles, and in the end sums.
// Rows of results: 0 begin anywhere, 1 are whole quads, 2 are whole octets of 16 bits, which leave by strips.
layout(constant_id = 20) const uint RESULTS = 0;
// Bytes of the operands that are read at a time: 16, 8, or 4 where rows begin anywhere. Rows along k have the left one's.
layout(constant_id = 21) const uint RHS_BYTES = 16;
layout(constant_id = 22) const uint LHS_BYTES = 16;
// Operands or results are runs of larger tensors. Parts of sums lie by themselves.
layout(constant_id = 23) const bool IN_RUNS = false;
// Words of the next tile are read one after the other between products, and not all of them before.
layout(constant_id = 24) const bool INTERLEAVED = false;
#ifdef WINDOW
layout(constant_id = 25) const uint KERNEL_WIDTH = 3;
layout(constant_id = 26) const uint TAPS = 9;
#endif
#if !defined(WINDOW) && !defined(IMAGE) && !defined(OPERAND_I8) && !defined(OPERAND_BF16)
// Rows of the left operand are normalized by mean and deviation: a product of normalized rows is one of the rows themselves, less the
// mean times the sums of the right operand's columns, over the deviation. Those sums are the bias's second row.
#define NORMALIZES
layout(constant_id = 25) const bool NORMALIZED = false;
layout(constant_id = 26) const uint EPSILON = 0;  // Bits of what is added to the variance.
#endif
#if defined(FRAGMENTS) && !defined(IMAGE)
layout(constant_id = 27) const uint RING = 2;  // Steps whose right operand is on its way in registers; divides the steps of a turn.
// Sums of rows and of their squares, 16 columns at a time: of the left operand, where means and deviations are taken from them, and of
// results, which leave by strips then.
#define SUMS_OF_ROWS
layout(constant_id = 28) const bool SUMS_GIVEN = false;
layout(constant_id = 29) const bool LEAVES_SUMS = false;
const uint SUMMED = 16;
#endif
#ifdef IMAGE
layout(constant_id = 25) const uint KERNEL_WIDTH = 3;
layout(constant_id = 26) const uint TAPS = 9;
layout(constant_id = 27) const uint TAP_WORDS = 1;    // 16-byte words of a group's channels.
layout(constant_id = 28) const bool INSIDE = false;   // No tap lies outside of the image.
#ifdef FRAGMENTS
layout(constant_id = 29) const uint RING = 2;  // As above.
#endif
#endif

#define ADDS_BEHIND
#include "activation.glsl"
#include "added.glsl"
// A value for each row.
const bool HAS_ROW_BIAS = (ADDED & 16u) != 0;

// Elements in 16 bytes, and whether the right tile lies with k along its rows. Matrices of bytes load slowly across rows,
// so that a right operand that does not lie so is turned on its way.
#ifdef OPERAND_I8
const uint PACK = 16;
const bool ALONG_K = true;
const bool TURNED = !RHS_TRANSPOSED;
#else
const uint PACK = 8;
const bool ALONG_K = RHS_TRANSPOSED;
const bool TURNED = false;
#endif

// Four neighbouring sums, and results in memory.
#ifdef OPERAND_I8
#define QUAD ivec4
#define OUT_QUAD uvec4
#else
#define QUAD vec4
#if OUT_SIZE == 2
#define OUT_QUAD uvec2
#else
#define OUT_QUAD uvec4
#endif
#endif

layout(set = 0, binding = 0) readonly buffer Left { uvec4 lhs[]; };
layout(set = 0, binding = 0) readonly buffer LeftHalves { uvec2 lhs2[]; };
layout(set = 0, binding = 0) readonly buffer LeftPairs { uint lhs1[]; };
layout(set = 0, binding = 1) readonly buffer Right { uvec4 rhs[]; };
layout(set = 0, binding = 1) readonly buffer RightHalves { uvec2 rhs2[]; };
layout(set = 0, binding = 1) readonly buffer RightPairs { uint rhs1[]; };
layout(set = 0, binding = 2) writeonly buffer Out { OUT_QUAD result[]; };
layout(set = 0, binding = 2) writeonly buffer OutElements { OUT elements[]; };
layout(set = 0, binding = 2) writeonly buffer OutSums { uvec4 part_sums[]; };
layout(set = 0, binding = 2) writeonly buffer OutSumElements { ACC part_elements[]; };
#if OUT_SIZE == 2
layout(set = 0, binding = 2) writeonly buffer OutOctets { uvec4 result_octets[]; };
layout(set = 0, binding = 3) readonly buffer BiasOctets { uvec4 bias_octets[]; };
layout(set = 0, binding = 4) readonly buffer ResidualOctets { uvec4 residual_octets[]; };
#endif
layout(set = 0, binding = 3) readonly buffer Bias { OUT_QUAD bias[]; };
layout(set = 0, binding = 3) readonly buffer BiasElements { OUT bias_elements[]; };
layout(set = 0, binding = 4) readonly buffer Residual { OUT_QUAD residual[]; };
layout(set = 0, binding = 4) readonly buffer ResidualElements { OUT residual_elements[]; };

#ifdef SUMS_OF_ROWS
layout(set = 0, binding = 5) readonly buffer LeftSums { vec2 lhs_sums[]; };
layout(set = 0, binding = 6) writeonly buffer SumsOfRows { vec2 sums_of_rows[]; };
#endif

layout(push_constant) uniform Shape {
    uint M, N, K;
    // From one matrix of the batch to the next, in 16-byte words, or in elements where less is read at a time; 0 when all share one.
    uint rhs_stride;
    uint part;        // Terms of a part of the sums, a multiple of BK.
    uint batches;
    uint lhs_stride;  // As that of the right operand.
    // With IN_RUNS: where operands begin, counted as their strides are, and 16-byte words from a row of the left one to the next;
    // the element that results begin with, and elements from one row and from one matrix of the batch to the next.
    uint lhs_first, rhs_first, lhs_row;
    uint out_first, out_row, out_stride;
#ifdef WINDOW
    uint width, height, dilation_y, dilation_x, pad_top, pad_left;
#endif
#ifdef IMAGE
    uint width, height, dilation_y, dilation_x, pad_top, pad_left, stride_y, stride_x;
    uint rows, columns;  // Of results.
    uint pixel_words;    // Of the channels of all groups.
    uint filters;        // Of all groups: each product of the batch has N of them.
#endif
};
#ifdef WINDOW
#include "window_operand.glsl"
#endif
// Elements from one row of the right operand, and of results, to the next.
#ifdef IMAGE
#define PITCH filters
#else
#define PITCH N
#endif

const bool OUT_IN_RUNS = IN_RUNS && PARTS == 1;
const bool QUADS = RESULTS > 0;

// A row of a tile is a word longer than its elements, which puts neighbouring rows into different banks.
const uint LHS_WORDS = BK / PACK, LHS_ROW = LHS_WORDS + 1;
const uint RHS_ROWS = ALONG_K ? BN : BK;
const uint RHS_WORDS = (ALONG_K ? BK : BN) / PACK, RHS_ROW = RHS_WORDS + 1;
const uint LHS_TILE = BM * LHS_ROW, RHS_TILE = RHS_ROWS * RHS_ROW;
#ifdef FRAGMENTS
const uint TILE = LHS_TILE;
#else
const uint TILE = LHS_TILE + RHS_TILE;
#endif
const uint DOWN = WM / MM, ACROSS = WN / MN;
// Subgroups and invocations of a team.
const uint MEMBERS = (BM / WM) * (BN / WN), LANES = gl_WorkGroupSize.x / SLICES;
const bool ALONE = MEMBERS == 1;
const uint LHS_EACH = BM * LHS_WORDS / LANES;
const uint RHS_EACH = RHS_ROWS * RHS_WORDS / LANES;
// Sums in shared memory: a piece has STRIP rows of each subgroup.
const uint SUMS_ROW = BN / 4 + 1, STRIP = WM / PIECES, PIECE_ROWS = BM / PIECES;
const uint PIECE_QUADS = PIECE_ROWS * (BN / 4);
const uint EACH = (PIECE_QUADS + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x, CHUNK = EACH < 4 ? EACH : 4;

shared uvec4 shared_words[WORDS];

#ifdef NORMALIZES
// Of each row of the tile: mean, and one by the deviation.
shared vec2 moments[NORMALIZED ? BM : 1];
#endif

#define SUM coopmat<ACC, gl_ScopeSubgroup, MM, MN, gl_MatrixUseAccumulator>

uvec4 next_lhs[AHEAD * LHS_EACH];
#ifndef FRAGMENTS
uvec4 next_rhs[AHEAD * RHS_EACH];
// Behind each of those words, where it may begin within a word.
#ifdef WINDOW
uvec4 next_more[AHEAD * RHS_EACH];
#else
uint next_more[AHEAD * RHS_EACH];
#endif
#endif
uint next_more_lhs[AHEAD * LHS_EACH];
OUT_QUAD next_bias[CHUNK], next_residual[CHUNK];
ACC next_row_bias[CHUNK];
#ifdef NORMALIZES
OUT_QUAD next_column_sums[CHUNK];
// Of the left operand's words of this invocation, whose rows are the same in each tile: sums, and sums of squares.
#ifdef SUMS_OF_ROWS
const bool ADDS_ROWS = NORMALIZED && !SUMS_GIVEN;
#else
const bool ADDS_ROWS = NORMALIZED;
#endif
vec2 row_sums[ADDS_ROWS ? LHS_EACH : 1];
#endif
// Where results, operands and the team's tiles begin, and the place of this invocation in its team.
uint row0, column0, out_base, runs_base, lhs_base, rhs_base, bias_base, tiles, lane;
SUM sums[DOWN * ACROSS];

// The row of the first word of this invocation in a tile whose rows are `words` words along k. Where those are four, eight lanes
// that write at a time take rows that lie in different banks: a row and the fourth one behind it.
uint first_row(uint words) {
    const uint r = lane / words;
    return words == 4 ? (r & ~5u) | ((r & 1) << 2) | ((r >> 2) & 1) : r;
}

// The same of its i-th word, and where that lies in shared memory.
uint tile_row(uint i, uint words) {
    return first_row(words) + i * (LANES / words);
}

uint tile_word(uint i, uint words) {
    return tile_row(i, words) * (words + 1) + lane % words;
}

// Of the `at`-th block of four rows of k and 16 columns in a right tile that is turned: its place along k and along the
// columns. Two neighbours lie side by side, so that they read whole sectors of 32 bytes.
uvec2 turned_place(uint at) {
    return uvec2(at / 2 % (BK / 4), at / (2 * (BK / 4)) * 2 + at % 2);
}

// Where the i-th word of this invocation lies in the right operand: row and word.
uvec2 right_place(uint k0, uint i) {
    // Turned: four rows of k below one another, and neighbouring words for neighbouring lanes.
    const uvec2 four = turned_place(lane + i / 4 * LANES);
    if (TURNED) return uvec2(k0 + four.x * 4 + i % 4, column0 / PACK + four.y);
    if (RHS_TRANSPOSED) return uvec2(column0 + tile_row(i, RHS_WORDS), k0 / PACK + lane % RHS_WORDS);
    const uint at = lane + i * LANES;
    return uvec2(k0 + at / RHS_WORDS, column0 / PACK + at % RHS_WORDS);
}

// The row of the i-th word of this invocation in the left operand.
uint left_row(uint i) {
    const uint r = row0 + tile_row(i, LHS_WORDS);
    return WHOLE ? r : min(r, M - 1);
}

#ifdef IMAGE
#include "image_operand.glsl"
#endif

#ifndef FRAGMENTS
// The element that a row of the right operand begins with.
uint right_row(uint r) {
    return rhs_base + (RHS_TRANSPOSED ? min(r, N - 1) * K : min(r, K - 1) * N);
}
#endif

// Eight elements of ten from the second one on.
uvec4 from_second(uvec4 words, uint more) {
    return (words >> 16) | (uvec4(words.yzw, more) << 16);
}

#ifndef FRAGMENTS
// Reads the i-th word of the right tile into a register. Columns outside of it have no results, so that it may be any
// element; `last` is the last one of the matrix.
void fetch_right(uint k0, uint i, uint to) {
    uvec2 place = right_place(k0, i);
#ifdef WINDOW
    const int word = first_element(place.x, place.y * PACK) >> 3;
    const uint words = K / TAPS * (width * height) / PACK;
    const int end = int(IN_RUNS ? words : rhs_stride) - 1;
    next_rhs[to] = rhs[rhs_base + clamp(word, 0, end)];
    next_more[to] = rhs[rhs_base + clamp(word + 1, 0, end)];
#else
    const uvec2 most = uvec2(RHS_TRANSPOSED ? N : K, (RHS_TRANSPOSED ? K : N) / PACK);
    if (RHS_BYTES == 16) {
        if (!WHOLE || !EVEN_K) place = min(place, most - 1);
        next_rhs[to] = rhs[rhs_base + place.x * ((RHS_TRANSPOSED ? K : PITCH) / PACK) + place.y];
        return;
    }
    const uint element = right_row(place.x) + place.y * PACK, last = rhs_base + K * N - 1;
    if (RHS_BYTES == 8) {
        next_rhs[to] = uvec4(rhs2[min(element / 4, last / 4)], rhs2[min(element / 4 + 1, last / 4)]);
        return;
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) next_rhs[to][j] = rhs1[min(element / 2 + j, last / 2)];
    next_more[to] = rhs1[min(element / 2 + 4, last / 2)];
#endif
}
#endif

// Reads the i-th word of the left tile into a register.
void fetch_left(uint k0, uint i, uint to) {
    uint word = k0 / PACK + (lane + i * LANES) % LHS_WORDS;
#ifdef IMAGE
    next_lhs[to] = lhs[image_word(i, word)];
    return;
#endif
    if (LHS_BYTES == 16) {
        if (!EVEN_K) word = min(word, K / PACK - 1);
        next_lhs[to] = lhs[lhs_base + left_row(i) * (IN_RUNS ? lhs_row : K / PACK) + word];
        return;
    }
    const uint element = lhs_base + left_row(i) * K + word * PACK, last = lhs_base + M * K - 1;
    if (LHS_BYTES == 8) {
        next_lhs[to] = uvec4(lhs2[min(element / 4, last / 4)], lhs2[min(element / 4 + 1, last / 4)]);
        return;
    }
    [[unroll]] for (uint j = 0; j < 4; ++j) next_lhs[to][j] = lhs1[min(element / 2 + j, last / 2)];
    next_more_lhs[to] = lhs1[min(element / 2 + 4, last / 2)];
}

// Moves words that begin within a word to their place.
#ifndef FRAGMENTS
void shift_right(uint k0, uint slot) {
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uvec2 place = right_place(k0, i);
        const uint at = slot * RHS_EACH + i;
        const uvec4 words = next_rhs[at];
#ifdef WINDOW
        const uint first = uint(first_element(place.x, place.y * PACK)) & 7u;
        next_rhs[at] = inside_of(eight_of(words, next_more[at], first), place.x);
#else
        if ((right_row(place.x) & 1) == 1) next_rhs[at] = from_second(words, next_more[at]);
#endif
    }
}
#endif

void shift_left(uint slot) {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = slot * LHS_EACH + i;
        if ((lhs_base + left_row(i) * K & 1) == 1) next_lhs[at] = from_second(next_lhs[at], next_more_lhs[at]);
    }
}

// Reads a tile into the registers of `slot`. What lies outside is read at the edge: rows and columns outside have no
// results, and `keep` clears what lies beyond K.
void fetch(uint k0, uint slot) {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) fetch_left(k0, i, slot * LHS_EACH + i);
#ifndef FRAGMENTS
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) fetch_right(k0, i, slot * RHS_EACH + i);
#endif
}

// Of a word of a row along k, what lies before the end: K elements, or whole words of them.
uvec4 before_end(uvec4 words, uint word) {
    if (LHS_BYTES == 16) return word < K / PACK ? words : uvec4(0);
    const ivec4 left = int(K) - int(word * PACK) - ivec4(0, 2, 4, 6);
    return words & (uvec4(greaterThan(left, ivec4(0))) * 0xFFFFu | uvec4(greaterThan(left, ivec4(1))) * 0xFFFF0000u);
}

// Zeroes for what a tile has beyond K.
void clear(uint k0, uint slot) {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = slot * LHS_EACH + i;
        next_lhs[at] = before_end(next_lhs[at], k0 / PACK + (lane + i * LANES) % LHS_WORDS);
    }
#ifndef FRAGMENTS
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uvec2 place = right_place(k0, i);
        const uint at = slot * RHS_EACH + i;
        if (RHS_TRANSPOSED) {
            next_rhs[at] = before_end(next_rhs[at], place.y);
        } else if (place.x >= K) {
            next_rhs[at] = uvec4(0);
        }
    }
#endif
}

// The columns of four rows of four bytes.
uvec4 turned(uint a, uint b, uint c, uint d) {
    const uint even = 0x00FF00FFu;
    const uint ab02 = (a & even) | ((b & even) << 8), ab13 = ((a >> 8) & even) | (b & ~even);
    const uint cd02 = (c & even) | ((d & even) << 8), cd13 = ((c >> 8) & even) | (d & ~even);
    return uvec4((ab02 & 0xFFFFu) | (cd02 << 16), (ab13 & 0xFFFFu) | (cd13 << 16), (ab02 >> 16) | (cd02 & 0xFFFF0000u),
                 (ab13 >> 16) | (cd13 & 0xFFFF0000u));
}

#ifdef NORMALIZES
// Adds the left operand's words in the registers of `slot` to the sums of their rows.
void add_rows(uint slot) {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uvec4 words = next_lhs[slot * LHS_EACH + i];
        [[unroll]] for (uint j = 0; j < 4; ++j) {
            const vec2 pair = vec2(unpackFloat2x16(words[j]));
            row_sums[i] += vec2(pair.x + pair.y, dot(pair, pair));
        }
    }
}

// Mean, and one by the deviation, of a row by the sums of its elements and of their squares.
vec2 moment_of(vec2 sum) {
    sum /= float(K);
    // `max` may drop a NaN; elements that are not finite show in the bits of their squares' sum.
    const bool finite = (floatBitsToUint(sum.y) & 0x7F800000u) != 0x7F800000u;
    const float variance = max(sum.y - sum.x * sum.x, 0.0);
    return finite ? vec2(sum.x, inversesqrt(variance + uintBitsToFloat(EPSILON))) : vec2(uintBitsToFloat(0x7FC00000u));
}

// Means and deviations of the tile's rows. Tiles in shared memory were read.
void find_moments() {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i)
        shared_words[tile_row(i, LHS_WORDS) * LHS_WORDS + lane % LHS_WORDS].xy = floatBitsToUint(row_sums[i]);
    barrier();
    for (uint r = gl_LocalInvocationIndex; r < BM; r += gl_WorkGroupSize.x) {
        vec2 sum = vec2(0.0);
        [[unroll]] for (uint w = 0; w < LHS_WORDS; ++w) sum += uintBitsToFloat(shared_words[r * LHS_WORDS + w].xy);
        moments[r] = moment_of(sum);
    }
}
#endif

#ifdef SUMS_OF_ROWS
// The same by sums that are given, with shared memory that nothing is in yet: invocations beside one another have rows beside one
// another. Ends behind a barrier.
void take_moments() {
    const uint all = gl_WorkGroupSize.x, own = gl_LocalInvocationIndex, parts = max(all / BM, 1), groups = K / SUMMED;
    const uint rows = batches * M, at = gl_WorkGroupID.z / PARTS * M + min(row0 + own % BM, M - 1);
    vec2 sum = vec2(0.0);
    if (own < parts * BM) {
        for (uint g = own / BM; g < groups; g += parts * 8) {
            vec2 some[8];
            [[unroll]] for (uint i = 0; i < 8; ++i) some[i] = lhs_sums[min(g + i * parts, groups - 1) * rows + at];
            [[unroll]] for (uint i = 0; i < 8; ++i) sum += g + i * parts < groups ? some[i] : vec2(0.0);
        }
        shared_words[own].xy = floatBitsToUint(sum);
    }
    barrier();
    if (own < BM) {
        for (uint p = 1; p < parts; ++p) sum += uintBitsToFloat(shared_words[own + p * BM].xy);
        moments[own] = moment_of(sum);
    }
    barrier();
}
#endif

// Moves a tile from the registers of `slot` to shared memory.
void keep(uint k0, uint slot, uint stage) {
#ifdef WINDOW
    shift_right(k0, slot);
#elif !defined(FRAGMENTS)
    if (RHS_BYTES == 4) shift_right(k0, slot);
#endif
    if (LHS_BYTES == 4) shift_left(slot);
#ifdef IMAGE
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint at = slot * LHS_EACH + i;
        next_lhs[at] = inside_of(next_lhs[at], i, k0 / PACK + (lane + i * LANES) % LHS_WORDS);
    }
#endif
    if (!EVEN_K && k0 + BK > K) clear(k0, slot);
#ifdef NORMALIZES
    if (ADDS_ROWS) add_rows(slot);
#endif
#ifndef FRAGMENTS
    const uint right = tiles + stage * TILE + LHS_TILE;
#endif
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i)
        shared_words[tiles + stage * TILE + tile_word(i, LHS_WORDS)] = next_lhs[slot * LHS_EACH + i];
#ifndef FRAGMENTS
    if (TURNED) {
        [[unroll]] for (uint i = 0; i < RHS_EACH; i += 4) {
            const uvec2 four = turned_place(lane + i / 4 * LANES);
            const uint k = four.x, c = four.y * PACK;
            // Every other lane begins with the other four columns: those of neighbours would lie in the same banks.
            const bool odd = four.y % 2 == 1;
            uvec4 rows[4];
            [[unroll]] for (uint j = 0; j < 4; ++j) {
                const uvec4 words = next_rhs[slot * RHS_EACH + i + j];
                rows[j] = odd ? words.yxwz : words;
            }
            [[unroll]] for (uint q = 0; q < 4; ++q) {
                const uvec4 columns = turned(rows[0][q], rows[1][q], rows[2][q], rows[3][q]);
                const uint first = c + (q ^ uint(odd)) * 4;
                [[unroll]] for (uint l = 0; l < 4; ++l)
                    shared_words[right + (first + l) * RHS_ROW + k / 4][k % 4] = columns[l];
            }
        }
        return;
    }
    [[unroll]] for (uint i = 0; i < RHS_EACH; ++i) {
        const uint at = lane + i * LANES;
        const uint word = RHS_TRANSPOSED ? tile_word(i, RHS_WORDS) : at / RHS_WORDS * RHS_ROW + at % RHS_WORDS;
        shared_words[right + word] = next_rhs[slot * RHS_EACH + i];
    }
#endif
}

// Workgroups in bands of eight rows, so that those that run at a time share operands in the cache.
uvec2 place() {
    const uint across = gl_NumWorkGroups.x, id = gl_WorkGroupID.y * across + gl_WorkGroupID.x;
    const uint first = id / (8 * across) * 8, rows = min(8, gl_NumWorkGroups.y - first), rest = id % (8 * across);
    return uvec2(rest / rows, first + rest % rows);
}

#ifdef FRAGMENTS
void meet();
#include "fragments.glsl"
#else
// Reads the share of the tile at `k0` into the registers of `slot` that belongs to the `at`-th of as many places as `multiply` has.
// Reads in a row keep those of shared memory waiting that products need.
void fetch_between(uint at, uint k0, uint slot) {
    const uint places = BK / MK * ACROSS, words = LHS_EACH + RHS_EACH;
    [[unroll]] for (uint w = at * words / places; w < (at + 1) * words / places; ++w) {
        if (w < LHS_EACH) {
            fetch_left(k0, w, slot * LHS_EACH + w);
        } else {
            fetch_right(k0, w - LHS_EACH, slot * RHS_EACH + w - LHS_EACH);
        }
    }
}

// Adds the products of a tile in shared memory to the sums of a subgroup. INTERLEAVED reads the tile at `next` meanwhile.
void multiply(uint stage, uint my_row, uint my_column, uint next, uint slot) {
    const uint base = tiles + stage * TILE + LHS_TILE;
    [[unroll]] for (uint k = 0; k < BK; k += MK) {
        coopmat<OPERAND, gl_ScopeSubgroup, MM, MK, gl_MatrixUseA> left[DOWN];
        [[unroll]] for (uint i = 0; i < DOWN; ++i)
            coopMatLoad(left[i], shared_words, tiles + stage * TILE + (my_row + i * MM) * LHS_ROW + k / PACK, LHS_ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; ++j) {
            if (INTERLEAVED) fetch_between(k / MK * ACROSS + j, next, slot);
            coopmat<OPERAND, gl_ScopeSubgroup, MK, MN, gl_MatrixUseB> right;
            const uint c = my_column + j * MN;
            if (ALONG_K) {
                coopMatLoad(right, shared_words, base + c * RHS_ROW + k / PACK, RHS_ROW,
                            gl_CooperativeMatrixLayoutColumnMajor);
            } else {
                coopMatLoad(right, shared_words, base + k * RHS_ROW + c / PACK, RHS_ROW,
                            gl_CooperativeMatrixLayoutRowMajor);
            }
            [[unroll]] for (uint i = 0; i < DOWN; ++i)
                sums[i * ACROSS + j] = coopMatMulAdd(left[i], right, sums[i * ACROSS + j]);
        }
    }
}
#endif

// Waits for the rest of the team, and for what it wrote to shared memory.
void meet() {
    if (ALONE) {
        controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
    } else {
        barrier();
    }
}

#ifdef OPERAND_I8
ivec4 unpacked(uvec4 quad) {
    return ivec4(quad);
}

uvec4 packed(ivec4 quad) {
    return uvec4(quad);
}
#elif OUT_SIZE == 2
vec4 unpacked(uvec2 quad) {
    return vec4(unpackFloat2x16(quad.x), unpackFloat2x16(quad.y));
}

uvec2 packed(vec4 quad) {
    return uvec2(packFloat2x16(f16vec2(quad.xy)), packFloat2x16(f16vec2(quad.zw)));
}
#endif
#ifndef OPERAND_I8
vec4 unpacked(uvec4 quad) {
    return uintBitsToFloat(quad);
}

uvec4 bits(vec4 quad) {
    return floatBitsToUint(quad);
}
#if OUT_SIZE == 4
uvec4 packed(vec4 quad) {
    return bits(quad);
}
#endif
#else
uvec4 bits(ivec4 quad) {
    return uvec4(quad);
}
#endif

// Row and column, among the workgroup's, of a quad of a piece.
uvec2 quad_place(uint piece, uint quad) {
    const uint r = quad / (BN / 4);
    return uvec2(r / STRIP * WM + piece * STRIP + r % STRIP, quad % (BN / 4) * 4);
}

// Reads what is added to quads of a piece from the one at `first` on.
void fetch_added(uint piece, uint first) {
    if (!QUADS) return;
    [[unroll]] for (uint i = 0; i < CHUNK; ++i) {
        uvec2 place = uvec2(row0, column0) + quad_place(piece, first + i * gl_WorkGroupSize.x);
        // A read behind a branch waits for the one before.
        if (!WHOLE) place = min(place, uvec2(M - 1, N - 4));
        if (HAS_BIAS) next_bias[i] = bias[(bias_base + place.y) / 4];
#ifdef NORMALIZES
        if (NORMALIZED) next_column_sums[i] = bias[(N + place.y) / 4];
#endif
        if (HAS_ROW_BIAS) next_row_bias[i] = ACC(bias_elements[place.x]);
        if (HAS_RESIDUAL) next_residual[i] = residual[(out_base + place.x * PITCH + place.y) / 4];
    }
}

// The sums of all teams for a quad of a piece.
QUAD sum_of(uint quad) {
    const uint at = quad / (BN / 4) * SUMS_ROW + quad % (BN / 4);
    QUAD sum = unpacked(shared_words[at]);
    [[unroll]] for (uint s = 1; s < SLICES; ++s) sum += unpacked(shared_words[at + s * PIECE_ROWS * SUMS_ROW]);
    return sum;
}

// Where the result with this row and column lies, that would be element `at` if results lay by themselves.
uint out_place(uvec2 place, uint at) {
    return OUT_IN_RUNS ? runs_base + place.x * out_row + place.y : at;
}

// Stores a quad whose neighbours do not lie in whole words.
void store_elements(QUAD sum, uvec2 place) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
        const uint c = place.y + i, at = out_base + place.x * N + c;
        if (c >= N) return;
        if (PARTS > 1) {
            part_elements[at] = sum[i];
            continue;
        }
        ACC value = sum[i];
#ifdef NORMALIZES
        if (NORMALIZED) {
            const vec2 moment = moments[place.x - row0];
            value = (value - moment.x * ACC(bias_elements[N + c])) * moment.y;
        }
#endif
        if (HAS_BIAS) value += ACC(bias_elements[c]);
        if (HAS_ROW_BIAS) value += ACC(bias_elements[place.x]);
        if (HAS_RESIDUAL && !RESIDUAL_BEHIND) value += ACC(residual_elements[at]);
        value = activate(value, ACTIVATION);
        if (HAS_RESIDUAL && RESIDUAL_BEHIND) value += ACC(residual_elements[at]);
        elements[out_place(uvec2(place.x, c), at)] = OUT(value);
    }
}

// Stores the i-th quad after the one at `first`.
void store(uint piece, uint first, uint i) {
    const uint quad = first + i * gl_WorkGroupSize.x;
    const uvec2 place = uvec2(row0, column0) + quad_place(piece, quad);
    if (quad >= PIECE_QUADS || !WHOLE && (place.x >= M || place.y >= N)) return;
    QUAD sum = sum_of(quad);
    if (!QUADS) {
        store_elements(sum, place);
        return;
    }
    const uint at = out_base + place.x * PITCH + place.y;
    if (PARTS > 1) {
        part_sums[at / 4] = bits(sum);
        return;
    }
#ifdef NORMALIZES
    if (NORMALIZED) {
        const vec2 moment = moments[place.x - row0];
        sum = (sum - moment.x * unpacked(next_column_sums[i])) * moment.y;
    }
#endif
    if (HAS_BIAS) sum += unpacked(next_bias[i]);
    if (HAS_ROW_BIAS) sum += next_row_bias[i];
    if (HAS_RESIDUAL && !RESIDUAL_BEHIND) sum += unpacked(next_residual[i]);
    sum = activate(sum, ACTIVATION);
    if (HAS_RESIDUAL && RESIDUAL_BEHIND) sum += unpacked(next_residual[i]);
    result[out_place(place, at) / 4] = packed(sum);
}

// Stores the results of a piece. `piece` is a constant at each call: compilers leave loops with barriers as they are, and sums
// whose index they do not know go to memory.
void finish(uint piece, uint team, uint my_row, uint my_column) {
    const uint own = gl_LocalInvocationIndex;
    // What tiles and the piece before left in shared memory has been read.
    barrier();
    [[unroll]] for (uint i = 0; i < DOWN / PIECES; ++i) {
        const uint r = team * PIECE_ROWS + my_row / PIECES + i * MM;
        [[unroll]] for (uint j = 0; j < ACROSS; ++j)
            coopMatStore(sums[(piece * (DOWN / PIECES) + i) * ACROSS + j], shared_words,
                         r * SUMS_ROW + (my_column + j * MN) / 4, SUMS_ROW, gl_CooperativeMatrixLayoutRowMajor);
    }
    fetch_added(piece, own);
    barrier();
    for (uint first = own; first < PIECE_QUADS; first += CHUNK * gl_WorkGroupSize.x) {
        if (first >= CHUNK * gl_WorkGroupSize.x) fetch_added(piece, first);
        [[unroll]] for (uint i = 0; i < CHUNK; ++i) store(piece, first, i);
    }
}

#if OUT_SIZE == 2 && !defined(OPERAND_I8)
#define STRIPS
#include "strips.glsl"
#endif

void main() {
    const uint batch = gl_WorkGroupID.z / PARTS, slice = gl_WorkGroupID.z % PARTS;
    const uint begin = PARTS == 1 ? 0 : slice * part, end = PARTS == 1 ? K : min(K, begin + part);
    const uvec2 tile = place();
    row0 = tile.y * BM;
    column0 = tile.x * BN;
    out_base = (slice * batches + batch) * M * N;
    bias_base = 0;
#ifdef IMAGE
    // Products of the batch have their results side by side.
    bias_base = batch * N;
    out_base = slice * M * PITCH + bias_base;
#endif
    runs_base = out_first + batch * out_stride;
    lhs_base = batch * lhs_stride + (IN_RUNS ? lhs_first : 0);
    rhs_base = batch * rhs_stride + (IN_RUNS ? rhs_first : 0);
    const uint team = gl_SubgroupID / MEMBERS, member = gl_SubgroupID % MEMBERS;
    lane = member * gl_SubgroupSize + gl_SubgroupInvocationID;
    tiles = team * STAGES * TILE;
#ifdef WINDOW
    // All words of an invocation lie in the same columns.
    find_inside(column0 + lane % RHS_WORDS * PACK);
#endif
#ifdef IMAGE
    find_places();
#endif
    const uint my_row = member / (BN / WN) * WM, my_column = member % (BN / WN) * WN;

    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; ++i) sums[i] = SUM(0);
#ifdef NORMALIZES
    [[unroll]] for (uint i = 0; i < row_sums.length(); ++i) row_sums[i] = vec2(0.0);
#endif

#ifdef FRAGMENTS
    multiply_all(begin, begin + team * BK, end, my_row, my_column);
#else
    const uint turn = SLICES * BK, mine = begin + team * BK;
    [[unroll]] for (uint slot = 0; slot < AHEAD; ++slot) {
        if (mine + slot * turn < end) fetch(mine + slot * turn, slot);
    }
    if (mine < end) keep(mine, 0, 0);
    meet();
    uint stage = 0;
    // Teams of several subgroups meet each other too, so that all take as many turns.
    for (uint first = begin; first < end; first += AHEAD * turn) {
        [[unroll]] for (uint slot = 0; slot < AHEAD; ++slot) {
            if (first + slot * turn >= end) break;
            const uint k0 = first + slot * turn + team * BK;
            const uint next = k0 + AHEAD * turn;
            if (!INTERLEAVED && next < end) fetch(next, slot);
            // Without a next tile this one is read again, which costs less than conditions do.
            if (SLICES == 1 || k0 < end) multiply(stage, my_row, my_column, next < end ? next : k0, slot);
            if (STAGES == 1) {
                meet();
            } else {
                stage ^= 1;
            }
            if (k0 + turn < end) keep(k0 + turn, (slot + 1) % AHEAD, stage);
            meet();
        }
    }
#endif
#ifdef NORMALIZES
    if (ADDS_ROWS) find_moments();
#endif
#ifdef STRIPS
    if (RESULTS == 2) {
        finish_strips(my_row, my_column);
        return;
    }
#endif
    finish(0, team, my_row, my_column);
    if (PIECES > 1) finish(1, team, my_row, my_column);
    if (PIECES > 2) finish(2, team, my_row, my_column);
    if (PIECES > 3) finish(3, team, my_row, my_column);
    if (PIECES > 4) finish(4, team, my_row, my_column);
    if (PIECES > 5) finish(5, team, my_row, my_column);
}
