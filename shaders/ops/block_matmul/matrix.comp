// out = lhs * weights for few rows of lhs, with weights in blocks and cooperative matrices of 16x8x16. Codes go from memory to the left
// operand's registers as whole numbers, which halves hold exactly; sums of products are multiplied with scales after.
//
// A subgroup has tiles of 16 rows of weights, TURNS one after another, and 8 chunks of 32 of the inner dimension at a time: a step. PARTS
// subgroups share the steps of a tile. The weights of a step are on their way while those of the one before are multiplied. Activations
// go through shared memory. A workgroup puts them there first, ROUND steps at once, for all of its subgroups; where it has but one tile
// (OWN), each subgroup puts there those of a step before it multiplies them, and waits for nobody.
//
// Of activations 22 bits are kept: each is a sum of two halves, and both are columns of the right operand. A step's are multiplied by a
// power of two that brings the largest below 2^15, and its sums divided by it.
//
// Which of the inner dimension a place of a matrix stands for is free, as long as both operands agree. So every lane keeps the chunks
// that it has loaded, two for each of two rows of weights, and the four lanes of a row have chunks of their own. Their sums are kept
// apart by the right operand: the activations of a lane's chunks are in columns that no other lane of the four has, and everything
// else in them is zero. For that, a lane must know its elements (matrix_lanes.glsl). Where products show that they lie otherwise, sums are
// made without matrices. So they are where activations are not finite: what is infinite times a weight is not what it is times a code, a
// scale and an offset apart.
//
// NORMED: a row is divided by the root of the mean of its squares and multiplied by a scale. GATED: the result is
// function(sum with a row of weights) * (sum with the row N behind it), which is in the second half of a tile.
//
// With EXPERTS it is a kernel of `expert_matmul`: the grid has a row of the result for each of its own rows, and the weights are those of
// the expert that the row chose.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;  // Whole subgroups of 32.
layout(constant_id = 1) const uint PARTS = 1;
#ifdef EXPERTS
layout(constant_id = 2) const bool WHOLE = false;
layout(constant_id = 3) const uint ROUND = 1;
layout(constant_id = 4) const uint TURNS = 1;
layout(constant_id = 5) const bool OWN = false;
const uint ROWS = 1;
const bool NORMED = false, GATED = false;
#else
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool WHOLE = false;  // Rows are whole steps.
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool NORMED = false;
layout(constant_id = 7) const bool GATED = false;
layout(constant_id = 8) const uint ROUND = 1;  // Steps whose activations are in shared memory at once: with OWN, one of each subgroup.
layout(constant_id = 9) const uint TURNS = 1;  // One, where all steps are more than a round.
layout(constant_id = 10) const bool OWN = false;
#endif

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
#ifdef EXPERTS
layout(set = 0, binding = 2) readonly buffer Experts { int chosen[]; };
layout(set = 0, binding = 3) writeonly buffer Result { float result[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;   // In a row of k.
    uint sharing;  // Rows of the result with one row of lhs.
    uint first;    // Number of the first expert.
    uint experts;  // Experts whose weights are there.
};

uint left_row;   // Quads before the row of lhs.
uint first_row;  // Rows of weights before those of the expert.

#define SCALE(quad) vec4(1.0)
#define LEFT_QUAD(r, quad) (left_row + (quad))
#define LEFT_CHUNK(r, chunk) (left_row + (chunk) * 8)
#else
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 scales[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define SCALE(quad) scales[quad]
#define LEFT_QUAD(r, quad) ((r) * chunks * 8 + (quad))
#define LEFT_CHUNK(r, chunk) (((r) * chunks + (chunk)) * 8)
#endif

#define BLOCKS_SLOT 1
#ifdef EXPERTS
#define CODEBOOK_SLOT 4
#endif
#include "blocks.glsl"
#include "block_pairs.glsl"
#ifndef EXPERTS
#include "block_product.glsl"
#endif
#include "matrix_lanes.glsl"

const uint COLUMNS = GATED ? 8 : 16;  // Of the result, of a tile.
const uint SUBGROUPS = gl_WorkGroupSize.x / 32;
const uint TEAMS = SUBGROUPS / PARTS;
const uint STEP = 8;                     // Chunks of a step: two for each of the lanes that share a row of weights.
const uint PIECE = ROWS * STEP * 4 * 2;  // Of a step: both halves of each eight activations.
const uint SHARE = (ROUND + SUBGROUPS - 1) / SUBGROUPS;  // Steps of a round that a subgroup puts into shared memory.

// Behind the round's pieces there is one of zeros, for what a lane has no part in.
shared uvec4 staged[(ROUND + 1) * PIECE];
// For each step and row: what sums are to be multiplied with, and the sums of the activations of each chunk, or of its halves.
shared float powers[ROUND * ROWS];
shared float chunk_sums[ROUND * ROWS * STEP * PAIR_TERMS];
// Of each subgroup: sums of its part (of two turns), and of squares; whether it found what is not finite.
shared float partial[PARTS > 1 ? (TURNS > 1 ? 2 : 1) * SUBGROUPS * 16 * ROWS : 1];
shared float square_parts[SUBGROUPS * ROWS];
shared bool infinite[SUBGROUPS];

uint steps, part, team;
uint rows[2];  // Bytes at which the lane's rows of weights begin.
// What the next step needs, on its way while this one is computed: with OWN activations, too.
uint next_words[2 * PAIR_WORDS];
vec4 next_left[ROWS * 2], next_scales[2];
float sums[2 * ROWS];
float squares[ROWS];
bool finite = true;  // What the subgroup put into shared memory.

float four(vec4 terms) {
    return (terms.x + terms.y) + (terms.z + terms.w);
}

uint column_of(uint turn, uint team) {
    return ((gl_WorkGroupID.x * TURNS + turn) * TEAMS + team) * COLUMNS;
}

// Which row of weights is row i of a tile.
uint weight_row(uint column0, uint i) {
#ifdef EXPERTS
    return first_row + min(column0 + i, N - 1);
#else
    return min(column0 + (GATED ? i % 8 : i), N - 1) + (GATED && i >= 8 ? N : 0);
#endif
}

void place(uint turn) {
    [[unroll]] for (uint i = 0; i < 2; ++i)
        rows[i] = weight_row(column_of(turn, team), i * 8 + lane / 4) * ROW_BYTES(chunks);
}

// Begins to read the lane's eight activations of a step of all rows, and their scales.
void fetch_left(uint step) {
    const uint chunk = step * STEP + lane / 4;
    [[unroll]] for (uint q = 0; q < 2; ++q) {
        const uint quad = chunk * 8 + quarter * 2 + q;
        next_scales[q] = vec4(1.0);
        if (NORMED && chunk < chunks) next_scales[q] = SCALE(quad);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            next_left[r * 2 + q] = vec4(0.0);
            if (chunk < chunks) next_left[r * 2 + q] = lhs[LEFT_QUAD(r, quad)];
        }
    }
}

// Begins to read what a step needs.
void fetch(uint step) {
    if (OWN) fetch_left(step);
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        uint words[PAIR_WORDS];
        fetch_pair(rows[i], step * STEP, quarter, chunks, WHOLE, words);
        [[unroll]] for (uint j = 0; j < PAIR_WORDS; ++j) next_words[i * PAIR_WORDS + j] = words[j];
    }
}

