//! Owns the values that cross the API: buffer views and the [`Value`] enum. Does not own: host tensors (`tensor`
//! does), or how values become VM refs (`values` does).

use halite_hal::{BufferSpan, ElementType, Encoding};
use halite_vm::Ref;
use smallvec::SmallVec;

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
            Value::Buffer(_) => "hal.buffer",
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
