#version 450
// target[i] = ka * a[i] + kb * b[i] + kc * c[i] for i < count: order of bindings and of constants.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) readonly buffer C { uint c[]; };
layout(set = 0, binding = 3) buffer Target { uint target[]; };
layout(push_constant) uniform Constants { uint ka; uint kb; uint kc; uint count; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        target[i] = ka * a[i] + kb * b[i] + kc * c[i];
    }
}