// Elements 0 and 2, and 1 and 3, of two quads.
uvec4 words_of(vec4 one, vec4 two) {
    return uvec4(packFloat2x16(f16vec2(one.xz)), packFloat2x16(f16vec2(one.yw)), packFloat2x16(f16vec2(two.xz)),
                 packFloat2x16(f16vec2(two.yw)));
}

// What halves hold exactly. By bits: compilers take the difference between a number and itself as a half for nothing.
vec4 high_of(vec4 value) {
    return uintBitsToFloat(floatBitsToUint(value) & 0xFFFFE000u);
}

// Puts eight activations of a row, for the at-th step in shared memory, and what is told of them there. Gives whether all of the
// subgroup's are finite.
bool stage_eight(uint step, uint r, vec4 one, vec4 two) {
    const uint chunk = lane / 4, at = step * ROWS + r, to = step * PIECE + (r * STEP * 4 + lane) * 2;
    const vec4 larger = max(abs(one), abs(two));
    const float most = subgroupMax(max(max(larger.x, larger.y), max(larger.z, larger.w)));
    const uint exponent = max(floatBitsToUint(most) >> 23, 15u);
#if PAIR_OFFSETS != 0
    const float sum = subgroupClusteredAdd(four(one + two), 4 / PAIR_OFFSETS);
    if (quarter % (4 / PAIR_OFFSETS) == 0) chunk_sums[(at * STEP + chunk) * PAIR_OFFSETS + quarter * PAIR_OFFSETS / 4] = sum;
#endif
    if (lane == 0) powers[at] = uintBitsToFloat((exponent - 14u) << 23);
    const float factor = uintBitsToFloat((268u - exponent) << 23);
    one *= factor * pair_factor(chunk, quarter * 2);
    two *= factor * pair_factor(chunk, quarter * 2 + 1);
    const vec4 high_one = high_of(one), high_two = high_of(two);
    staged[to] = words_of(high_one, high_two);
    staged[to + 1] = words_of(one - high_one, two - high_two);
    return floatBitsToUint(most) < 0x7F800000u;
}

