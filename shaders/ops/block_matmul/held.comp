// out = lhs * weights for one row of lhs, with weights in blocks: SPAN neighbouring invocations share the sums of a column, and each
// holds its HELD units of 32 of the row in registers for all columns. They take COLUMNS columns at a time in TURNS turns; the
// weights of a turn are read at once, before anything is done with them, those of the next before the sums are added up.
//
// NORMED: the row is divided by the root of the mean of its squares and multiplied by a scale. GATED: the result is
// function(sum with a row of weights) * (sum with the row N behind it).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint SPAN = 32;  // Whole subgroups.
layout(constant_id = 2) const uint HELD = 2;
layout(constant_id = 3) const uint COLUMNS = 1;
layout(constant_id = 4) const uint ADDED = 0;
layout(constant_id = 5) const uint ACTIVATION = 0;
layout(constant_id = 6) const bool NORMED = false;
layout(constant_id = 7) const bool GATED = false;
layout(constant_id = 8) const uint TURNS = 1;
layout(constant_id = 9) const bool WHOLE = false;  // A row is HELD units for each of SPAN.

layout(set = 0, binding = 0) readonly buffer Left { vec4 lhs[]; };
layout(set = 0, binding = 2) writeonly buffer Result { float result[]; };
layout(set = 0, binding = 5) readonly buffer Scale { vec4 scales[]; };

layout(push_constant) uniform Shape {
    uint N;
    uint chunks;    // In a row of k.
    float epsilon;  // Added to the mean of squares.
};

#define BLOCKS_SLOT 1
#define UNITS_WHOLE WHOLE
#include "units.glsl"
#include "block_product.glsl"

const uint READ = COLUMNS * (GATED ? 2 : 1);

// What subgroups have of a sum, twice: one is written while the other may still be read. Subgroups have four invocations or more.
const uint PARTS = gl_WorkGroupSize.x / 4;
shared float parts[2 * READ * PARTS];
shared float square_parts[PARTS];
// Chunks of the row for a turn of all units.
shared vec4 staged[SPAN * 9];

// Quads of a part of a unit, which have one scale.
const uint QUADS = 8 / UNIT_PARTS;

float four(vec4 terms) {
    return (terms.x + terms.y) + (terms.z + terms.w);
}

vec4 held[HELD * 8];
float held_sums[HELD * UNIT_PARTS];
uint words[READ * HELD * UNIT_ROOM];
uint lane, team;

uint row_of(uint column0, uint c) {
    return (min(column0 + c % COLUMNS, N - 1) + c / COLUMNS * N) * ROW_BYTES(chunks);
}

void fetch(uint column0) {
    [[unroll]] for (uint c = 0; c < READ; ++c) {
        [[unroll]] for (uint t = 0; t < HELD; ++t) {
            uint unit[UNIT_ROOM];
            fetch_unit(row_of(column0, c), chunks, lane, SPAN, t, unit);
            [[unroll]] for (uint i = 0; i < UNIT_ROOM; ++i) words[(c * HELD + t) * UNIT_ROOM + i] = unit[i];
        }
    }
}

// Where a quad of a turn is staged: rows of eight are one longer, which puts neighbours into different banks.
uint place(uint quad) {
    return quad + quad / 8;
}

// Reads this invocation's part of the row, which all bring to shared memory together: neighbours read neighbours there, and have
// units of their own. Gives the squares of what an invocation brought.
float hold(uint me) {
    float squares = 0.0;
    [[unroll]] for (uint t = 0; t < HELD; ++t) {
        const uint first = t * SPAN * 8;
        if (t > 0) barrier();
        for (uint i = me; i < SPAN * 8; i += gl_WorkGroupSize.x) {
            const uint quad = min(first + i, chunks * 8 - 1);
            vec4 value = lhs[quad];
            if (!WHOLE && first + i >= chunks * 8) value = vec4(0);
            if (NORMED) {
                squares += four(value * value);
                value *= scales[quad];
            }
            staged[place(i)] = value;
        }
        barrier();
        [[unroll]] for (uint i = 0; i < 8; ++i) held[t * 8 + i] = staged[place(unit_quad(lane, SPAN, t, i) - first)];
    }
    if (UNIT_OFFSETS != 0) {
        [[unroll]] for (uint i = 0; i < HELD * UNIT_PARTS; ++i) {
            vec4 sum = held[i * QUADS];
            [[unroll]] for (uint q = 1; q < QUADS; ++q) sum += held[i * QUADS + q];
            held_sums[i] = four(sum);
        }
    }
    return squares;
}

