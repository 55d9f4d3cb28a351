#version 450
// target[i] = source[i] * 2 + add for i < count.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) buffer Target { uint target[]; };
layout(push_constant) uniform Constants { uint count; uint add; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        target[i] = source[i] * 2u + add;
    }
}