// The same for all rows, with what was read.
void stage_step(uint step) {
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        vec4 one = next_left[r * 2], two = next_left[r * 2 + 1];
        if (NORMED) {
            squares[r] += four(one * one + two * two);
            one *= next_scales[0];
            two *= next_scales[1];
        }
        finite = stage_eight(step, r, one, two) && finite;
    }
}

// Tells the workgroup of the squares that the subgroup has seen.
void tell_squares() {
    if (!NORMED) return;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const float square = subgroupAdd(squares[r]);
        if (lane == 0) square_parts[gl_SubgroupID * ROWS + r] = square;
    }
}

// Puts the activations of the steps from `first` on where the workgroup finds them: all reads before what needs them.
void stage_round(uint first) {
    vec4 left[SHARE * ROWS * 2], scale[SHARE * 2];
    [[unroll]] for (uint s = 0; s < SHARE; ++s) {
        // What is behind the round's last step nobody needs.
        fetch_left(first + s * SUBGROUPS + gl_SubgroupID);
        [[unroll]] for (uint i = 0; i < ROWS * 2; ++i) left[s * ROWS * 2 + i] = next_left[i];
        [[unroll]] for (uint i = 0; i < 2; ++i) scale[s * 2 + i] = next_scales[i];
    }
    [[unroll]] for (uint s = 0; s < SHARE; ++s) {
        const uint step = s * SUBGROUPS + gl_SubgroupID;
        if (step >= ROUND) break;
        [[unroll]] for (uint i = 0; i < ROWS * 2; ++i) next_left[i] = left[s * ROWS * 2 + i];
        [[unroll]] for (uint i = 0; i < 2; ++i) next_scales[i] = scale[s * 2 + i];
        stage_step(step);
    }
    if (lane == 0) infinite[gl_SubgroupID] = !finite;
    tell_squares();
}

// Two right operands: quads 2 * two and 2 * two + 1 of the p-th chunks of lanes, of a row of lhs, from place `at` on.
void right_operands(uint at, uint r, uint p, uint two, out RIGHT first, out RIGHT second) {
    const uvec4 eight = staged[at + ((r * STEP + p * PAIR_APART) * 4 + two) * 2];
    first = right_of(eight.xy);
    second = right_of(eight.zw);
}

// Adds the products of a step, which is the s-th of the round, by the words at hand. `behind`: blocks begin in the middle of a word.
void add(uint words[2 * PAIR_WORDS], bool behind[2], uint s) {
    // Not before the reads for the next step are on their way: this waits for those of this one.
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        uint own[PAIR_WORDS];
        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
        align_pair(own, behind[i], quarter);
        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) words[i * PAIR_WORDS + w] = own[w];
    }
    const uint row = lane / 4;
    const uint ten = 0x64006400u | (chunks & 0x80000000u);  // There are never so many chunks.
    // The lane's column of the right operand is one of the two that are for its own chunks. Zeros are in other banks.
    const uint at = row / 2 == quarter ? s * PIECE + pair_chunk(quarter, 0) * 8 + row % 2 : ROUND * PIECE + 2;
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        [[unroll]] for (uint scale = 0; scale < PAIR_SCALES; ++scale) {
            SUM products[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; ++r) products[r] = SUM(0.0);
            [[unroll]] for (uint j = 0; j < 4 / PAIR_SCALES; ++j) {
                const uint two = scale * (4 / PAIR_SCALES) + j;
                RIGHT right[ROWS * 2];
                [[unroll]] for (uint r = 0; r < ROWS; ++r) right_operands(at, r, p, two, right[r * 2], right[r * 2 + 1]);
                [[unroll]] for (uint t = 0; t < 2; ++t) {
                    LEFT numbers;
                    [[unroll]] for (uint i = 0; i < 2; ++i) {
                        uint own[PAIR_WORDS];
                        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
                        f16vec2 even, odd;
                        four_codes(own, behind[i], quarter, p, two * 2 + t, ten, even, odd);
                        numbers[i * 4] = even.x;
                        numbers[i * 4 + 1] = even.y;
                        numbers[i * 4 + 2] = odd.x;
                        numbers[i * 4 + 3] = odd.y;
                    }
                    [[unroll]] for (uint r = 0; r < ROWS; ++r)
                        products[r] = coopMatMulAdd(numbers, right[r * 2 + t], products[r]);
                }
            }
            [[unroll]] for (uint i = 0; i < 2; ++i) {
                uint own[PAIR_WORDS];
                [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
                float factors[PAIR_SCALES], offsets[PAIR_TERMS];
                pair_scales(own, behind[i], quarter, p, factors, offsets);
                [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                    const float both = products[r][i * 2] + products[r][i * 2 + 1];
                    sums[i * ROWS + r] += factors[scale] * powers[s * ROWS + r] * both;
#if PAIR_OFFSETS != 0
                    const uint chunk = (s * ROWS + r) * STEP + pair_chunk(quarter, p);
                    sums[i * ROWS + r] -= offsets[scale] * chunk_sums[chunk * PAIR_OFFSETS + scale];
#endif
                }
            }
        }
    }
}

