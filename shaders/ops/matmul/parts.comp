// The sum of PARTS results of a product whose sums were cut: result[i] = parts[0][i] + parts[1][i] + …, with a value for each
// column and a tensor like the result, and a function of it. The result may be runs of a larger tensor.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint PARTS = 2;
layout(constant_id = 2) const uint ADDED = 0;
layout(constant_id = 3) const uint ACTIVATION = 0;
layout(constant_id = 4) const bool IN_RUNS = false;
// Whether an invocation has four neighbours, which are whole quads in memory.
layout(constant_id = 5) const bool IN_QUADS = false;

#define ACCUMULATOR CONCAT(REGISTER_, ACC)
#define QUAD CONCAT(QUAD_REGISTER_, ACC)

ELEMENT_BUFFER(0, parts, readonly, ACC);
ELEMENT_BUFFER(1, result, , OUT);
layout(set = 0, binding = 0) readonly buffer PartsInQuads { QUAD parts4[]; };

#define BIAS_SLOT 2
#define RESIDUAL_SLOT 3
#define ADDS_BEHIND
#include "product.glsl"
QUAD_BUFFER(1, result4, , OUT);

layout(push_constant) uniform Shape {
    uint length;
    uint columns;
    uint run, pitch, first;  // With IN_RUNS: elements of a run, and from one to the next; the first element.
};

// Where an element lies.
uint place(uint i) {
    return IN_RUNS ? i / run * pitch + first + i % run : i;
}

void main() {
    const uint i = gl_GlobalInvocationID.x;
    if (IN_QUADS) {
        if (i >= length / 4) return;
        QUAD sum = parts4[i];
        [[unroll]] for (uint p = 1; p < PARTS; ++p) sum += parts4[p * (length / 4) + i];
        CONCAT(STORE4_, OUT)(result4, place(4 * i) / 4, finished4(4 * i, 4 * i % columns, sum));
    } else {
        if (i >= length) return;
        ACCUMULATOR sum = parts[i];
        for (uint p = 1; p < PARTS; ++p) sum += parts[p * length + i];
        CONCAT(STORE_, OUT)(result, place(i), finished(i, i % columns, sum));
    }
}
