// A convolution, straight from its definition: an invocation computes CHANNELS filters at PIXELS places, so that what it
// reads of the input is used CHANNELS times. All invocations of a workgroup read the same weights. With TRANSPOSED, the
// transposed convolution: a workgroup has places that are a stride apart, as only these use the same taps.
// Any layout, by strides. Flow is the same for all invocations up to the stores: devices that run on a CPU read values
// that all invocations share once, but only where none of them is masked out.
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUP
#include "exchange.glsl"
#endif
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

// Filters that are not there are computed as the last one, and not stored.
uint row_of(uint group, uint filter_index) {
    return group * weights_group + min(filter_index, filters - 1) * weights_filter;
}

#ifdef SUBGROUP
// Each invocation of a subgroup of this size reads the weight of another filter and gives it to all. Devices that run on
// a CPU read for each invocation apart, while an exchange within a subgroup is one instruction.
#define FIND(t, h) const uint row##h = row_of(group, first + SUBGROUP * h + gl_SubgroupInvocationID);
#define HOLD(t, h) const SUM held##h = weight_at(row##h + weight);
#define GIVEN(h, i) FROM_INVOCATION(held##h, i)
#define FOUR(b, h, i) const SUM4 weights##b = SUM4(GIVEN(h, i), GIVEN(h, i + 1), GIVEN(h, i + 2), GIVEN(h, i + 3));
#if SUBGROUP == 4
#define FIND_ROWS EACH_BLOCK(FIND, 0)
#define READ_WEIGHTS EACH_BLOCK(HOLD, 0) EACH_BLOCK(SPREAD, 0)
#define SPREAD(t, b) FOUR(b, b, 0)
#elif SUBGROUP == 8 && CHANNELS == 8
#define FIND_ROWS FIND(0, 0)
#define READ_WEIGHTS HOLD(0, 0) FOUR(0, 0, 0) FOUR(1, 0, 4)
#elif SUBGROUP == 8 && CHANNELS == 16
#define FIND_ROWS FIND(0, 0) FIND(0, 1)
#define READ_WEIGHTS HOLD(0, 0) HOLD(0, 1) FOUR(0, 0, 0) FOUR(1, 0, 4) FOUR(2, 1, 0) FOUR(3, 1, 4)
#endif
#else
#define FIND(t, b) \
    const uvec4 rows##b = uvec4(row_of(group, first + 4 * b), row_of(group, first + 4 * b + 1), \
                                row_of(group, first + 4 * b + 2), row_of(group, first + 4 * b + 3));
#define HOLD(t, b) \
    const SUM4 weights##b = SUM4(weight_at(rows##b.x + weight), weight_at(rows##b.y + weight), \
                                 weight_at(rows##b.z + weight), weight_at(rows##b.w + weight));
#define FIND_ROWS EACH_BLOCK(FIND, 0)
#define READ_WEIGHTS EACH_BLOCK(HOLD, 0)
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
    const uint index = gl_WorkGroupID.x * lanes * PIXELS + gl_LocalInvocationID.x;

#define START(t) const Place place##t = place_of(index + t * lanes);
    EACH_PIXEL(START)
#define ZERO(t, b) SUM4 sum##t##_##b = SUM4(0);
#define ZEROES(t) EACH_BLOCK(ZERO, t)
    EACH_PIXEL(ZEROES)
    FIND_ROWS

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
                READ_WEIGHTS
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

    // The code that stores is there once, and not for every result: it is most of the kernel otherwise.
    SUM results[PIXELS * CHANNELS];
    Place places[PIXELS];
#define KEEP(t, b) \
    results[t * CHANNELS + 4 * b] = sum##t##_##b.x; \
    results[t * CHANNELS + 4 * b + 1] = sum##t##_##b.y; \
    results[t * CHANNELS + 4 * b + 2] = sum##t##_##b.z; \
    results[t * CHANNELS + 4 * b + 3] = sum##t##_##b.w;
#define KEEP_ALL(t) EACH_BLOCK(KEEP, t) places[t] = place##t;
    EACH_PIXEL(KEEP_ALL)
    const uint filter0 = group * filters + first, there = min(filters - first, CHANNELS);
    for (uint t = 0; t < PIXELS; ++t) {
        if (!places[t].valid) continue;
        uint at = image() * result_image + filter0 * result_channel + places[t].pixel * result_pixel;
        for (uint i = 0; i < there; ++i) {
            finish(filter0 + i, at, results[t * CHANNELS + i]);
            at += result_channel;
        }
    }
}
