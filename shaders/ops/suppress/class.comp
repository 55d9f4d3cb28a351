// Non-maximum suppression: a workgroup has the boxes of one class of one batch. Again and again it chooses the best box that is
// left, and leaves out those that overlap it too much. An invocation has every LANES-th box; whether one is left is kept in
// memory that only it reads.
#version 450

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint LANES = 128;  // A power of two.
layout(constant_id = 1) const bool CENTER = false;

layout(set = 0, binding = 0, std430) readonly buffer Boxes { vec4 boxes[]; };
layout(set = 0, binding = 1, std430) readonly buffer Scores { float scores[]; };
layout(set = 0, binding = 2, std430) readonly buffer Thresholds { float thresholds[]; };  // Overlap, score.
layout(set = 0, binding = 3, std430) buffer Chosen { int chosen[]; };
layout(set = 0, binding = 4, std430) buffer Left { uint left[]; };

// Boxes `from` to `to` of those that are chosen: those before are there, those behind are for later dispatches.
layout(push_constant) uniform Shape { uint lines, classes, count, most, from, to; };

shared float tree_scores[LANES];
shared uint tree_places[LANES];

// Least and largest y, least and largest x.
vec4 corners(vec4 box) {
    if (CENTER) return vec4(box.y - box.w / 2.0, box.y + box.w / 2.0, box.x - box.z / 2.0, box.x + box.z / 2.0);
    return vec4(min(box.x, box.z), max(box.x, box.z), min(box.y, box.w), max(box.y, box.w));
}

float area(vec4 c) {
    return (c.y - c.x) * (c.w - c.z);
}

bool overlaps(vec4 a, vec4 b) {
    const float high = min(a.y, b.y) - max(a.x, b.x), wide = min(a.w, b.w) - max(a.z, b.z);
    const float of_a = area(a), of_b = area(b);
    float share = 0.0;
    if (high > 0.0 && wide > 0.0 && of_a > 0.0 && of_b > 0.0) {
        const float both = high * wide, either = of_a + of_b - both;
        if (either > 0.0) share = both / either;
    }
    return share > thresholds[0];
}

// Whether a box is better than another: by its score, and of equal scores the first. NONE is the place of no box.
const uint NONE = 0xFFFFFFFFu;
bool is_better(float score, uint place, float other, uint other_place) {
    if (place == NONE || other_place == NONE) return other_place == NONE && place != NONE;
    return score > other || (score == other && place < other_place);
}

void main() {
    const uint line = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (line >= lines) return;
    const uint lane = gl_LocalInvocationIndex;
    const uint first = line / classes * count, base = line * count;
    // NaN is not above the threshold.
    for (uint i = lane; from == 0u && i < count; i += LANES) left[base + i] = scores[base + i] > thresholds[1] ? 1u : 0u;

    uint found = from;
    vec4 last = vec4(0.0);
    if (from > 0u) {
        // What an earlier dispatch chose; nothing is left behind the first that is none.
        const int before = chosen[line * most + from - 1u];
        if (before < 0) return;
        last = corners(boxes[first + uint(before)]);
    }
    for (; found < to; found++) {
        float score = 0.0;
        uint place = NONE;
        for (uint i = lane; i < count; i += LANES) {
            if (left[base + i] == 0u) continue;
            if (found > 0u && overlaps(last, corners(boxes[first + i]))) {
                left[base + i] = 0u;
                continue;
            }
            if (is_better(scores[base + i], i, score, place)) {
                score = scores[base + i];
                place = i;
            }
        }
        tree_scores[lane] = score;
        tree_places[lane] = place;
        barrier();
        for (uint apart = LANES / 2u; apart > 0u; apart /= 2u) {
            if (lane < apart && is_better(tree_scores[lane + apart], tree_places[lane + apart], tree_scores[lane], tree_places[lane])) {
                tree_scores[lane] = tree_scores[lane + apart];
                tree_places[lane] = tree_places[lane + apart];
            }
            barrier();
        }
        const uint best = tree_places[0];
        barrier();
        if (best == NONE) break;
        last = corners(boxes[first + best]);
        if (best % LANES == lane) left[base + best] = 0u;
        if (lane == 0u) chosen[line * most + found] = int(best);
    }
    // The last of the boxes that were asked for, or none is left.
    if (found == to) return;
    for (uint i = found + lane; i < most; i += LANES) chosen[line * most + i] = -1;
}
