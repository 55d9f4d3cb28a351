// The operands of `padded.comp`: images with their padding, blocks of CHANNELS channels of a place side by side, and filters with such
// a block of each tap. An invocation writes eight channels; neighbours write sixteen. One group, channels before rows.
#version 450
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint CHANNELS = 32;
layout(constant_id = 2) const uint ITEMS = 1;  // Words of an invocation, a workgroup's size apart.

layout(set = 0, binding = 0) readonly buffer Data { uint16_t data[]; };
layout(set = 0, binding = 1) readonly buffer Weights { uint16_t weights[]; };
layout(set = 0, binding = 2) writeonly buffer Images { uvec4 images[]; };
layout(set = 0, binding = 3) writeonly buffer Filters { uvec4 filters[]; };

layout(push_constant) uniform Shape {
    uint channels, height, width;
    uint pad_top, pad_left;
    uint pitch;         // Places of a row with its padding.
    uint places;        // Places of a block; those behind the last row are zeros.
    uint blocks, taps;
    uint image_words;   // Of 16 bytes, of all images.
    uint filter_words;
};

const uint PLACE = CHANNELS / 8;

// Which eight channels of a block an item has, and its place or tap among `count`; `rest` are blocks.
struct Item {
    uint word, at, rest;
};

Item item_of(uint index, uint count) {
    const uint pair = index / 2 / count;
    return Item(pair % (PLACE / 2) * 2 + index % 2, index / 2 % count, pair / (PLACE / 2));
}

// Eight elements, `step` apart; those of channels from `channels` on are zeros.
#define EIGHT(source, from, step, channel)                                                                  \
    uvec4 word = uvec4(0);                                                                                  \
    [[unroll]] for (uint i = 0; i < 8; ++i)                                                                 \
        if ((channel) + i < channels) word[i / 2] |= uint(source[(from) + i * (step)]) << (i % 2 * 16)

void image_word(uint index) {
    const Item item = item_of(index, places);
    const uint channel = item.rest % blocks * CHANNELS + item.word * 8, image = item.rest / blocks;
    // Rows above and columns to the left wrap around.
    const uint y = item.at / pitch - pad_top, x = item.at % pitch - pad_left;
    const uint to = (item.rest * places + item.at) * PLACE + item.word, plane = height * width;
    if (y >= height || x >= width) {
        images[to] = uvec4(0);
        return;
    }
    EIGHT(data, (image * channels + channel) * plane + y * width + x, plane, channel);
    images[to] = word;
}

void filter_word(uint index) {
    const Item item = item_of(index, taps);
    const uint channel = item.rest % blocks * CHANNELS + item.word * 8, filter_index = item.rest / blocks;
    EIGHT(weights, (filter_index * channels + channel) * taps + item.at, taps, channel);
    filters[(item.rest * taps + item.at) * PLACE + item.word] = word;
}

void main() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    for (uint i = 0; i < ITEMS; ++i) {
        const uint item = (group * ITEMS + i) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (item < image_words) {
            image_word(item);
        } else if (item - image_words < filter_words) {
            filter_word(item - image_words);
        }
    }
}
