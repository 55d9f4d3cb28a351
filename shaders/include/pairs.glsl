// Sorting as pairs of (key, place): keys in the wanted order, places to tell equal ones apart, so that no two pairs are
// the same and sorting keeps the order of equal elements. Bindings: 0 the elements, 1 and 2 results, 3 and 4 pairs.

#ifndef PAIRS_GLSL
#define PAIRS_GLSL

#include "elements.glsl"
#include "keys.glsl"

layout(constant_id = 4) const bool DESCENDING = false;
layout(constant_id = 5) const bool WIDE = false;  // Places are i64.

layout(push_constant) uniform Work {
    uint lines, length, inner, keep;  // `keep` elements of each line go to the results.
    uint count;                       // Pairs of each line in `from`.
    uint run;                         // Length of what is sorted, or of blocks.
    uint kept;                        // Pairs of each line in `to`.
};

layout(set = 0, binding = 1) buffer Sorted {
    uint sorted[];
};
layout(set = 0, binding = 2) buffer Places {
    uint places[];
};
layout(set = 0, binding = 3) readonly buffer From {
    uvec2 from[];
};
layout(set = 0, binding = 4) writeonly buffer To {
    uvec2 to[];
};

bool comes_before(uvec2 a, uvec2 b) {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

uvec2 pair_of_element(uint line, uint at) {
    const uint key = element_key((line / inner * length + at) * inner + line % inner);
    return uvec2(DESCENDING ? ~key : key, at);
}

// Writes what is number `at` of a line's results.
void write_result(uint line, uint at, uint place) {
    if (at >= keep) return;
    const uint bits = element_bits((line / inner * length + place) * inner + line % inner);
    const uint target = (line / inner * keep + at) * inner + line % inner;
    if (ELEMENT_PART == 0) {
        sorted[target] = bits;
    } else {
        STORE_BITS_(sorted, target >> ELEMENT_PART, element_shift(target), ELEMENT_MASK, bits);
    }
    if (WIDE) {
        places[2 * target] = place;
        places[2 * target + 1] = 0;
    } else {
        places[target] = place;
    }
}

#endif
