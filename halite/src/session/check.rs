//! The check of inputs against what a function states, before anything is compiled or copied.

use crate::{Dimension, ElementType, Error, FunctionInfo, Result, Tensor, Value, ValueInfo, ValueType};
use halite_abi::ElementKind;

/// The values as the function takes them.
pub(crate) fn inputs(info: &FunctionInfo, values: Vec<Value>) -> Result<Vec<Value>> {
    let missing: Vec<_> = info
        .all_inputs()
        .zip(&values)
        .filter(|(input, value)| is_required(input) && matches!(value, Value::Null))
        .map(|(input, _)| input.to_string())
        .collect();
    if !missing.is_empty() {
        let all: Vec<_> = info.inputs.iter().map(ToString::to_string).collect();
        return Err(Error::invalid(format!(
            "inputs of '{}' are missing: {}; it takes {}",
            info.name,
            missing.join(", "),
            all.join(", ")
        )));
    }
    info.all_inputs().zip(values).map(|(input, value)| self::input(info, input, value)).collect()
}

/// Modules may take null where their compiler says nothing of it.
fn is_required(input: &ValueInfo) -> bool {
    !input.is_optional && matches!(input.value_type, ValueType::Tensor { .. } | ValueType::Sequence)
}

fn input(info: &FunctionInfo, input: &ValueInfo, value: Value) -> Result<Value> {
    let is_model = info.module.is_empty();
    if let (ValueType::Sequence, Value::List(elements)) = (&input.value_type, &value) {
        return list(info, input, elements);
    }
    let (ValueType::Tensor { element_type, shape }, Value::Tensor(tensor)) = (&input.value_type, &value)
    else {
        let fits = match &input.value_type {
            ValueType::Tensor { .. } => matches!(value, Value::Null),
            ValueType::Sequence => matches!(value, Value::Null),
            ValueType::Scalar(_) | ValueType::Other(_) => true,
        };
        // What modules take beyond their declarations, they check themselves.
        return if fits || !is_model { Ok(value) } else { Err(other_kind(info, input, &value)) };
    };
    let wrong = |why: String| {
        let given = crate::tensor::describe(tensor.element_type(), tensor.shape());
        Err(Error::invalid(format!("input {input} of '{}' cannot be a tensor {given}: {why}", info.name)))
    };
    if let Some(shape) = shape {
        if shape.len() != tensor.shape().len() {
            return wrong(format!("the input has {} dimensions", shape.len()));
        }
        for (place, (dimension, size)) in shape.iter().zip(tensor.shape()).enumerate() {
            match dimension {
                Dimension::Fixed(own) if own != size => {
                    return wrong(format!("dimension {place} is {own}, not {size}"));
                }
                Dimension::AtMost(most) if size > most => {
                    return wrong(format!("dimension {place} is at most {most}, not {size}"));
                }
                _ => {}
            }
        }
    }
    match element_type {
        Some(own) if *own != tensor.element_type() => {
            match is_same_memory(*own, tensor.element_type(), is_model) {
                true if is_model => Ok(Value::Tensor(tensor.relabelled(*own))),
                // A module that hands an input through gives it back as it came.
                true => Ok(value),
                false => wrong(format!("its elements are {own}")),
            }
        }
        _ => Ok(value),
    }
}

/// What to say of a value of another kind.
fn other_kind(info: &FunctionInfo, input: &ValueInfo, value: &Value) -> Error {
    let hint = if input.value_type == ValueType::Sequence { ": it is a list of tensors" } else { "" };
    Error::invalid(format!("input {input} of '{}' cannot be a {}{hint}", info.name, value.kind()))
}

