// What becomes of the sums of a matrix product before they are stored: a value for each column and a tensor like the result
// are added, and a function is applied. A template declares the constants ADDED and ACTIVATION, OUT (a type of elements.glsl),
// and ACCUMULATOR and QUAD, the types of sums, before it includes this.

#ifndef PRODUCT_GLSL
#define PRODUCT_GLSL

#include "elements.glsl"
#include "quads.glsl"
#include "activation.glsl"
#include "added.glsl"

#ifndef BIAS_SLOT
#define BIAS_SLOT 3
#define RESIDUAL_SLOT 4
#endif
ELEMENT_BUFFER(BIAS_SLOT, bias, readonly, OUT);
ELEMENT_BUFFER(RESIDUAL_SLOT, residual, readonly, OUT);
QUAD_BUFFER(BIAS_SLOT, bias4, readonly, OUT);
QUAD_BUFFER(RESIDUAL_SLOT, residual4, readonly, OUT);

// The result at element `at`, in column `c`.
ACCUMULATOR finished(uint at, uint c, ACCUMULATOR sum) {
    if (HAS_BIAS) sum += ACCUMULATOR(CONCAT(LOAD_, OUT)(bias, c));
    if (HAS_RESIDUAL) sum += ACCUMULATOR(CONCAT(LOAD_, OUT)(residual, at));
    return activate(sum, ACTIVATION);
}

// The same of four neighbours that are whole quads in memory.
QUAD finished4(uint at, uint c, QUAD sum) {
    if (HAS_BIAS) sum += QUAD(CONCAT(LOAD4_, OUT)(bias4, c / 4));
    if (HAS_RESIDUAL) sum += QUAD(CONCAT(LOAD4_, OUT)(residual4, at / 4));
    return activate(sum, ACTIVATION);
}

#endif
