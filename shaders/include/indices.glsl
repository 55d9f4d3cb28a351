// Indices in tensors of i32 or i64. Of i64 the low word is read: what it leaves out is only there in indices that are out
// of range anyway, of tensors with fewer than 2^31 places in a dimension.

#ifndef INDICES_GLSL
#define INDICES_GLSL

#define INDEX_BUFFER(slot, name) \
    layout(set = 0, binding = slot, std430) restrict readonly buffer name##_block { uint name[]; }

// Below 0 it counts from the end. The result is not below `size` when the index is out of range.
uint wrapped(uint index, uint size) {
    return int(index) < 0 ? index + size : index;
}

#endif
