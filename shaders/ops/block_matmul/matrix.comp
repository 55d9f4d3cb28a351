// out = lhs * weights for few rows of lhs, with weights in blocks and cooperative matrices of 16x8x16: the workgroup's subgroups share the
// sums of 16 * TILES rows of weights, 8 chunks of 32 of the inner dimension at a time for each subgroup. Codes go from memory to the
// left operand's registers as whole numbers, which halves hold exactly; sums of products are multiplied with scales after.
//
// Of activations 22 bits are kept: each is a sum of two halves, and both are columns of the right operand. A step's are multiplied by a
// power of two that brings the largest below 2^15, and its sums divided by it.
//
// Which of the inner dimension a place of a matrix stands for is free, as long as both operands agree. So every lane keeps the chunks
// that it has loaded, two for each of two rows of weights, and the four lanes of a row have chunks of their own. Their sums are kept
// apart by the right operand: the activations of a lane's chunks are in columns that no other lane of the four has, and everything
// else in them is zero. For that, a lane must know its elements (matrix_lanes.glsl). Where products show that they lie otherwise, sums are
// made without matrices. So they are where a subgroup's activations are not finite: what is infinite times a weight is not what it is times
// a code, a scale and an offset apart.
//
// NORMED: a row is divided by the root of the mean of its squares and multiplied by a scale. GATED: the result is
// function(sum with a row of weights) * (sum with the row N behind it), which is in the second half of a tile.
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
layout(constant_id = 1) const uint TILES = 1;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool WHOLE = false;  // Rows are whole steps.
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool NORMED = false;
layout(constant_id = 7) const bool GATED = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 scales[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define BLOCKS_SLOT 1
#include "blocks.glsl"
#include "block_pairs.glsl"
#include "block_product.glsl"
#include "matrix_lanes.glsl"

const uint READ = 16 * TILES;                 // Rows of weights.
const uint COLUMNS = GATED ? READ / 2 : READ; // Of the result.
const uint SUBGROUPS = gl_WorkGroupSize.x / 32;
const uint STEP = 8;                          // Chunks of a step: two for each of the lanes that share a row of weights.
const uint PIECE = ROWS * 2 * STEP * 4;       // Activations of a step: both halves of each, two quads in a word.

shared float partial[SUBGROUPS * READ * ROWS];
shared float square_parts[SUBGROUPS * ROWS];
// A piece for each subgroup. Then zeros, for what a lane has no part in.
shared uvec4 staged[SUBGROUPS * PIECE + 4];

uint column0;
// What the next step needs, on its way while this one is computed.
uint next_words[TILES * 2 * PAIR_WORDS];
vec4 next_left[ROWS * 2], next_scales[2];
// Of two rows of weights of each tile and rows of lhs, and of the lane's chunks; and the squares of what the lane staged.
float sums[TILES * 2 * ROWS];
float squares[ROWS];
bool infinite = false;  // Activations of the subgroup, some.

float four(vec4 terms) {
    return (terms.x + terms.y) + (terms.z + terms.w);
}

// Which row of weights is row i of the tiles.
uint weight_row(uint i) {
    const uint column = column0 + (GATED ? i / 16 * 8 + i % 8 : i);
    return min(column, N - 1) + (GATED && i / 8 % 2 == 1 ? N : 0);
}

// The byte at which row i of a lane's rows of weights begins, of the two of each tile.
uint row_of(uint i) {
    return weight_row(i * 8 + lane / 4) * ROW_BYTES(chunks);
}

bool begins_behind(uint i, uint first) {
    return ((row_of(i) + first / BLOCK_CHUNKS * BLOCK_BYTES) & 2u) != 0u;
}

// Begins to read what the step from chunk `first` on needs.
void fetch(uint first) {
    [[unroll]] for (uint i = 0; i < TILES * 2; ++i) {
        uint words[PAIR_WORDS];
        fetch_pair(row_of(i), first, quarter, chunks, words);
        [[unroll]] for (uint j = 0; j < PAIR_WORDS; ++j) next_words[i * PAIR_WORDS + j] = words[j];
    }
    const bool there = WHOLE || first * 4 + lane < chunks * 4;
    [[unroll]] for (uint q = 0; q < 2; ++q) {
        const uint quad = (first * 4 + lane) * 2 + q;
        next_scales[q] = vec4(1.0);
        if (NORMED && there) next_scales[q] = scales[quad];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            next_left[r * 2 + q] = vec4(0.0);
            if (there) next_left[r * 2 + q] = lhs[r * chunks * 8 + quad];
        }
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

vec4 rest_of(vec4 value, vec4 high) {
    const vec4 rest = value - high;
    // Nothing is left of what is infinite or no number.
    return mix(vec4(0.0), rest, lessThanEqual(abs(rest), vec4(65504.0)));
}

// Puts the activations of a step where the subgroup finds them. Gives what sums of each row are to be multiplied with, and the sums of
// the eight activations that the lane put there.
void stage(uint piece, out float powers[ROWS], out float added[ROWS]) {
    subgroup_barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        vec4 one = next_left[r * 2], two = next_left[r * 2 + 1];
        if (NORMED) {
            squares[r] += four(one * one + two * two);
            one *= next_scales[0];
            two *= next_scales[1];
        }
        added[r] = four(one + two);
        const vec4 larger = max(abs(one), abs(two));
        const float most = subgroupMax(max(max(larger.x, larger.y), max(larger.z, larger.w)));
        infinite = infinite || floatBitsToUint(most) >= 0x7F800000u;
        const uint exponent = max(floatBitsToUint(most) >> 23, 15u);
        const float factor = uintBitsToFloat((268u - exponent) << 23);
        powers[r] = uintBitsToFloat((exponent - 14u) << 23);
        one *= factor;
        two *= factor;
        const vec4 high_one = high_of(one), high_two = high_of(two);
        const uint at = piece + r * 2 * STEP * 4 + lane;
        staged[at] = words_of(high_one, high_two);
        staged[at + STEP * 4] = words_of(rest_of(one, high_one), rest_of(two, high_two));
    }
    subgroup_barrier();
}

// Adds the products of the step that was fetched, and fetches the one from `after` on.
void add(uint first, uint after) {
    const uint row = lane / 4, piece = gl_SubgroupID * PIECE;
    const uint ten = 0x64006400u | (chunks & 0x80000000u);  // There are never so many chunks.
    uint words[TILES * 2 * PAIR_WORDS];
    bool behind[TILES * 2];
    [[unroll]] for (uint i = 0; i < TILES * 2 * PAIR_WORDS; ++i) words[i] = next_words[i];
    [[unroll]] for (uint i = 0; i < TILES * 2; ++i) behind[i] = begins_behind(i, first);
    float powers[ROWS], added[ROWS];
    stage(piece, powers, added);
    if (after < chunks) fetch(after);
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        const uint chunk = pair_chunk(quarter, p);
        float chunk_sums[ROWS];
        if (PAIR_OFFSETS != 0) {
            [[unroll]] for (uint r = 0; r < ROWS; ++r)
                chunk_sums[r] = subgroupShuffle(subgroupClusteredAdd(added[r], 4), chunk * 4);
        }
        [[unroll]] for (uint part = 0; part < PAIR_SCALES; ++part) {
            SUM products[TILES * ROWS];
            [[unroll]] for (uint i = 0; i < TILES * ROWS; ++i) products[i] = SUM(0.0);
            [[unroll]] for (uint j = 0; j < 4 / PAIR_SCALES; ++j) {
                const uint two = part * (4 / PAIR_SCALES) + j;
                RIGHT right[ROWS * 2];
                [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                    // The lane's column of the right operand is one of the two that are for its own chunks.
                    const bool mine = row / 2 == quarter;
                    const uvec4 eight =
                        staged[mine ? piece + ((r * 2 + row % 2) * STEP + chunk) * 4 + two : SUBGROUPS * PIECE];
                    right[r * 2] = right_of(eight.xy);
                    right[r * 2 + 1] = right_of(eight.zw);
                }
                [[unroll]] for (uint t = 0; t < TILES * 2; ++t) {
                    LEFT numbers;
                    [[unroll]] for (uint h = 0; h < 2; ++h) {
                        const uint i = t / 2 * 2 + h;
                        uint own[PAIR_WORDS];
                        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
                        f16vec2 even, odd;
                        four_codes(own, behind[i], quarter, p, two * 2 + t % 2, ten, even, odd);
                        numbers[h * 4] = even.x;
                        numbers[h * 4 + 1] = even.y;
                        numbers[h * 4 + 2] = odd.x;
                        numbers[h * 4 + 3] = odd.y;
                    }
                    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                        const uint sum = t / 2 * ROWS + r;
                        products[sum] = coopMatMulAdd(numbers, right[r * 2 + t % 2], products[sum]);
                    }
                }
            }
            [[unroll]] for (uint i = 0; i < TILES * 2; ++i) {
                uint own[PAIR_WORDS];
                [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
                float factors[PAIR_SCALES], offset;
                pair_scales(own, behind[i], quarter, p, factors, offset);
                [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                    const uint sum = i / 2 * ROWS + r;
                    const float both = products[sum][i % 2 * 2] + products[sum][i % 2 * 2 + 1];
                    sums[i * ROWS + r] += factors[part] * powers[r] * both;
                    if (PAIR_OFFSETS != 0) sums[i * ROWS + r] -= offset * chunk_sums[r];
                }
            }
        }
    }
}

