// Groups of channels of images whose channels come last: activation((x - mean) / deviation * scale + bias), with mean and deviation of
// all places and channels of a group (CENTERED), or the root of the mean of squares. MODE 0 does all of it for some groups of an
// image. Large images take two dispatches: 1 writes the mean and the sum of squares around it of each piece, so many places of so
// many channels, and 2 merges those of a group and writes the results of a piece.
//
// A workgroup has a block of channels, several groups or a part of one, and its invocations have UNIT channels of every ROWS-th place.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "elements.glsl"
#include "quads.glsl"
#include "special.glsl"
#include "activation.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint MODE = 0;
layout(constant_id = 2) const bool CENTERED = true;
layout(constant_id = 3) const bool SCALED = false;
layout(constant_id = 4) const bool BIASED = false;
layout(constant_id = 5) const uint ACTIVATION = 0;
// Channels of a block, a multiple of UNIT; the last block of an image, or of a group, may have fewer.
layout(constant_id = 6) const uint WIDTH = 128;
// Whole groups of a block, or 1 for a part of a group: a group has PARTS blocks then.
layout(constant_id = 7) const uint GROUPS = 1;
layout(constant_id = 8) const uint PARTS = 1;
// Places that a workgroup reads at once.
layout(constant_id = 9) const uint ROWS = 1;
// Invocations that add up a group, a power of two: all of them, where there are more than groups.
layout(constant_id = 10) const uint SLICES = 128;

layout(push_constant) uniform Shape {
    uint places, channels, groups, per_group, chunk, epsilon;  // Pieces have `chunk` places; epsilon is a float's bits.
};

#ifdef PACKED
#define UNIT 4u
#define VALUE vec4
#define BUFFER(slot, name, qualifier, TYPE) QUAD_BUFFER(slot, name, qualifier, TYPE)
#define LOAD(b, at) CONCAT(LOAD4_, TYPE)(b, (at) >> 2)
#define STORE(b, at, v) CONCAT(STORE4_, TYPE)(b, (at) >> 2, v)
#define PART(v, i) v[i]
#else
#define UNIT 1u
#define VALUE float
#define BUFFER(slot, name, qualifier, TYPE) ELEMENT_BUFFER(slot, name, qualifier, TYPE)
#define LOAD(b, at) CONCAT(LOAD_, TYPE)(b, at)
#define STORE(b, at, v) CONCAT(STORE_, TYPE)(b, at, v)
#define PART(v, i) v
#endif
// Places that an invocation has under way at once.
#define AHEAD 4u

BUFFER(0, elements, readonly, TYPE);
BUFFER(1, scale, readonly, TYPE);
BUFFER(2, bias, readonly, TYPE);
BUFFER(3, result, , TYPE);
layout(set = 0, binding = 4) buffer Pieces {
    float pieces[];  // (mean, sum of squares around it): of each image, each piece of each block of a group, each group.
};

const uint UNITS = WIDTH / UNIT;
shared float values[WIDTH * ROWS];
shared float sums[GROUPS * SLICES];
shared float means[GROUPS];
shared float squares[GROUPS];

#define LANE gl_LocalInvocationIndex

// The first of the block's channels, how many it has, its first group, how many of those, and channels of one of them.
uint first_channel, width, first_group, count, own;

void find_block() {
    const uint block = gl_WorkGroupID.x;
    if (PARTS > 1u) {
        const uint part = block % PARTS;
        first_group = block / PARTS;
        first_channel = first_group * per_group + part * WIDTH;
        width = min(WIDTH, per_group - part * WIDTH);
        count = 1u;
        own = width;
    } else {
        first_group = block * GROUPS;
        first_channel = first_group * per_group;
        count = min(GROUPS, groups - first_group);
        own = per_group;
        width = count * own;
    }
}

