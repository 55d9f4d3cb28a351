//! The operators as SPIR-V numbers them (`TOSA.001000.1`), with their operands in order.

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tensor.
    Tensor,
    /// All tensors that follow, one at least.
    Tensors,
    /// A constant number.
    Int,
    /// A constant boolean.
    Bool,
    /// A constant number, one of [`Kind::names`].
    Accumulator,
    /// As [`Kind::Accumulator`].
    NanMode,
    /// As [`Kind::Accumulator`].
    ResizeMode,
    /// As [`Kind::Accumulator`].
    Rounding,
    /// A constant number of the type of the tensors.
    Scalar,
    /// A constant tensor of integers.
    Ints,
    /// A constant tensor of one element: a zero point, or a shift.
    One,
}

/// An operator.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name in the specification.
    pub name: &'static str,
    /// Its operands: names and kinds.
    pub operands: &'static [(&'static str, Kind)],
    /// Number of results.
    pub results: usize,
}

impl Kind {
    /// The names of a number's values, from 1 on; empty for other kinds.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Accumulator => &["INT32", "FP16", "FP32", "INT48"],
            NanMode => &["PROPAGATE", "IGNORE"],
            ResizeMode => &["NEAREST", "BILINEAR"],
            Rounding => &["SINGLE_ROUND", "INEXACT_ROUND", "DOUBLE_ROUND"],
            _ => &[],
        }
    }
}

impl Spec {
    /// The operator with a number in the set.
    pub fn numbered(number: u32) -> Option<&'static Spec> {
        OPERATORS.get(number as usize)
    }
}

