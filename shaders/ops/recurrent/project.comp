// What a layer of a recurrent network reads of the one below, multiplied for all steps at once: an invocation adds up a quad of columns
// for ROWS places of [steps, batch]. Weights lie as in cells.comp. Results go behind what is read: gates after gates of all units.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef SUBGROUP
#include "exchange.glsl"
#endif
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint GATES = 4;
layout(constant_id = 2) const uint ROWS = 8;

QUAD_BUFFER(0, weights, readonly, WEIGHT);
layout(set = 0, binding = 1, std430) buffer States { float states[]; };

layout(push_constant) uniform Shape {
    uint places, hidden;
    uint layer;
};

const uint QUADS = GATES * 2u;

void main() {
    const uint blocks = (hidden + 7) / 8, columns = blocks * QUADS;
    const uint column = min(gl_GlobalInvocationID.x, columns - 1), block = column / QUADS, quad = column % QUADS;
    const uint place0 = gl_WorkGroupID.y * ROWS;
    const uint base = ((2 * layer - 1) * blocks * hidden + block * 2 * hidden) * QUADS + quad;
    uint rows[ROWS];
    vec4 sums[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        rows[r] = min(place0 + r, places - 1) * hidden;
        sums[r] = vec4(0.0);
    }
    uint k = 0;
#ifdef SUBGROUP
#if SUBGROUP == 8
#define EACH_TERM(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define EACH_TERM(X) X(0) X(1) X(2) X(3)
#endif
    for (; k + SUBGROUP <= hidden; k += SUBGROUP) {
        float mine[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; ++r) mine[r] = states[rows[r] + k + gl_SubgroupInvocationID];
#define ADD_TERM(j) \
        { \
            const vec4 w = CONCAT(LOAD4_, WEIGHT)(weights, base + (k + j) * QUADS); \
            [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += FROM_INVOCATION(mine[r], j) * w; \
        }
        EACH_TERM(ADD_TERM)
    }
#endif
    for (; k < hidden; ++k) {
        const vec4 w = CONCAT(LOAD4_, WEIGHT)(weights, base + k * QUADS);
        [[unroll]] for (uint r = 0; r < ROWS; ++r) sums[r] += states[rows[r] + k] * w;
    }
    if (gl_GlobalInvocationID.x >= columns) return;
    const uint unit = block * 8 + quad % 2 * 4;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const uint to = places * hidden + (place0 + r) * GATES * hidden + quad / 2 * hidden + unit;
        for (uint i = 0; i < 4; ++i) {
            if (place0 + r < places && unit + i < hidden) states[to + i] = sums[r][i];
        }
    }
}
