// A convolution, straight from its definition: an invocation computes CHANNELS filters at PIXELS places, so that what it
// reads of the input is used CHANNELS times. All invocations of a workgroup read the same weights. With TRANSPOSED, the
// transposed convolution: a workgroup has places that are a stride apart, as only these use the same taps.
// Any layout, by strides. Flow is the same for all invocations up to the stores: devices that run on a CPU read values
// that all invocations share once, but only where none of them is masked out.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "convolution.glsl"

layout(local_size_x_id = 0) in;

#if CHANNELS == 4
#define EACH_BLOCK(F, t) F(t, 0)
#elif CHANNELS == 8
#define EACH_BLOCK(F, t) F(t, 0) F(t, 1)
#elif CHANNELS == 16
#define EACH_BLOCK(F, t) F(t, 0) F(t, 1) F(t, 2) F(t, 3)
#endif
#if PIXELS == 1
#define EACH_PIXEL(F) F(0)
#elif PIXELS == 2
#define EACH_PIXEL(F) F(0) F(1)
#elif PIXELS == 4
#define EACH_PIXEL(F) F(0) F(1) F(2) F(3)
#endif

struct Place {
    int y, x;    // In the input, of the first tap.
    uint pixel;  // In the output.
    bool valid;
};

// Where a tap lies in the input, from the first one; `channels` are none where it lies between elements.
struct Tap {
    int y, x;
    uint channels;
};

#ifdef TRANSPOSED
uint phase_y() {
    return gl_WorkGroupID.z % (stride_y * stride_x) / stride_x;
}

uint phase_x() {
    return gl_WorkGroupID.z % stride_x;
}

uint image() {
    return gl_WorkGroupID.z / (stride_y * stride_x);
}

Place place_of(uint index) {
    const uint across = max((out_width + stride_x - 1) / stride_x, 1u);
    const uint row = index / across, column = index % across;
    const uint y = phase_y() + row * stride_y, x = phase_x() + column * stride_x;
    return Place(int(row), int(column), y * out_width + x, y < out_height && x < out_width);
}

// The distance in elements, and whether it is whole. A multiple of the stride keeps the division off negative numbers.
ivec2 distance_of(uint phase, uint pad, uint tap, uint dilation, uint kernel, uint stride) {
    const uint ahead = dilation * kernel;
    const uint steps = phase + pad + ahead * stride - tap * dilation;
    return ivec2(int(steps / stride) - int(ahead), steps % stride == 0 ? 1 : 0);
}

Tap tap_of(uint ky, uint kx) {
    const ivec2 y = distance_of(phase_y(), pad_top, ky, dilation_y, kernel_height, stride_y);
    const ivec2 x = distance_of(phase_x(), pad_left, kx, dilation_x, kernel_width, stride_x);
    return Tap(y.x, x.x, channels * uint(y.y * x.y));
}
#else
uint image() {
    return gl_WorkGroupID.z;
}

Place place_of(uint index) {
    const uint count = out_height * out_width, pixel = min(index, count - 1);
    const uint row = pixel / out_width, column = pixel - row * out_width;
    return Place(
        int(row * stride_y) - int(pad_top), int(column * stride_x) - int(pad_left), pixel, index < count);
}

Tap tap_of(uint ky, uint kx) {
    return Tap(int(ky * dilation_y), int(kx * dilation_x), channels);
}
#endif

void main() {
    const uint lanes = gl_WorkGroupSize.x;
    const uint blocks = (filters + CHANNELS - 1) / CHANNELS;
    const uint group = gl_WorkGroupID.y / blocks;
    const uint first = (gl_WorkGroupID.y - group * blocks) * CHANNELS;
    const uint data_base = image() * data_image + group * channels * data_channel;
    const uint weights_base = group * weights_group;
    const uint index = gl_WorkGroupID.x * lanes * PIXELS + gl_LocalInvocationID.x;

#define START(t) const Place place##t = place_of(index + t * lanes);
    EACH_PIXEL(START)
#define ZERO(t, b) SUM4 sum##t##_##b = SUM4(0);
#define ZEROES(t) EACH_BLOCK(ZERO, t)
    EACH_PIXEL(ZEROES)
    // Filters that are not there are computed as the last one, and not stored.
#define ROWS(t, b) \
    const uvec4 rows##b = \
        weights_base + min(uvec4(first + 4 * b) + uvec4(0, 1, 2, 3), uvec4(filters - 1)) * weights_filter;
    EACH_BLOCK(ROWS, 0)

    for (uint ky = 0; ky < kernel_height; ++ky) {
        for (uint kx = 0; kx < kernel_width; ++kx) {
            const Tap tap = tap_of(ky, kx);
            uint weight = (ky * kernel_width + kx) * weights_tap;
#define AIM(t) \
    const uint y##t = uint(place##t.y + tap.y), x##t = uint(place##t.x + tap.x); \
    const bool inside##t = y##t < height && x##t < width; \
    uint at##t = data_base + (inside##t ? (y##t * width + x##t) * data_pixel : 0);
            EACH_PIXEL(AIM)
            for (uint c = 0; c < tap.channels; ++c) {
#define READ(t) const SUM value##t = data_at(at##t, inside##t);
                EACH_PIXEL(READ)
#define WEIGHTS(t, b) \
    const SUM4 weights##b = SUM4(weight_at(rows##b.x + weight), weight_at(rows##b.y + weight), \
                                 weight_at(rows##b.z + weight), weight_at(rows##b.w + weight));
                EACH_BLOCK(WEIGHTS, 0)
#ifdef TRANSPOSED
// What lies outside of the input has no term, whatever the weight is.
#define MULTIPLY(t, b) \
    sum##t##_##b = inside##t ? multiply_add(value##t, weights##b, sum##t##_##b) : sum##t##_##b;
#else
#define MULTIPLY(t, b) sum##t##_##b = multiply_add(value##t, weights##b, sum##t##_##b);
#endif
#define STEP(t) EACH_BLOCK(MULTIPLY, t) at##t += data_channel;
                EACH_PIXEL(STEP)
                weight += weights_channel;
            }
        }
    }

    const uint filter0 = group * filters + first;
#define STORE_ONE(t, b, i) \
    if (place##t.valid && first + 4 * b + i < filters) { \
        finish(filter0 + 4 * b + i, \
               image() * result_image + (filter0 + 4 * b + i) * result_channel + place##t.pixel * result_pixel, \
               sum##t##_##b[i]); \
    }
#define STORE_FOUR(t, b) STORE_ONE(t, b, 0) STORE_ONE(t, b, 1) STORE_ONE(t, b, 2) STORE_ONE(t, b, 3)
#define STORE_ALL(t) EACH_BLOCK(STORE_FOUR, t)
    EACH_PIXEL(STORE_ALL)
}
