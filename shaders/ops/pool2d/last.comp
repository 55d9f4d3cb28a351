// Pooling with the channels last, in fours: an invocation computes four channels at one place. Neighbours read neighbours in memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"

layout(local_size_x_id = 0) in;
// 0: the largest, 1: mean over what is in the input, 2: mean with padding, 3: sum of magnitudes, 4: Euclidean norm.
layout(constant_id = 1) const uint KIND = 0;
// Rows and columns of a small window, so that all its reads are under way at once; 0 where it has any size.
layout(constant_id = 2) const uint TAPS_HEIGHT = 0;
layout(constant_id = 3) const uint TAPS_WIDTH = 0;

QUAD_BUFFER(0, data4, readonly, ELEMENT);
QUAD_BUFFER(1, result4, , ELEMENT);

layout(push_constant) uniform Shape {
    uint channels, height, width, kernel_height, kernel_width, out_height, out_width;
    uint stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left, pad_bottom, pad_right;
    uint channels_last;
    // Quads from one place to the next, in the image and in the result, and the first one: both may be runs of larger tensors.
    uint data_pitch, data_first, result_pitch, result_first;
};

vec4 value;
// Places that a mean counts.
uint there;

// The largest of two, NaN where one is, or their sum.
vec4 combine(vec4 before, vec4 quad) {
    if (KIND != 0) return before + quad;
    const bvec4 nan = greaterThan(floatBitsToUint(quad) & 0x7FFFFFFFu, uvec4(0x7F800000u));
    vec4 largest = mix(before, quad, greaterThan(quad, before));
    return mix(largest, quad, nan);
}

// Takes a quad of the window, at a row and column of the padded input; `inside` says whether it is in the input.
void take(vec4 quad, bool inside, uint y, uint x) {
    const bool padded = y < pad_top + height + pad_bottom && x < pad_left + width + pad_right;
    if (KIND == 2 ? padded : inside) ++there;
    if (inside) value = combine(value, KIND == 3 ? abs(quad) : KIND == 4 ? quad * quad : quad);
}

bool is_inside(uint y, uint x) {
    return y - pad_top < height && x - pad_left < width;
}

// The quad at a row and column of the padded input, or the first one of the channels for what is not in the input.
vec4 quad_at(uint base, uint y, uint x) {
    const uint pixel = is_inside(y, x) ? (y - pad_top) * width + x - pad_left : 0;
    return CONCAT(LOAD4_, ELEMENT)(data4, base + pixel * data_pitch);
}

void main() {
    const uint quads = channels / 4, count = quads * out_height * out_width, index = gl_GlobalInvocationID.x;
    if (index >= count) return;
    const uint pixel = index / quads, quad = index % quads;
    const uint base = gl_WorkGroupID.y * height * width * data_pitch + data_first + quad;
    const uint top = pixel / out_width * stride_y, left = pixel % out_width * stride_x;
    value = vec4(KIND == 0 ? uintBitsToFloat(0xFF800000u) : 0.0);
    there = 0;
    if (TAPS_HEIGHT > 0) {
        const uint ROOM = TAPS_HEIGHT * TAPS_WIDTH + uint(TAPS_HEIGHT == 0);
        vec4 window[ROOM];
        [[unroll]] for (uint i = 0; i < TAPS_HEIGHT * TAPS_WIDTH; ++i)
            window[i] = quad_at(base, top + i / TAPS_WIDTH * dilation_y, left + i % TAPS_WIDTH * dilation_x);
        [[unroll]] for (uint i = 0; i < TAPS_HEIGHT * TAPS_WIDTH; ++i) {
            const uint y = top + i / TAPS_WIDTH * dilation_y, x = left + i % TAPS_WIDTH * dilation_x;
            take(window[i], is_inside(y, x), y, x);
        }
    } else {
        for (uint ky = 0; ky < kernel_height; ++ky) {
            for (uint kx = 0; kx < kernel_width; ++kx) {
                const uint y = top + ky * dilation_y, x = left + kx * dilation_x;
                if (is_inside(y, x)) take(quad_at(base, y, x), true, y, x);
                else take(vec4(0), false, y, x);
            }
        }
    }
    if (KIND == 1 || KIND == 2) value /= float(there);
    const uint place = gl_WorkGroupID.y * out_height * out_width + pixel;
    CONCAT(STORE4_, ELEMENT)(result4, place * result_pitch + result_first + quad, KIND == 4 ? sqrt(value) : value);
}
