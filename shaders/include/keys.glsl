// Elements of any type as unsigned numbers in the same order, straight from their bits: exact on every device, also where
// arithmetic takes denormal values for zero. One kernel serves all types: which one is a constant.

#ifndef KEYS_GLSL
#define KEYS_GLSL

#include "special.glsl"

layout(constant_id = 3) const uint ELEMENT = 0;

const uint ELEMENT_F32 = 0, ELEMENT_F16 = 1, ELEMENT_BF16 = 2, ELEMENT_I32 = 3, ELEMENT_U32 = 4, ELEMENT_I8 = 5,
           ELEMENT_U8 = 6;

// Elements in a word are 1, 2 or 4: this is the logarithm of that.
const uint ELEMENT_PART = ELEMENT == ELEMENT_F16 || ELEMENT == ELEMENT_BF16 ? 1 : ELEMENT >= ELEMENT_I8 ? 2 : 0;
const uint ELEMENT_BITS = 32 >> ELEMENT_PART;
const uint ELEMENT_MASK = 0xFFFFFFFFu >> (32 - ELEMENT_BITS);

layout(set = 0, binding = 0) readonly buffer Words {
    uint words[];
};

// Position of an element's bits in its word.
uint element_shift(uint index) {
    return (index & ((1u << ELEMENT_PART) - 1u)) * ELEMENT_BITS;
}

// Bits of an element.
uint element_bits(uint index) {
    return (words[index >> ELEMENT_PART] >> element_shift(index)) & ELEMENT_MASK;
}

// Number of an element, in the order of the elements.
uint element_key(uint index) {
    const uint bits = element_bits(index);
    if (ELEMENT == ELEMENT_F32) return order_key(bits, 0x7F800000u);
    if (ELEMENT == ELEMENT_F16) return order_key(bits << 16, 0x7C000000u);
    if (ELEMENT == ELEMENT_BF16) return order_key(bits << 16, 0x7F800000u);
    if (ELEMENT == ELEMENT_I32) return bits ^ 0x80000000u;
    return ELEMENT == ELEMENT_I8 ? bits ^ 0x80u : bits;
}

#endif
