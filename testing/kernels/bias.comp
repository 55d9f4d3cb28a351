#version 450
// target[i] = source[i] + bias for four words; bias is specialization constant 0.
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint bias = 5u;
layout(set = 0, binding = 0) readonly buffer Source { uint source[]; };
layout(set = 0, binding = 1) buffer Target { uint target[]; };

void main() {
    uint i = gl_LocalInvocationID.x;
    target[i] = source[i] + bias;
}