// The sum of a row of weights and one of lhs without matrices, and squares of the latter: the lane's part of the subgroup's chunks.
float plain(uint row_byte, uint r, inout float square) {
    float sum = 0.0;
    const uint turn = SUBGROUPS * STEP;
    for (uint chunk = gl_SubgroupID * STEP + lane % STEP + lane / STEP * turn; chunk < chunks; chunk += 32 / STEP * turn) {
        vec4 values[8];
        load_chunk(row_byte, chunk, values);
        for (uint i = 0; i < 8; ++i) {
            vec4 left = lhs[(r * chunks + chunk) * 8 + i];
            if (NORMED) {
                square += four(left * left);
                left *= scales[chunk * 8 + i];
            }
            sum += four(left * values[i]);
        }
    }
    return sum;
}

void without_matrices(uint own) {
    for (uint r = 0; r < ROWS; ++r) {
        float square = 0.0;
        for (uint i = 0; i < READ; ++i) {
            square = 0.0;
            const float sum = subgroupAdd(plain(weight_row(i) * ROW_BYTES(chunks), r, square));
            if (lane == 0) partial[own + r * READ + i] = sum;
        }
        squares[r] = square;
    }
}

void main() {
    lane = gl_SubgroupInvocationID;
    quarter = lane % 4;
    column0 = gl_WorkGroupID.x * COLUMNS;
    const uint own = gl_SubgroupID * READ * ROWS;
    if (gl_LocalInvocationIndex < 4) staged[SUBGROUPS * PIECE + gl_LocalInvocationIndex] = uvec4(0);
    uint first = gl_SubgroupID * STEP;
    if (first < chunks) fetch(first);
    const bool as_said = lies_as_said();
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) squares[r] = 0.0;
    if (as_said) {
        [[unroll]] for (uint i = 0; i < TILES * 2 * ROWS; ++i) sums[i] = 0.0;
        for (; first < chunks; first += SUBGROUPS * STEP) add(first, first + SUBGROUPS * STEP);
    }
    if (as_said && !infinite) {
        [[unroll]] for (uint i = 0; i < TILES * 2; ++i) {
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                const float sum = subgroupClusteredAdd(sums[i * ROWS + r], 4);
                if (quarter == 0) partial[own + r * READ + i * 8 + lane / 4] = sum;
            }
        }
    } else {
        without_matrices(own);
    }
    if (NORMED) {
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            const float square = subgroupAdd(squares[r]);
            if (lane == 0) square_parts[gl_SubgroupID * ROWS + r] = square;
        }
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < COLUMNS * ROWS; i += gl_WorkGroupSize.x) {
        const uint c = i % COLUMNS, r = i / COLUMNS, column = column0 + c, at = r * N + column;
        if (column >= N) continue;
        float sum = 0.0, other = 0.0, square = 0.0;
        [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s) {
            const uint part = (s * ROWS + r) * READ + (GATED ? c / 8 * 16 + c % 8 : c);
            sum += partial[part];
            if (GATED) other += partial[part + (GATED ? 8 : 0)];
            if (NORMED) square += square_parts[s * ROWS + r];
        }
        if (NORMED) {
            const float factor = inversesqrt(square / float(chunks * 32) + epsilon);
            sum *= factor;
            other *= factor;
        }
        result[at] = GATED ? activate(sum, ACTIVATION) * other : finished(at, column, sum);
    }
}
