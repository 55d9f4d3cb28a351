// (x - mean) / deviation * scale + bias along lines (CENTERED), or x / root mean square * scale + bias. MODE 0 does all of
// it; long lines take two dispatches: 1 writes the mean and the sum of squares of each piece, 2 reads those of the whole
// line and writes the results of a piece. The sum of squares is taken in a second pass, around the mean: one pass loses
// all digits where the mean is large.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef USE_SUBGROUP
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
// Element j of line l has channel (l % groups) * per_group + j / spatial; epsilon is the bits of a float.
#ifdef ORDERED
// Lines lie anywhere: sizes of all dimensions of their number but the outermost, the innermost first; the first element that is
// read; strides of lines and of elements, read and written.
#define LINES_PUSH uint groups, per_group, spatial, epsilon, sizes[3], first, from[4], to[4], from_step, to_step;
#define READ_STEP from_step
#define WRITE_STEP to_step
#else
#define LINES_PUSH uint groups, per_group, spatial, epsilon;
#endif
#include "lines.glsl"
#include "special.glsl"
#ifndef ORDERED
#include "activation.glsl"
#endif

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const bool CENTERED = true;
layout(constant_id = 5) const bool SCALED = false;
layout(constant_id = 6) const bool BIASED = false;
// Fours of a line that each invocation keeps, so that memory is waited for once; 0 for none.
layout(constant_id = 7) const uint KEPT = 0;
// Whether a channel is a run of `spatial` elements of a kept line, and not one of them.
layout(constant_id = 8) const bool RUNS = false;
#ifndef ORDERED
// What is applied to results.
layout(constant_id = 9) const uint ACTIVATION = 0;
#define FINISHED(v) (ACTIVATION > 0u ? activate(v, ACTIVATION) : (v))
#else
#define FINISHED(v) (v)
#endif
const uint ROOM = KEPT + uint(KEPT == 0);

#ifdef PACKED
// Channels that are runs of a line are read one by one: four may not all be there.
#define SINGLE_F32 F32
#define SINGLE_F16P F16P
#define SINGLE_F16H F16P
#define SINGLE_BF16P BF16P
#define SINGLE CONCAT(SINGLE_, TYPE)
ELEMENT_BUFFER(1, scale_elements, readonly, SINGLE);
ELEMENT_BUFFER(2, bias_elements, readonly, SINGLE);
#endif
LINE_BUFFER(0, elements, readonly, TYPE);
LINE_BUFFER(1, scale, readonly, TYPE);
LINE_BUFFER(2, bias, readonly, TYPE);
LINE_BUFFER(3, result, , TYPE);
layout(set = 0, binding = 4) buffer Pieces {
    float pieces[];  // (mean, sum of squares around it) of each piece of each line.
};

shared float tree[ACROSS * ALONG];

// All invocations of a line get the sum.
float along_line(float mine) {
#ifdef USE_SUBGROUP
    mine = subgroupAdd(mine);
    if (ACROSS > 1) return mine;
    barrier();
    if (subgroupElect()) tree[gl_SubgroupID] = mine;
    barrier();
    float sum = tree[0];
    for (uint i = 1; i < gl_NumSubgroups; ++i) sum += tree[i];
    return sum;
#else
    barrier();
    tree[LANE] = mine;
    for (uint apart = ALONG / 2; apart > 0; apart /= 2) {
        barrier();
        if (PLACE < apart) tree[LANE] += tree[LANE + apart * ACROSS];
    }
    barrier();
    return tree[LANE % ACROSS];
#endif
}

float sum_of(vec4 v) {
    return (v.x + v.y) + (v.z + v.w);
}

#ifdef ORDERED
// Where a line begins that is read, and where it is written.
uvec2 bases(uint line) {
    uvec2 at = uvec2(first, 0u);
    uint rest = line;
    for (uint d = 0u; d < 3u; ++d) {
        at += rest % sizes[d] * uvec2(from[d], to[d]);
        rest /= sizes[d];
    }
    return at + rest * uvec2(from[3], to[3]);
}
#else
uvec2 bases(uint line) {
    return uvec2(line_base(line));
}
#endif