// The sum of a row of weights and one of lhs without matrices: the lane's share of the subgroup's part.
float plain(uint row_byte, uint r) {
    float sum = 0.0;
    // Those of its steps.
    const uint apart = PARTS * STEP;
    for (uint chunk = part * STEP + lane % STEP + lane / STEP * apart; chunk < chunks; chunk += 32 / STEP * apart) {
        vec4 values[8];
        load_chunk(row_byte, chunk, values);
        for (uint i = 0; i < 8; ++i) {
            vec4 left = lhs[LEFT_CHUNK(r, chunk) + i];
            if (NORMED) left *= SCALE(chunk * 8 + i);
            sum += four(left * values[i]);
        }
    }
    return sum;
}

void without_matrices(uint column0) {
    const uint row = lane / 4;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        for (uint i = 0; i < 16; ++i) {
            const float sum = subgroupAdd(plain(weight_row(column0, i) * ROW_BYTES(chunks), r));
            if (i == row) sums[r] = sum;
            if (i == row + 8) sums[ROWS + r] = sum;
        }
    }
}

float norm_factor(uint r) {
#ifdef EXPERTS
    return 1.0;
#else
    if (!NORMED) return 1.0;
    float square = 0.0;
    [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) square += square_parts[s * ROWS + r];
    return inversesqrt(square / float(chunks * 32) + epsilon);
#endif
}

void store(uint column, uint r, float sum, float other) {
    if (column >= N) return;
#ifdef EXPERTS
    result[gl_WorkGroupID.y * N + column] = sum;
#else
    const uint at = r * N + column;
    result[at] = GATED ? activate(sum, ACTIVATION) * other : finished(at, column, sum);
#endif
}

// Stores a tile's sums, which its subgroup has alone.
void store_own(uint column0) {
    if (quarter != 0) return;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const float factor = norm_factor(r), sum = sums[r] * factor, other = sums[ROWS + r] * factor;
        store(column0 + lane / 4, r, sum, other);
        if (!GATED) store(column0 + lane / 4 + 8, r, other, 0.0);
    }
}

// Stores the sums of all tiles of a turn, each of the parts of its subgroups. Those of the next turn go to another place, and who
// writes there has been behind the barrier of this one.
void store_shared(uint turn) {
    const uint half_of = turn % 2 * SUBGROUPS;
    if (quarter == 0) {
        [[unroll]] for (uint i = 0; i < 2 * ROWS; ++i)
            partial[((half_of + gl_SubgroupID) * ROWS + i % ROWS) * 16 + lane / 4 + i / ROWS * 8] = sums[i];
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < TEAMS * COLUMNS * ROWS; i += gl_WorkGroupSize.x) {
        const uint c = i % COLUMNS, r = i / COLUMNS % ROWS, t = i / (COLUMNS * ROWS);
        float sum = 0.0, other = 0.0;
        [[unroll]] for (uint s = 0; s < PARTS; ++s) {
            const uint from = ((half_of + t * PARTS + s) * ROWS + r) * 16 + c;
            sum += partial[from];
            if (GATED) other += partial[from + (GATED ? 8 : 0)];
        }
        const float factor = norm_factor(r);
        store(column_of(turn, t) + c, r, sum * factor, other * factor);
    }
}

