//! Programs as data: plans, values, instructions, and where constants lie.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;

use super::{PteError, Result};

/// An ExecuTorch program. All indices in it have been checked against what they index.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Version of the schema; 0 so far.
    pub version: u32,
    /// The methods.
    pub plans: Vec<Plan>,
    /// Data by name: slices of the file.
    pub named: BTreeMap<String, Bytes>,
    /// Data by name that lie in other files, as far as somebody has added them.
    pub external: BTreeMap<String, Bytes>,
    /// Bytes of constants, and where in them each one begins. An entry's end is not told.
    pub(super) constants: Option<(Bytes, Vec<u64>)>,
    /// Constants as programs had them before ExecuTorch 0.4: each as a slice of the file.
    pub(super) buffers: Vec<Bytes>,
    /// The same for what planned tensors begin with.
    pub(super) initial: Option<(Bytes, Vec<u64>)>,
}

/// A method: instructions over values.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name, such as `forward`.
    pub name: String,
    /// What instructions work on.
    pub values: Vec<Value>,
    /// Values that the caller hands in, in order.
    pub inputs: Vec<usize>,
    /// Values that the caller gets, in order.
    pub outputs: Vec<usize>,
    /// Lists of instructions; the first is run.
    pub chains: Vec<Vec<Instruction>>,
    /// Names of operators outside of delegates, such as `aten::add.out`.
    pub operators: Vec<String>,
    /// The delegates.
    pub delegates: Vec<Delegate>,
    /// Bytes of the memories that the export has planned; the first is number 1.
    pub memory: Vec<u64>,
}

/// Part of a plan that a back end of ExecuTorch runs.
#[derive(Clone, Debug)]
pub struct Delegate {
    /// Name of the back end, such as `VulkanBackend`.
    pub id: String,
    /// What the back end made of its part: a slice of the file.
    pub data: Bytes,
    /// Options of the export, as the back end encodes them.
    pub specs: Vec<(String, Bytes)>,
}

/// A step of a plan. Numbers are indices of values unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Calls an operator.
    Kernel {
        /// Index of the operator.
        operator: usize,
        /// Its arguments; those that it writes come last, twice.
        args: Vec<usize>,
    },
    /// Calls a delegate.
    Delegate {
        /// Index of the delegate.
        delegate: usize,
        /// Its inputs, then its outputs.
        args: Vec<usize>,
    },
    /// Makes a value another name of the same.
    Move {
        /// What is named.
        from: usize,
        /// The name.
        to: usize,
    },
    /// Continues elsewhere when a value is false.
    JumpFalse {
        /// The value.
        condition: usize,
        /// Index of the instruction.
        to: usize,
    },
    /// Lets go of a tensor's memory.
    Free {
        /// The tensor.
        value: usize,
    },
}

/// What instructions work on.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// A number.
    Int(i64),
    /// True or false.
    Bool(bool),
    /// A float.
    Double(f64),
    /// A tensor.
    Tensor(Tensor),
    /// A text.
    String(String),
    /// Indices of values that are numbers.
    IntList(Vec<usize>),
    /// Floats.
    DoubleList(Vec<f64>),
    /// Booleans.
    BoolList(Vec<bool>),
    /// Indices of tensors.
    TensorList(Vec<usize>),
    /// Indices of tensors, some of which may be absent.
    OptionalTensorList(Vec<Option<usize>>),
}

/// A tensor of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Type of its elements.
    pub scalar_type: ScalarType,
    /// Dimensions, the outermost first; upper bounds when it is dynamic.
    pub sizes: Vec<u64>,
    /// Order of the dimensions in memory, the outermost first.
    pub dim_order: Vec<u8>,
    /// Whether sizes are fixed.
    pub dynamism: Dynamism,
    /// Index of its constant or initial data; 0 for none.
    pub data: u32,
    /// Where in the plan's memory it lies.
    pub allocation: Option<Allocation>,
    /// Name of the data in another file that it is a constant of.
    pub external: Option<String>,
    /// The name that the model has for it, if the file tells one.
    pub name: Option<String>,
}

/// A place in the memory of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Number of the memory; from 1 on.
    pub memory: u32,
    /// Bytes from its start.
    pub offset: u64,
}

/// Whether the sizes of a tensor are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dynamism {
    /// They are.
    Static,
    /// They are at most those told.
    Bounded,
    /// They are anything.
    Unbounded,
}

/// The number by which ExecuTorch knows an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScalarType(pub u8);

impl ScalarType {
    /// Bytes of 8 bits.
    pub const BYTE: ScalarType = ScalarType(0);
    /// Signed 8-bit integers.
    pub const CHAR: ScalarType = ScalarType(1);
    /// 16-bit integers.
    pub const SHORT: ScalarType = ScalarType(2);
    /// 32-bit integers.
    pub const INT: ScalarType = ScalarType(3);
    /// 64-bit integers.
    pub const LONG: ScalarType = ScalarType(4);
    /// 16-bit floats.
    pub const HALF: ScalarType = ScalarType(5);
    /// 32-bit floats.
    pub const FLOAT: ScalarType = ScalarType(6);
    /// 64-bit floats.
    pub const DOUBLE: ScalarType = ScalarType(7);
    /// Booleans, a byte each.
    pub const BOOL: ScalarType = ScalarType(11);
    /// The upper halves of 32-bit floats.
    pub const BFLOAT16: ScalarType = ScalarType(15);

