//! The XNNPACK delegate's graphs as data.
//!
//! Facts, from `backends/xnnpack/serialization/schema.fbs` and `runtime/XNNHeader.h` of ExecuTorch 1.5 and checked on files
//! that 1.5.1 wrote: the data begin with a header of 30 bytes (`XH00` at 4; where and how long the FlatBuffer is at 10 and 14,
//! the constants at 18 and 22), padded to 32; older data are the FlatBuffer alone. Its identifier is `XN01`, before `XN00`,
//! which differs only in fields that came last. Tables name values by ids of their own; `0xffffffff` is none. The number that
//! a value is known by outside is its place among the arguments of the delegate's call. Images lie channels last, and
//! tensors of the plan are seen as they lie in memory.

mod nodes;
mod read;
#[cfg(test)]
mod tests;

use super::{Constant, ScalarType};
use std::fmt;

/// What the XNNPACK delegate runs: operators in order, over values. All indices in it have been checked.
#[derive(Clone, Debug)]
pub struct XnnGraph {
    /// The operators, in the order in which they are run.
    pub nodes: Vec<XnnNode>,
    /// What operators work on.
    pub values: Vec<XnnValue>,
    /// Values that the plan hands in, by their places among the arguments.
    pub inputs: Vec<XnnPort>,
    /// Values that the plan gets, by their places among the arguments.
    pub outputs: Vec<XnnPort>,
    /// Data of constants. The first is never read.
    pub constants: Vec<Constant>,
}

/// A value that is an argument of the delegate's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XnnPort {
    /// The value.
    pub value: usize,
    /// Which argument.
    pub argument: usize,
}

/// A tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct XnnValue {
    /// The number by which nodes of the file name it.
    pub id: u32,
    /// Type of its elements.
    pub datatype: XnnType,
    /// Dimensions, the outermost first; upper bounds when they depend on inputs.
    pub dims: Vec<u32>,
    /// Index of the constant that it is.
    pub constant: Option<usize>,
    /// What numbers its elements stand for, when they are quantized.
    pub quantization: XnnQuantization,
    /// Whether products quantize it by themselves (data before 2024).
    pub quantized_late: bool,
}

/// What numbers quantized elements stand for.
#[derive(Clone, Debug, PartialEq)]
pub enum XnnQuantization {
    /// Themselves.
    None,
    /// `(q - zero) * scale`.
    Tensor {
        /// The scale.
        scale: f32,
        /// What stands for 0.
        zero: i32,
    },
    /// `q * scale`, or `(q - 8) * scale` of 4 bits, with a scale for each place of a dimension.
    Channels {
        /// The scales, `f32`.
        scales: XnnScales,
        /// The dimension.
        axis: usize,
    },
    /// `(q - 8) * scale`, with a scale for each block along the last dimension of each place of the first one.
    Blocks {
        /// The scales, `f32` when they are listed, `bf16` in constants.
        scales: XnnScales,
        /// Elements of a block.
        size: u64,
    },
    /// `(q - zero) * scale`, both of which follow from the range of the elements over the last `dims` dimensions.
    Dynamic {
        /// How many dimensions share them.
        dims: usize,
    },
}

/// Scales, by places.
#[derive(Clone, Debug, PartialEq)]
pub enum XnnScales {
    /// In the graph.
    Listed(Vec<f32>),
    /// In a constant.
    Constant {
        /// Its index.
        index: usize,
        /// How many there are.
        count: u64,
    },
}

/// Type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XnnType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    F16,
    /// The upper halves of 32-bit floats.
    BF16,
    /// 32-bit integers, also with scales.
    I32,
    /// Signed 8-bit integers with scales.
    I8,
    /// Unsigned 8-bit integers with scales.
    U8,
    /// 4-bit integers with scales, two in a byte, the first in the lower half; 8 stands for 0. Rows are whole bytes.
    U4,
}

impl XnnType {
    /// The type of a plan's tensor that holds such elements; none where the plan has none.
    pub fn scalar(self) -> Option<ScalarType> {
        Some(match self {
            XnnType::F32 => ScalarType::FLOAT,
            XnnType::F16 => ScalarType::HALF,
            XnnType::BF16 => ScalarType::BFLOAT16,
            XnnType::I32 => ScalarType::INT,
            XnnType::I8 => ScalarType::CHAR,
            XnnType::U8 => ScalarType::BYTE,
            XnnType::U4 => return None,
        })
    }
}

impl fmt::Display for XnnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            XnnType::F32 => "f32",
            XnnType::F16 => "f16",
            XnnType::BF16 => "bf16",
            XnnType::I32 => "i32",
            XnnType::I8 => "i8",
            XnnType::U8 => "u8",
            XnnType::U4 => "u4",
        })
    }
}

