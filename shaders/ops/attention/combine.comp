// The results of parts of the keys become one: a workgroup combines a query. Its lanes share the parts, first for the sums
// of weights, then for the results, of which a lane has four neighbours where rows are whole fours.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;  // A power of two.
layout(constant_id = 1) const uint D = 64;

layout(set = 0, binding = 0) readonly buffer Results { float results[]; };
layout(set = 0, binding = 0) readonly buffer ResultQuads { vec4 result_quads[]; };
layout(set = 0, binding = 1) readonly buffer Sums { vec2 sums[]; };  // Greatest score, sum of weights.
ELEMENT_BUFFER(2, result, , TYPE);
QUAD_BUFFER(2, result4, , TYPE);

layout(push_constant) uniform Shape {
    uint rows;    // Of a part.
    uint splits;  // Up to MOST.
    uint q_len, heads;
    uint out_batch, out_head, out_row;  // Where the rows of results lie, in units of a row.
};

const float NONE = uintBitsToFloat(0xFF800000u);
const uint MOST = 256;  // The plan's MOST_SPLITS.
const uint LANES = gl_WorkGroupSize.x;
const bool QUADS = D % 4 == 0;
const uint UNITS = QUADS ? D / 4 : D;                           // Of a row.
const uint STREAMS = UNITS < LANES ? LANES / UNITS : 1;  // Parts at a time.
const uint AHEAD = 8;                                           // Parts of a stream that are read at once.

shared vec2 tree[LANES];
shared float weights[MOST];
shared vec4 gathered[LANES];

// exp of what is at most 0, or NaN, also where a device's exp has no zero and no NaN.
float weight(float x) {
    if (x > -87.0) return exp(x);
    return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : 0.0;
}

// What to subtract from scores: nothing as long as there was none but -infinity.
float base_of(float top) {
    return top == NONE ? 0.0 : top;
}

vec2 merged(vec2 a, vec2 b) {
    const float top = max(a.x, b.x), base = base_of(top);
    return vec2(top, weight(a.x - base) * a.y + weight(b.x - base) * b.y);
}

vec4 unit_of(uint part, uint row, uint unit) {
    const uint at = (part * rows + row) * UNITS + unit;
    return QUADS ? result_quads[at] : vec4(results[at], 0.0, 0.0, 0.0);
}

void main() {
    const uint lane = gl_LocalInvocationID.x, stream = lane / UNITS;
    for (uint row = gl_WorkGroupID.x; row < rows; row += gl_NumWorkGroups.x) {
        vec2 sum = vec2(NONE, 0.0);
        for (uint s = lane; s < splits; s += LANES) sum = merged(sum, sums[s * rows + row]);
        tree[lane] = sum;
        for (uint apart = LANES / 2; apart > 0; apart /= 2) {
            barrier();
            if (lane < apart) tree[lane] = merged(tree[lane], tree[lane + apart]);
        }
        barrier();
        const uint head = row / q_len;
        const uint to = head / heads * out_batch + head % heads * out_head + row % q_len * out_row;
        const float base = base_of(tree[0].x), total = tree[0].y;
        const float factor = total == 0.0 ? 0.0 : 1.0 / total;
        for (uint s = lane; s < splits; s += LANES) weights[s] = weight(sums[s * rows + row].x - base) * factor;
        barrier();
        for (uint first = 0; first < UNITS; first += LANES) {
            const uint unit = first + (STREAMS > 1 ? lane % UNITS : lane);
            const bool mine = unit < UNITS && (STREAMS == 1 || stream < STREAMS);
            vec4 value = vec4(0.0);
            if (mine) {
                uint s = STREAMS > 1 ? stream : 0;
                for (; s + (AHEAD - 1) * STREAMS < splits; s += AHEAD * STREAMS) {
                    vec4 ahead[AHEAD];
                    [[unroll]] for (uint i = 0; i < AHEAD; ++i) ahead[i] = unit_of(s + i * STREAMS, row, unit);
                    [[unroll]] for (uint i = 0; i < AHEAD; ++i) value += weights[s + i * STREAMS] * ahead[i];
                }
                for (; s < splits; s += STREAMS) value += weights[s] * unit_of(s, row, unit);
            }
            if (STREAMS > 1) {
                gathered[lane] = value;
                barrier();
                if (stream == 0)
                    for (uint i = 1; i < STREAMS; ++i) value += gathered[i * UNITS + lane];
            }
            if (!mine || (STREAMS > 1 && stream > 0)) continue;
            if (QUADS) {
                CONCAT(STORE4_, TYPE)(result4, to + unit, value);
            } else {
                CONCAT(STORE_, TYPE)(result, to + unit, value.x);
            }
        }
        barrier();
    }
}
