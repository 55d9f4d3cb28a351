#version 450
// One word per workgroup of a grid of up to 4x4x4: which workgroup it is, and how many there are.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Target { uint target[]; };

void main() {
    uvec3 id = gl_WorkGroupID;
    uvec3 count = gl_NumWorkGroups;
    target[id.x + 4u * (id.y + 4u * id.z)] =
        (id.x + 1u) | (id.y + 1u) << 4 | (id.z + 1u) << 8 | count.x << 12 | count.y << 16 | count.z << 20;
}
