// out = lhs * weights for several rows of lhs, with weights in blocks and cooperative matrices of 16x8x16. `left` has made halves of
// the activations, in the order of the lanes that have them. Weights go from memory to registers, become halves there, and are the
// left operand as they are: which of the inner dimension a place of a matrix stands for is free, as long as both operands agree.
//
// A subgroup has a tile of 16 rows of weights, EIGHTS of eight rows of activations, and 8 chunks of 32 of the inner dimension at a
// time: a step. PARTS subgroups share the steps. The weights of a step are on their way while those of the one before are multiplied.
//
// A lane must know its elements (matrix_lanes.glsl). Where products show that they lie otherwise, sums are made without matrices.
//
// NORMED: a row is divided by the root of the mean of its squares, of which `left` tells. GATED: the result is
// function(sum with a row of weights) * (sum with the row N behind it), which is in the second half of a tile.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#ifdef FORMAT_MXFP4
#extension GL_KHR_shader_subgroup_clustered : require
#endif
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model

layout(local_size_x_id = 0) in;  // Whole subgroups of 32.
layout(constant_id = 1) const uint PARTS = 1;
layout(constant_id = 2) const uint EIGHTS = 1;
layout(constant_id = 3) const bool WHOLE = false;  // Rows are whole steps.
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool NORMED = false;
layout(constant_id = 7) const bool GATED = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 scales[]; };

layout(push_constant) uniform Shape {
    uint M, N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define BLOCKS_SLOT 1
#define PAIR_UNITS
#include "blocks.glsl"
#include "block_pairs.glsl"
#include "block_product.glsl"
#include "matrix_lanes.glsl"

// Behind a codebook where the format has one.
#ifdef CODEBOOK_ENTRIES
#define HALVES_SLOT 7
#else
#define HALVES_SLOT 6
#endif
layout(set = 0, binding = HALVES_SLOT) readonly buffer Halves { uvec4 halves[]; };
layout(set = 0, binding = HALVES_SLOT + 1) readonly buffer Facts { vec2 facts[]; };

const uint COLUMNS = GATED ? 8 : 16;  // Of the result, of a tile.
const uint SUBGROUPS = gl_WorkGroupSize.x / 32, TEAMS = SUBGROUPS / PARTS;
const uint STEP = 8;                      // Chunks of a step.
const uint ROWS = EIGHTS * 8;
#define WORDS (2 * PAIR_WORDS)
// Weights are that many times as large, so that small scales keep their bits.
#if defined(PAIR_FLOATS) || defined(PAIR_SMALL)
const float UNIT = 1.0;
#else
const float UNIT = 4.0;
#endif

// Of each subgroup, sums: a row of the tile's weights after another.
shared float partial[SUBGROUPS * 16 * ROWS];

uint steps, part, tile;
uint rows[2];             // Bytes at which the lane's rows of weights begin.
uint words[WORDS], next_words[WORDS];  // What this step has, and what the next one needs, on its way.
float sums[EIGHTS * 4];

// Which row of weights is row i of a tile.
uint weight_row(uint i) {
    const uint column = tile * COLUMNS + (GATED ? i % 8 : i);
    return min(column, N - 1) + (GATED && i >= 8 ? N : 0);
}

void fetch(uint step) {
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        uint own[PAIR_WORDS];
        fetch_pair(rows[i], step * STEP, quarter, chunks, WHOLE, own);
        [[unroll]] for (uint j = 0; j < PAIR_WORDS; ++j) next_words[i * PAIR_WORDS + j] = own[j];
    }
}

#ifdef PAIR_SMALL
// How many times a power of two is another one that is no smaller, or no power but zero.
float times_of(float power, float largest) {
    const int exponent = int(floatBitsToUint(power) >> 23) - int(floatBitsToUint(largest) >> 23) + 127;
    return uintBitsToFloat(uint(max(exponent, 0)) << 23);
}

// Scales are powers of two of any size, which halves do not hold: the largest of a row in a step is kept for its sums.
float largest_scale(uint i) {
    float largest = 0.0;
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        uint own[PAIR_WORDS];
        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
        float scale[PAIR_SCALES], offset[PAIR_TERMS];
        pair_scales(own, false, quarter, p, scale, offset);
        largest = max(largest, scale[0]);
    }
    return subgroupClusteredMax(largest, 4);
}
#endif

