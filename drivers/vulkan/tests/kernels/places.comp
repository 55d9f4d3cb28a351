#version 450
// Each invocation adds a number that depends on its ids, in its own place of a grid whose size it is told: so it need not ask how many
// workgroups there are.
layout(local_size_x = 2, local_size_y = 2) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) buffer Target { uint target[]; };
layout(push_constant) uniform Constants { uint size_x; uint size_y; };

void main() {
    uvec3 id = gl_GlobalInvocationID, group = gl_WorkGroupID;
    uint at = (id.z * size_y + id.y) * size_x + id.x;
    if (at < target.length()) atomicAdd(target[at], source[at % 4] + group.x * 3u + group.y * 5u + group.z * 11u);
}