// Mean and sum of squares of the elements of a piece.
vec2 of_elements(uint base, bool here) {
    float mean = 0.0;
    if (CENTERED) {
        vec4 sums = vec4(0.0);
        if (here) {
            for (EACH_FOUR(at)) sums += FOUR_LOAD(TYPE, elements, base, at, 0.0);
        }
        mean = along_line(sum_of(sums)) / float(piece_end() - piece_start());
    }
    vec4 squares = vec4(0.0);
    if (here) {
        for (EACH_FOUR(at)) {
            const vec4 off = FOUR_LOAD(TYPE, elements, base, at, mean) - mean;
            squares += off * off;
        }
    }
    return vec2(mean, along_line(sum_of(squares)));
}

// The same out of those of all pieces (Chan, Golub and LeVeque, Updating formulae, 1979).
vec2 of_pieces(uint line, bool here) {
    const uint chunks = gl_NumWorkGroups.z;
    float sum = 0.0;
    if (here && CENTERED) {
        for (uint i = PLACE; i < chunks; i += ALONG) {
            sum += pieces[2 * (line * chunks + i)] * float(min(chunk, length - i * chunk));
        }
    }
    const float mean = CENTERED ? along_line(sum) / float(length) : 0.0;
    float squares = 0.0;
    if (here) {
        for (uint i = PLACE; i < chunks; i += ALONG) {
            const uint at = 2 * (line * chunks + i);
            const float off = CENTERED ? pieces[at] - mean : 0.0;
            squares += pieces[at + 1] + off * off * float(min(chunk, length - i * chunk));
        }
    }
    return vec2(mean, along_line(squares));
}

