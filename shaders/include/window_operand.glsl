// The right operand of a convolution as a product: row k is tap k % TAPS of channel k / TAPS, column n is place n. Strides are
// 1, and rows of results are as wide as those of the image, so that a tap lies at one distance from all places: words begin
// anywhere, and what lies outside of the image is cleared. A template declares TAPS, KERNEL_WIDTH, the push constants width,
// height, dilation_y, dilation_x, pad_top, pad_left, and N and K.

#ifndef WINDOW_OPERAND_GLSL
#define WINDOW_OPERAND_GLSL

// Of the eight places of this invocation's words: which rows and columns of taps lie inside, eight bits for each.
uvec2 inside_rows, inside_columns;

void find_inside(uint place) {
    inside_rows = uvec2(0);
    inside_columns = uvec2(0);
    [[unroll]] for (uint j = 0; j < 8; ++j) {
        const uint y = (place + j) / width - pad_top, x = (place + j) % width - pad_left;
        [[unroll]] for (uint t = 0; t < TAPS / KERNEL_WIDTH; ++t)
            inside_rows[t / 4] |= uint(y + t * dilation_y < height) << (t % 4 * 8 + j);
        [[unroll]] for (uint t = 0; t < KERNEL_WIDTH; ++t)
            inside_columns[t / 4] |= uint(x + t * dilation_x < width) << (t % 4 * 8 + j);
    }
}

// Row and column of the tap of a row of the operand.
uvec2 tap_of(uint k) {
    const uint tap = min(k, K - 1) % TAPS;
    return uvec2(tap / KERNEL_WIDTH, tap % KERNEL_WIDTH);
}

// The element of the image that a word begins with.
int first_element(uint k, uint place) {
    const uvec2 tap = tap_of(k);
    const uint rows = tap.x * dilation_y - pad_top, columns = tap.y * dilation_x - pad_left;
    return int(min(k, K - 1) / TAPS * (width * height) + place + rows * width + columns);
}

// Eight elements of sixteen from the `first`-th on.
uvec4 eight_of(uvec4 low, uvec4 high, uint first) {
    uvec4 words = low, behind = high;
    if ((first & 4u) != 0) {
        words = uvec4(low.zw, high.xy);
        behind = high.zwzw;
    }
    uint last = behind.x;
    if ((first & 2u) != 0) {
        words = uvec4(words.yzw, behind.x);
        last = behind.y;
    }
    return (first & 1u) == 0 ? words : (words >> 16) | (uvec4(words.yzw, last) << 16);
}

// Clears elements whose tap lies outside.
uvec4 inside_of(uvec4 words, uint k) {
    const uvec2 tap = tap_of(k);
    const uint bits = inside_rows[tap.x / 4] >> (tap.x % 4 * 8) & inside_columns[tap.y / 4] >> (tap.y % 4 * 8);
    const uvec4 low = (uvec4(bits) >> uvec4(0, 2, 4, 6)) & 1u, high = (uvec4(bits) >> uvec4(1, 3, 5, 7)) & 1u;
    return words & (low * 0xFFFFu | high * 0xFFFF0000u);
}

#endif
