// What all kernels of convolutions share: buffers, push constants, and what becomes of a sum. A template defines
// IN, FILTER, ACC and OUT (types of elements.glsl), and REQUANTIZE where sums become 8-bit integers again. Kernels of floats
// add a residual, a tensor like the result, where they store with `finish`; others do by themselves, or cannot.

#ifndef CONVOLUTION_GLSL
#define CONVOLUTION_GLSL

#include "elements.glsl"
#ifndef QUANTIZED
// SwiftShader executes both sides of a branch on a constant, too. What is mostly run there has no code for a residual and the
// last functions.
#if defined(DEPTHWISE) || (defined(SUBGROUP) && SUBGROUP == 4)
#define FEW_ACTIVATIONS
#endif
#include "activation.glsl"
#endif

layout(constant_id = 1) const uint ADDED = 0;
layout(constant_id = 2) const uint ACTIVATION = 0;

#include "added.glsl"

ELEMENT_BUFFER(0, data, readonly, IN);
ELEMENT_BUFFER(1, weights, readonly, FILTER);
ELEMENT_BUFFER(2, bias, readonly, BIAS);
#ifdef REQUANTIZE
// A float for each filter, in the buffer of the bias, is added to scaled sums.
const bool HAS_SCALED_BIAS = (ADDED & 8u) != 0;
ELEMENT_BUFFER(3, scales, readonly, F32);
ELEMENT_BUFFER(4, result, , OUT);
#else
ELEMENT_BUFFER(3, result, , OUT);
#if !defined(QUANTIZED) && !defined(FEW_ACTIVATIONS)
ELEMENT_BUFFER(4, residual, readonly, OUT);
#endif
#endif

// Strides are in elements. The one of a row is its length times the one of a pixel, in each tensor.
layout(push_constant) uniform Shape {
    uint channels;  // Of the input, in a group.
    uint height, width;
    uint filters;  // In a group.
    uint kernel_height, kernel_width;
    uint out_height, out_width;
    uint stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    uint data_image, data_channel, data_pixel;
    uint weights_group, weights_filter, weights_channel, weights_tap;
    uint result_image, result_channel, result_pixel;
#ifdef QUANTIZED
    int data_zero, result_zero, least, most;
#endif
#ifdef DEPTHWISE
    uint all_filters, channels_last;  // Filters of all groups; whether neighbours in memory are channels.
#endif
#ifdef COUNTS_IMAGES
    uint images;
#endif
#ifdef IN_RUNS
    uint data_first, result_first;  // Quads before the first.
#endif
};

#define SUM CONCAT(REGISTER_, ACC)
#define VECTOR_OF_F32 vec4
#define VECTOR_OF_I32 ivec4
#define SUM4 CONCAT(VECTOR_OF_, ACC)

vec4 multiply_add(float x, vec4 y, vec4 sum) {
    return fma(vec4(x), y, sum);
}

ivec4 multiply_add(int x, ivec4 y, ivec4 sum) {
    return x * y + sum;
}

SUM data_at(uint index, bool inside) {
    SUM value = SUM(CONCAT(LOAD_, IN)(data, index));
#ifdef QUANTIZED
    value -= data_zero;
#endif
    return inside ? value : SUM(0);
}

SUM weight_at(uint index) {
    return SUM(CONCAT(LOAD_, FILTER)(weights, index));
}

#if !defined(QUANTIZED) && !defined(FEW_ACTIVATIONS)
// What a result of a filter, counted through all groups, gets besides its sum. Kernels that store several results read this for
// all of them first: after a store, a device has to assume that it changed what is read.
SUM added(uint filter_index, uint at) {
    SUM value = SUM(0);
    if (HAS_BIAS) value += SUM(CONCAT(LOAD_, BIAS)(bias, filter_index));
    if (HAS_RESIDUAL) value += SUM(CONCAT(LOAD_, OUT)(residual, at));
    return value;
}
#endif

// Stores the result of a filter, counted through all groups, from its sum.
void finish(uint filter_index, uint at, SUM sum) {
    if (HAS_BIAS) sum += SUM(CONCAT(LOAD_, BIAS)(bias, filter_index));
#if defined(REQUANTIZE)
    // A product and a sum, not a fused one: results are exact.
    precise float scaled = float(sum) * scales[filter_index];
    if (HAS_SCALED_BIAS) scaled += intBitsToFloat(CONCAT(LOAD_, BIAS)(bias, filter_index));
    const int value = clamp(int(clamp(roundEven(scaled), -1024.0, 1024.0)) + result_zero, least, most);
    CONCAT(STORE_, OUT)(result, at, value);
#elif defined(QUANTIZED)
    CONCAT(STORE_, OUT)(result, at, sum);
#else
#ifndef FEW_ACTIVATIONS
    if (HAS_RESIDUAL) sum += SUM(CONCAT(LOAD_, OUT)(residual, at));
#endif
    CONCAT(STORE_, OUT)(result, at, activate(sum, ACTIVATION));
#endif
}

#endif
