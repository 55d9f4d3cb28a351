// Operands of a product of matrices that is a convolution: the windows of each image as columns, a row for each tap of each channel,
// and the filters as rows of whole words where they are none. An invocation moves eight elements that lie side by side.
// One group, rows before channels.
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer Data { uint16_t data[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uint16_t weights[]; };
layout(set = 0, binding = 2) writeonly buffer Columns { uvec4 columns[]; };
layout(set = 0, binding = 3) writeonly buffer Rows { uvec4 rows[]; };

layout(push_constant) uniform Shape {
    uint channels, height, width;
    uint filters, kernel_height, kernel_width;
    uint out_height, out_width;
    uint stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    uint image_words;   // Eights of the columns of an image.
    uint column_words;  // The same of all images.
    uint filter_words;  // Eights of a filter; 0 where filters stay where they are.
};

// Two halves of a word.
void put(inout uvec4 word, uint i, uint bits) {
    word[i / 2] |= bits << (i % 2 * 16);
}

uvec4 eight_of_columns(uint item) {
    const uint image = item / image_words, at = item % image_words * 8;
    const uint places = out_height * out_width, taps = kernel_height * kernel_width;
    uint row = at / places, place = at % places;
    uint channel = row / taps, tap = row % taps;
    uint ky = tap / kernel_width, kx = tap % kernel_width, y = place / out_width, x = place % out_width;
    uvec4 word = uvec4(0);
    [[unroll]] for (uint i = 0; i < 8; ++i) {
        const uint from_y = y * stride_y + ky * dilation_y - pad_top, from_x = x * stride_x + kx * dilation_x - pad_left;
        // Rows above and columns to the left have wrapped around.
        if (channel < channels && from_y < height && from_x < width)
            put(word, i, uint(data[((image * channels + channel) * height + from_y) * width + from_x]));
        if (++x < out_width) continue;
        x = 0;
        if (++y < out_height) continue;
        y = 0;
        if (++kx < kernel_width) continue;
        kx = 0;
        if (++ky < kernel_height) continue;
        ky = 0;
        ++channel;
    }
    return word;
}

uvec4 eight_of_a_filter(uint item) {
    const uint filter_index = item / filter_words, first = item % filter_words * 8;
    const uint depth = channels * kernel_height * kernel_width;
    uvec4 word = uvec4(0);
    [[unroll]] for (uint i = 0; i < 8; ++i)
        if (first + i < depth) put(word, i, uint(weights[filter_index * depth + first + i]));
    return word;
}

void main() {
    const uint item = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    if (item < column_words) {
        columns[item] = eight_of_columns(item);
    } else if (item - column_words < filters * filter_words) {
        rows[item - column_words] = eight_of_a_filter(item - column_words);
    }
}