// What the weights that were read add to a sum.
float product(uint column0, uint c) {
    float sum = 0.0;
    [[unroll]] for (uint t = 0; t < HELD; ++t) {
        uint unit[UNIT_ROOM];
        [[unroll]] for (uint i = 0; i < UNIT_ROOM; ++i) unit[i] = words[(c * HELD + t) * UNIT_ROOM + i];
        vec4 codes[8];
        unit_codes(unit, row_of(column0, c), chunks, lane, SPAN, t, codes);
        vec4 terms[UNIT_PARTS];
        [[unroll]] for (uint p = 0; p < UNIT_PARTS; ++p) {
            terms[p] = held[t * 8 + p * QUADS] * codes[p * QUADS];
            [[unroll]] for (uint q = 1; q < QUADS; ++q) terms[p] += held[t * 8 + p * QUADS + q] * codes[p * QUADS + q];
        }
        float factors[UNIT_PARTS], offsets[UNIT_PARTS];
        unit_scales(unit, row_of(column0, c), chunks, lane, SPAN, t, factors, offsets);
        float added = 0.0;
        [[unroll]] for (uint p = 0; p < UNIT_PARTS; ++p) {
            added += UNIT_SCALES != 0 ? factors[p] * four(terms[p]) : four(terms[p]);
            if (UNIT_OFFSETS != 0) added -= offsets[p] * held_sums[t * UNIT_PARTS + p];
        }
        // Units of floats lie otherwise, and are zeros behind the row.
        sum += WHOLE || UNIT_FLOATS != 0 || t * SPAN + lane < chunks ? added : 0.0;
    }
    return sum;
}

void main() {
    // By subgroups, so that a team's are whole ones.
    const uint me = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = me % SPAN;
    team = me / SPAN;
    const uint teams = gl_WorkGroupSize.x / SPAN, each = SPAN / gl_SubgroupSize, own = team * each;
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint column0 = (group * TURNS * teams + team) * COLUMNS;
    const bool alone = SPAN == gl_SubgroupSize;

    fetch(column0);
    float squares = hold(me), factor = 1.0;
    if (NORMED) {
        squares = subgroupAdd(squares);
        if (subgroupElect()) square_parts[gl_SubgroupID] = squares;
        barrier();
        squares = 0.0;
        for (uint s = 0; s < gl_NumSubgroups; ++s) squares += square_parts[s];
        factor = inversesqrt(squares / float(chunks * 32) + epsilon);
    }

    for (uint turn = 0; turn < TURNS; ++turn) {
        float sums[READ];
        [[unroll]] for (uint c = 0; c < READ; ++c) sums[c] = product(column0, c);
        const uint next = column0 + teams * COLUMNS;
        if (turn + 1 < TURNS) fetch(next);

        [[unroll]] for (uint c = 0; c < READ; ++c) sums[c] = subgroupAdd(sums[c]);
        if (!alone) {
            const uint room = turn % 2 * READ * PARTS;
            if (subgroupElect()) {
                [[unroll]] for (uint c = 0; c < READ; ++c) parts[room + c * PARTS + gl_SubgroupID] = sums[c];
            }
            barrier();
            if (lane < COLUMNS) {
                [[unroll]] for (uint c = 0; c < READ; ++c) {
                    sums[c] = 0.0;
                    if (c % COLUMNS == lane)
                        for (uint s = 0; s < each; ++s) sums[c] += parts[room + c * PARTS + own + s];
                }
            }
        }
        [[unroll]] for (uint c = 0; c < COLUMNS; ++c) {
            const uint column = column0 + c;
            if (lane != c || column >= N) continue;
            const float sum = sums[c] * factor;
            if (GATED) {
                result[column] = activate(sum, ACTIVATION) * (factor * sums[(GATED ? COLUMNS : 0) + c]);
            } else {
                result[column] = finished(column, column, sum);
            }
        }
        column0 = next;
    }
}
