//! What calls of operators work on, inside of a delegate and outside of it, and what is known of it while a graph is built.

use halite_formats::pte::{Dynamism, ScalarType};

use crate::graph::{ElementType, TensorId};

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
    pub(super) element: Result<ElementType, ScalarType>,
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
    /// A number.
    Number(i64),
    /// A float.
    Float(f64),
    /// True or false.
    Truth(bool),
}

impl Passed {
    /// What a literal in the file is.
    pub(super) fn literal(value: &Value) -> Option<Passed> {
        Some(match value {
            Value::Int(number) => Passed::Number(*number),
            Value::Double(number) => Passed::Float(*number),
            Value::Bool(truth) => Passed::Truth(*truth),
            _ => return None,
        })
    }

    /// It as an integer, if it is a whole number.
    pub(super) fn int(self) -> Option<i64> {
        match self {
            Passed::Number(number) => Some(number),
            Passed::Truth(truth) => Some(i64::from(truth)),
            Passed::Float(v) if v.fract() == 0.0 && v.abs() < 9e15 => Some(v as i64),
            Passed::Float(_) | Passed::Tensor(_) => None,
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
