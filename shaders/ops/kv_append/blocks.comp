// Rows are written into a cache of rows in blocks of 32 elements (halite-ops, `cached`). An invocation has two neighbouring blocks
// of a row, whose scales share a word. With KEEP, the rest of the cache comes from another buffer; without, it is left as it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "elements.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool KEEP = true;
layout(constant_id = 2) const bool SEQ_FIRST = false;
layout(constant_id = 3) const bool STARTS = false;
layout(constant_id = 4) const uint BITS = 8;  // Of a code: 8 or 4.

layout(set = 0, binding = 0) readonly buffer Rows { float rows[]; };
layout(set = 0, binding = 1) readonly buffer Cache { uint cache[]; };
layout(set = 0, binding = 2) readonly buffer Starts { uint starts[]; };
layout(set = 0, binding = 3) buffer Result { uint result[]; };

layout(push_constant) uniform Shape {
    uint batch, heads, len, capacity, dim;
    uint start;  // Of all sequences, without a tensor.
};

const uint CODES = BITS;       // Words of a block's codes.
const uint EACH = 32 / BITS;   // Codes of a word.

// Writes the codes of a block, and gives its scale.
uint block(uint from, uint to) {
    float largest = 0.0;
    for (uint i = 0; i < 32; ++i) {
        const float x = rows[from + i];
        largest = abs(x) > abs(largest) ? x : largest;
    }
    const float scale = BITS == 4 ? largest / -8.0 : abs(largest) / 127.0;
    const float factor = scale == 0.0 ? 0.0 : 1.0 / scale;
    for (uint w = 0; w < CODES; ++w) {
        uint word = 0;
        for (uint i = 0; i < EACH; ++i) {
            const float x = rows[from + w * EACH + i] * factor;
            const uint code = BITS == 4 ? uint(clamp(x + 8.5, 0.0, 15.0)) : uint(int(clamp(roundEven(x), -127.0, 127.0))) & 0xFFu;
            word |= code << (BITS * i);
        }
        result[to + w] = word;
    }
    return f16_bits(scale);
}

void main() {
    const uint blocks = dim / 32, scales = (blocks + 1) / 2, words = scales + blocks * CODES;
    const uint each = KEEP ? capacity : len, total = batch * heads * each * scales;
    const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    for (uint at = gl_GlobalInvocationID.x; at < total; at += stride) {
        const uint pair = at % scales, i = at / scales % each, h = at / scales / each % heads;
        const uint b = at / scales / each / heads;
        const uint first = STARTS ? starts[b] : start;
        const uint p = KEEP ? i : first + i;
        // Rows behind the end of the cache, or of a start that is none, are left out.
        const bool fresh = first < capacity && p >= first && p - first < len && p < capacity;
        const uint to = ((b * heads + h) * capacity + p) * words, codes = to + scales + 2 * pair * CODES;
        const uint count = min(blocks - 2 * pair, 2);
        if (fresh) {
            const uint row = SEQ_FIRST ? (b * len + p - first) * heads + h : (b * heads + h) * len + p - first;
            const uint from = row * dim + pair * 64;
            uint own = block(from, codes);
            if (count == 2) own |= block(from + 32, codes + CODES) << 16;
            result[to + pair] = own;
        } else if (KEEP) {
            result[to + pair] = cache[to + pair];
            for (uint w = 0; w < count * CODES; ++w) result[codes + w] = cache[codes + w];
        }
        if (total - at <= stride) break;  // The sum could wrap.
    }
}
