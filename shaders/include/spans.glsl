// Bytes that lie next to each other and begin anywhere, read as words and used as floats, which hold them and their products
// exactly. Included behind convolution.glsl.

#ifndef SPANS_GLSL
#define SPANS_GLSL

// The word that begins `shift` bits behind the start of the first of two.
uint joined(uint low, uint high, uint shift) {
    return (low >> shift) | ((high << 1) << (31 - shift));
}

// A signed byte of a word, and all four.
float byte_of(uint word, uint index) {
    return float(int(word << (24 - 8 * index)) >> 24);
}

vec4 bytes_of(uint word) {
    return vec4(ivec4(word << 24, word << 16, word << 8, word) >> 24);
}

// The bytes of a word whose columns, from `x` on, lie inside of the image.
uint inside_of(int x) {
    return (uint(x) < width ? 0xFFu : 0u) | (uint(x + 1) < width ? 0xFF00u : 0u) |
           (uint(x + 2) < width ? 0xFF0000u : 0u) | (uint(x + 3) < width ? 0xFF000000u : 0u);
}

// The bytes of a word inside of the image, and those of another word elsewhere.
uint padded(uint word, uint filler, uint inside) {
    return filler ^ ((word ^ filler) & inside);
}

// The last word of an image, and of the weights of a group: behind it nothing may be read.
int last_word(uint index, uint bytes) {
    return int((index * bytes + bytes - 1) >> 2);
}

#endif
