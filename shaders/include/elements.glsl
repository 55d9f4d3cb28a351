// Elements of any type in storage buffers, on any device. A template declares a buffer with ELEMENT_BUFFER(set binding,
// name, qualifier, TYPE) and reads and writes with LOAD_TYPE(name, index) and STORE_TYPE(name, index, value).
//
// TYPE is one of
//   F32 I32 U32             as they are
//   F16 I8 U8               16-bit and 8-bit storage; needs the extension and the feature, but no small arithmetic
//   F16H                    packed halves that the device rounds itself, two at a time; only with quads.glsl
//   F16P BF16P I8P U8P      packed in 32-bit words: runs everywhere. Stores of neighbours do not disturb each other
// Values are float, int or uint in registers.

#ifndef ELEMENTS_GLSL
#define ELEMENTS_GLSL

#ifdef USE_STORAGE_16BIT
#extension GL_EXT_shader_16bit_storage : require
#endif
#ifdef USE_STORAGE_8BIT
#extension GL_EXT_shader_8bit_storage : require
#endif

#define CONCAT_(a, b) a##b
#define CONCAT(a, b) CONCAT_(a, b)

#define MEMORY_F32 float
#define MEMORY_I32 int
#define MEMORY_U32 uint
#define MEMORY_F16 float16_t
#define MEMORY_I8 int8_t
#define MEMORY_U8 uint8_t
#define MEMORY_F16P uint
#define MEMORY_BF16P uint
#define MEMORY_I8P uint
#define MEMORY_U8P uint

#define REGISTER_F32 float
#define REGISTER_I32 int
#define REGISTER_U32 uint
#define REGISTER_F16 float
#define REGISTER_I8 int
#define REGISTER_U8 uint
#define REGISTER_F16P float
#define REGISTER_BF16P float
#define REGISTER_I8P int
#define REGISTER_U8P uint

#define ELEMENT_BUFFER(slot, name, qualifier, TYPE) \
    layout(set = 0, binding = slot) qualifier buffer CONCAT(name, _block) { CONCAT(MEMORY_, TYPE) name[]; }

#define LOAD_F32(b, i) (b[i])
#define LOAD_I32(b, i) (b[i])
#define LOAD_U32(b, i) (b[i])
#define LOAD_F16(b, i) float(b[i])
#define LOAD_I8(b, i) int(b[i])
#define LOAD_U8(b, i) uint(b[i])
#define LOAD_F16P(b, i) (unpackHalf2x16(b[(i) >> 1])[(i) & 1u])
#define LOAD_BF16P(b, i) uintBitsToFloat((b[(i) >> 1] >> (16u * ((i) & 1u))) << 16)
#define LOAD_I8P(b, i) bitfieldExtract(int(b[(i) >> 2]), int(8u * ((i) & 3u)), 8)
#define LOAD_U8P(b, i) bitfieldExtract(b[(i) >> 2], int(8u * ((i) & 3u)), 8)

#define STORE_F32(b, i, v) b[i] = (v)
#define STORE_I32(b, i, v) b[i] = (v)
#define STORE_U32(b, i, v) b[i] = (v)
#define STORE_F16(b, i, v) b[i] = float16_t(v)
#define STORE_I8(b, i, v) b[i] = int8_t(v)
#define STORE_U8(b, i, v) b[i] = uint8_t(v)

// A word has several writers: each clears and sets its own bits, atomically.
#define STORE_BITS_(b, word, shift, mask, bits) \
    { \
        atomicAnd(b[word], ~((mask) << (shift))); \
        atomicOr(b[word], ((bits) & (mask)) << (shift)); \
    }
#define STORE_F16P(b, i, v) STORE_BITS_(b, (i) >> 1, 16u * ((i) & 1u), 0xFFFFu, f16_bits(v))
#define STORE_BF16P(b, i, v) STORE_BITS_(b, (i) >> 1, 16u * ((i) & 1u), 0xFFFFu, bf16_bits(v))
#define STORE_I8P(b, i, v) STORE_BITS_(b, (i) >> 2, 8u * ((i) & 3u), 0xFFu, uint(v))
#define STORE_U8P(b, i, v) STORE_BITS_(b, (i) >> 2, 8u * ((i) & 3u), 0xFFu, uint(v))

// The nearest f16, ties to even. Not packHalf2x16: how that rounds is up to the device, and SwiftShader's makes NaN of
// infinity.
uint f16_bits(float value) {
    const uint bits = floatBitsToUint(value);
    const uint sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    // Without branches: large kernels with many of these are not unrolled otherwise, and keep their sums in memory.
    const uint normal = (magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    // Below the smallest normal value, steps are 2^-24.
    const bool small = magnitude < 0x38800000u;
    const uint steps = uint(roundEven(small ? uintBitsToFloat(magnitude) * 16777216.0 : 0.0));
    const uint huge = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
    return sign | (small ? steps : magnitude >= 0x477FF000u ? huge : normal);
}

// The upper half, rounded to nearest even; NaN stays NaN.
uint bf16_bits(float value) {
    uint bits = floatBitsToUint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (bits >> 16) | 0x40u;
    return (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
}

#endif
