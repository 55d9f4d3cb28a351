// out = lhs * weights for few rows of lhs, with cooperative matrices of 16x8x16: the workgroup's subgroups share the sums of
// 16 * TILES columns, 8 chunks of 32 of the inner dimension at a time for each subgroup. Weights go from memory to
// the left operand's registers, as whole numbers, which halves hold exactly; sums of products of a chunk are multiplied
// with its scale after.
//
// Which of the inner dimension a place of a matrix stands for is free, as long as both operands agree. So every lane keeps
// the chunks that it has loaded, two for each of two columns, and the four lanes of a column have chunks of their own.
// Their sums are kept apart by the right operand: the activations of a lane's chunks are in columns that no other lane
// of the four has, and everything else in them is zero. For that, a lane must know its elements (matrix_lanes.glsl). Where products
// show that they lie otherwise, sums are made without matrices.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
#include "elements.glsl"

layout(local_size_x_id = 0) in;  // Whole subgroups of 32.
layout(constant_id = 1) const uint TILES = 1;
layout(constant_id = 2) const uint ROWS = 1;  // Rows of lhs, up to 8.
layout(constant_id = 3) const uint REGULAR = 0;  // 1: rows are whole steps; 2: also, every chunk has a scale of 16 bits.
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const bool HALF_SCALES = true;
layout(constant_id = 6) const bool ZERO_POINTS = false;
layout(constant_id = 7) const bool LEFT_ZEROS = false;
layout(constant_id = 8) const uint ADDED = 0;
layout(constant_id = 9) const uint ACTIVATION = 0;

#include "quantized.glsl"
#include "matrix_lanes.glsl"

layout(set = 0, binding = 0) readonly buffer Left { uvec4 lhs[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uvec4 weights[]; };
layout(set = 0, binding = 2) readonly buffer Scales { uint scales[]; };
layout(set = 0, binding = 3) readonly buffer Zeros { uint zeros[]; };      // Any buffer without ZERO_POINTS.
layout(set = 0, binding = 4) readonly buffer LeftScales { float lhs_scales[]; };  // Any buffer unless lhs is i8.
ELEMENT_BUFFER(5, result, , OUT);
layout(set = 0, binding = 6) readonly buffer LeftZeros { int lhs_zeros[]; };  // Any buffer without LEFT_ZEROS.

#define ACCUMULATOR float
#define QUAD vec4
#define BIAS_SLOT 7
#define RESIDUAL_SLOT 8
#include "product.glsl"

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;  // In a row of k.
    uint group;   // Chunks in a group.
};

const uint PARTS = BITS / 4;         // 16-byte words of a chunk of weights.
const uint BLOCKS = (ROWS + 1) / 2;  // Right operands: two rows of lhs in each.
const uint COLUMNS = 16 * TILES;
const uint SUBGROUPS = gl_WorkGroupSize.x / 32;
const uint STEP = 8;                 // Chunks of a step: two for each of the lanes that share a column.
const bool WHOLE = REGULAR > 0;
const bool PAIRED = REGULAR == 2;    // Scales of the two chunks of a lane are the halves of a word.

#ifdef LHS_I8P
const uint LHS_WORDS = 2;            // 16-byte words of a chunk of activations.
#else
const uint LHS_WORDS = 4;
#endif

shared float partial[SUBGROUPS * COLUMNS * ROWS];
// A piece for each subgroup: the activations of a step as halves, 32 words for each row of lhs. Then zeros, for what a
// lane has no part in.
shared uvec4 staged[SUBGROUPS * ROWS * 32 + 8];

// What the next step needs, on its way while this one is computed.
uvec4 next_weights[TILES * 4 * PARTS];
uvec4 next_left[ROWS];
uint next_scales[TILES * (PAIRED ? 2 : 4)], next_zeros[TILES * 4];

// A scale out of its word.
float scale_in(uint word, uint place) {
    return HALF_SCALES ? unpackHalf2x16(word)[place] : uintBitsToFloat(word);
}

uint scale_word(uint at) {
    return scales[HALF_SCALES ? at / 2 : at];
}