// Adds up the sums of the slices of each group, and as many in `values`: all invocations may read them from the first slice then.
void add_slices(bool both) {
    for (uint apart = SLICES / 2u; apart > 0u; apart /= 2u) {
        barrier();
        if (LANE < apart * GROUPS) {
            sums[LANE] += sums[LANE + apart * GROUPS];
            if (both) values[LANE] += values[LANE + apart * GROUPS];
        }
    }
    barrier();
}

// The sums of the groups of what the invocations have for each channel.
void add_groups(VALUE mine) {
    barrier();
    const uint at = LANE / UNITS * WIDTH + LANE % UNITS * UNIT;
    [[unroll]] for (uint i = 0u; i < UNIT; ++i) values[at + i] = PART(mine, i);
    barrier();
    for (uint job = LANE; job < GROUPS * SLICES; job += gl_WorkGroupSize.x) {
        const uint group = job % GROUPS;
        float sum = 0.0;
        if (group < count) {
            for (uint i = job / GROUPS; i < ROWS * own; i += SLICES) sum += values[i / own * WIDTH + group * own + i % own];
        }
        sums[job] = sum;
    }
    add_slices(false);
}

// A channel's group in the block; what lies behind the last counts as it.
uint group_of(uint channel) {
    return GROUPS > 1u ? min(channel / own, count - 1u) : 0u;
}

VALUE of_groups(uint channel, bool is_mean) {
    VALUE found;
    [[unroll]] for (uint i = 0u; i < UNIT; ++i) {
        const uint group = group_of(channel + i);
        PART(found, i) = is_mean ? means[group] : squares[group];
    }
    return found;
}

// Mean and sum of squares of the groups of a piece. Each invocation merges those of a few places at a time (Chan, Golub and LeVeque,
// Updating formulae, 1979).
void of_elements(uint base, uint channel, uint start, uint end) {
    VALUE mean = VALUE(0.0), around = VALUE(0.0);
    float known = 0.0;
    if (channel < width) {
        for (uint place = start + LANE / UNITS; place < end; place += AHEAD * ROWS) {
            VALUE x[AHEAD];
            // What lies behind the last place is read there and not counted.
            [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
                x[i] = VALUE(LOAD(elements, base + min(place + i * ROWS, end - 1u) * channels));
            }
            const float more = float(min(AHEAD, (end - place + ROWS - 1u) / ROWS));
            VALUE sum = VALUE(0.0), off = VALUE(0.0);
            if (CENTERED) {
                [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
                    if (place + i * ROWS < end) sum += x[i];
                }
                sum /= more;
            }
            [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
                const VALUE difference = x[i] - sum;
                if (place + i * ROWS < end) off += difference * difference;
            }
            const float share = more / (known + more);
            const VALUE apart = sum - mean;
            mean += apart * share;
            around += off + apart * apart * (known * share);
            known += more;
        }
    }
    const float all = float(end - start) * float(own);
    if (CENTERED) add_groups(mean * known);
    for (uint group = LANE; group < GROUPS; group += gl_WorkGroupSize.x) means[group] = CENTERED ? sums[group] / all : 0.0;
    barrier();
    const VALUE apart = CENTERED && known > 0.0 ? mean - of_groups(channel, true) : VALUE(0.0);
    add_groups(around + apart * apart * known);
    for (uint group = LANE; group < GROUPS; group += gl_WorkGroupSize.x) squares[group] = sums[group];
    barrier();
}

// Elements of a piece of a group.
float size_of(uint piece) {
    const uint there = min(chunk, places - piece / PARTS * chunk);
    return float(there) * float(PARTS > 1u ? min(WIDTH, per_group - piece % PARTS * WIDTH) : per_group);
}

