// Four neighbouring elements of any type at a time, on any device: the vectors that elements.glsl's buffers hold when
// they are declared a second time with QUAD_BUFFER. Rows whose length is a multiple of four are read and written so.

#ifndef QUADS_GLSL
#define QUADS_GLSL

#define QUAD_MEMORY_F32 vec4
#define QUAD_MEMORY_I32 ivec4
#define QUAD_MEMORY_U32 uvec4
#define QUAD_MEMORY_F16 f16vec4
#define QUAD_MEMORY_F16P uvec2
#define QUAD_MEMORY_F16H uvec2
#define QUAD_MEMORY_BF16P uvec2
#define QUAD_MEMORY_I8P uint

#define QUAD_REGISTER_F32 vec4
#define QUAD_REGISTER_I32 ivec4
#define QUAD_REGISTER_U32 uvec4
#define QUAD_REGISTER_F16 vec4
#define QUAD_REGISTER_F16P vec4
#define QUAD_REGISTER_BF16P vec4

#define QUAD_BUFFER(slot, name, qualifier, TYPE) \
    layout(set = 0, binding = slot) qualifier buffer CONCAT(name, _block) { CONCAT(QUAD_MEMORY_, TYPE) name[]; }

// Index in units of four elements.
#define LOAD4_F32(b, i) (b[i])
#define LOAD4_I32(b, i) (b[i])
#define LOAD4_U32(b, i) (b[i])
#define LOAD4_F16(b, i) vec4(b[i])
#define LOAD4_F16P(b, i) halves4(b[i])
#define LOAD4_F16H(b, i) halves4(b[i])
#define LOAD4_BF16P(b, i) uintBitsToFloat(uvec4(b[i].x << 16, b[i].x & 0xFFFF0000u, b[i].y << 16, b[i].y & 0xFFFF0000u))
#define LOAD4_I8P(b, i) bytes4(b[i])

#define STORE4_F32(b, i, v) b[i] = (v)
#define STORE4_I32(b, i, v) b[i] = (v)
#define STORE4_U32(b, i, v) b[i] = (v)
#define STORE4_F16(b, i, v) b[i] = f16vec4(v)
#define STORE4_F16P(b, i, v) b[i] = f16_bits4(v)
// How this rounds is up to the device, and SwiftShader makes NaN of infinity: for devices with 16-bit floats, where it is one
// instruction instead of a dozen for each element.
#define STORE4_F16H(b, i, v) b[i] = uvec2(packHalf2x16((v).xy), packHalf2x16((v).zw))
#define STORE4_BF16P(b, i, v) b[i] = bf16_bits4(v)

vec4 halves4(uvec2 words) {
    return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
}

ivec4 bytes4(uint word) {
    const int signed_word = int(word);
    return ivec4(signed_word << 24, signed_word << 16, signed_word << 8, signed_word) >> 24;
}

uvec2 f16_bits4(vec4 v) {
    return uvec2(f16_bits(v.x) | (f16_bits(v.y) << 16), f16_bits(v.z) | (f16_bits(v.w) << 16));
}

uvec2 bf16_bits4(vec4 v) {
    return uvec2(bf16_bits(v.x) | (bf16_bits(v.y) << 16), bf16_bits(v.z) | (bf16_bits(v.w) << 16));
}

#endif