float zero_of(uint at) {
    return ZERO_POINTS ? float(LOAD_U8P(zeros, at)) : float(1u << (BITS - 1));
}

int left_zero(uint row) {
    return LEFT_ZEROS ? lhs_zeros[row] : 0;
}

// Eight activations as halves, two in a word: word `i` of four for f16, half `i` of such a word for i8.
uvec4 halves_of(uvec4 words, uint i, uint row) {
#ifdef LHS_I8P
    // In the lowest bits of halves of 2^10, without the sign, which is taken off after with the row's zero point.
    const float16_t least = float16_t(1152 + left_zero(row));
    uvec4 halves;
    [[unroll]] for (uint j = 0; j < 2; ++j) {
        const uint word = words[i * 2 + j];
        const uvec2 bytes = uvec2((word & 0xFFu) | ((word << 8) & 0xFF0000u),
                                  ((word >> 16) & 0xFFu) | ((word >> 8) & 0xFF0000u));
        [[unroll]] for (uint h = 0; h < 2; ++h)
            halves[j * 2 + h] =
                packFloat2x16(unpackFloat2x16((bytes[h] ^ 0x00800080u) | 0x64006400u) - f16vec2(least));
    }
    return halves;
#else
    return words;
#endif
}

// Two words of two halves as (a.x, b.x) and (a.y, b.y).
uvec2 turned(uint a, uint b) {
    return uvec2((a & 0xFFFFu) | (b << 16), (a >> 16) | (b & 0xFFFF0000u));
}

// Eight activations in the order that their weights come out of a word in, for two products.
uvec4 ordered(uvec4 halves) {
    return BITS == 4 ? uvec4(turned(halves.x, halves.z), turned(halves.y, halves.w))
                     : uvec4(turned(halves.x, halves.y), turned(halves.z, halves.w));
}

// Four weights of a column as two pairs, less their zero: those of product `i` of the eight of a chunk. `ten`, halves of
// 2^10, takes the weights into its lowest bits. It is no constant for the compiler: with another one besides the mask,
// NVIDIA's makes two instructions of it.
void four_weights(uint words[8], uint i, uint ten, f16vec2 zero, out f16vec2 even, out f16vec2 odd) {
    if (BITS == 4) {
        const uint word = words[i / 2] >> (i % 2 * 8);
        even = unpackFloat2x16((word & 0x000F000Fu) | ten) - (float16_t(1024.0) + zero);
        odd = unpackFloat2x16((word & 0x00F000F0u) | ten) * float16_t(0.0625) - (float16_t(64.0) + zero);
    } else {
        even = unpackFloat2x16((words[i] & 0x00FF00FFu) | ten) - (float16_t(1024.0) + zero);
        odd = unpackFloat2x16(((words[i] >> 8) & 0x00FF00FFu) | ten) - (float16_t(1024.0) + zero);
    }
}

// Sums of two columns of each tile, rows of lhs, and of the lane's chunks.
float sums[TILES * 2 * BLOCKS * 2];

// A column of the lane, of the two of each tile.
uint column_of(uint column0, uint i) {
    return min(column0 + i * 8 + lane / 4, N - 1);
}

// One of the lane's two chunks. Those behind the last are read as the last; their activations are zero.
uint chunk_of(uint first, uint p) {
    const uint chunk = first + quarter * 2 + p;
    return WHOLE ? chunk : min(chunk, chunks - 1);
}

// Begins to read what the step from chunk `first` on needs.
void fetch(uint column0, uint first) {
    const uint groups = chunks / group;
    [[unroll]] for (uint i = 0; i < TILES * 4; ++i) {
        const uint column = column_of(column0, i / 2), chunk = chunk_of(first, i % 2);
        [[unroll]] for (uint part = 0; part < PARTS; ++part)
            next_weights[i * PARTS + part] = weights[(column * chunks + chunk) * PARTS + part];
        const uint at = column * groups + chunk / group;
        if (!PAIRED) next_scales[i] = scale_word(at);
        if (PAIRED && i % 2 == 0) next_scales[i / 2] = scale_word(column * chunks + chunk);
        if (ZERO_POINTS) next_zeros[i] = LOAD_U8P(zeros, at);
    }
    const bool there = lane < STEP * LHS_WORDS && (WHOLE || first * LHS_WORDS + lane < chunks * LHS_WORDS);
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        // What is not there is 0 less zero points.
        next_left[r] = uvec4((uint(left_zero(r)) & 0xFFu) * 0x01010101u);
        if (there) next_left[r] = lhs[(r * chunks + first) * LHS_WORDS + lane];
    }
}