const fn spec(name: &'static str, operands: &'static [(&'static str, Kind)]) -> Spec {
    Spec { name, operands, results: 1 }
}

use Kind::{Accumulator, Bool, Int, Ints, NanMode, One, ResizeMode, Rounding, Scalar, Tensor, Tensors};

const CONV: &[(&str, Kind)] = &[
    ("pad", Ints),
    ("stride", Ints),
    ("dilation", Ints),
    ("acc_type", Accumulator),
    ("local_bound", Bool),
    ("input", Tensor),
    ("weight", Tensor),
    ("bias", Tensor),
    ("input_zp", One),
    ("weight_zp", One),
];
const UNARY: &[(&str, Kind)] = &[("input", Tensor)];
const BINARY: &[(&str, Kind)] = &[("input1", Tensor), ("input2", Tensor)];
const BINARY_NAN: &[(&str, Kind)] = &[("nan_mode", NanMode), ("input1", Tensor), ("input2", Tensor)];
const AXIS: &[(&str, Kind)] = &[("axis", Int), ("input", Tensor)];
const AXIS_NAN: &[(&str, Kind)] = &[("axis", Int), ("nan_mode", NanMode), ("input", Tensor)];

/// All operators, by their numbers.
pub const OPERATORS: [Spec; 66] = [
    spec("ARGMAX", AXIS_NAN),
    spec(
        "AVG_POOL2D",
        &[
            ("kernel", Ints),
            ("stride", Ints),
            ("pad", Ints),
            ("acc_type", Accumulator),
            ("input", Tensor),
            ("input_zp", One),
            ("output_zp", One),
        ],
    ),
    spec("CONV2D", CONV),
    spec("CONV3D", CONV),
    spec("DEPTHWISE_CONV2D", CONV),
    Spec {
        name: "FFT2D",
        operands: &[("inverse", Bool), ("local_bound", Bool), ("input_real", Tensor), ("input_imag", Tensor)],
        results: 2,
    },
    spec("MATMUL", &[("A", Tensor), ("B", Tensor), ("A_zp", One), ("B_zp", One)]),
    spec(
        "MAX_POOL2D",
        &[("kernel", Ints), ("stride", Ints), ("pad", Ints), ("nan_mode", NanMode), ("input", Tensor)],
    ),
    Spec { name: "RFFT2D", operands: &[("local_bound", Bool), ("input_real", Tensor)], results: 2 },
    spec(
        "TRANSPOSE_CONV2D",
        &[
            ("out_pad", Ints),
            ("stride", Ints),
            ("acc_type", Accumulator),
            ("local_bound", Bool),
            ("input", Tensor),
            ("weight", Tensor),
            ("bias", Tensor),
            ("input_zp", One),
            ("weight_zp", One),
        ],
    ),
    spec("CLAMP", &[("min_val", Scalar), ("max_val", Scalar), ("nan_mode", NanMode), ("input", Tensor)]),
    spec("ERF", UNARY),
    spec("SIGMOID", UNARY),
    spec("TANH", UNARY),
    spec("ADD", BINARY),
    spec("ARITHMETIC_RIGHT_SHIFT", &[("round", Bool), ("input1", Tensor), ("input2", Tensor)]),
    spec("BITWISE_AND", BINARY),
    spec("BITWISE_OR", BINARY),
    spec("BITWISE_XOR", BINARY),
    spec("INTDIV", BINARY),
    spec("LOGICAL_AND", BINARY),
    spec("LOGICAL_LEFT_SHIFT", BINARY),
    spec("LOGICAL_RIGHT_SHIFT", BINARY),
    spec("LOGICAL_OR", BINARY),
    spec("LOGICAL_XOR", BINARY),
    spec("MAXIMUM", BINARY_NAN),
    spec("MINIMUM", BINARY_NAN),
    spec("MUL", &[("input1", Tensor), ("input2", Tensor), ("shift", One)]),
    spec("POW", BINARY),
    spec("SUB", BINARY),
    spec("TABLE", &[("input1", Tensor), ("table", Tensor)]),
    spec("ABS", UNARY),
    spec("BITWISE_NOT", UNARY),
    spec("CEIL", UNARY),
    spec("CLZ", UNARY),
    spec("COS", UNARY),
    spec("EXP", UNARY),
    spec("FLOOR", UNARY),
    spec("LOG", UNARY),
    spec("LOGICAL_NOT", UNARY),
    spec("NEGATE", &[("input1", Tensor), ("input1_zp", One), ("output_zp", One)]),
    spec("RECIPROCAL", UNARY),
    spec("RSQRT", UNARY),
    spec("SIN", UNARY),
    spec("SELECT", &[("input1", Tensor), ("input2", Tensor), ("input3", Tensor)]),
    spec("EQUAL", BINARY),
    spec("GREATER", BINARY),
    spec("GREATER_EQUAL", BINARY),
    spec("REDUCE_ALL", AXIS),
    spec("REDUCE_ANY", AXIS),
    spec("REDUCE_MAX", AXIS_NAN),
    spec("REDUCE_MIN", AXIS_NAN),
    spec("REDUCE_PRODUCT", AXIS),
    spec("REDUCE_SUM", AXIS),
    spec("CONCAT", &[("axis", Int), ("input1", Tensors)]),
    spec("PAD", &[("input1", Tensor), ("padding", Ints), ("pad_const", Tensor)]),
    spec("RESHAPE", &[("input1", Tensor), ("shape", Ints)]),
    spec("REVERSE", AXIS),
    spec("SLICE", &[("input1", Tensor), ("start", Ints), ("size", Ints)]),
    spec("TILE", &[("input1", Tensor), ("multiples", Ints)]),
    spec("TRANSPOSE", &[("perms", Ints), ("input1", Tensor)]),
    spec("GATHER", &[("values", Tensor), ("indices", Tensor)]),
    spec("SCATTER", &[("values_in", Tensor), ("indices", Tensor), ("input", Tensor)]),
    spec(
        "RESIZE",
        &[("mode", ResizeMode), ("input", Tensor), ("scale", Ints), ("offset", Ints), ("border", Ints)],
    ),
    spec("CAST", UNARY),
    spec(
        "RESCALE",
        &[
            ("scale32", Bool),
            ("rounding_mode", Rounding),
            ("per_channel", Bool),
            ("input_unsigned", Bool),
            ("output_unsigned", Bool),
            ("input", Tensor),
            ("multiplier", Tensor),
            ("shift", Tensor),
            ("input_zp", One),
            ("output_zp", One),
        ],
    ),
];