/// A list, whose tensors have the type that a model says.
fn list(info: &FunctionInfo, input: &ValueInfo, elements: &[Value]) -> Result<Value> {
    let one = |(index, value): (usize, &Value)| {
        let wrong = |why: String| {
            let text = format!("element {index} of the input {input} of '{}' cannot be {why}", info.name);
            Error::invalid(text)
        };
        let Value::Tensor(tensor) = value else { return Err(wrong(format!("a {}", value.kind()))) };
        let given = tensor.element_type();
        match input.element {
            Some(own) if own == given => Ok(value.clone()),
            Some(own) if is_same_memory(own, given, true) => Ok(Value::Tensor(tensor.relabelled(own))),
            Some(own) => Err(wrong(format!("of {given}: the elements of its tensors are {own}"))),
            None => Ok(value.clone()),
        }
    };
    elements.iter().enumerate().map(one).collect::<Result<_>>().map(Value::List)
}

/// Whether integers of one type can be taken for another of the same width. Modules know integers that do not say whether they
/// have a sign, and take both; in models such integers have one.
fn is_same_memory(own: ElementType, given: ElementType, is_model: bool) -> bool {
    use ElementKind::{Int, SInt, UInt};
    let fits = match (own.kind(), given.kind()) {
        (Some(Int), Some(SInt)) | (Some(SInt), Some(Int)) => true,
        (Some(Int), Some(UInt)) | (Some(UInt), Some(Int)) => !is_model,
        _ => false,
    };
    fits && own.bit_count() == given.bit_count()
}

/// Zeros for an input with nothing open.
pub(super) fn zeros(input: &ValueInfo) -> Option<Tensor> {
    let ValueType::Tensor { element_type, shape } = &input.value_type else { return None };
    let fixed =
        |dimension: &Dimension| if let Dimension::Fixed(size) = dimension { Some(*size) } else { None };
    let shape: Option<Vec<usize>> = shape.as_ref()?.iter().map(fixed).collect();
    Tensor::zeros((*element_type)?, shape?).ok()
}

#[cfg(test)]
mod tests {
    use halite_runtime::tensor::ArgumentKind;

    use super::*;

    fn info(shape: Vec<Dimension>) -> FunctionInfo {
        let value_type = ValueType::Tensor { element_type: Some(ElementType::I32), shape: Some(shape) };
        let input = ValueInfo {
            name: "x".into(),
            value_type,
            is_optional: false,
            kind: ArgumentKind::Reference,
            element: None,
        };
        FunctionInfo {
            name: "f".into(),
            module: String::new(),
            inputs: vec![input],
            outputs: Vec::new(),
            states: Vec::new(),
            kept: Vec::new(),
            shares_nothing: true,
            declaration: None,
            calling_convention: String::new(),
        }
    }

    #[test]
    fn what_does_not_fit_is_told_by_name() {
        let of = |value: Value| {
            let info = info(vec![Dimension::Fixed(2), Dimension::AtMost(3)]);
            inputs(&info, vec![value]).map(|values| format!("{values:?}")).map_err(|e| e.message().to_owned())
        };
        let tensor = |shape: [usize; 2]| Tensor::zeros(ElementType::I32, shape).unwrap();
        assert!(of(tensor([2, 3]).into()).is_ok());
        assert_eq!(
            of(tensor([2, 4]).into()).unwrap_err(),
            "input 'x' i32[2,..3] of 'f' cannot be a tensor 2x4xi32: dimension 1 is at most 3, not 4"
        );
        assert!(of(Tensor::scalar(1i32).into()).unwrap_err().ends_with("the input has 2 dimensions"));
        let floats = Tensor::zeros(ElementType::F32, [2, 3]).unwrap();
        assert!(of(floats.into()).unwrap_err().ends_with("its elements are i32"));
        let signed = Tensor::zeros(ElementType::SI32, [2, 3]).unwrap();
        assert!(of(signed.into()).unwrap().contains("2x3xi32"));
        // The same bits would be other numbers.
        let unsigned = Tensor::zeros(ElementType::UI32, [2, 3]).unwrap();
        assert!(of(unsigned.into()).unwrap_err().ends_with("its elements are i32"));
        assert!(of(Value::F32(1.0)).unwrap_err().ends_with("cannot be a f32"));
        assert_eq!(
            of(Value::Null).unwrap_err(),
            "inputs of 'f' are missing: 'x' i32[2,..3]; it takes 'x' i32[2,..3]"
        );
    }
}