// Adds the products of a step, by the words at hand.
void add(uint step) {
    bool behind[2];  // Whether blocks begin in the middle of a word.
    [[unroll]] for (uint i = 0; i < 2; ++i)
        behind[i] = ((rows[i] + step * STEP / BLOCK_CHUNKS * BLOCK_BYTES) & 2u) != 0u;
    // Not before the reads for the next step are on their way: this waits for those of this one.
    [[unroll]] for (uint i = 0; i < 2; ++i) {
        uint own[PAIR_WORDS];
        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
        align_pair(own, behind[i], quarter);
        [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) words[i * PAIR_WORDS + w] = own[w];
    }
    const uint ten = 0x64006400u | (chunks & 0x80000000u);  // There are never so many chunks.
#ifdef PAIR_SMALL
    const float largest[2] = {largest_scale(0), largest_scale(1)};
#endif
    SUM products[EIGHTS];
    [[unroll]] for (uint h = 0; h < EIGHTS; ++h) products[h] = SUM(0.0);
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        float16_t factors[2 * PAIR_SCALES], offsets[2 * PAIR_TERMS];
        [[unroll]] for (uint i = 0; i < 2; ++i) {
            uint own[PAIR_WORDS];
            [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
            float scale[PAIR_SCALES], offset[PAIR_TERMS];
            pair_scales(own, behind[i], quarter, p, scale, offset);
#ifdef PAIR_SMALL
            factors[i] = float16_t(times_of(scale[0], largest[i]) * SMALL_UNIT);
#else
            [[unroll]] for (uint s = 0; s < PAIR_SCALES; ++s) factors[i * PAIR_SCALES + s] = float16_t(scale[s] * UNIT);
#endif
            [[unroll]] for (uint s = 0; s < PAIR_TERMS; ++s) offsets[i * PAIR_TERMS + s] = float16_t(offset[s] * UNIT);
        }
        [[unroll]] for (uint two = 0; two < 4; ++two) {
            uvec4 right[EIGHTS];
            [[unroll]] for (uint e = 0; e < EIGHTS; ++e)
                right[e] = halves[((step * 8 + p * 4 + two) * EIGHTS + e) * 32 + lane];
            [[unroll]] for (uint t = 0; t < 2; ++t) {
                const uint quad = two * 2 + t;
                const float16_t lower = float16_t(pair_factor(p, quad));
                LEFT weights;
                [[unroll]] for (uint i = 0; i < 2; ++i) {
                    uint own[PAIR_WORDS];
                    [[unroll]] for (uint w = 0; w < PAIR_WORDS; ++w) own[w] = words[i * PAIR_WORDS + w];
                    f16vec2 even, odd;
                    four_codes(own, behind[i], quarter, p, quad, ten, even, odd);
#ifndef PAIR_FLOATS
                    const f16vec2 factor = f16vec2(factors[i * PAIR_SCALES + quad * PAIR_SCALES / 8] * lower);
                    const f16vec2 term = f16vec2(offsets[i * PAIR_TERMS + quad * PAIR_TERMS / 8]);
                    even = even * factor - term;
                    odd = odd * factor - term;
#endif
                    weights[i * 4] = even.x;
                    weights[i * 4 + 1] = even.y;
                    weights[i * 4 + 2] = odd.x;
                    weights[i * 4 + 3] = odd.y;
                }
                [[unroll]] for (uint e = 0; e < EIGHTS; ++e)
                    products[e] = coopMatMulAdd(weights, right_of(t == 0 ? right[e].xy : right[e].zw), products[e]);
            }
        }
    }
    [[unroll]] for (uint e = 0; e < EIGHTS; ++e) {
        [[unroll]] for (uint c = 0; c < 2; ++c) {
            const float power = facts[step * ROWS + e * 8 + quarter * 2 + c].x;
#ifdef PAIR_SMALL
            [[unroll]] for (uint i = 0; i < 2; ++i) sums[e * 4 + i * 2 + c] += products[e][i * 2 + c] * power * largest[i];
#else
            [[unroll]] for (uint i = 0; i < 2; ++i) sums[e * 4 + i * 2 + c] += products[e][i * 2 + c] * power;
#endif
        }
    }
}

