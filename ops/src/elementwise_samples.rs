//! The elementwise operations that kernels are tried with.

use halite_sizes::Size;

use crate::{
    DType, Op, Samples, Values,
    elementwise::{Elementwise, Shapes},
    expression::{self, Function},
    strides::Strides,
};

/// Functions of one float.
const FLOAT: &[&str] = &[
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "gelu",
    "gelu_tanh",
    "hard_swish",
    "log",
    "mish",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
];

/// (inputs, program), one for each thing that may go wrong.
const SAMPLES: &[(&str, &str)] = &[
    // Floats.
    ("f32[1030]", "abs $0; add %0 0.25; rsqrt %1 -> %2:f32"),
    ("f32[37] f32[37]", "add $0 $1; sub $0 $1; mul %0 %1 -> %0:f32 %1:f32 %2:f32"),
    ("f32[1030] f32[1030]", "div $0 $1 -> %0:f32"),
    ("f32[1030] f32[1030]", "max $0 $1; min $0 $1 -> %0:f32 %1:f32"),
    ("f32[1030] f32[1030]", "pow $0 $1 -> %0:f32"),
    ("f32[1030] f32[1030]", "mod $0 $1; fmod $0 $1 -> %0:f32 %1:f32"),
    ("f32[1030] f32[1]", "prelu $0 $1 -> %0:f32"),
    ("f32[1030]", "prelu $0 0.01; elu $0 1.5 -> %0:f32 %1:f32"),
    ("f32[1030]", "clip $0 -0.5 0.75; hard_sigmoid $0 0.2 0.5 -> %0:f32 %1:f32"),
    ("f32[1030]", "isnan $0; isinf $0; or %0 %1; not %2 -> %0:u8 %1:u8 %3:u8"),
    (
        "f32[515] f32[515]",
        "eq $0 $1; ne $0 $1; lt $0 $1; le $0 $1; gt $0 $1; ge $0 $1 -> %0:u8 %1:u8 %2:u8 %3:u8 %4:u8 %5:u8",
    ),
    (
        "f32[515] f32[515]",
        "lt $0 $1; gt $0 0.0; and %0 %1; xor %0 %1; eq %0 %1; select %2 $0 $1 -> %2:u8 %3:u8 %4:u8 %5:f32",
    ),
    // Constants, equal nodes, no nodes.
    ("f32[9]", "exp $0; exp $0; add %0 %1; add 1.0 2.0; mul %2 %3 -> %4:f32"),
    ("f32[7]", "-> $0:f32 2.5:f32"),
    (
        "f32[515]",
        "pow $0 2.0; pow $0 3.0; pow $0 0.5; pow $0 -1.0; pow $0 -2.0; pow $0 4.0 -> %0:f32 %1:f32 %2:f32 %3:f32 %4:f32 %5:f32",
    ),
    // What a compiler that regroups terms gets wrong.
    (
        "f32[263]",
        "mul $0 1e9; mul %0 1e10; add $0 1024.0; sub %2 1024.0; mul $0 12.0; softplus %4 -> %1:f32 %3:f32",
    ),
    ("f32[263]", "mul $0 12.0; softplus %0; mish %0; elu %0 1.0; sigmoid %0 -> %1:f32 %2:f32 %3:f32 %4:f32"),
    // Angles whose multiple of a right angle has few digits, many, and more than there are.
    (
        "f32[263]",
        "mul $0 1e4; sin %0; cos %0; mul $0 1e8; sin %3; cos %3; mul $0 1e30; sin %6; cos %6; tan %6 -> %1:f32 %2:f32 %4:f32 %5:f32 %7:f32 %8:f32 %9:f32",
    ),
    // Small floats.
    ("f16[1031] f16[1031]", "add $0 $1; silu %0 -> %1:f16"),
    ("f16[66]", "-> $0:f32"),
    ("f32[66]", "mul $0 100000.0 -> %0:f16"),
    ("f32[67]", "mul $0 1e-6; cast:f16 %0; cast:bf16 $0; sub $0 %2 -> %1:f32 %2:bf16 %3:f32"),
    ("bf16[131] bf16[1]", "mul $0 $1; gelu %0 -> %1:bf16"),
    ("bf16[65] f16[65] f32[65]", "mul $0 $1; add %0 $2 -> %1:f16"),
    // Integers.
    ("i32[133] i32[133]", "add $0 $1; mul %0 $1; sub %1 $0; neg %2; abs %3 -> %1:i32 %3:i32 %4:i32"),
    (
        "i32[133] i32[133]",
        "div $0 $1; mod $0 $1; fmod $0 $1; max $0 $1; min $0 $1; sign $0 -> %0:i32 %1:i32 %2:i32 %3:i32 %4:i32 %5:i32",
    ),
    (
        "u32[133] u32[133]",
        "div $0 $1; mod $0 $1; fmod $0 $1; max $0 $1; min $0 $1; sign $0 -> %0:u32 %1:u32 %2:u32 %3:u32 %4:u32 %5:u32",
    ),
    (
        "i32[133] i32[133]",
        "and $0 $1; or $0 $1; xor $0 $1; not %2; shl $0 $1; shr $0 $1 -> %0:i32 %1:i32 %3:i32 %4:i32 %5:i32",
    ),
    ("u32[133] u32[133]", "shl $0 $1; shr $0 $1; lt $0 $1; ge $0 $1 -> %0:u32 %1:u32 %2:u8 %3:u8"),
    (
        "i32[133] i32[133]",
        "lt $0 $1; ge $0 $1; eq $0 $1; relu $0; clip $1 -5i32 5i32 -> %0:u8 %1:u8 %2:u8 %3:i32 %4:i32",
    ),
    (
        "i8[133] i8[133]",
        "add $0 $1; mul $0 $1; div $0 $1; mod $0 $1; shl $0 $1; shr $0 $1; neg $0; abs $0 -> %0:i8 %1:i8 %2:i8 %3:i8 %4:i8 %5:i8 %6:i8 %7:i8",
    ),
    (
        "u8[133] u8[133]",
        "sub $0 $1; mul $0 $1; div $0 $1; fmod $0 $1; shl $0 $1; shr $0 $1; not $0; lt $0 $1 -> %0:u8 %1:u8 %2:u8 %3:u8 %4:u8 %5:u8 %6:u8 %7:u8",
    ),
    // 64 bits.
    (
        "i64[133] i64[133]",
        "add $0 $1; sub $0 $1; mul $0 $1; max $0 $1; min $0 $1 -> %0:i64 %1:i64 %2:i64 %3:i64 %4:i64",
    ),
    (
        "i64[133] i64[1]",
        "neg $0; abs $0; sign $0; not $0; and $0 $1; xor $0 $1; relu $0 -> %0:i64 %1:i64 %2:i64 %3:i64 %4:i64 %5:i64 %6:i64",
    ),
    (
        "i64[133] i64[133]",
        "lt $0 $1; le $0 $1; gt $0 $1; ge $0 $1; eq $0 $1; select %0 $1 $0; clip $0 -7i64 5000000000i64 -> %0:u8 %1:u8 %2:u8 %3:u8 %4:u8 %5:i64 %6:i64",
    ),
    (
        "i64[133] i64[133]",
        "div $0 $1; mod $0 $1; fmod $0 $1; shl $0 $1; shr $0 $1 -> %0:i64 %1:i64 %2:i64 %3:i64 %4:i64",
    ),
    (
        "i64[77]",
        "div $0 -7i64; mod $0 -7i64; fmod $0 0i64; shr $0 33i64; shl $0 31i64; shr $0 -1i64 -> %0:i64 %1:i64 %2:i64 %3:i64 %4:i64 %5:i64",
    ),
    ("i64[64] i32[64]", "cast:i64 $1; lt $0 0i64; add $0 %0; select %1 %2 $0 -> %3:i64"),
    // Conversions.
    (
        "f32[263]",
        "mul $0 40.0; cast:i8 %0; cast:u8 %0; cast:i32 $0; cast:u32 $0; cast:bool $0 -> %1:i8 %2:u8 %3:i32 %4:u32 %5:u8",
    ),
    (
        "f32[263]",
        "mul $0 1e9; cast:i32 %0; cast:u32 %0; cast:i64 %0; mul %0 1e10; cast:i64 %4 -> %1:i32 %2:u32 %3:i64 %5:i64",
    ),
    (
        "i32[263] u32[263]",
        "cast:f32 $0; cast:f32 $1; cast:i8 $0; cast:u8 $0; cast:i64 $0; cast:i64 $1 -> %0:f32 %1:f32 %2:i8 %3:u8 %4:i64 %5:i64",
    ),
    (
        "i64[263]",
        "cast:f32 $0; cast:i32 $0; cast:u8 $0; cast:bool $0; cast:f16 %3 -> %0:f32 %1:i32 %2:u8 %3:u8 %4:f16",
    ),
    (
        "i8[263] u8[263]",
        "cast:i32 $0; cast:f32 $1; cast:u8 $0; cast:bool $1; cast:i64 $0; cast:u32 $0 -> %0:i32 %1:f16 %2:u8 %3:u8 %4:i64 %5:u32",
    ),
    ("f32[263]", "quantize:i8 $0 0.03125 3i8; quantize:u8 $0 0.0078125 128u8 -> %0:i8 %1:u8"),
    (
        "i8[263] u8[263] i32[263]",
        "dequantize $0 0.1 3i8; dequantize $1 0.02 128u8; dequantize $2 1e-3 0i32 -> %0:f32 %1:f16 %2:f32",
    ),
    ("i8[3x5x7] f32[5x1] i8[5x1]", "dequantize $0 $1 $2 -> %0:f32"),
    (
        "f32[3x5x8] f32[5x1] i8[5x1]",
        "abs $1; add %0 0.5; cast:i32 %1; cast:f32 %2; add %3 1.0; quantize:i8 $0 1.0 $2 -> %5:i8 %4:f32",
    ),
    // Types that kernels do not compute with.
    ("f64[1030]", "-> $0:f64 $0:f32 $0:f16"),
    (
        "f32[1030]",
        "add $0 2.0; mul %0 1e30; mul %1 1e10; mul $0 1e-30; mul %3 1e-10 -> $0:f64 %2:f64 %3:f64 %4:f64",
    ),
    ("f64[515] f64[1]", "mul $0 $1; tanh %0; cast:f64 $0; cast:f32 %2; lt $0 $1 -> %1:f64 %3:f64 %4:u8"),
    ("f64[5x12] f64[12] f64[5x1] f32[]", "add $0 $1; mul %0 $2; sub %1 $3 -> %2:f64"),
    ("f64[7x1] f64[1x9]", "mul $0 $1 -> %0:f64"),
    (
        "f64[263]",
        "mul $0 1e9; cast:i16 %0; cast:u16 %0; cast:u64 %0; mul %0 1e10; cast:u64 %4; cast:bool $0 -> %1:i16 %2:u16 %3:u64 %5:u64 %6:u8",
    ),
    (
        "i16[133] i16[133]",
        "add $0 $1; mul $0 $1; div $0 $1; mod $0 $1; shl $0 $1; shr $0 $1; neg $0; abs $0 -> %0:i16 %1:i16 %2:i16 %3:i16 %4:i16 %5:i16 %6:i16 %7:i16",
    ),
    (
        "u16[133] u16[133]",
        "sub $0 $1; mul $0 $1; div $0 $1; fmod $0 $1; shl $0 $1; shr $0 $1; not $0; lt $0 $1 -> %0:u16 %1:u16 %2:u16 %3:u16 %4:u16 %5:u16 %6:u16 %7:u8",
    ),
    ("i16[5x13] i16[13] u16[5x1]", "cast:i16 $2; add $0 $1; sub %1 %0; max %2 %0 -> %2:i16 %3:i16"),
    (
        "i16[5x16] u16[16] u16[5x1] i16[]",
        "cast:u16 $0; min %0 $1; xor %1 $2; cast:i16 %2; relu $3 -> %2:u16 %3:i16 %4:i16",
    ),
    (
        "u64[133] u64[133]",
        "add $0 $1; sub $0 $1; mul $0 $1; max $0 $1; min $0 $1; not $0 -> %0:u64 %1:u64 %2:u64 %3:u64 %4:u64 %5:u64",
    ),
    (
        "u64[133] u64[133]",
        "div $0 $1; fmod $0 $1; mod $1 $0; sign $0; abs $0; relu $1; clip $0 7u64 18446744073709551000u64 -> %0:u64 %1:u64 %2:u64 %3:u64 %4:u64 %5:u64 %6:u64",
    ),
    (
        "u64[133] u64[133]",
        "lt $0 $1; le $0 $1; gt $0 $1; ge $0 $1; and $1 63u64; shl $0 %4; shr $0 %4; shr $0 $1 -> %0:u8 %1:u8 %2:u8 %3:u8 %5:u64 %6:u64 %7:u64",
    ),
    (
        "i16[263] u16[263]",
        "cast:i32 $0; cast:f32 $1; cast:u16 $0; cast:bool $1; cast:i64 $0; cast:u64 $0 -> %0:i32 %1:f64 %2:u16 %3:u8 %4:i64 %5:u64",
    ),
    (
        "i16[263] u16[263]",
        "cast:i8 $0; cast:u8 $1; cast:u64 $1; cast:i16 $1; cast:f32 $0; cast:u32 $0 -> %0:i8 %1:u8 %2:u64 %3:i16 %4:f16 %5:u32",
    ),
    (
        "u64[263] i64[263]",
        "cast:f32 $0; cast:f64 $1; cast:u64 $1; cast:i16 $0; cast:u16 $1; cast:i64 $0; cast:bool $0 -> %0:f64 %1:f64 %2:u64 %3:i16 %4:u16 %5:i64 %6:u8",
    ),
    (
        "i32[263] u32[263] u8[263]",
        "cast:i16 $0; cast:u16 $1; cast:u64 $0; cast:u64 $1; cast:u16 $2; cast:bool $2; cast:u64 %5 -> %0:i16 %1:u16 %2:u64 %3:u64 %4:u16 %6:u64",
    ),
    (
        "f32[263]",
        "mul $0 1e4; quantize:i16 %0 0.5 -3i16; quantize:u16 %0 0.25 32768u16; dequantize %1 0.5 -3i16; dequantize %2 0.25 32768u16 -> %1:i16 %2:u16 %3:f32 %4:f32",
    ),
    ("u64[5x3] u64[3] u64[5x1]", "add $0 $1; sub %0 $2 -> %1:u64"),
    ("u64[5x8] u64[8] u64[]", "add $0 $1; sub %0 $2 -> %1:u64"),
    // Powers of integers.
    (
        "i32[133] i32[133]",
        "and $1 15i32; pow $0 %0; pow $0 $1; pow $0 3i32; pow $0 0i32; pow $0 -1i32; sign $0; pow %6 $1 -> %1:i32 %2:i32 %3:i32 %4:i32 %5:i32 %7:i32",
    ),
    ("i8[133] i8[133] u16[133] u16[133]", "pow $0 $1; pow $2 $3; pow $2 11u16 -> %0:i8 %1:u16 %2:u16"),
    (
        "i64[133] i64[133] u64[133] u64[133]",
        "and $1 31i64; pow $0 %0; sign $0; pow %2 $1; pow $2 $3; pow $2 2u64; pow $0 7i64 -> %1:i64 %3:i64 %4:u64 %5:u64 %6:i64",
    ),
    // Shapes.
    ("f32[] f32[]", "add $0 $1 -> %0:f32"),
    ("f32[1] f32[5]", "sub $0 $1 -> %0:f32"),
    ("f32[0] f32[1]", "add $0 $1 -> %0:f32"),
    ("f32[3x0x2] f32[2]", "add $0 $1 -> %0:f32"),
    ("f32[33x65] f32[65]", "add $0 $1; relu %0 -> %1:f32"),
    ("f32[33x64] f32[64]", "add $0 $1; relu %0 -> %1:f32"),
    ("f32[2x24x7x9] f32[24x1x1]", "mul $0 $1 -> %0:f32"),
    ("f32[2x24x8x8] f32[24x1x1] f32[24x1x1]", "mul $0 $1; add %0 $2 -> %1:f32"),
    ("f32[6x1x7] f32[1x5x7]", "add $0 $1 -> %0:f32"),
    ("f32[6x1x8] f32[1x5x8] f32[6x5x1]", "add $0 $1; mul %0 $2 -> %1:f32"),
    ("f16[7x1] f16[1x9]", "mul $0 $1 -> %0:f16"),
    ("f16[5x12] f16[12] f16[5x1] f16[]", "add $0 $1; mul %0 $2; sub %1 $3 -> %2:f16"),
    ("i8[5x13] i8[13] u8[5x1]", "cast:i8 $2; add $0 $1; sub %1 %0 -> %2:i8"),
    ("i8[5x16] i8[16] u8[5x1]", "cast:i8 $2; add $0 $1; sub %1 %0 -> %2:i8"),
    ("i8[5x12] i8[12] u8[5x1] i8[1]", "cast:i8 $2; add $0 $1; sub %1 %0; max %2 $3 -> %2:i8 %3:i8"),
    ("i8[1001]", "-> $0:i8"),
    ("u8[1024] u8[1024]", "xor $0 $1 -> %0:u8"),
    ("f16[1024] f16[1024]", "mul $0 $1; tanh %0 -> %1:f16"),
    ("f16[37] i8[37]", "cast:f32 $1; mul $0 %0; cast:i8 $0 -> %1:f16 %2:i8"),
    ("i64[5x3] i64[3] i64[5x1]", "add $0 $1; sub %0 $2 -> %1:i64"),
    ("i64[5x8] i64[8] i64[5x1]", "add $0 $1; sub %0 $2 -> %1:i64"),
    ("u8[4x1x6] f32[3x1] f16[6]", "cast:bool $0; select %0 $1 $2 -> %1:f32"),
    (
        "f32[2x1x3x1x2x1x3] f32[1x2x1x3x1x2x1] f32[2x1x1x3x1x1x3] f32[2x2x1x1x2x1x1]",
        "add $0 $1; add %0 $2; add %1 $3 -> %2:f32",
    ),
    ("f32[300x257]", "tanh $0; add %0 1.0; sigmoid %1 -> %2:f32"),
];