// The same out of those of all pieces. Around the mean of the first, sums of both kinds take one pass: a piece of so many is no
// farther from the mean of all than the root of their number, in deviations.
void of_pieces(uint chunks) {
    const uint all = chunks * PARTS, base = gl_WorkGroupID.y * all;
    for (uint job = LANE; job < GROUPS * SLICES; job += gl_WorkGroupSize.x) {
        const uint group = first_group + min(job % GROUPS, count - 1u);
        const float near = CENTERED ? pieces[2u * (base * groups + group)] : 0.0;
        float sum = 0.0, around = 0.0;
        for (uint piece = job / GROUPS; piece < all; piece += AHEAD * SLICES) {
            vec2 found[AHEAD];
            [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
                const uint at = 2u * ((base + min(piece + i * SLICES, all - 1u)) * groups + group);
                found[i] = vec2(pieces[at], pieces[at + 1u]);
            }
            [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
                if (piece + i * SLICES < all) {
                    const float off = CENTERED ? found[i].x - near : 0.0, size = size_of(piece + i * SLICES);
                    sum += off * size;
                    around += found[i].y + off * off * size;
                }
            }
        }
        sums[job] = sum;
        values[job] = around;
    }
    add_slices(true);
    for (uint group = LANE; group < count; group += gl_WorkGroupSize.x) {
        const float apart = sums[group] / (float(places) * float(per_group));
        means[group] = CENTERED ? pieces[2u * (base * groups + first_group + group)] + apart : 0.0;
        // What rounding leaves below 0 is 0. Compilers make a maximum of such a comparison, which loses NaN.
        const float around = values[group] - apart * sums[group];
        squares[group] = is_nan(around) ? NAN : around < 0.0 ? 0.0 : around;
    }
    barrier();
}

float factor_of(float sum) {
    const float variance = sum / (float(places) * float(per_group)) + uintBitsToFloat(epsilon);
    return is_finite(variance) ? inversesqrt(variance) : is_nan(variance) ? NAN : 0.0;
}

void finish(uint base, uint channel, uint start, uint end) {
    if (channel >= width) return;
    const VALUE mean = of_groups(channel, true);
    VALUE factor = of_groups(channel, false), offset = VALUE(0.0);
    [[unroll]] for (uint i = 0u; i < UNIT; ++i) PART(factor, i) = factor_of(PART(factor, i));
    VALUE scaled = VALUE(1.0);
    if (SCALED) scaled = VALUE(LOAD(scale, first_channel + channel));
    if (BIASED) offset = VALUE(LOAD(bias, first_channel + channel));
    for (uint place = start + LANE / UNITS; place < end; place += AHEAD * ROWS) {
        VALUE x[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            x[i] = VALUE(LOAD(elements, base + min(place + i * ROWS, end - 1u) * channels));
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; ++i) {
            if (place + i * ROWS < end) {
                VALUE v = (x[i] - mean) * factor;
                if (SCALED) v *= scaled;
                if (BIASED) v += offset;
                if (ACTIVATION != 0u) v = activate(v, ACTIVATION);
                STORE(result, base + (place + i * ROWS) * channels, v);
            }
        }
    }
}

void main() {
    find_block();
    const uint chunks = gl_NumWorkGroups.z, channel = LANE % UNITS * UNIT;
    // What the first dispatch read last is read first: it may still be near.
    const uint piece = MODE == 2u ? chunks - 1u - gl_WorkGroupID.z : gl_WorkGroupID.z;
    const uint start = piece * chunk, end = min(start + chunk, places);
    const uint base = gl_WorkGroupID.y * places * channels + first_channel + channel;
    if (MODE == 2u) of_pieces(chunks);
    else of_elements(base, channel, start, end);
    if (MODE != 1u) {
        finish(base, channel, start, end);
        return;
    }
    for (uint group = LANE; group < count; group += gl_WorkGroupSize.x) {
        const uint block = PARTS > 1u ? gl_WorkGroupID.x % PARTS : 0u;
        const uint at = 2u * (((gl_WorkGroupID.y * chunks + piece) * PARTS + block) * groups + first_group + group);
        pieces[at] = means[group];
        pieces[at + 1u] = squares[group];
    }
}
