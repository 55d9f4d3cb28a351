//! The operands of an operation by their names: which are attributes, and which tensors.

use halite_formats::tosa::{Attribute, Attributes, Kind, Scalar, Spec, Tensor};

/// Most numbers of an attribute: pairs for each axis of any tensor are far fewer.
const MOST_NUMBERS: u64 = 1 << 10;

/// Splits operands into attributes and what the node reads. `is_number` tells operands that are no tensors.
///
/// # Errors
/// There are too many or too few, or one is not what the operator takes.
pub(super) fn attributes(
    spec: &Spec,
    tensors: &[Tensor],
    operands: &[usize],
    is_number: impl Fn(usize) -> bool,
) -> Result<(Attributes, Vec<usize>), String> {
    let open = spec.operands.last().is_some_and(|(_, kind)| *kind == Kind::Tensors);
    if operands.len() < spec.operands.len() || (operands.len() > spec.operands.len() && !open) {
        return Err(format!("{} operands; there are {}", operands.len(), spec.operands.len()));
    }
    let (mut attributes, mut inputs) = (Attributes::default(), Vec::new());
    for (place, id) in operands.iter().enumerate() {
        let (name, kind) = spec.operands[place.min(spec.operands.len() - 1)];
        let wants_number = !matches!(kind, Kind::Tensor | Kind::Tensors | Kind::Ints | Kind::One);
        if is_number(place) != wants_number {
            let (is, wants) = if wants_number { ("a tensor", "a number") } else { ("a number", "a tensor") };
            return Err(format!("the operand {name} is {is}, and has to be {wants}"));
        }
        match kind {
            Kind::Tensor | Kind::Tensors => inputs.push(*id),
            _ => attributes
                .set(name, attribute(kind, &tensors[*id]).map_err(|e| format!("the operand {name} {e}"))?),
        }
    }
    Ok((attributes, inputs))
}

/// The value of an operand that is an attribute.
fn attribute(kind: Kind, tensor: &Tensor) -> Result<Attribute, String> {
    let constant = tensor
        .constant
        .as_ref()
        .ok_or("has to be constant; sizes and parameters that vary are not supported")?;
    let count = tensor.elements().filter(|count| *count <= MOST_NUMBERS);
    let count = count.ok_or_else(|| format!("has the sizes {:?}: too many numbers", tensor.shape))?;
    let float = || tensor.element.float(constant.bytes());
    match kind {
        Kind::Scalar if tensor.element.is_float() => match float() {
            Some(value) => Ok(Attribute::Scalar(Scalar::Float(value))),
            None => Err("has no value".to_owned()),
        },
        Kind::Scalar => match tensor.element.integer(constant.bytes()) {
            Some(value) => Ok(Attribute::Scalar(Scalar::Int(value))),
            None => Err("has no value".to_owned()),
        },
        Kind::One if tensor.element.is_float() => match float().filter(|_| count == 1) {
            Some(0.0) => Ok(Attribute::Ints(vec![0])),
            _ => Err("has to be one zero, as the tensors are floats".to_owned()),
        },
        _ => match tensor.integers() {
            Some(values) => Ok(Attribute::Ints(values)),
            None => Err(format!("has elements of the type {}, and has to have integers", tensor.element)),
        },
    }
}
