// Merges each two neighbouring sorted runs of `run` pairs: an invocation finds, by bisection, how many pairs of the other
// run come before its own. The result is pairs, or the sorted elements (LAST).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "pairs.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 6) const bool LAST = true;

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint index = group * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (index >= lines * count) return;
    const uint line = index / count, at = index % count;
    const uvec2 mine = from[index];
    const uint start = at / (2 * run) * 2 * run;
    const uint middle = min(start + run, count), end = min(start + 2 * run, count);
    const bool left = at < middle;
    uint low = left ? middle : start, high = left ? end : middle;
    const uint other = low;
    while (low < high) {
        const uint half_way = (low + high) / 2;
        if (comes_before(from[line * count + half_way], mine)) low = half_way + 1;
        else high = half_way;
    }
    // The place among its own and the number of others before it.
    const uint target = left ? at + (low - other) : at - middle + low;
    if (LAST) write_result(line, target, mine.y);
    else to[line * count + target] = mine;
}
