// Brings rows of the result together that chose the same expert: tiles of up to BM rows of one expert each, and the rows in the order of
// their experts. Rows whose expert is not here come last, as those of expert `experts`. One workgroup. Which of an expert's rows
// comes first differs from run to run; nothing that is computed of them depends on it.
#version 450
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint BM = 32;
layout(constant_id = 2) const uint COUNTERS = 2;  // One more than experts.

layout(set = 0, binding = 0) readonly buffer Experts { int chosen[]; };
// Expert, place of the first row, rows. Behind the last one, no rows.
layout(set = 0, binding = 1) writeonly buffer Tiles { uvec4 tiles[]; };
layout(set = 0, binding = 2) writeonly buffer Rows { uint rows[]; };

layout(push_constant) uniform Shape {
    uint M;
    uint first;  // Number of the first expert.
    uint most;   // Tiles that there is room for.
};

// Rows of each expert, then where the next of them goes.
shared uint counts[COUNTERS];
// For each invocation: rows and tiles of its experts, and of those before.
shared uvec2 before[gl_WorkGroupSize.x];

uint expert_of(uint row) {
    // A number below the first becomes a large one.
    return min(uint(chosen[row]) - first, COUNTERS - 1);
}

void main() {
    const uint lane = gl_LocalInvocationIndex, lanes = gl_WorkGroupSize.x;
    for (uint i = lane; i < COUNTERS; i += lanes) counts[i] = 0;
    barrier();
    for (uint row = lane; row < M; row += lanes) atomicAdd(counts[expert_of(row)], 1);
    barrier();
    // Neighbouring experts for each invocation.
    const uint each = (COUNTERS + lanes - 1) / lanes, from = min(lane * each, COUNTERS), to = min(from + each, COUNTERS);
    uvec2 own = uvec2(0);
    for (uint e = from; e < to; ++e) own += uvec2(counts[e], (counts[e] + BM - 1) / BM);
    uvec2 all = own;
    before[lane] = all;
    barrier();
    for (uint apart = 1; apart < lanes; apart *= 2) {
        const uvec2 other = lane >= apart ? before[lane - apart] : uvec2(0);
        barrier();
        all += other;
        before[lane] = all;
        barrier();
    }
    uvec2 next = all - own;
    for (uint e = from; e < to; ++e) {
        const uint count = counts[e];
        for (uint done = 0; done < count; done += BM) {
            tiles[next.y] = uvec4(e, next.x + done, min(BM, count - done), 0);
            ++next.y;
        }
        counts[e] = next.x;
        next.x += count;
    }
    for (uint i = before[lanes - 1].y + lane; i < most; i += lanes) tiles[i] = uvec4(0);
    barrier();
    for (uint row = lane; row < M; row += lanes) rows[atomicAdd(counts[expert_of(row)], 1)] = row;
}