void finish(uint turn, bool by_matrices) {
    const uint column0 = column_of(turn, team);
    if (by_matrices) {
        [[unroll]] for (uint i = 0; i < 2 * ROWS; ++i) sums[i] = subgroupClusteredAdd(sums[i], 4);
    } else {
        without_matrices(column0);
    }
    if (PARTS == 1) {
        store_own(column0);
    } else {
        store_shared(turn);
    }
}

// Adds the products of the subgroup's steps of a tile, from `step` on, of the round that begins with step `first`.
void add_round(uint turn, inout uint step, uint first) {
    for (; step < (OWN ? steps : min(first + ROUND, steps)); step += PARTS) {
        uint words[2 * PAIR_WORDS];
        bool behind[2];
        [[unroll]] for (uint i = 0; i < 2 * PAIR_WORDS; ++i) words[i] = next_words[i];
        [[unroll]] for (uint i = 0; i < 2; ++i)
            behind[i] = ((rows[i] + step * STEP / BLOCK_CHUNKS * BLOCK_BYTES) & 2u) != 0u;
        if (OWN) {
            subgroup_barrier();
            stage_step(gl_SubgroupID);
            subgroup_barrier();
        }
        if (step + PARTS < steps) {
            fetch(step + PARTS);
        } else if (turn + 1 < TURNS) {
            place(turn + 1);
            fetch(part);
        }
        add(words, behind, OWN ? gl_SubgroupID : step - first);
    }
}

// One tile, whose activations each subgroup puts into shared memory by itself.
void own_tile(bool as_said) {
    uint step = part;
    if (as_said) {
        add_round(0, step, 0);
    } else {
        // For the squares.
        for (; step < steps; step += PARTS) {
            fetch_left(step);
            stage_step(gl_SubgroupID);
        }
    }
    tell_squares();
    if (PARTS == 1) barrier();
    finish(0, as_said && finite);
}

void shared_tiles(bool as_said) {
    uint step = part;
    for (uint first = 0; first < steps; first += ROUND) {
        if (first != 0) barrier();
        stage_round(first);
        barrier();
        bool by_matrices = as_said;
        [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) by_matrices = by_matrices && !infinite[s];
        for (uint turn = 0; turn < TURNS; ++turn) {
            add_round(turn, step, first);
            if (first + ROUND < steps) continue;
            finish(turn, by_matrices);
            step = part;
            [[unroll]] for (uint i = 0; i < 2 * ROWS; ++i) sums[i] = 0.0;
        }
    }
}

#ifdef EXPERTS
// Whether the row's expert is here; if not, the workgroup's part of the result is zero.
bool begin() {
    const uint row = gl_WorkGroupID.y;
    // A number below the first becomes a large one.
    const uint expert = uint(chosen[row]) - first;
    left_row = row / sharing * chunks * 8;
    first_row = expert * N;
    if (expert < experts) return true;
    for (uint i = gl_LocalInvocationIndex; i < TURNS * TEAMS * COLUMNS; i += gl_WorkGroupSize.x)
        store(column_of(0, 0) + i, 0, 0.0, 0.0);
    return false;
}
#endif

void main() {
#ifdef EXPERTS
    if (!begin()) return;
#endif
    lane = gl_SubgroupInvocationID;
    quarter = lane % 4;
    steps = (chunks + STEP - 1) / STEP;
    part = gl_SubgroupID % PARTS;
    team = gl_SubgroupID / PARTS;
    place(0);
    if (part < steps) fetch(part);
    for (uint i = gl_LocalInvocationIndex; i < PIECE; i += gl_WorkGroupSize.x) staged[ROUND * PIECE + i] = uvec4(0);
#ifdef PAIR_TABLE
    fill_table();
#endif
#ifdef PAIR_SMALL
    // There are never so many chunks.
    const bool as_said = lies_as_said() && keeps_small(chunks & 0x80000000u);
#else
    const bool as_said = lies_as_said();
#endif
    [[unroll]] for (uint r = 0; r < ROWS; ++r) squares[r] = 0.0;
    [[unroll]] for (uint i = 0; i < 2 * ROWS; ++i) sums[i] = 0.0;
    if (OWN) {
        barrier();
        own_tile(as_said);
    } else {
        shared_tiles(as_said);
    }
}