// Scale or bias of four elements.
#ifdef PACKED
#define OF_CHANNELS(b, line, at) \
    (spatial == 1u ? CONCAT(LOAD4_, TYPE)(b, ((line) % groups * per_group + (at)) >> 2) \
        : vec4(CONCAT(LOAD_, SINGLE)(b##_elements, (line) % groups * per_group + (at) / spatial)))
#else
#define OF_CHANNEL_(b, line, at) \
    ((at) < piece_end() ? CONCAT(LOAD_, TYPE)(b, (line) % groups * per_group + (at) / spatial) : 0.0)
#define OF_CHANNELS(b, line, at) \
    vec4(OF_CHANNEL_(b, line, at), OF_CHANNEL_(b, line, (at) + ALONG), OF_CHANNEL_(b, line, (at) + 2u * ALONG), \
        OF_CHANNEL_(b, line, (at) + 3u * ALONG))
#endif

float factor_of(float squares) {
    const float variance = squares / float(length) + uintBitsToFloat(epsilon);
    return is_finite(variance) ? inversesqrt(variance) : is_nan(variance) ? NAN : 0.0;
}

#ifdef USE_SUBGROUP
// All of a line that invocations can keep, as it lies in memory. Scale and bias are kept as well, unless channels are runs.
void kept_line(uint line) {
    const uvec2 base = bases(line);
    const uint last = length - 4u;
    CONCAT(QUAD_MEMORY_, TYPE) words[ROOM];
    vec4 factors[ROOM], offsets[ROOM];
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        // What lies behind the line is read at its end and not counted.
        const uint at = min(4u * (PLACE + i * ALONG), last);
        words[i] = elements[(base.x + at) >> 2];
        factors[i] = SCALED && !RUNS ? OF_CHANNELS(scale, line, at) : vec4(1.0);
        offsets[i] = BIASED && !RUNS ? OF_CHANNELS(bias, line, at) : vec4(0.0);
    }
    float mean = 0.0;
    if (CENTERED) {
        vec4 sums = vec4(0.0);
        [[unroll]] for (uint i = 0; i < KEPT; ++i) {
            if (4u * (PLACE + i * ALONG) < length) sums += CONCAT(LOAD4_, TYPE)(words, i);
        }
        mean = along_line(sum_of(sums)) / float(length);
    }
    vec4 squares = vec4(0.0);
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        const vec4 off = CONCAT(LOAD4_, TYPE)(words, i) - mean;
        if (4u * (PLACE + i * ALONG) < length) squares += off * off;
    }
    const float factor = factor_of(along_line(sum_of(squares)));
    [[unroll]] for (uint i = 0; i < KEPT; ++i) {
        const uint at = 4u * (PLACE + i * ALONG);
        if (at < length) {
            vec4 v = (CONCAT(LOAD4_, TYPE)(words, i) - mean) * factor;
            if (SCALED) v *= RUNS ? OF_CHANNELS(scale, line, at) : factors[i];
            if (BIASED) v += RUNS ? OF_CHANNELS(bias, line, at) : offsets[i];
            v = FINISHED(v);
        FOUR_STORE(TYPE, result, base.y, at, v);
        }
    }
}
#endif

#if defined(ORDERED) && !defined(PACKED)
// All of a line that invocations can keep, with elements that lie apart: each is read once, and all reads are under way at once.
// Channels are elements of a line.
void kept_columns(uint line, bool here) {
    const uvec2 base = bases(min(line, lines - 1u));
    const uint channel = line % groups * per_group;
    float x[4u * ROOM], factors[4u * ROOM], offsets[4u * ROOM], mine = 0.0;
    [[unroll]] for (uint i = 0; i < 4u * KEPT; ++i) {
        // What lies behind the line is read at its end and not counted.
        const uint at = min(PLACE + i * ALONG, length - 1u);
        x[i] = float(CONCAT(LOAD_, TYPE)(elements, base.x + at * READ_STEP));
        factors[i] = SCALED ? float(CONCAT(LOAD_, TYPE)(scale, channel + at)) : 1.0;
        offsets[i] = BIASED ? float(CONCAT(LOAD_, TYPE)(bias, channel + at)) : 0.0;
    }
    float mean = 0.0;
    if (CENTERED) {
        [[unroll]] for (uint i = 0; i < 4u * KEPT; ++i) mine += PLACE + i * ALONG < length ? x[i] : 0.0;
        mean = along_line(mine) / float(length);
    }
    mine = 0.0;
    [[unroll]] for (uint i = 0; i < 4u * KEPT; ++i) {
        x[i] -= mean;
        mine += PLACE + i * ALONG < length ? x[i] * x[i] : 0.0;
    }
    const float factor = factor_of(along_line(mine));
    [[unroll]] for (uint i = 0; i < 4u * KEPT; ++i) {
        const uint at = PLACE + i * ALONG;
        if (here && at < length) CONCAT(STORE_, TYPE)(result, base.y + at * WRITE_STEP, x[i] * factor * factors[i] + offsets[i]);
    }
}
#endif

void main() {
    if (first_line() >= lines) return;
    const uint line = my_line();
#ifdef USE_SUBGROUP
    if (KEPT > 0) {
        if (line < lines) kept_line(line);
        return;
    }
#endif
    const bool here = line < lines;
#if defined(ORDERED) && !defined(PACKED)
    if (KEPT > 0) {
        kept_columns(line, here);
        return;
    }
#endif
    const uvec2 base = bases(line);
    vec2 moments;
    if (MODE == 2) moments = of_pieces(line, here);
    else moments = of_elements(base.x, here);
    if (!here) return;
    if (MODE == 1) {
        if (PLACE > 0) return;
        const uint at = 2 * (line * gl_NumWorkGroups.z + gl_WorkGroupID.z);
        pieces[at] = moments.x;
        pieces[at + 1] = moments.y;
        return;
    }
    const float factor = factor_of(moments.y);
    for (EACH_FOUR(at)) {
        vec4 v = (FOUR_LOAD(TYPE, elements, base.x, at, 0.0) - moments.x) * factor;
        if (SCALED) v *= OF_CHANNELS(scale, line, at);
        if (BIASED) v += OF_CHANNELS(bias, line, at);
        v = FINISHED(v);
        FOUR_STORE(TYPE, result, base.y, at, v);
    }
}