// Puts the activations of a step where the subgroup finds them.
void stage(uint piece) {
    subgroup_barrier();
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        [[unroll]] for (uint i = 0; i < 4 / LHS_WORDS; ++i)
            if (lane < STEP * LHS_WORDS)
                staged[piece + r * 32 + lane * (4 / LHS_WORDS) + i] = ordered(halves_of(next_left[r], i, r));
    }
    subgroup_barrier();
}

// Adds the products of the step that was fetched, and fetches the one from `after` on.
void add(uint column0, uint first, uint after) {
    const uint row = lane / 4, groups = chunks / group, piece = gl_SubgroupID * ROWS * 32;
    const uint ten = 0x64006400u | (chunks & 0x80000000u);  // There are never so many chunks.
    uint words[TILES * 4][8];
    float scale[TILES * 4];
    f16vec2 zero[TILES * 4];
    [[unroll]] for (uint i = 0; i < TILES * 4; ++i) {
        [[unroll]] for (uint j = 0; j < PARTS * 4; ++j) words[i][j] = next_weights[i * PARTS + j / 4][j % 4];
        const uint at = column_of(column0, i / 2) * groups + chunk_of(first, i % 2) / group;
        scale[i] = PAIRED ? scale_in(next_scales[i / 2], i % 2) : scale_in(next_scales[i], at % 2);
        zero[i] = f16vec2(ZERO_POINTS ? float(next_zeros[i]) : float(1u << (BITS - 1)));
    }
    stage(piece);
    if (after < chunks) fetch(column0, after);
    [[unroll]] for (uint p = 0; p < 2; ++p) {
        SUM products[TILES * BLOCKS];
        [[unroll]] for (uint i = 0; i < TILES * BLOCKS; ++i) products[i] = SUM(0.0);
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            RIGHT right[BLOCKS * 2];
            [[unroll]] for (uint block = 0; block < BLOCKS; ++block) {
                // The lane's column of the right operand is one of the two that are for its own chunks.
                const uint r = block * 2 + row % 2;
                const bool mine = row / 2 == quarter && r < ROWS;
                const uint at = mine ? piece + r * 32 + quarter * 8 : SUBGROUPS * ROWS * 32;
                const uvec4 eight = staged[at + p * 4 + i];
                right[block * 2] = right_of(eight.xy);
                right[block * 2 + 1] = right_of(eight.zw);
            }
            [[unroll]] for (uint t = 0; t < TILES * 2; ++t) {
                LEFT numbers;
                [[unroll]] for (uint h = 0; h < 2; ++h) {
                    const uint column = t / 2 * 4 + h * 2 + p;
                    f16vec2 even, odd;
                    four_weights(words[column], i * 2 + t % 2, ten, zero[column], even, odd);
                    numbers[h * 4] = even.x;
                    numbers[h * 4 + 1] = even.y;
                    numbers[h * 4 + 2] = odd.x;
                    numbers[h * 4 + 3] = odd.y;
                }
                [[unroll]] for (uint block = 0; block < BLOCKS; ++block) {
                    const uint sum = t / 2 * BLOCKS + block;
                    products[sum] = coopMatMulAdd(numbers, right[block * 2 + t % 2], products[sum]);
                }
            }
        }
        [[unroll]] for (uint i = 0; i < TILES * BLOCKS; ++i)
            [[unroll]] for (uint e = 0; e < 4; ++e)
                sums[i * 4 + e] += scale[i / BLOCKS * 4 + e / 2 * 2 + p] * products[i][e];
    }
}

