// Quantized weights in chunks of 32 along k, and rows of activations in the same chunks. A weight is an unsigned number
// of BITS (4 or 8) bits, several in a word, the first in the lowest bits. Groups are whole chunks.

#ifndef QUANTIZED_GLSL
#define QUANTIZED_GLSL

// Words of a chunk.
const uint WEIGHT_WORDS = BITS;

// A weight less `zero`, exactly: the number is put into the lowest bits of a float of 2^23, from which that and the zero
// are taken.
float weight_of(uint word, uint place, float zero) {
    const uint bits = (word >> (BITS * place)) & ((1u << BITS) - 1u);
    return uintBitsToFloat(bits | 0x4B000000u) - (8388608.0 + zero);
}

#endif
