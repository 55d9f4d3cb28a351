#version 450

// The 16-bit floats of some words, as 32-bit floats.
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) readonly buffer Words {
    uint words[];
};
layout(set = 0, binding = 1) writeonly buffer Numbers {
    float numbers[];
};

void main() {
    const uint byte = 2u * gl_GlobalInvocationID.x;
    numbers[gl_GlobalInvocationID.x] = unpackHalf2x16(words[byte >> 2] >> (8u * (byte & 2u))).x;
}