// An activation of a chunk.
float element_of_left(uint chunk, uint k, uint row) {
#ifdef LHS_I8P
    const uint word = lhs[chunk * LHS_WORDS + k / 16][k / 4 % 4];
    return float((int(word << (24 - k % 4 * 8)) >> 24) - left_zero(row));
#else
    return unpackHalf2x16(lhs[chunk * LHS_WORDS + k / 8][k / 2 % 4])[k % 2];
#endif
}

// The same sum of one column and row of lhs without matrices: of the lane's part of all chunks.
float plain(uint column, uint r) {
    float sum = 0.0;
    for (uint chunk = gl_LocalInvocationIndex; chunk < chunks; chunk += gl_WorkGroupSize.x) {
        const uint at = column * (chunks / group) + chunk / group;
        const float zero = zero_of(at);
        float products = 0.0;
        for (uint k = 0; k < 32; ++k) {
            const uint word = weights[(column * chunks + chunk) * PARTS + k / (32 / PARTS)][k % (32 / PARTS) * BITS / 32];
            products += element_of_left(r * chunks + chunk, k, r) * weight_of(word, k % (32 / BITS), zero);
        }
        sum += scale_in(scale_word(at), at % 2) * products;
    }
    return sum;
}

void main() {
    lane = gl_SubgroupInvocationID;
    quarter = lane % 4;
    const uint column0 = gl_WorkGroupID.x * COLUMNS;
    const uint own = gl_SubgroupID * COLUMNS * ROWS;
    if (gl_LocalInvocationIndex < 8) staged[SUBGROUPS * ROWS * 32 + gl_LocalInvocationIndex] = uvec4(0);
    uint first = gl_SubgroupID * STEP;
    if (first < chunks) fetch(column0, first);
    const bool as_said = lies_as_said();
    barrier();
    if (as_said) {
        [[unroll]] for (uint i = 0; i < TILES * BLOCKS * 4; ++i) sums[i] = 0.0;
        for (; first < chunks; first += SUBGROUPS * STEP) add(column0, first, first + SUBGROUPS * STEP);
        [[unroll]] for (uint i = 0; i < TILES * BLOCKS * 4; ++i) {
            const float sum = subgroupClusteredAdd(sums[i], 4);
            const uint c = i / (BLOCKS * 4) * 16 + i / 2 % 2 * 8 + lane / 4, r = i / 4 % BLOCKS * 2 + i % 2;
            if (quarter == 0 && r < ROWS) partial[own + r * COLUMNS + c] = sum;
        }
    } else {
        for (uint i = 0; i < COLUMNS * ROWS; ++i) {
            const float sum = subgroupClusteredAdd(plain(min(column0 + i % COLUMNS, N - 1), i / COLUMNS), 32);
            if (lane == 0) partial[own + i] = sum;
        }
    }
    barrier();
    // Two columns at a time: neighbours of 16 bits share a word, which is written once where rows are whole words.
    for (uint i = gl_LocalInvocationIndex * 2; i < COLUMNS * ROWS; i += gl_WorkGroupSize.x * 2) {
        const uint column = column0 + i % COLUMNS, r = i / COLUMNS;
        vec2 sum = vec2(0.0);
        [[unroll]] for (uint s = 0; s < SUBGROUPS; ++s)
            sum += vec2(partial[s * COLUMNS * ROWS + i], partial[s * COLUMNS * ROWS + i + 1]);
#ifdef LHS_I8P
        sum *= lhs_scales[r];
#endif
        if (column < N) sum.x = finished(r * N + column, column, sum.x);
        if (column + 1 < N) sum.y = finished(r * N + column + 1, column + 1, sum.y);
#ifdef OUT_F16P
        if (N % 2 == 0) {
            if (column < N) result[(r * N + column) / 2] = f16_bits(sum.x) | (f16_bits(sum.y) << 16);
            continue;
        }
#endif
        if (column < N) CONCAT(STORE_, OUT)(result, r * N + column, sum.x);
        if (column + 1 < N) CONCAT(STORE_, OUT)(result, r * N + column + 1, sum.y);
    }
}
