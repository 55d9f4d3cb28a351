//! What the few operators compute that exports of common networks leave outside of the delegate: means without the reduced
//! dimensions, and what remains of decomposed attention.

use halite_formats::pte::Value;
use halite_ops::{
    DType,
    expression::{Function as F, Operand, Scalar},
    reduce::ReduceKind,
};

use super::Result;
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// Names of the operators.
const KNOWN: &[&str] = &["aten::mul.Scalar_out", "aten::mean.out", "aten::any.out"];

/// Whether an operator is one of those, at least with some arguments.
pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// The result of an operator, if it is one of those: `x` is its first argument, `args` are the values of the others.
pub(super) fn compute(
    builder: &mut Builder,
    name: &str,
    x: TensorId,
    args: &[&Value],
    values: &[Value],
) -> Result<Option<TensorId>> {
    Ok(Some(match (name, args) {
        ("aten::mul.Scalar_out", [factor, ..]) => {
            let factor = match factor {
                Value::Double(factor) => *factor,
                Value::Int(factor) => *factor as f64,
                other => return Err(builder.invalid(format!("the factor is {other:?}"))),
            };
            let element = builder.element(x);
            let factor = match element {
                ElementType::Of(dtype) if !dtype.is_float() && factor.fract() == 0.0 => {
                    Scalar::Int(factor as i64, dtype)
                }
                _ if element.is_float() => Scalar::Float(factor),
                _ => return Err(builder.unsupported(format!("{name} of {element} by {factor}"))),
            };
            builder.map(&[x], element, |p, x| p.call(F::Mul, &[x[0], Operand::Constant(factor)]))?
        }
        ("aten::mean.out", [dims, Value::Bool(keep), ..]) if builder.element(x).is_float() => {
            let axes = axes(builder, x, dims, values)?;
            builder.reduce(ReduceKind::Mean, x, &axes, *keep)?
        }
        ("aten::any.out", [dim @ Value::Int(_), Value::Bool(keep), ..]) => {
            let axes = axes(builder, x, dim, values)?;
            let truth = builder.cast(x, ElementType::Bool)?;
            let ones = builder.cast(truth, DType::I32)?;
            let most = builder.reduce(ReduceKind::Max, ones, &axes, *keep)?;
            builder.cast(most, ElementType::Bool)?
        }
        _ => return Ok(None),
    }))
}

/// Dimensions that are reduced: all where none is told.
fn axes(builder: &Builder, x: TensorId, told: &Value, values: &[Value]) -> Result<Vec<usize>> {
    let rank = builder.dims(x).len();
    let number = |value: &Value| if let Value::Int(number) = value { Some(*number) } else { None };
    let ints: Option<Vec<i64>> = match told {
        Value::Null => Some(Vec::new()),
        Value::IntList(items) => items.iter().map(|id| number(&values[*id])).collect(),
        other => number(other).map(|number| vec![number]),
    };
    let place = |dim: i64| {
        let from_front = if dim < 0 { dim.checked_add(rank as i64)? } else { dim };
        usize::try_from(from_front).ok().filter(|dim| *dim < rank)
    };
    let axes: Option<Vec<usize>> = ints.and_then(|ints| ints.into_iter().map(place).collect());
    match axes {
        Some(axes) if axes.is_empty() => Ok((0..rank).collect()),
        Some(axes) => Ok(axes),
        None => Err(builder.invalid(format!("{told:?} are no dimensions of {rank}"))),
    }
}
