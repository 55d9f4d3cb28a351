// Copies words of 16 bytes as fast as the device can: neighbouring invocations copy neighbours, each PER of them, and all
// reads of an invocation are under way before its first write.
#version 450

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint PER = 4;

layout(set = 0, binding = 0) readonly buffer From { uvec4 from[]; };
layout(set = 0, binding = 1) writeonly buffer To { uvec4 to[]; };

layout(push_constant) uniform Shape {
    uint words;  // Of 16 bytes.
};

const uint MOST = 8;

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint start = group * gl_WorkGroupSize.x * PER + gl_LocalInvocationID.x;
    if (start + (PER - 1) * gl_WorkGroupSize.x < words) {
        uvec4 held[MOST];
        for (uint i = 0; i < PER; ++i) held[i] = from[start + i * gl_WorkGroupSize.x];
        for (uint i = 0; i < PER; ++i) to[start + i * gl_WorkGroupSize.x] = held[i];
        return;
    }
    for (uint i = 0; i < PER; ++i) {
        const uint at = start + i * gl_WorkGroupSize.x;
        if (at < words) to[at] = from[at];
    }
}
