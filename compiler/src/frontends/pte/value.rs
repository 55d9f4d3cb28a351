//! What calls of operators work on, inside of a delegate and outside of it, and what is known of it while a graph is built.

use halite_formats::pte::{Dynamism, ScalarType};
use halite_ops::DType;
use halite_sizes::Size;

use super::Result;
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// An argument or a result of calls.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// None.
    Null,
    /// A number.
    Int(i64),
    /// A float.
    Double(f64),
    /// True or false.
    Bool(bool),
    /// A tensor.
    Tensor(Declared),
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
    /// A number that a call computes of sizes.
    Symbol,
}

/// What the file says of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    /// Type of its elements; the file's, if graphs do not have it.
    pub(super) element: std::result::Result<ElementType, ScalarType>,
    /// Dimensions, the outermost first.
    pub(super) dims: Vec<u64>,
    /// Whether these are its sizes or bounds of them.
    pub(super) dynamism: Dynamism,
}

/// What is known of a value: what calls and delegates are handed and give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Passed {
    /// A tensor.
    Tensor(TensorId),
    /// A number, which may depend on sizes.
    Number(Size),
    /// A number that the device computes: the only element of an `i64` tensor, and what is added to it.
    Computed(TensorId, Size),
    /// A float.
    Float(f64),
    /// True or false.
    Truth(bool),
}

impl Passed {
    /// What a literal in the file is.
    pub(super) fn literal(value: &Value) -> Option<Passed> {
        Some(match value {
            Value::Int(number) => Passed::Number((*number).into()),
            Value::Double(number) => Passed::Float(*number),
            Value::Bool(truth) => Passed::Truth(*truth),
            _ => return None,
        })
    }

    /// It as an integer, if it is a whole number that is known. Fixes the sizes that it depends on.
    pub(super) fn int(self) -> Option<i64> {
        self.size().map(Size::exact_signed)
    }

    /// The same, which stays open where it depends on sizes.
    pub(super) fn size(self) -> Option<Size> {
        match self {
            Passed::Number(number) => Some(number),
            Passed::Truth(truth) => Some(i64::from(truth).into()),
            Passed::Float(v) if v.fract() == 0.0 && v.abs() < 9e15 => Some((v as i64).into()),
            Passed::Float(_) | Passed::Computed(..) | Passed::Tensor(_) => None,
        }
    }

    /// It as a float, if it is a number.
    pub(super) fn float(self) -> Option<f64> {
        match self {
            Passed::Float(number) => Some(number),
            _ => self.int().map(|number| number as f64),
        }
    }
}

/// The only element of a tensor of integers as a number: known, or computed by the device.
///
/// # Errors
/// It has more elements.
pub(super) fn number_of(builder: &mut Builder, tensor: TensorId) -> Result<Passed> {
    match builder.size_values(tensor).as_deref() {
        Some([number]) => Ok(Passed::Number(*number)),
        _ => {
            let made = builder.cast(tensor, DType::I64)?;
            Ok(Passed::Computed(builder.reshape(made, &[])?, 0.into()))
        }
    }
}
