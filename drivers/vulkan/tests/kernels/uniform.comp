#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint bias = 5u;
layout(set = 0, binding = 0) uniform Source { uvec4 source; };
layout(set = 0, binding = 1) buffer Target { uint target[]; };

void main() {
    uint i = gl_LocalInvocationID.x;
    target[i] = source[i] + bias;
}
