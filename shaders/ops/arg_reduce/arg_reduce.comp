// Place of the largest or smallest element of each line. MODE 0 does all of it; long lines take two dispatches: 1 writes
// (key, rank) of each piece, 2 reads them.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lines.glsl"
#include "keys.glsl"

layout(constant_id = 4) const uint MODE = 0;
layout(constant_id = 5) const bool SMALLEST = false;
layout(constant_id = 6) const bool LAST = false;  // Of equal elements.
layout(constant_id = 7) const bool WIDE = false;  // Results are i64.

layout(set = 0, binding = 1) buffer Result {
    uint result[];
};
layout(set = 0, binding = 2) buffer Pieces {
    uvec2 pieces[];
};

shared uint tree_keys[ACROSS * ALONG];
shared uint tree_ranks[ACROSS * ALONG];

// The larger key, then the larger rank: ranks are places, or their complements where the first counts.
uvec2 better(uvec2 a, uvec2 b) {
    return a.x > b.x || (a.x == b.x && a.y > b.y) ? a : b;
}

// NaN stays the best of all for the smallest, too.
uvec2 candidate(uint base, uint at) {
    uint key = element_key(base + at * inner);
    const bool nan = ELEMENT <= ELEMENT_BF16 && key == 0xFFFFFFFFu;
    if (SMALLEST && !nan) key = ~key;
    return uvec2(key, LAST ? at : ~at);
}

uvec2 best_of(uint line) {
    uvec2 best = uvec2(0);
    if (MODE == 2) {
        for (uint at = PLACE; at < length; at += ALONG) best = better(best, pieces[line * length + at]);
        return best;
    }
    const uint base = line_base(line);
    for (EACH_FOUR(at)) {
        for (uint i = at; i < at + 4 * ALONG; i += ALONG) {
            if (i < piece_end()) best = better(best, candidate(base, i));
        }
    }
    return best;
}

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
    uvec2 best = line < lines ? best_of(line) : uvec2(0);
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        tree_keys[LANE] = best.x;
        tree_ranks[LANE] = best.y;
        barrier();
        if (PLACE < apart) {
            const uint other = LANE + apart * ACROSS;
            best = better(best, uvec2(tree_keys[other], tree_ranks[other]));
        }
        barrier();
    }
    if (PLACE > 0 || line >= lines) return;
    const uint place = LAST ? best.y : ~best.y;
    if (MODE == 1) {
        pieces[line * gl_NumWorkGroups.z + gl_WorkGroupID.z] = best;
    } else if (WIDE) {
        result[2 * line] = place;
        result[2 * line + 1] = 0;
    } else {
        result[line] = place;
    }
}
