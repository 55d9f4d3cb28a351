// out = lhs * weights with weights in blocks, for devices that run on a CPU: an invocation has COLUMNS columns of ROWS rows, a unit of
// 32 of the inner dimension at a time. The invocations of a subgroup read a part of the activations each and give it to the others:
// there, to read costs far more than to compute, also what all read. Nothing is shared, and there are no barriers.
//
// NORMED: a row is divided by the root of the mean of its squares, and multiplied by a scale. GATED: the result is
// function(sum with a row of weights) * (sum with the row N behind it).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"

layout(local_size_x_id = 0) in;  // SUBGROUP.
layout(constant_id = 1) const uint ROWS = 1;
layout(constant_id = 2) const uint COLUMNS = 8;
layout(constant_id = 3) const uint ADDED = 0;
layout(constant_id = 4) const uint ACTIVATION = 0;
layout(constant_id = 5) const bool NORMED = false;
layout(constant_id = 6) const bool GATED = false;

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 row_scales[]; };

layout(push_constant) uniform Shape {
    uint M, N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define BLOCKS_SLOT 1
#define UNITS_WHOLE true
#include "units.glsl"
#include "block_product.glsl"

// Rows of weights that an invocation reads, and quads of a part of a unit, which have one scale.
const uint READ = COLUMNS * (GATED ? 2 : 1), QUADS = 8 / UNIT_PARTS;

float four(vec4 terms) {
    return (terms.x + terms.y) + (terms.z + terms.w);
}

vec4 given[ROWS * 8];
float squares[ROWS];

// What all of the subgroup read of a unit of the rows.
void give(uint row0, uint unit, uint lane) {
    [[unroll]] for (uint h = 0; h < 8 / SUBGROUP; ++h) {
        const uint quad = unit_quad(0, 1, unit, h * SUBGROUP + lane);
        vec4 scale;
        if (NORMED) scale = row_scales[quad];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) {
            vec4 mine = lhs[min(row0 + r, M - 1) * chunks * 8 + quad];
            if (NORMED) {
                squares[r] += four(mine * mine);
                mine *= scale;
            }
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) given[r * 8 + h * SUBGROUP + j] = FROM_INVOCATION(mine, j);
        }
    }
}

void main() {
    const uint lane = gl_SubgroupInvocationID % SUBGROUP, row0 = gl_WorkGroupID.y * ROWS;
    const uint column0 = (gl_WorkGroupID.x * SUBGROUP + lane) * COLUMNS;

    float sums[ROWS * READ];
    [[unroll]] for (uint i = 0; i < ROWS * READ; ++i) sums[i] = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) squares[r] = 0.0;
    for (uint unit = 0; unit < chunks; ++unit) {
        give(row0, unit, lane);
        [[unroll]] for (uint c = 0; c < READ; ++c) {
            const uint row = (min(column0 + c % COLUMNS, N - 1) + c / COLUMNS * N) * ROW_BYTES(chunks);
            uint words[UNIT_ROOM];
            vec4 codes[8];
            float factors[UNIT_PARTS], offsets[UNIT_PARTS];
            fetch_unit(row, chunks, 0, 1, unit, words);
            unit_codes(words, row, chunks, 0, 1, unit, codes);
            unit_scales(words, row, chunks, 0, 1, unit, factors, offsets);
            // Where there are offsets, whole weights are made: a sum of activations times an offset may be infinite where theirs is not.
            if (UNIT_OFFSETS != 0) {
                [[unroll]] for (uint q = 0; q < 8; ++q) codes[q] = factors[q / QUADS] * codes[q] - offsets[q / QUADS];
            }
            [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                [[unroll]] for (uint p = 0; p < UNIT_PARTS; ++p) {
                    vec4 terms = given[r * 8 + p * QUADS] * codes[p * QUADS];
                    [[unroll]] for (uint q = 1; q < QUADS; ++q) terms += given[r * 8 + p * QUADS + q] * codes[p * QUADS + q];
                    sums[r * READ + c] += UNIT_SCALES != 0 && UNIT_OFFSETS == 0 ? factors[p] * four(terms) : four(terms);
                }
            }
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        if (row0 + r >= M) break;
        float factor = 1.0;
        if (NORMED) {
            float all = 0.0;
            [[unroll]] for (uint j = 0; j < SUBGROUP; ++j) all += FROM_INVOCATION(squares[r], j);
            factor = inversesqrt(all / float(chunks * 32) + epsilon);
        }
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = column0 + c, at = (row0 + r) * N + column;
            const float sum = factor * sums[r * READ + c];
            if (GATED) {
                const float other = factor * sums[r * READ + (GATED ? COLUMNS : 0) + c];
                if (column < N) result[at] = activate(sum, ACTIVATION) * other;
            } else if (column < N) {
                result[at] = finished(at, column, sum);
            }
        }
    }
}
