// Indices in tensors of i32 or i64, as words.

#ifndef INDICES_GLSL
#define INDICES_GLSL

#define INDEX_BUFFER(slot, name) \
    layout(set = 0, binding = slot, std430) restrict readonly buffer name##_block { uint name[]; }

// The place that index number `at` names; below 0 it counts from the end. The result is not below `size` when the index is out of
// range: tensors have fewer than 2^31 places in a dimension. INDEX_WORDS is 1 or 2.
#define WRAPPED(name, at, size) \
    wrapped(name[(at) * INDEX_WORDS], name[(at) * INDEX_WORDS + INDEX_WORDS - 1u], INDEX_WORDS == 1u, size)

uint wrapped(uint low, uint high, bool is_narrow, uint size) {
    const int index = int(low);
    if (!is_narrow && int(high) != index >> 31) return size;
    return index < 0 ? low + size : low;
}

#endif