/// Input, elements of its tensor, the first, strides.
type Lies = (usize, u64, u64, &'static [i64]);

/// (inputs, program, those that do not lie densely): vectors and single elements of each size, and what begins anywhere.
const STRIDED: &[(&str, &str, &[Lies])] = &[
    // Parts of rows, whole vectors and not.
    (
        "f32[5x8] f32[5x8]",
        "sigmoid $0; mul %0 $1 -> %1:f32",
        &[(0, 120, 8, &[24, 1]), (1, 121, 17, &[24, 1])],
    ),
    ("f16[5x8] f16[8]", "mul $0 $1 -> %0:f16", &[(0, 120, 4, &[24, 1]), (1, 120, 101, &[2])]),
    ("i64[6x4] i64[6x4]", "add $0 $1 -> %0:i64", &[(0, 48, 4, &[8, 1]), (1, 24, 0, &[1, 6])]),
    ("u8[3x7x4] u8[3x7x4]", "max $0 $1 -> %0:u8", &[(0, 84, 0, &[4, 12, 1]), (1, 100, 3, &[28, 4, 1])]),
    // Transposed, backwards, a diagonal, one element.
    ("f32[9x30] f32[9x30]", "sub $0 $1 -> %0:f32", &[(0, 270, 0, &[1, 9]), (1, 270, 269, &[-30, -1])]),
    (
        "f32[33] f32[1] f16[33]",
        "add $0 $1; add %0 $2 -> %1:f32 %0:f16",
        &[(0, 1089, 0, &[34]), (1, 9, 7, &[1])],
    ),
    ("f64[2x3x5x7]", "neg $0 -> %0:f64", &[(0, 210, 0, &[7, 70, 14, 1])]),
];

/// (inputs, tables, program): entries of each size, numbers beyond both ends, several tables, one that two look-ups read.
const LOOKED_UP: &[(&str, &str, &str)] = &[
    (
        "i8[5x13]",
        "i8[256]",
        "cast:i32 $0; add %0 128i32; lookup:i8 %1 @0; cast:i32 %2; mul %3 3i32 -> %4:i32",
    ),
    (
        "i16[3x64]",
        "i16[513]",
        "cast:i32 $0; add %0 32768i32; shr %1 7i32; add %2 1i32; lookup:i16 %2 @0; lookup:i16 %3 @0; \
         cast:i32 %4; cast:i32 %5; sub %7 %6; and %0 127i32; mul %8 %9; shl %6 7i32; add %11 %10 -> %12:i32",
    ),
    ("i32[1031]", "f32[7]", "mod $0 11i32; sub %0 2i32; lookup:f32 %1 @0 -> %2:f32"),
    (
        "i32[6x20] f16[20]",
        "f16[9] i64[5] u8[3]",
        "mod $0 13i32; sub %0 2i32; lookup:f16 %1 @0; lookup:i64 %1 @1; lookup:u8 %1 @2; add %2 $1 \
         -> %5:f16 %3:i64 %4:u8",
    ),
    (
        "u8[4x1] u8[8]",
        "bf16[2x16] f64[33]",
        "add $0 $1; cast:i32 %0; lookup:bf16 %1 @0; lookup:f64 %1 @1; max %2 %3 -> %4:f32",
    ),
    (
        "i32[35]",
        "u32[1] u64[40]",
        "mod $0 41i32; lookup:u32 %0 @0; cast:u64 %1; lookup:u64 %0 @1; add %2 %3 -> %4:u64",
    ),
];

/// Operations that together go every way through the code.
fn samples() -> Vec<Elementwise> {
    let sample = |inputs: &str, program: &str| Elementwise {
        inputs: inputs.parse().expect("written here, and read by every test"),
        program: program.parse().expect("written here, and read by every test"),
        tables: Shapes::default(),
        strided: Vec::new(),
        written: None,
    };
    let looked_up = LOOKED_UP.iter().map(|(inputs, tables, program)| Elementwise {
        tables: tables.parse().expect("written here, and read by every test"),
        ..sample(inputs, program)
    });
    let strided = STRIDED.iter().map(|(inputs, program, strided)| {
        let strides = |(input, source, offset, strides): &(usize, u64, u64, &[i64])| Strides {
            input: *input,
            source: source.into(),
            offset: offset.into(),
            strides: strides.iter().map(|stride| Size::from(*stride)).collect(),
        };
        Elementwise { strided: strided.iter().map(strides).collect(), ..sample(inputs, program) }
    });
    let float = FLOAT.iter().map(|name| sample("f32[1030]", &format!("{name} $0 -> %0:f32")));
    float
        .chain(SAMPLES.iter().map(|(inputs, program)| sample(inputs, program)))
        .chain(strided)
        .chain(looked_up)
        .collect()
}

impl Samples for Elementwise {
    fn samples() -> Vec<Elementwise> {
        samples()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let dtype = &Op::inputs(self)[index].dtype;
        let count = Op::inputs(self)[index].elements().exact_usize();
        if !dtype.is_float() {
            // Of all magnitudes.
            let (least, most) = expression::range(*dtype);
            let signed = |bits: u64, by: u64| i128::from((bits as i64) >> by).clamp(least, most) as i64;
            let one = || match (random(), random() % 64) {
                (bits, by) if *dtype == DType::U64 => (bits >> by) as i64,
                (bits, by) => signed(bits, by),
            };
            return Some(Values::Int(std::iter::repeat_with(one).take(count).collect()));
        }
        let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0];
        let mut one = || match random() % 80 {
            n @ 0..5 => special[n as usize],
            _ => (random() % 65) as f64 / 8.0 - 4.0,
        };
        if self.is_sensitive() {
            return Some(Values::Float((0..count).map(|_| one()).collect()));
        }
        (*dtype == DType::F64).then(|| Values::Float((0..count).map(|_| double(random)).collect()))
    }
}