// Where the sum of a row of the subgroup's weights and of lhs is in shared memory.
uint place_of(uint subgroup, uint weight, uint r) {
    return (subgroup * 16 + weight) * ROWS + r;
}

void by_matrices() {
    [[unroll]] for (uint i = 0; i < EIGHTS * 4; ++i) sums[i] = 0.0;
    [[unroll]] for (uint i = 0; i < 2; ++i)
        rows[i] = weight_row(i * 8 + lane / 4) * ROW_BYTES(chunks);
    if (part < steps) fetch(part);
    for (uint step = part; step < steps; step += PARTS) {
        [[unroll]] for (uint i = 0; i < WORDS; ++i) words[i] = next_words[i];
        if (step + PARTS < steps) fetch(step + PARTS);
        add(step);
    }
    [[unroll]] for (uint h = 0; h < EIGHTS; ++h) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            const uint weight = i / 2 * 8 + lane / 4, r = h * 8 + quarter * 2 + i % 2;
            partial[place_of(gl_SubgroupID, weight, r)] = sums[h * 4 + i] / UNIT;
        }
    }
}

// The sum of a row of weights and one of lhs: the lane's share of the subgroup's part.
float plain(uint row_byte, uint r) {
    float sum = 0.0;
    for (uint chunk = part * 32 + lane; chunk < chunks; chunk += PARTS * 32) {
        vec4 values[8];
        load_chunk(row_byte, chunk, values);
        for (uint i = 0; i < 8; ++i) {
            vec4 left = lhs[(r * chunks + chunk) * 8 + i];
            if (NORMED) left *= scales[chunk * 8 + i];
            sum += dot(left, values[i]);
        }
    }
    return sum;
}

void without_matrices() {
    for (uint weight = 0; weight < 16; ++weight) {
        const uint row_byte = weight_row(weight) * ROW_BYTES(chunks);
        for (uint r = 0; r < M; ++r) {
            const float sum = subgroupAdd(plain(row_byte, r));
            if (lane == 0) partial[place_of(gl_SubgroupID, weight, r)] = sum;
        }
    }
}

float norm_factor(uint r) {
    if (!NORMED) return 1.0;
    float squares = 0.0;
    for (uint step = 0; step < steps; ++step) squares += facts[step * ROWS + r].y;
    return inversesqrt(squares / float(chunks * 32) + epsilon);
}

// The sum of all parts for a row of the weights of a team.
float sum_of(uint from, uint weight, uint r) {
    float sum = 0.0;
    [[unroll]] for (uint p = 0; p < PARTS; ++p) sum += partial[place_of(from * PARTS + p, weight, r)];
    return sum;
}

void store() {
    for (uint i = gl_LocalInvocationIndex; i < TEAMS * COLUMNS * M; i += gl_WorkGroupSize.x) {
        const uint c = i % COLUMNS, from = i / COLUMNS % TEAMS, r = i / (COLUMNS * TEAMS);
        const uint column = (gl_WorkGroupID.x * TEAMS + from) * COLUMNS + c, at = r * N + column;
        if (column >= N) continue;
        const float factor = norm_factor(r);
        const float sum = sum_of(from, c, r) * factor;
        result[at] = GATED ? activate(sum, ACTIVATION) * (sum_of(from, c + 8, r) * factor) : finished(at, column, sum);
    }
}

void main() {
    lane = gl_SubgroupInvocationID;
    quarter = lane % 4;
    steps = (chunks + STEP - 1) / STEP;
    part = gl_SubgroupID % PARTS;
    tile = gl_WorkGroupID.x * TEAMS + gl_SubgroupID / PARTS;
#ifdef PAIR_TABLE
    fill_table();
    barrier();
#endif
#ifdef PAIR_SMALL
    if (lies_as_said() && keeps_small(chunks & 0x80000000u)) {  // There are never so many chunks.
#else
    if (lies_as_said()) {
#endif
        by_matrices();
    } else {
        without_matrices();
    }
    barrier();
    store();
}
