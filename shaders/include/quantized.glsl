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

// The sum of the products of a chunk of activations and weights. Weights are put into the lowest bits of halves of 2^10,
// two at a time with one instruction, which floats are then made of: whole numbers are slow.
float chunk_products(float left[32], uint words[8], float zero) {
    const uint ten = 0x64006400u;
    float sum = 0.0, sixteenths = 0.0;
    if (BITS == 4) {
        [[unroll]] for (uint i = 0; i < 4; ++i) {
            [[unroll]] for (uint j = 0; j < 4; j += 2) {
                const uint word = words[i] >> (4 * j);
                const vec2 even = unpackHalf2x16((word & 0x000F000Fu) | ten) - (1024.0 + zero);
                const vec2 odd = unpackHalf2x16((word & 0x00F000F0u) | ten) - (1024.0 + 16.0 * zero);
                sum += left[i * 8 + j] * even.x;
                sixteenths += left[i * 8 + j + 1] * odd.x;
                sum += left[i * 8 + j + 4] * even.y;
                sixteenths += left[i * 8 + j + 5] * odd.y;
            }
        }
        return sum + sixteenths * 0.0625;
    }
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        [[unroll]] for (uint j = 0; j < 2; ++j) {
            const vec2 pair = unpackHalf2x16(((words[i] >> (8 * j)) & 0x00FF00FFu) | ten) - (1024.0 + zero);
            sum += left[i * 4 + j] * pair.x;
            sum += left[i * 4 + j + 2] * pair.y;
        }
    }
    return sum;
}

#endif