impl Elementwise {
    /// Whether results jump or have poles where tiny values are taken for zero, so that inputs must be chosen.
    fn is_sensitive(&self) -> bool {
        use Function as F;
        let sensitive = |f: &Function| {
            matches!(
                f,
                F::Acosh
                    | F::Cast
                    | F::Ceil
                    | F::Div
                    | F::Eq
                    | F::Floor
                    | F::Fmod
                    | F::Ge
                    | F::Gt
                    | F::Le
                    | F::Lt
                    | F::Mod
                    | F::Ne
                    | F::Pow
                    | F::Quantize
                    | F::Reciprocal
                    | F::Round
                    | F::Rsqrt
                    | F::Sign
                    | F::Sqrt
            )
        };
        self.program.nodes.iter().any(|node| sensitive(&node.function))
    }
}

/// A value with more digits than `f32` has, now and then halfway between two of its values or out of its range.
fn double(random: &mut dyn FnMut() -> u64) -> f64 {
    let fraction = f64::from_bits(random() >> 12 | 1.0f64.to_bits()) - 1.5;
    match random() % 16 {
        0 => fraction * f64::from(f32::MAX) * 4.0,
        1 => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0][(random() % 4) as usize],
        2 => f64::from(f32::MAX) * (1.0 + (random() % 3) as f64 / f64::from(1 << 25)),
        3..6 => {
            let single = f64::from(fraction as f32);
            // Of 52 digits of the fraction f32 has 23; the next is half of its last place.
            f64::from_bits(single.to_bits() | (1 << 28)) + (random() % 3) as f64 * 1e-12 - 1e-12
        }
        _ => fraction,
    }
}
