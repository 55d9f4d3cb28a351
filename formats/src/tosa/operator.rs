//! The operators of TOSA with their attributes, as values of types.

use super::{GraphId, VariableId};

/// How a computation treats not-a-number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanMode {
    /// A NaN among the operands makes the result NaN.
    Propagate,
    /// A NaN loses against a number.
    Ignore,
}

/// How `RESCALE` rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Half up, once.
    Single,
    /// Any result within the bound of the specification.
    Inexact,
    /// Twice, away from zero first, where the shift is above 31.
    Double,
}

/// How `RESIZE` finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeMode {
    /// The value of the nearest place.
    Nearest,
    /// Between four places.
    Bilinear,
}

/// Type in which a sum is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulator {
    /// 32-bit integer.
    I32,
    /// binary16.
    F16,
    /// binary32.
    F32,
    /// 48-bit integer.
    I48,
}

/// One number, of the type of the tensor that it is used with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Of an integer type.
    Int(i64),
    /// Of a float type, all of which `f64` holds exactly.
    Float(f64),
}

/// Attributes of convolutions. Axes are height and width, with depth before them in three dimensions.
///
/// Inputs of the node: input, weights, bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    /// Before and after each axis. Of `TRANSPOSE_CONV2D` this is `out_pad`, which may be negative.
    pub pad: Vec<i64>,
    /// For each axis.
    pub stride: Vec<i64>,
    /// For each axis; 1 in `TRANSPOSE_CONV2D`, which has none.
    pub dilation: Vec<i64>,
    /// Type of the sums.
    pub accumulator: Accumulator,
    /// Whether the bound of the result's error is that of each element. It asks for no other computation.
    pub local_bound: bool,
    /// What counts as zero in the input; 0 but for 8-bit integers.
    pub input_zero: i64,
    /// What counts as zero in the weights; 0 but for 8-bit integers.
    pub weight_zero: i64,
}

/// Attributes of pooling. Axes are height and width.
///
/// Inputs of the node: input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Sizes of the window.
    pub kernel: [i64; 2],
    /// Steps of the window.
    pub stride: [i64; 2],
    /// Top, bottom, left, right.
    pub pad: [i64; 4],
}

/// An operator with its attributes. Where nothing else is said a node has one input and one output, both of the same type.
///
/// Operands that the specification wants constant (shapes, permutations, zero points, the shift of `MUL`) are attributes
/// here, whichever file they came in. Axes and sizes are as the file has them, not checked against tensors.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the names of the operators")]
pub enum Operator {
    /// The axis goes away; the output is i32.
    ArgMax {
        axis: i64,
        nan_mode: NanMode,
    },
    AvgPool2d {
        pool: Pool,
        accumulator: Accumulator,
        input_zero: i64,
        output_zero: i64,
    },
    Conv2d(Conv),
    Conv3d(Conv),
    DepthwiseConv2d(Conv),
    TransposeConv2d(Conv),
    /// Inputs: real, imaginary. Outputs: real, imaginary.
    Fft2d {
        inverse: bool,
        local_bound: bool,
    },
    /// Inputs: real. Outputs: real, imaginary.
    Rfft2d {
        local_bound: bool,
    },
    /// Inputs: A, B.
    MatMul {
        a_zero: i64,
        b_zero: i64,
    },
    MaxPool2d {
        pool: Pool,
        nan_mode: NanMode,
    },

    Clamp {
        min: Scalar,
        max: Scalar,
        nan_mode: NanMode,
    },
    Erf,
    Sigmoid,
    Tanh,

    // Two inputs that broadcast, here and up to `Table`.
    Add,
    ArithmeticRightShift {
        round: bool,
    },
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    IntDiv,
    LogicalAnd,
    LogicalLeftShift,
    LogicalRightShift,
    LogicalOr,
    LogicalXor,
    Maximum {
        nan_mode: NanMode,
    },
    Minimum {
        nan_mode: NanMode,
    },
    /// The shift is 0 but for products of i32.
    Mul {
        shift: i64,
    },
    Pow,
    Sub,
    /// Inputs: input, table.
    Table,

    Abs,
    BitwiseNot,
    Ceil,
    Clz,
    Cos,
    Exp,
    Floor,
    Log,
    LogicalNot,
    Negate {
        input_zero: i64,
        output_zero: i64,
    },
    Reciprocal,
    Rsqrt,
    Sin,

    /// Inputs: condition, value where it holds, value where it does not; all broadcast.
    Select,
    /// Two inputs that broadcast; the output is bool. So are the next two.
    Equal,
    Greater,
    GreaterEqual,

    // Reductions keep the axis, with size 1.
    ReduceAll {
        axis: i64,
    },
    ReduceAny {
        axis: i64,
    },
    ReduceMax {
        axis: i64,
        nan_mode: NanMode,
    },
    ReduceMin {
        axis: i64,
        nan_mode: NanMode,
    },
    ReduceProduct {
        axis: i64,
    },
    ReduceSum {
        axis: i64,
    },

    /// Inputs: one or more.
    Concat {
        axis: i64,
    },
    /// Inputs: input, a tensor of one element that fills. The padding is before and after each axis.
    Pad {
        padding: Vec<i64>,
    },
    Reshape {
        shape: Vec<i64>,
    },
    Reverse {
        axis: i64,
    },
    Slice {
        start: Vec<i64>,
        size: Vec<i64>,
    },
    Tile {
        multiples: Vec<i64>,
    },
    /// Axis `i` of the output is axis `perms[i]` of the input.
    Transpose {
        perms: Vec<i64>,
    },

    /// Inputs: values, indices.
    Gather,
    /// Inputs: values, indices, updates.
    Scatter,
    /// `scale` is the numerator and denominator of y, then of x; `offset` and `border` are y, x.
    Resize {
        mode: ResizeMode,
        scale: [i64; 4],
        offset: [i64; 2],
        border: [i64; 2],
    },
    Cast,
    /// Inputs: input, multipliers, shifts. Zero points are as stored: of an unsigned type they are its bits with a sign.
    Rescale {
        scale32: bool,
        rounding: Rounding,
        per_channel: bool,
        input_unsigned: bool,
        output_unsigned: bool,
        input_zero: i64,
        output_zero: i64,
    },

    // Only in `.tosa` files, from here on.
    Identity,
    /// Inputs: condition, then what the graphs take. Outputs: what the graphs give.
    CondIf {
        then_graph: GraphId,
        else_graph: GraphId,
    },
    /// Inputs: first values. Outputs: last values. The graph of the condition gives one bool.
    WhileLoop {
        condition_graph: GraphId,
        body_graph: GraphId,
    },
    /// No input.
    VariableRead {
        variable: VariableId,
    },
    /// No output.
    VariableWrite {
        variable: VariableId,
    },
}
