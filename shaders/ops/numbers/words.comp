// Numbers of 32 bits as elements of 64: an invocation for each.
#version 450

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0, std430) writeonly buffer Result { uint result[]; };

layout(push_constant) uniform Shape {
    uint count;
    int values[16];
};

void main() {
    const uint at = gl_LocalInvocationIndex;
    if (at >= count) return;
    // The index of an array of push constants is the same for all invocations on some devices.
    int value = 0;
    for (uint i = 0u; i < 16u; i++) {
        if (i == at) value = values[i];
    }
    result[2u * at] = uint(value);
    result[2u * at + 1u] = value < 0 ? 0xFFFFFFFFu : 0u;
}
