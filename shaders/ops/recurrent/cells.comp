// Steps of a recurrent network. A workgroup has ROWS sequences of a direction or layer. With WHOLE it does steps of one layer, and
// keeps the state in shared memory; what a layer reads of the one below was multiplied before, by project.comp. Otherwise it does
// one step for PASS blocks of eight units, and the state lies in `states`, of which a step reads one half and writes the other:
// layer l does step t while the layer above does step t - 1. With LAYER it does one step of one layer, and what the layer reads of
// the one below was multiplied before.
//
// A block's weights lie together: for each term of its sums the gates of eight units, as quads. An invocation adds up a quad of
// columns for every SLICES-th term; then an invocation for each unit adds the slices and does what the cell does. HELD quads of
// weights stay in registers for all steps.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef SUBGROUP
#include "exchange.glsl"
#endif
#include "elements.glsl"
#include "quads.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint CELL = 2;  // 0 RNN, 1 GRU, 2 LSTM.
layout(constant_id = 2) const bool WHOLE = true;
layout(constant_id = 3) const uint ROWS = 1;
layout(constant_id = 4) const uint PASS = 1;
layout(constant_id = 5) const uint SLICES = 1;
layout(constant_id = 6) const uint HELD = 0;
layout(constant_id = 7) const uint TERMS = 64;  // Elements of shared memory for terms of sums.
layout(constant_id = 8) const uint CELLS = 1;   // And for cells.
layout(constant_id = 9) const uint ACTIVATION = 6;
layout(constant_id = 10) const bool LENGTHS = false;
layout(constant_id = 11) const bool STACKED = false;  // Layers along z, not directions.
layout(constant_id = 12) const uint REVERSED = 0;     // Directions that begin at the end, as bits.
layout(constant_id = 13) const bool LAYER = false;    // Without WHOLE.

ELEMENT_BUFFER(0, projected, readonly, TYPE);
QUAD_BUFFER(1, weights, readonly, WEIGHT);
// Of stacked layers but the first, or of GRUs before the reset; of stacked GRUs both, for each layer.
ELEMENT_BUFFER(2, biases, readonly, TYPE);
ELEMENT_BUFFER(3, before, readonly, TYPE);
layout(set = 0, binding = 4, std430) readonly buffer Lengths { int lengths[]; };
ELEMENT_BUFFER(5, result, , TYPE);
ELEMENT_BUFFER(6, last, , TYPE);
// With WHOLE and LAYER, what a layer gives to the one above, and behind it products of that; without WHOLE the state behind that.
layout(set = 0, binding = 7, std430) buffer States { float states[]; };

layout(push_constant) uniform Shape {
    uint steps, batch, hidden;
    uint networks;  // Layers, or directions.
    uint first;     // The step, without LAYER that of the lowest layer; with WHOLE, the layer.
    uint from, to;  // With WHOLE, the steps; with LAYER, `from` is the layer.
};

const uint GATES = CELL == 0u ? 1u : CELL + 2u;
const uint QUADS = GATES * 2u;  // Of a term's weights.
const uint UNITS = PASS * 8u;
const uint LANES = gl_WorkGroupSize.x;
// What a GRU's new gate gets of the layer below goes past the reset: its sums are apart, as those of a fourth gate, and have
// the terms of the layer below where those of the third have the layer's own.
const bool MULTIPLIED = WHOLE || LAYER;  // What is read of the layer below.
const bool APART = CELL == 1u && STACKED && !MULTIPLIED;
const uint SUMS = APART ? 8u : QUADS;  // Quads of sums.

// Whether invocations without work do that of another: what neighbours exchange has to be there.
#ifdef SUBGROUP
#if SUBGROUP == 8
#define EACH_TERM(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH_TERM(X) X(0) X(1) X(2) X(3)
#endif
const bool EACH_WORKS = true;
#else
const bool EACH_WORKS = false;
#endif