/// A call of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct XnnNode {
    /// What it computes.
    pub operator: XnnOperator,
    /// Values that it reads; those that are left out are none.
    pub inputs: Vec<Option<usize>>,
    /// Values that it computes.
    pub outputs: Vec<usize>,
    /// The least and the largest number of the result.
    pub limits: Option<[f32; 2]>,
    /// Bits that mean something else for each operator.
    pub flags: u32,
    /// A number by which messages of the export tell it.
    pub handle: u32,
}

/// What a node computes, with its numbers. Operands are in the order of the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum XnnOperator {
    /// A function of each element.
    Unary(XnnUnary),
    /// A function of pairs of elements, which are broadcast.
    Binary(XnnBinary),
    /// `x` where not negative, else the slope times it: operands x, slopes of the last dimension.
    Prelu,
    /// Softmax along the last dimension.
    Softmax,
    /// Other elements for the same numbers.
    Convert,
    /// The same elements under the sizes of the result.
    Copy,
    /// Product with a matrix of weights, outputs x inputs: operands x, weights, bias.
    FullyConnected,
    /// Product of batches of matrices.
    BatchMatrixMultiply,
    /// Attention: operands queries, keys, values, factors, mask.
    Attention,
    /// Convolution of images: operands x, weights (filters, rows, columns, channels), bias.
    Convolution(XnnConvolution),
    /// Convolution of each channel: weights are 1, rows, columns, filters.
    DepthwiseConvolution(XnnConvolution),
    /// Transposed convolution: weights are filters, rows, columns, channels of a group.
    TransposedConvolution(XnnConvolution),
    /// The largest of each window.
    MaxPool(XnnPool),
    /// The mean of each window without its padding.
    AveragePool(XnnPool),
    /// The largest of each window, and where in the window it is.
    ArgMaxPool(XnnPool),
    /// The mean of each image's rows and columns.
    GlobalAveragePool,
    /// Images of other sizes, interpolated.
    ResizeBilinear {
        /// Rows and columns of the result.
        size: [u32; 2],
    },
    /// Dimensions in another order.
    Transpose {
        /// Which dimension each one of the result is.
        order: Vec<u32>,
    },
    /// Other dimensions for the same elements.
    Reshape {
        /// Sizes; 0 for what follows from the others.
        dims: Vec<u32>,
    },
    /// A part of each dimension.
    Slice {
        /// Where it begins.
        starts: Vec<u32>,
        /// How many places it has.
        sizes: Vec<u32>,
    },
    /// A border of one number.
    Pad {
        /// Places before each dimension.
        before: Vec<u32>,
        /// Places behind.
        behind: Vec<u32>,
        /// The number.
        value: f32,
    },
    /// Tensors joined.
    Concatenate {
        /// Along which dimension.
        axis: u32,
    },
    /// An operator that came later; its number.
    Unknown(u8),
}

/// A function of each element.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum XnnUnary {
    Abs,
    Ceiling,
    /// The number within the node's limits.
    Clamp,
    Cos,
    Elu {
        alpha: f32,
    },
    Exp,
    Floor,
    Gelu,
    HardSwish,
    LeakyRelu {
        slope: f32,
    },
    Log,
    Negate,
    ReciprocalSquareRoot,
    Sigmoid,
    Sin,
    Square,
    SquareRoot,
    Tanh,
}

/// A function of pairs of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum XnnBinary {
    Add,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
}

/// The numbers of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XnnConvolution {
    /// Padding: top, right, bottom, left.
    pub pads: [u32; 4],
    /// Rows and columns of the filter.
    pub kernel: [u32; 2],
    /// Rows and columns from one place to the next.
    pub strides: [u32; 2],
    /// Rows and columns from one tap to the next.
    pub dilations: [u32; 2],
    /// Channels that a group reads.
    pub group_inputs: u32,
    /// Filters of a group.
    pub group_outputs: u32,
    /// Groups.
    pub groups: u32,
    /// Rows and columns more of the result of a transposed convolution.
    pub more: [u32; 2],
}

/// The numbers of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XnnPool {
    /// Padding: top, right, bottom, left.
    pub pads: [u32; 4],
    /// Rows and columns of the window.
    pub kernel: [u32; 2],
    /// Rows and columns from one window to the next.
    pub strides: [u32; 2],
    /// Rows and columns from one element of a window to the next.
    pub dilations: [u32; 2],
}

impl XnnOperator {
    /// The name that the schema gives it.
    pub fn name(&self) -> String {
        nodes::name(self)
    }
}
