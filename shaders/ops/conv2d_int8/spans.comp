// A convolution of bytes for devices that run on a CPU, channels before rows: an invocation computes ROWS filters at DOWN rows of
// four neighbouring places. Such devices read for each invocation apart, so that reads are what costs: of each row of a channel
// an invocation reads the words under its places and taps once, wherever they begin, and each invocation of a subgroup reads the
// weights of other filters and gives them to all. Sizes of the kernel are constants, so that all loops over it are written out.
//
// Products are those of floats, which are faster than those of integers: sums of CHUNK channels are whole numbers below 2^24, and
// so exact. Flow is the same for all invocations up to the stores.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "exchange.glsl"
#include "convolution.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint ROWS = 8;
layout(constant_id = 4) const uint DOWN = 1;
layout(constant_id = 5) const uint KERNEL_Y = 1;
layout(constant_id = 6) const uint KERNEL_X = 1;
layout(constant_id = 7) const uint STRIDE_Y = 1;
layout(constant_id = 8) const uint STRIDE_X = 1;
layout(constant_id = 9) const uint DILATION_Y = 1;
layout(constant_id = 10) const uint DILATION_X = 1;
layout(constant_id = 11) const uint EACH = 1;         // Channels of a step, which divide those there are.
layout(constant_id = 12) const uint CHUNK = 1;        // Channels whose products floats add up, whole steps.
layout(constant_id = 13) const uint DATA_PHASE = 3;   // The most bytes of a word before a span.
layout(constant_id = 14) const uint WEIGHT_PHASE = 3; // The same for the weights of a step.
layout(constant_id = 15) const bool PADDED = true;    // Whether some taps lie outside of the image.
layout(constant_id = 16) const bool UNSIGNED = false;
layout(constant_id = 17) const bool WHOLE_QUADS = false;  // Rows of results are whole quads.
#include "dots.glsl"
#include "spans.glsl"

const uint TAPS = KERNEL_Y * KERNEL_X, TERMS = EACH * TAPS, SUMS = ROWS * DOWN;
const uint HELD = (ROWS + SUBGROUP - 1) / SUBGROUP;
// Rows and columns of the input under the results, words that these columns lie in, and words of a step's weights.
const uint UNDER = (DOWN - 1) * STRIDE_Y + (KERNEL_Y - 1) * DILATION_Y + 1;
const uint SPAN = 3 * STRIDE_X + (KERNEL_X - 1) * DILATION_X + 1;
const uint SPAN_WORDS = (SPAN + 3) / 4, DATA_READS = (SPAN + 3 + DATA_PHASE) / 4;
const uint TERM_WORDS = (TERMS + 3) / 4, WEIGHT_READS = (TERMS + 3 + WEIGHT_PHASE) / 4;

// The tap of a row of results in a row under them, or KERNEL_Y where there is none.
uint tap_of(uint under, uint row) {
    const uint from = under - row * STRIDE_Y;
    const bool any = under >= row * STRIDE_Y && from % DILATION_Y == 0 && from / DILATION_Y < KERNEL_Y;
    return any ? from / DILATION_Y : KERNEL_Y;
}

bool met(uint under) {
    bool any = false;
    [[unroll]] for (uint r = 0; r < DOWN; ++r) any = any || tap_of(under, r) < KERNEL_Y;
    return any;
}

float given(float held, uint index) {
    return ROWS == 1 ? held : FROM_INVOCATION(held, index);
}