// Terms that an invocation of a step reads at once.
const uint READS = WHOLE || EACH_WORKS ? 0 : (TERMS + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;

shared float terms[TERMS];
shared float cells[CELLS];
shared vec4 partial[gl_WorkGroupSize.x * ROWS];

uint network, row0, depth, base, own;  // `own`: where terms of the layer itself begin.
bool is_above, is_top;

vec4 weight_quad(uint at) {
    return CONCAT(LOAD4_, WEIGHT)(weights, at);
}

// What a unit's gates get from outside at a step.
void outside(uint t, uint row, uint unit, inout float gates[4]) {
    const uint width = GATES * hidden;
    const uint direction = STACKED ? 0 : network, directions = STACKED ? 1 : networks;
    [[unroll]] for (uint g = 0; g < GATES; ++g) {
        const uint column = g * hidden + unit;
        if (is_above) {
            const uint first = CELL == 1u ? network * (width + hidden) : (network - 1) * width;
            gates[g] = CONCAT(LOAD_, TYPE)(biases, first + column);
            if (MULTIPLIED) gates[g] += states[steps * batch * hidden + (t * batch + row) * width + column];
        } else {
            gates[g] = CONCAT(LOAD_, TYPE)(projected, ((t * batch + row) * directions + direction) * width + column);
        }
    }
}

// Place of a unit in a plane of the state, one plane for each network.
uint place(uint which, uint row, uint unit) {
    return (which * batch + row) * hidden + unit;
}

// Without WHOLE, the term of a row's sums that lies at this place of `terms`: a unit of the layer below, or of the layer itself.
float state_before(uint i, uint begin, uint old_half) {
    const uint term = i % depth, row = min(row0 + i / depth, batch - 1);
    if (term < own) return states[old_half + place(network - 1, row, term)];
    const uint at = place(network, row, term - own);
    return begin == 0 ? CONCAT(LOAD_, TYPE)(before, at) : states[old_half + at];
}

// And c of an LSTM, which lies behind both halves.
float cell_before(uint row, uint unit, uint begin, uint kept) {
    const uint at = place(network, row, unit);
    return begin == 0 ? CONCAT(LOAD_, TYPE)(before, networks * batch * hidden + at) : states[kept + at];
}

// New h, and c in its place.
float cell_of(float gates[4], float sums[4], float hidden_before, uint unit, inout float c) {
    if (CELL == 0u) return activate(gates[0] + sums[0], ACTIVATION);
    if (CELL == 1u) {
        const float update = sigmoid(gates[0] + sums[0]), reset = sigmoid(gates[1] + sums[1]);
        const float bias = CONCAT(LOAD_, TYPE)(biases, (STACKED ? network * 4 + 3 : network) * hidden + unit);
        const float fresh = hyperbolic_tangent(gates[2] + reset * (sums[2] + bias));
        return (1.0 - update) * fresh + update * hidden_before;
    }
    c = sigmoid(gates[2] + sums[2]) * c + sigmoid(gates[0] + sums[0]) * hyperbolic_tangent(gates[3] + sums[3]);
    return sigmoid(gates[1] + sums[1]) * hyperbolic_tangent(c);
}

void main() {
    const uint lane = gl_LocalInvocationIndex;
    network = (WHOLE ? first : LAYER ? from : 0) + gl_WorkGroupID.z;
    row0 = gl_WorkGroupID.y * ROWS;
    is_above = STACKED && network > 0;
    is_top = !STACKED || network + 1 == networks;
    depth = is_above && !MULTIPLIED ? 2 * hidden : hidden;
    own = depth - hidden;
    const uint blocks = (hidden + 7) / 8;
    const uint each = blocks * hidden * QUADS;
    // Terms of the layer below go before those of the layer itself.
    const uint all_terms = is_above ? 2 * hidden : hidden;
    base = (is_above ? (2 * network - 1) * each : STACKED ? 0 : network * each) + (all_terms - depth) * QUADS;
    const uint half_states = networks * batch * hidden;
    const bool reverse = !STACKED && ((REVERSED >> network) & 1u) == 1u;

    const bool beside = STACKED && !MULTIPLIED;  // Layers at steps of their own.
    const uint begin = WHOLE ? from : first - (beside ? network : 0);
    if (!WHOLE && (beside && network > first || begin >= steps)) return;
    const uint end = WHOLE ? to : begin + 1;
    // Halves of `states` that a step reads and writes; cells lie behind both.
    const uint kept_from = LAYER ? steps * batch * hidden * (1 + GATES) : 0, odd = first & 1u;
    const uint old_half = kept_from + odd * half_states, new_half = kept_from + (1 - odd) * half_states;
    const uint kept = kept_from + 2 * half_states;

    const uint sum = lane % SUMS, slice = lane / SUMS % SLICES, part = min(lane / (SUMS * SLICES), PASS - 1);
    const uint gate = sum / 2, quad = APART && gate == 3 ? sum - 2 : sum;
    const bool works = EACH_WORKS || lane < SUMS * SLICES * PASS;
    const uint from_term = !EACH_WORKS && APART && gate == 2 ? own : 0, to_term = !EACH_WORKS && APART && gate == 3 ? own : depth;
    // In shared memory, terms of a row lie behind each other; with WHOLE there are two halves of it.
    const uint half_terms = ROWS * depth;

    const uint first_block = WHOLE ? 0 : gl_WorkGroupID.x * PASS, last_block = WHOLE ? blocks : min(blocks, first_block + PASS);

    // What stays in registers: of a step all that is read before its products is under way at once.
    CONCAT(QUAD_MEMORY_, WEIGHT) held[HELD + 1];
    if (HELD > 0 && works) {
        const uint begins = base + min(first_block + part, blocks - 1) * all_terms * QUADS + quad;
        [[unroll]] for (uint j = 0; j < HELD; ++j) held[j] = weights[begins + min(from_term + slice + j * SLICES, depth - 1) * QUADS];
    }

    // The state before the first step.
    if (WHOLE) {
        for (uint i = lane; i < ROWS * depth; i += LANES) {
            const uint r = i / depth, unit = i % depth, row = min(row0 + r, batch - 1);
            terms[i] = CONCAT(LOAD_, TYPE)(before, place(network, row, unit));
            if (CELL == 2u) cells[r * hidden + unit] = CONCAT(LOAD_, TYPE)(before, half_states + place(network, row, unit));
        }
    } else {
        float read[READS + 1];
        [[unroll]] for (uint j = 0; j < READS; ++j) read[j] = state_before(min(lane + j * LANES, ROWS * depth - 1), begin, old_half);
        [[unroll]] for (uint j = 0; j < READS; ++j) {
            if (lane + j * LANES < ROWS * depth) terms[lane + j * LANES] = read[j];
        }
        for (uint i = lane + READS * LANES; i < ROWS * depth; i += LANES) terms[i] = state_before(i, begin, old_half);
    }

    uint now = 0;
    for (uint turn = begin; turn < end; ++turn) {
        const uint t = reverse ? steps - 1 - turn : turn;
        // These are under way while products are made.
        float gates[4] = float[](0.0, 0.0, 0.0, 0.0);
        float ahead_cell = 0.0;
        if (!WHOLE) {
            const uint unit = first_block * 8 + lane % UNITS, row = row0 + lane / UNITS;
            if (lane < UNITS * ROWS && unit < hidden && row < batch) {
                outside(t, row, unit, gates);
                if (CELL == 2u) ahead_cell = cell_before(row, unit, begin, kept);
            }
        }
        barrier();
        for (uint pass = first_block; pass < last_block; pass += PASS) {
            if (WHOLE) {
                const uint unit = pass * 8 + lane % UNITS, row = row0 + lane / UNITS;
                gates = float[](0.0, 0.0, 0.0, 0.0);
                if (lane < UNITS * ROWS && unit < hidden && row < batch) outside(t, row, unit, gates);
            }

            vec4 sums[ROWS];
            [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] = vec4(0.0);
            const uint block = EACH_WORKS ? min(pass + part, last_block - 1) : pass + part;
            if (works && block < last_block) {
                const uint begins = base + block * all_terms * QUADS + quad;
                uint k = from_term + slice;
                if (HELD > 0) {
                    [[unroll]] for (uint j = 0; j < HELD; ++j) {
                        if (k + j * SLICES < to_term) {
                            const vec4 w = CONCAT(LOAD4_, WEIGHT)(held, j);
                            [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += terms[now + r * depth + k + j * SLICES] * w;
                        }
                    }
                    k += HELD * SLICES;
                }
#ifdef SUBGROUP
                // SLICES is 1: an invocation reads one of so many terms, and gets the others from its neighbours, which all work at the
                // same terms. Sums that have not all of them lose or keep what they are behind those of the layer below.
                vec4 kept[ROWS];
                for (uint stop = APART && is_above ? own : depth;; stop = depth) {
                    for (; k + SUBGROUP <= stop; k += SUBGROUP) {
                        float mine[ROWS];
                        [[unroll]] for (uint r = 0; r < ROWS; ++r) mine[r] = terms[now + r * depth + k + gl_SubgroupInvocationID];
#define ADD_TERM(j) \
                        { \
                            const vec4 w = weight_quad(begins + (k + j) * QUADS); \
                            [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += FROM_INVOCATION(mine[r], j) * w; \
                        }
                        EACH_TERM(ADD_TERM)
                    }
                    for (; k < stop; ++k) {
                        const vec4 w = weight_quad(begins + k * QUADS);
                        [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += terms[now + r * depth + k] * w;
                    }
                    if (stop == depth) break;
                    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                        kept[r] = sums[r];
                        if (gate == 2) sums[r] = vec4(0.0);
                    }
                }
                if (APART && gate == 3) {
                    [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] = is_above ? kept[r] : vec4(0.0);
                }
#else
                for (; k + 3 * SLICES < to_term; k += 4 * SLICES) {
                    vec4 w[4];
                    [[unroll]] for (uint j = 0; j < 4; ++j) w[j] = weight_quad(begins + (k + j * SLICES) * QUADS);
                    [[unroll]] for (uint j = 0; j < 4; ++j) {
                        [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += terms[now + r * depth + k + j * SLICES] * w[j];
                    }
                }
                for (; k < to_term; k += SLICES) {
                    const vec4 w = weight_quad(begins + k * QUADS);
                    [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += terms[now + r * depth + k] * w;
                }
#endif
            }
            [[unroll]] for (uint r = 0; r < ROWS; ++r) partial[r * LANES + lane] = sums[r];
            barrier();
            if (SLICES > 8) {
                // Many slices become eight.
                if (works && slice < 8) {
                    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
                        for (uint s = 8; slice + s < SLICES; s += 8) sums[r] += partial[r * LANES + lane + s * SUMS];
                        partial[r * LANES + lane] = sums[r];
                    }
                }
                barrier();
            }

            for (uint i = lane; i < UNITS * ROWS; i += LANES) {
                const uint r = i / UNITS, row = row0 + r, within = i % UNITS, unit = pass * 8 + within;
                if (unit >= hidden || row >= batch || pass + within / 8 >= last_block) continue;
                if (i != lane) outside(t, row, unit, gates);
                float added[4] = float[](0.0, 0.0, 0.0, 0.0);
                [[unroll]] for (uint g = 0; g < SUMS / 2; ++g) {
                    const uint at = r * LANES + within / 8 * SLICES * SUMS + g * 2 + within % 8 / 4;
                    for (uint s = 0; s < min(SLICES, 8); ++s) added[g] += partial[at + s * SUMS][within % 4];
                }
                if (APART) gates[2] += added[3];
                const float old_hidden = terms[now + r * depth + own + unit];
                float old_cell = 0.0;
                if (CELL == 2u) {
                    old_cell = WHOLE ? cells[r * hidden + unit] : i == lane ? ahead_cell : cell_before(row, unit, begin, kept);
                }
                float c = old_cell;
                float h = cell_of(gates, added, old_hidden, unit, c);
                const bool ended = LENGTHS && int(t) >= lengths[row];
                const float shown = ended ? 0.0 : h;
                if (ended) {
                    h = old_hidden;
                    c = old_cell;
                }
                if (MULTIPLIED && !is_top) states[(t * batch + row) * hidden + unit] = shown;
                if (WHOLE) {
                    terms[half_terms - now + r * depth + own + unit] = h;
                    if (CELL == 2u) cells[r * hidden + unit] = c;
                } else {
                    states[new_half + place(network, row, unit)] = h;
                    if (CELL == 2u) states[kept + place(network, row, unit)] = c;
                }
                if (is_top) {
                    const uint direction = STACKED ? 0 : network, directions = STACKED ? 1 : networks;
                    CONCAT(STORE_, TYPE)(result, ((t * directions + direction) * batch + row) * hidden + unit, shown);
                }
                if (WHOLE ? turn + 1 == end : turn + 1 == steps) {
                    CONCAT(STORE_, TYPE)(last, place(network, row, unit), h);
                    if (CELL == 2u) CONCAT(STORE_, TYPE)(last, half_states + place(network, row, unit), c);
                }
            }
            if (WHOLE && pass + PASS < last_block) barrier();
        }
        now = half_terms - now;
    }
}
