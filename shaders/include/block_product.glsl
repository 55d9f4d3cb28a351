// What products of activations and weights in blocks have in common: all is `f32` but the weights. A template declares the
// constants ADDED and ACTIVATION before it includes this.

#ifndef BLOCK_PRODUCT_GLSL
#define BLOCK_PRODUCT_GLSL

#define OUT F32
#define ACCUMULATOR float
#define QUAD vec4
#include "product.glsl"

#endif
