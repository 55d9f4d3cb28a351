// The places where running counts grow, side by side, zeros behind them; and the last count, as 64 bits. An invocation has a
// place; there is one for the count even without places.
#version 450

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0, std430) readonly buffer Counts { uint counts[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Places { uint places[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Count { uint count[]; };

layout(push_constant) uniform Shape { uint length; };

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint at = group * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
    const uint total = length == 0u ? 0u : counts[length - 1u];
    if (at == 0u) {
        count[0] = total;
        count[1] = 0u;
    }
    if (at >= length) return;
    const uint mine = counts[at];
    // Counts of a caller's own are not trusted.
    if (mine != (at == 0u ? 0u : counts[at - 1u]) && mine - 1u < length) places[mine - 1u] = at;
    if (at >= total) places[at] = 0u;
}
