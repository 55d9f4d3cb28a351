// What is added to sums before a function is applied to them and they are stored. A template declares the constant
// `layout(constant_id = …) const uint ADDED` before it includes this; its bits are those of `Added` in the crate. What is not
// there has a buffer all the same, another one of the kernel's, that is not read.

#ifndef ADDED_GLSL
#define ADDED_GLSL

// A value for each filter of a convolution, or for each column of a product.
const bool HAS_BIAS = (ADDED & 1u) != 0;
// A tensor like the result.
const bool HAS_RESIDUAL = (ADDED & 2u) != 0;
// A value for each place of a convolution of 1x1: for each column of a product, whose rows are the filters.
const bool HAS_PLACE_BIAS = (ADDED & 4u) != 0;
#ifdef ADDS_BEHIND
// The tensor like the result is added behind the function.
const bool RESIDUAL_BEHIND = (ADDED & 32u) != 0;
#endif

#endif
