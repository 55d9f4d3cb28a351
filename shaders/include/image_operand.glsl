// The left operand of a convolution as a product, of images whose channels lie last: row m is place m among the results of all images,
// and holds the channels of one tap after the other, in 16-byte words. Each invocation has the same word of some rows, so that it knows
// their places from the start. A template declares TAPS, at most 32, KERNEL_WIDTH, TAP_WORDS, INSIDE, LHS_EACH, PACK, `left_row`,
// `lhs_base`, K, and the push constants below.

#ifndef IMAGE_OPERAND_GLSL
#define IMAGE_OPERAND_GLSL

// Of each row: the word of its first tap, which may lie outside of the image, and which taps lie inside.
int first_word[LHS_EACH];
uint taps_inside[LHS_EACH];

void find_places() {
    [[unroll]] for (uint i = 0; i < LHS_EACH; ++i) {
        const uint place = left_row(i), line = place / columns;
        const int y = int(line % rows * stride_y) - int(pad_top), x = int(place % columns * stride_x) - int(pad_left);
        first_word[i] = (int(line / rows * height + y) * int(width) + x) * int(pixel_words);
        if (INSIDE) continue;
        uint inside = 0;
        [[unroll]] for (uint tap = 0; tap < TAPS; ++tap) {
            const uint row = uint(y) + tap / KERNEL_WIDTH * dilation_y;
            const uint column = uint(x) + tap % KERNEL_WIDTH * dilation_x;
            inside |= uint(row < height && column < width) << tap;
        }
        taps_inside[i] = inside;
    }
}

bool is_inside(uint i, uint tap) {
    return INSIDE || (taps_inside[i] >> tap & 1u) == 1;
}

// Where a word of the i-th row lies, and the first of all where its tap lies outside.
uint image_word(uint i, uint word) {
    const uint tap = min(word / TAP_WORDS, TAPS - 1);
    const uint taps = (tap / KERNEL_WIDTH * dilation_y * width + tap % KERNEL_WIDTH * dilation_x) * pixel_words;
    const uint channel = min(word - tap * TAP_WORDS, TAP_WORDS - 1);
    return lhs_base + (is_inside(i, tap) ? uint(first_word[i]) + taps + channel : 0);
}

// Zeroes for what lies outside. It is done when words have come, so that nothing waits for them before.
uvec4 inside_of(uvec4 words, uint i, uint word) {
    return is_inside(i, min(word / TAP_WORDS, TAPS - 1)) ? words : uvec4(0);
}

#endif