    /// Bytes of an element; none for types that no tensor of a plan has.
    pub fn size(self) -> Option<u64> {
        match self {
            Self::BYTE | Self::CHAR | Self::BOOL => Some(1),
            Self::SHORT | Self::HALF | Self::BFLOAT16 => Some(2),
            Self::INT | Self::FLOAT => Some(4),
            Self::LONG | Self::DOUBLE => Some(8),
            _ => None,
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::BYTE => "Byte",
            Self::CHAR => "Char",
            Self::SHORT => "Short",
            Self::INT => "Int",
            Self::LONG => "Long",
            Self::HALF => "Half",
            Self::FLOAT => "Float",
            Self::DOUBLE => "Double",
            Self::BOOL => "Bool",
            Self::BFLOAT16 => "BFloat16",
            ScalarType(other) => return write!(f, "scalar type {other}"),
        })
    }
}

impl Program {
    /// The data of a name: a slice of the file, or of one that was added.
    pub fn data(&self, key: &str) -> Option<&Bytes> {
        self.named.get(key).or_else(|| self.external.get(key))
    }

    /// Names of tensors of plans whose data lie in other files.
    pub fn external_tensors(&self) -> impl Iterator<Item = &str> {
        let values = self.plans.iter().flat_map(|plan| &plan.values);
        values.filter_map(|value| match value {
            Value::Tensor(tensor) => tensor.external.as_deref(),
            _ => None,
        })
    }

    /// The elements of a tensor that is a constant of the file; none for others.
    ///
    /// # Errors
    /// The data end past their segment, or are not there.
    pub fn constant(&self, tensor: &Tensor) -> Result<Option<Bytes>> {
        if let Some(key) = &tensor.external {
            return self.external_tensor(key, tensor).map(Some);
        }
        if tensor.data == 0 || tensor.allocation.is_some() {
            return Ok(None);
        }
        if !self.buffers.is_empty() {
            return self.buffer(tensor).map(Some);
        }
        part(self.constants.as_ref(), "Program.constant_segment", tensor).map(Some)
    }

    /// A constant among other files' data.
    fn external_tensor(&self, key: &str, tensor: &Tensor) -> Result<Bytes> {
        let wrong =
            |problem| PteError::invalid(format!("the tensor '{key}', which is in another file"), problem);
        let Some(data) = self.data(key) else {
            return Err(wrong(
                "no .ptd file that was read has it; put that of the program beside it".to_owned(),
            ));
        };
        let wants = tensor.bytes().filter(|bytes| *bytes == data.len() as u64);
        wants.map(|_| data.clone()).ok_or_else(|| {
            wrong(format!("{} bytes for {} elements {:?}", data.len(), tensor.scalar_type, tensor.sizes))
        })
    }

    /// A constant of a program from before ExecuTorch 0.4.
    fn buffer(&self, tensor: &Tensor) -> Result<Bytes> {
        let index = tensor.data as usize;
        let place = || format!("Program.constant_buffer[{index}]");
        let Some(data) = self.buffers.get(index) else {
            let problem = format!("a tensor has its data there, but there are {}", self.buffers.len());
            return Err(PteError::invalid(place(), problem));
        };
        let wants = tensor.bytes().and_then(|bytes| usize::try_from(bytes).ok());
        match wants.filter(|bytes| *bytes <= data.len()) {
            Some(bytes) => Ok(data.slice(..bytes)),
            None => {
                let (found, named) = (data.len(), tensor.scalar_type);
                Err(PteError::invalid(
                    place(),
                    format!("{found} bytes for {named} elements {:?}", tensor.sizes),
                ))
            }
        }
    }

    /// What a tensor in planned memory begins with; none for others.
    ///
    /// # Errors
    /// The data end past their segment, or are not there.
    pub fn initial(&self, tensor: &Tensor) -> Result<Option<Bytes>> {
        if tensor.data == 0 || tensor.allocation.is_none() {
            return Ok(None);
        }
        part(self.initial.as_ref(), "Program.mutable_data_segments[0]", tensor).map(Some)
    }
}

impl Tensor {
    /// Bytes of its elements; none when that does not fit or the type is not known.
    pub fn bytes(&self) -> Option<u64> {
        self.sizes.iter().try_fold(self.scalar_type.size()?, |n, d| n.checked_mul(*d))
    }

    /// Whether dimensions lie in memory as they are told.
    pub fn is_contiguous(&self) -> bool {
        self.dim_order.iter().copied().eq(0..self.sizes.len() as u8)
    }
}

fn part(segment: Option<&(Bytes, Vec<u64>)>, place: &str, tensor: &Tensor) -> Result<Bytes> {
    let index = tensor.data;
    let at = || format!("{place}.offsets[{index}]");
    let Some((data, offsets)) = segment else {
        return Err(PteError::invalid(
            at(),
            "a tensor has its data there, but the program has no such segment",
        ));
    };
    let Some(start) = offsets.get(index as usize) else {
        let count = offsets.len();
        return Err(PteError::invalid(at(), format!("a tensor has its data there, but there are {count}")));
    };
    let end = tensor.bytes().and_then(|length| start.checked_add(length));
    match end {
        Some(end) if end <= data.len() as u64 => Ok(data.slice(*start as usize..end as usize)),
        _ => Err(PteError::invalid(
            at(),
            format!(
                "a {} tensor of {:?} from byte {start} on ends past the segment's {} bytes",
                tensor.scalar_type,
                tensor.sizes,
                data.len()
            ),
        )),
    }
}