void main() {
    const uint image = gl_WorkGroupID.z, blocks = (filters + ROWS - 1) / ROWS, group = gl_WorkGroupID.y / blocks;
    const uint first = (gl_WorkGroupID.y - group * blocks) * ROWS, lane = gl_SubgroupInvocationID % SUBGROUP;
    // Places and filters that are not there are computed as the last ones, and not stored.
    const uint across = (out_width + 3) / 4, count = (out_height + DOWN - 1) / DOWN * across;
    const uint index = min(gl_GlobalInvocationID.x, count - 1), block = index / across;
    const uint row = block * DOWN, column = (index - block * across) * 4;
    const int y0 = int(row * STRIDE_Y) - int(pad_top), x0 = int(column * STRIDE_X) - int(pad_left);
    const int base = int(image * data_image + group * channels * data_channel) + y0 * int(width) + x0;

    const int last_data = last_word(image, data_image), last_weight = last_word(group, weights_group);

    // Signed bytes, as which unsigned ones are read less 128; what lies outside of the image is the zero point.
    const int zero = UNSIGNED ? data_zero - 128 : data_zero;
    const uint flip = UNSIGNED ? 0x80808080u : 0u, filler = (uint(zero) & 0xFFu) * 0x01010101u;
    uint inside[SPAN_WORDS];
    [[unroll]] for (uint w = 0; w < SPAN_WORDS; ++w) {
        inside[w] = PADDED ? inside_of(x0 + int(4 * w)) : 0;
    }

    uint weight_row[HELD];
    [[unroll]] for (uint h = 0; h < HELD; ++h) {
        const uint filter_index = min(first + h * SUBGROUP + (ROWS == 1 ? 0 : lane), filters - 1);
        weight_row[h] = group * weights_group + filter_index * weights_filter;
    }
    ivec4 totals[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) totals[i] = ivec4(0);

    for (uint begin = 0; begin < channels; begin += CHUNK) {
        const uint end = min(begin + CHUNK, channels);
        vec4 sums[SUMS];
        [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = vec4(0.0);
        for (uint c = begin; c < end; c += EACH) {
            float held[HELD * TERMS];
            [[unroll]] for (uint h = 0; h < HELD; ++h) {
                const uint at = weight_row[h] + c * TAPS, shift = 8 * (at & 3u);
                uint words[WEIGHT_READS];
                [[unroll]] for (uint w = 0; w < WEIGHT_READS; ++w)
                    words[w] = weights[WEIGHT_PHASE == 0 ? (at >> 2) + w : min((at >> 2) + w, uint(last_weight))];
                [[unroll]] for (uint t = 0; t < TERMS; ++t) {
                    const uint w = t / 4;
                    const uint word = WEIGHT_PHASE == 0 ? words[w] : joined(words[w], words[min(w + 1, WEIGHT_READS - 1)], shift);
                    held[h * TERMS + t] = byte_of(word, t % 4);
                }
            }
            [[unroll]] for (uint i = 0; i < UNDER; ++i) {
                if (met(i)) {
                    const bool there = uint(y0 + int(i)) < height;
                    float values[EACH * SPAN];
                    [[unroll]] for (uint e = 0; e < EACH; ++e) {
                        const int at = base + int((c + e) * data_channel + i * width);
                        const uint shift = 8 * (uint(at) & 3u);
                        uint words[DATA_READS];
                        [[unroll]] for (uint w = 0; w < DATA_READS; ++w)
                            words[w] = data[DATA_PHASE == 0 ? (at >> 2) + w : clamp((at >> 2) + int(w), 0, last_data)] ^ flip;
                        [[unroll]] for (uint w = 0; w < SPAN_WORDS; ++w) {
                            uint word = DATA_PHASE == 0 ? words[w] : joined(words[w], words[min(w + 1, DATA_READS - 1)], shift);
                            if (PADDED) word = padded(word, filler, there ? inside[w] : 0);
                            [[unroll]] for (uint b = 0; b < 4; ++b)
                                if (4 * w + b < SPAN) values[e * SPAN + 4 * w + b] = byte_of(word, b) - float(zero);
                        }
                    }
                    [[unroll]] for (uint r = 0; r < DOWN; ++r) {
                        const uint ky = tap_of(i, r);
                        if (ky < KERNEL_Y) {
                            [[unroll]] for (uint f = 0; f < ROWS; ++f) {
                                // Sums do not fit the registers of a processor: each is fetched once for several products.
                                vec4 sum = sums[r * ROWS + f];
                                [[unroll]] for (uint e = 0; e < EACH; ++e) {
                                    [[unroll]] for (uint kx = 0; kx < KERNEL_X; ++kx) {
                                        const uint v = e * SPAN + kx * DILATION_X, t = e * TAPS + ky * KERNEL_X + kx;
                                        const vec4 four = vec4(values[v], values[v + STRIDE_X], values[v + 2 * STRIDE_X],
                                                               values[v + 3 * STRIDE_X]);
                                        sum = fma(vec4(given(held[f / SUBGROUP * TERMS + t], f % SUBGROUP)), four, sum);
                                    }
                                }
                                sums[r * ROWS + f] = sum;
                            }
                        }
                    }
                }
            }
        }
        [[unroll]] for (uint i = 0; i < SUMS; ++i) totals[i] += ivec4(sums[i]);
    }

    if (gl_GlobalInvocationID.x != index) return;
    const uint filter0 = group * filters + first, there = min(filters - first, ROWS);
    const uint to = image * result_image + filter0 * result_channel + row * out_width + column;
    const uint below = min(out_height - row, DOWN), beside = min(out_width - column, 4);
    if (SUMS <= 8) {
        [[unroll]] for (uint i = 0; i < SUMS; ++i) {
            const uint r = i / ROWS, f = i % ROWS, at = to + f * result_channel + r * out_width;
            if (r < below && f < there) finish4(filter0 + f, at, beside, totals[i]);
        }
        return;
    }
    // The code that stores is there once, and not for every result.
    ivec4 results[SUMS];
    [[unroll]] for (uint i = 0; i < SUMS; ++i) results[i] = totals[i];
    for (uint r = 0; r < below; ++r) {
        for (uint f = 0; f < there; ++f) {
            const uint at = to + f * result_channel + r * out_width;
            finish4(filter0 + f, at, beside, results[r * ROWS + f]);
        }
    }
}
