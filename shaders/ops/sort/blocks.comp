// Sorts each block of BLOCK elements (FIRST), or pairs, in shared memory with Batcher's bitonic network. The first
// `run` of each block become pairs, or results (LAST).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "pairs.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BLOCK = 256;  // A power of two.
layout(constant_id = 2) const uint ACROSS = 1;   // Lines of a workgroup.
layout(constant_id = 6) const bool FIRST = true;
layout(constant_id = 7) const bool LAST = true;

shared uint keys[ACROSS * BLOCK];
shared uint ats[ACROSS * BLOCK];

const uvec2 NOTHING = uvec2(0xFFFFFFFFu);

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    const uint line0 = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * ACROSS;
    const uint block0 = gl_WorkGroupID.z * BLOCK;
    if (line0 >= lines) return;
    for (uint i = lane; i < ACROSS * BLOCK; i += lanes) {
        const uint line = line0 + i / BLOCK, at = block0 + i % BLOCK;
        uvec2 pair = NOTHING;
        if (line < lines && at < count) {
            if (FIRST) pair = pair_of_element(line, at);
            else pair = from[line * count + at];
        }
        keys[i] = pair.x;
        ats[i] = pair.y;
    }
    for (uint size = 2; size <= BLOCK; size *= 2) {
        for (uint apart = size / 2; apart > 0; apart /= 2) {
            barrier();
            for (uint i = lane; i < ACROSS * BLOCK / 2; i += lanes) {
                const uint a = i / apart * 2 * apart + i % apart, b = a + apart;
                const bool upwards = (a % BLOCK & size) == 0;
                const uvec2 left = uvec2(keys[a], ats[a]), right = uvec2(keys[b], ats[b]);
                if (comes_before(right, left) == upwards) {
                    keys[a] = right.x;
                    ats[a] = right.y;
                    keys[b] = left.x;
                    ats[b] = left.y;
                }
            }
        }
    }
    barrier();
    for (uint i = lane; i < ACROSS * BLOCK; i += lanes) {
        const uint line = line0 + i / BLOCK, at = i % BLOCK;
        if (line >= lines || at >= run || block0 + at >= count) continue;
        if (LAST) write_result(line, at, ats[i]);
        else to[line * kept + gl_WorkGroupID.z * run + at] = uvec2(keys[i], ats[i]);
    }
}
