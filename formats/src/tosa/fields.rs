//! The attributes of operators in `.tosa` files: which field of their table each is.

use super::{Attribute, Attributes, ElementType, Kind, Result, Scalar, Spec, Tensor, TosaError};
use crate::flatbuffer::{Field, Table, Vector};

/// The first field of a table, as a boolean.
pub(super) const FLAG: Field<u8> = Field { table: "Attribute", name: "flag", id: 0, default: 0 };

/// Whether a list of numbers is an input of its operator, a shape, and no attribute.
pub(super) fn is_input(name: &str) -> bool {
    matches!(name, "padding" | "shape" | "start" | "size" | "multiples" | "scale" | "offset" | "border")
}

/// The field of each attribute: they have the order that SPIR-V has, but `local_bound` before `acc_type`.
fn fields(spec: &Spec) -> Vec<(&'static str, Kind)> {
    let is_field = |(name, kind): &(&str, Kind)| match kind {
        Kind::Tensor | Kind::Tensors | Kind::One => false,
        Kind::Ints => !is_input(name),
        _ => true,
    };
    let mut all: Vec<_> = spec.operands.iter().copied().filter(is_field).collect();
    let place = |name: &str| all.iter().position(|(known, _)| *known == name);
    if let (Some(a), Some(b)) = (place("acc_type"), place("local_bound")) {
        all.swap(a, b);
    }
    all
}

/// The attributes that an operator's table has; `element` is the type of its first input. Where there is no table, or it
/// lacks a field, that is zero.
pub(super) fn attributes(
    spec: &Spec,
    table: Option<&Table<'_>>,
    element: Option<ElementType>,
    place: &str,
) -> Result<Attributes> {
    let mut all = Attributes::default();
    for (id, (name, kind)) in fields(spec).into_iter().enumerate() {
        let id = id as u16;
        let value = match kind {
            Kind::Bool => vec![i64::from(number(table, &Field { id, ..FLAG })? != 0)],
            Kind::Ints => {
                let field = Field {
                    table: spec.name,
                    name,
                    id,
                    default: <Vector<i32> as crate::flatbuffer::Kind>::ZERO,
                };
                let Some(table) = table else { continue };
                let values: std::result::Result<Vec<i32>, _> = table.vector(&field)?.iter().collect();
                values?.into_iter().map(i64::from).collect()
            }
            Kind::Scalar => {
                all.set(name, Attribute::Scalar(scalar(spec, table, name, id, element, place)?));
                continue;
            }
            Kind::Int => {
                vec![i64::from(number::<i32>(table, &Field { table: spec.name, name, id, default: 0 })?)]
            }
            _ => {
                let field = Field { table: spec.name, name, id, default: 0u32 };
                let value = number(table, &field)?;
                vec![if kind == Kind::Accumulator { accumulator(value) } else { i64::from(value) }]
            }
        };
        all.set_ints(name, value);
    }
    Ok(all)
}

fn number<T: crate::flatbuffer::Scalar>(table: Option<&Table<'_>>, field: &Field<T>) -> Result<T> {
    Ok(match table {
        Some(table) => table.scalar(field)?,
        None => field.default,
    })
}

/// The number that SPIR-V has for an element type as that of sums.
fn accumulator(element: u32) -> i64 {
    match element {
        5 => 1,
        8 => 2,
        7 => 3,
        6 => 4,
        _ => 0,
    }
}

/// A number of the tensors' type, which is stored as the bytes of one.
fn scalar(
    spec: &Spec,
    table: Option<&Table<'_>>,
    name: &'static str,
    id: u16,
    element: Option<ElementType>,
    place: &str,
) -> Result<Scalar> {
    let field = Field { table: spec.name, name, id, default: <Vector<u8> as crate::flatbuffer::Kind>::ZERO };
    let bytes: Vec<u8> = match table {
        Some(table) => table.vector(&field)?.iter().take(8).collect::<std::result::Result<_, _>>()?,
        None => Vec::new(),
    };
    let found = element.and_then(|element| match element.is_float() {
        true => element.float(&bytes).map(Scalar::Float),
        false => element.integer(&bytes).map(Scalar::Int),
    });
    found.ok_or_else(|| TosaError::invalid(place, format!("the attribute {name} has {} bytes", bytes.len())))
}

/// The value of a constant tensor of one element that is a zero point or a shift; of floats it is 0.
pub(super) fn one(tensor: &Tensor) -> std::result::Result<i64, String> {
    let constant = tensor.constant.as_ref().ok_or("has to be constant")?;
    if tensor.elements() != Some(1) {
        return Err(format!("has the sizes {:?}, and has to be one number", tensor.shape));
    }
    let bytes = constant.bytes();
    match tensor.element.is_float() {
        true if tensor.element.float(bytes) == Some(0.0) => Ok(0),
        true => Err("has to be zero, as the tensors are floats".to_owned()),
        false => tensor.element.integer(bytes).ok_or_else(|| "has no value".to_owned()),
    }
}
