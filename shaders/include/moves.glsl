// Moving of elements without a look at what they mean: an invocation makes ITEMS whole words of the result, each of a
// function that the template has, so that results of any size are stored without atomics and side by side.
//
// UNIT is what is moved at once, in bytes: 1 and 2 (several of them in a word), 4, 8 or 16. A template declares buffers with
// UNITS(binding, name, qualifier), its push constants, beginning with PLACES, and
//   WORD make(uint index)   the unit of the result with this index, in the lowest bits
// Bytes of the last word behind the last unit become 0.

#ifndef MOVES_GLSL
#define MOVES_GLSL

#if UNIT == 16
#define WORD uvec4
#define PACK 1u
#elif UNIT == 8
#define WORD uvec2
#define PACK 1u
#else
#define WORD uint
#define PACK (4u / UNIT)
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ITEMS = 1;
// Dimensions of the index of a result, 6 at most. Number 0 is the innermost.
layout(constant_id = 2) const uint DIMS = 1;

// Workgroups in a row of the grid where one row is not enough; the crate's `moves::GRID_WIDTH`.
const uint GRID_WIDTH = 32768u;

#define UNITS(slot, name, qualifier) \
    layout(set = 0, binding = slot, std430) restrict qualifier buffer name##_block { WORD name[]; }

// Units of the result, and how an index falls into coordinates: sizes of all dimensions but the outermost, and for each
// a multiplier and a shift, in 5 bits of `shifts`, that divide by it.
#define PLACES uint count, shifts, sizes[5], magics[5]

#if UNIT == 1
#define TAKE(b, i) bitfieldExtract(b[(i) >> 2], int(8u * ((i) & 3u)), 8)
#elif UNIT == 2
#define TAKE(b, i) bitfieldExtract(b[(i) >> 1], int(16u * ((i) & 1u)), 16)
#else
#define TAKE(b, i) (b[i])
#endif

// Stores one unit. Those of less than a word share it with others and are stored by atomics.
#if UNIT < 4
#define PUT(b, i, unit) \
    { \
        const uint shift_ = 8u * UNIT * ((i) % PACK); \
        atomicAnd(b[(i) / PACK], ~(((1u << (8u * UNIT)) - 1u) << shift_)); \
        atomicOr(b[(i) / PACK], (unit) << shift_); \
    }
#else
#define PUT(b, i, unit) b[i] = (unit);
#endif

// n / sizes[d] by a multiplication (Granlund and Montgomery, Division by Invariant Integers using Multiplication), for
// n < 2^31. A multiplier of 0 stands for a size of 1.
#define QUOTIENT(n, d) quotient(n, magics[d], (shifts >> (5u * (d))) & 31u)
uint quotient(uint n, uint magic, uint shift) {
    uint high, low;
    umulExtended(n, magic, high, low);
    return magic == 0u ? n : high >> shift;
}

WORD make(uint index);

#if UNIT < 4
uint make_word(uint place, uint count) {
    uint word = 0u;
    for (uint i = 0u; i < PACK; ++i) {
        const uint index = place * PACK + i;
        if (index < count) word |= make(index) << (8u * UNIT * i);
    }
    return word;
}
#else
#define make_word(place, count) make(place)
#endif

// All loads of an invocation come before its stores, so that they run at the same time.
#define MAKE_ALL(result) \
    const uint group = gl_WorkGroupID.y * GRID_WIDTH + gl_WorkGroupID.x; \
    const uint first = group * gl_WorkGroupSize.x * ITEMS + gl_LocalInvocationID.x; \
    const uint words = (count + PACK - 1u) / PACK; \
    WORD made[ITEMS]; \
    for (uint i = 0u; i < ITEMS; ++i) { \
        const uint place = first + i * gl_WorkGroupSize.x; \
        if (place < words) made[i] = make_word(place, count); \
    } \
    for (uint i = 0u; i < ITEMS; ++i) { \
        const uint place = first + i * gl_WorkGroupSize.x; \
        if (place < words) result[place] = made[i]; \
    }

#endif
