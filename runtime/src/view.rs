//! The values that cross the API: buffer views, how they move between host and device, and the [`Value`] enum.

use std::sync::Arc;

use halite_abi::{ElementType, Encoding};
use halite_abi::{Result, object, status};
use halite_hal::{BufferParams, BufferSpan, Device};
use halite_vm::Ref;
use smallvec::SmallVec;

use crate::tensor::HostTensor;

/// Dimensions of a tensor, outermost first; empty for rank 0.
pub type Shape = SmallVec<[u64; 6]>;

/// A tensor on a device: a byte range and how to read it. Cheap to clone; clones share the memory.
#[derive(Clone, Debug)]
pub struct BufferView {
    /// The bytes.
    pub span: BufferSpan,
    /// Dimensions.
    pub shape: Shape,
    /// Type of one element.
    pub element_type: ElementType,
    /// How elements are laid out.
    pub encoding: Encoding,
}

/// An argument or a result of a function. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Value {
    /// `i` of a calling convention: i32, and narrower integers, bools and 16-bit floats (as bits).
    I32(i32),
    /// `I`: i64 and index.
    I64(i64),
    /// `f`.
    F32(f32),
    /// `F`.
    F64(f64),
    /// A tensor.
    View(BufferView),
    /// A device buffer without a shape.
    Buffer(BufferSpan),
    /// A list.
    List(Vec<Value>),
    /// Host bytes: a `!vm.buffer`. As an argument the program may read them, not write.
    Bytes(bytes::Bytes),
    /// Any other reference, such as a fence; to be passed on as it is.
    Opaque(Ref),
    /// The null reference.
    Null,
}

impl Value {
    /// What kind of value this is, in the words of declarations: `i32`, `tensor`, `hal.buffer`, `list`, …
    pub fn kind(&self) -> &'static str {
        match self {
            Value::I32(_) => "i32",
            Value::I64(_) => "i64",
            Value::F32(_) => "f32",
            Value::F64(_) => "f64",
            Value::View(_) => "tensor",
            Value::Buffer(_) => object::BUFFER,
            Value::List(_) => "list",
            Value::Bytes(_) => "vm.buffer",
            Value::Opaque(reference) => reference.type_name().unwrap_or("null"),
            Value::Null => "null",
        }
    }

    /// The tensor, if this is one.
    pub fn as_view(&self) -> Option<&BufferView> {
        match self {
            Value::View(view) => Some(view),
            _ => None,
        }
    }
}

impl From<BufferView> for Value {
    fn from(view: BufferView) -> Self {
        Value::View(view)
    }
}

impl BufferView {
    /// A new device tensor with the contents of a host tensor. Blocks until they are there. INVALID_ARGUMENT when
    /// the tensor's bytes do not fit its shape.
    pub fn from_host(device: &Arc<dyn Device>, tensor: &HostTensor) -> Result<Self> {
        let expected = tensor.element_type.dense_byte_length(&tensor.shape);
        if expected != Some(tensor.data.len() as u64) {
            return Err(status!(
                InvalidArgument,
                "a tensor {} cannot have {} bytes of data",
                tensor.metadata(),
                tensor.data.len()
            ));
        }
        let buffer = device.allocate_buffer(&BufferParams::DEVICE, tensor.data.len() as u64)?;
        if !tensor.data.is_empty() {
            buffer.write(0, &tensor.data)?;
        }
        Ok(BufferView {
            span: BufferSpan::whole(buffer),
            shape: tensor.shape.clone(),
            element_type: tensor.element_type,
            encoding: Encoding::DENSE_ROW_MAJOR,
        })
    }

    /// Copies the tensor to the host; blocks. Results of a finished call may be read at once. OUT_OF_RANGE when the
    /// buffer is smaller than the shape says, which only a faulty program makes.
    pub fn to_host(&self) -> Result<HostTensor> {
        let length = self.element_type.dense_byte_length(&self.shape).filter(|n| *n <= self.span.length);
        let length = length.ok_or_else(|| {
            status!(
                OutOfRange,
                "a tensor {} does not fit its buffer of {} bytes",
                crate::tensor::describe(self.element_type, &self.shape),
                self.span.length
            )
        })?;
        let data = if length == 0 { Vec::new() } else { self.span.subspan(0, length)?.read_all()? };
        HostTensor::new(self.element_type, self.shape.clone(), data)
    }
}
