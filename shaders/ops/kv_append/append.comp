// Rows are written into a cache of rows. With KEEP, the rest of the cache comes from another buffer; without, it is left
// as it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool KEEP = true;
layout(constant_id = 2) const bool SEQ_FIRST = false;
layout(constant_id = 3) const bool STARTS = false;

ELEMENT_BUFFER(0, rows, readonly, ROWS);
ELEMENT_BUFFER(1, cache, readonly, CACHE);
layout(set = 0, binding = 2) readonly buffer Starts { uint starts[]; };
ELEMENT_BUFFER(3, result, , CACHE);

layout(push_constant) uniform Shape {
    uint batch, heads, len, capacity, dim;
    uint start;  // Of all sequences, without a tensor.
};

void main() {
    const uint each = KEEP ? capacity : len, total = batch * heads * each * dim;
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint at = gl_GlobalInvocationID.x; at < total; at += stride) {
        const uint d = at % dim, i = at / dim % each, h = at / dim / each % heads, b = at / dim / each / heads;
        const uint first = STARTS ? starts[b] : start;
        const uint p = KEEP ? i : first + i;
        // Rows behind the end of the cache, or of a start that is none, are left out.
        const bool fresh = first < capacity && p >= first && p - first < len && p < capacity;
        const uint to = ((b * heads + h) * capacity + p) * dim + d;
        if (fresh) {
            const uint row = SEQ_FIRST ? (b * len + p - first) * heads + h : (b * heads + h) * len + p - first;
            CONCAT(STORE_, CACHE)(result, to, CONCAT(LOAD_, ROWS)(rows, row * dim + d));
        } else if (KEEP) {
            CONCAT(STORE_, CACHE)(result, to, CONCAT(LOAD_, CACHE)(cache, to));
        }
        if (total - at <= stride) break;  // The sum could wrap.
    }
}
