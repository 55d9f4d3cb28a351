//! The Vulkan delegate's graphs as data.

use bytes::Bytes;
use std::fmt;

/// What the Vulkan delegate runs: operators in order, over values. All indices in it have been checked.
#[derive(Clone, Debug)]
pub struct VulkanGraph {
    /// The operators, in the order in which they are run.
    pub calls: Vec<Call>,
    /// What operators work on.
    pub values: Vec<Value>,
    /// Values that the plan hands in, in order.
    pub inputs: Vec<usize>,
    /// Values that the plan gets, in order.
    pub outputs: Vec<usize>,
    /// Data of constants.
    pub constants: Vec<Constant>,
}

/// A call of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// A number by which messages of the export tell it.
    pub node: u32,
    /// The operator, such as `aten.add.Tensor`.
    pub name: String,
    /// Indices of values: the arguments of the operator's schema in order, then the result.
    pub args: Vec<usize>,
}

/// What operators work on.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// A number.
    Int(i64),
    /// A float.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// A tensor.
    Tensor(VulkanTensor),
    /// Numbers.
    IntList(Vec<i64>),
    /// Floats.
    DoubleList(Vec<f64>),
    /// Booleans.
    BoolList(Vec<bool>),
    /// Indices of values.
    List(Vec<usize>),
    /// A text.
    String(String),
    /// A number that is known when the graph is run; what it begins with.
    SymInt(i32),
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VulkanTensor {
    /// Type of its elements while the graph runs.
    pub datatype: DataType,
    /// Type of its elements where the graph is entered and left.
    pub staging: DataType,
    /// Dimensions, the outermost first; upper bounds when they depend on inputs.
    pub dims: Vec<u32>,
    /// Index of the constant that it is.
    pub constant: Option<usize>,
}

/// Where the elements of a constant are: dense, the innermost dimension last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// Behind the graph: a slice of the file.
    Inline(Bytes),
    /// In the program's data of a name.
    Named {
        /// The name.
        key: String,
        /// Bytes that belong to it.
        length: u64,
    },
}

/// Type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Booleans, a byte each.
    Bool,
    /// Unsigned 8-bit integers.
    UInt8,
    /// Signed 8-bit integers.
    Int8,
    /// 32-bit integers.
    Int32,
    /// 16-bit floats.
    Float16,
    /// 32-bit floats.
    Float32,
    /// 64-bit floats.
    Float64,
    /// 64-bit integers.
    Int64,
}

impl DataType {
    /// Bytes of an element.
    pub fn size(self) -> u64 {
        match self {
            DataType::Bool | DataType::UInt8 | DataType::Int8 => 1,
            DataType::Float16 => 2,
            DataType::Int32 | DataType::Float32 => 4,
            DataType::Float64 | DataType::Int64 => 8,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::Bool => "bool",
            DataType::UInt8 => "u8",
            DataType::Int8 => "i8",
            DataType::Int32 => "i32",
            DataType::Float16 => "f16",
            DataType::Float32 => "f32",
            DataType::Float64 => "f64",
            DataType::Int64 => "i64",
        })
    }
}
