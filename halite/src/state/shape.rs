//! The sizes of state: what the model states, what the session was given, and what the inputs of a call say.

use std::collections::HashMap;

use crate::session::GivenSizes;
use crate::{Dimension, Error, Function, FunctionInfo, Result, Tensor, Value, ValueInfo, ValueType};

/// Sizes that are known when a state comes to be.
pub(super) struct Sizes {
    /// Of named dimensions.
    named: HashMap<String, usize>,
    /// Shapes that the session was given for inputs.
    shapes: HashMap<String, Vec<usize>>,
}

impl Sizes {
    /// Those that a session was given, and those of the other inputs of a call.
    pub fn of(function: &Function, values: &[Value]) -> Result<Sizes> {
        let GivenSizes { mut named, shapes } = function.given_sizes()?;
        for (input, value) in function.info().all_inputs().zip(values) {
            let (ValueType::Tensor { shape: Some(shape), .. }, Some(tensor)) =
                (&input.value_type, value.as_tensor())
            else {
                continue;
            };
            for (dimension, size) in shape.iter().zip(tensor.shape()) {
                if let Dimension::Named(name) = dimension {
                    named.entry(name.clone()).or_insert(*size);
                }
            }
        }
        Ok(Sizes { named, shapes })
    }

    /// The shape that a state begins with. What grows with the calls, because the output has another size than the input, begins
    /// with nothing.
    pub fn shape(&self, info: &FunctionInfo, input: usize, output: usize) -> Result<Vec<usize>> {
        let (Some(input), Some(output)) = (info.all_inputs().nth(input), info.all_outputs().nth(output))
        else {
            return Err(Error::invalid(format!("'{}' has no such state", info.name)));
        };
        if let Some(shape) = self.shapes.get(&input.name) {
            return Ok(shape.clone());
        }
        let dims = |value: &ValueInfo| match &value.value_type {
            ValueType::Tensor { shape, .. } => shape.clone(),
            _ => None,
        };
        let wrong = |what: &str| {
            Error::invalid(format!(
                "the state {input} has {what} that nothing says: give it to the session with dimension(…) or shape(…), or set the \
                 state's first value"
            ))
        };
        let own = dims(input).ok_or_else(|| wrong("a number of dimensions"))?;
        let after = dims(output).unwrap_or_default();
        let size = |(axis, dimension): (usize, &Dimension)| match dimension {
            Dimension::Fixed(size) => Ok(*size),
            Dimension::Named(name) if self.named.contains_key(name) => Ok(self.named[name]),
            Dimension::Named(_) if after.get(axis).is_some_and(|after| after != dimension) => Ok(0),
            other => Err(wrong(&format!("the size '{other}'"))),
        };
        own.iter().enumerate().map(size).collect()
    }
}

/// Whether a tensor can be the value of an input.
pub(super) fn check(input: &ValueInfo, tensor: &Tensor) -> Result<()> {
    let ValueType::Tensor { element_type, shape } = &input.value_type else { return Ok(()) };
    let same_type = element_type.is_none_or(|own| own == tensor.element_type());
    let fits = |(dimension, size): (&Dimension, &usize)| match dimension {
        Dimension::Fixed(own) => own == size,
        Dimension::AtMost(most) => size <= most,
        Dimension::Named(_) | Dimension::Open => true,
    };
    let same_shape = shape.as_ref().is_none_or(|shape| {
        shape.len() == tensor.shape().len() && shape.iter().zip(tensor.shape()).all(fits)
    });
    if same_type && same_shape {
        return Ok(());
    }
    let given = crate::tensor::describe(tensor.element_type(), tensor.shape());
    Err(Error::invalid(format!("the state {input} cannot be a tensor {given}")))
}
