//! Operators on the elements of several tensors: arithmetic, comparisons, logic, choices, conversions.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Add", |b, n| binary(b, n, Function::Add)),
    ("And", |b, n| binary(b, n, Function::And)),
    ("BitCast", bit_cast),
    ("BitShift", bit_shift),
    ("BitwiseAnd", |b, n| binary(b, n, Function::And)),
    ("BitwiseOr", |b, n| binary(b, n, Function::Or)),
    ("BitwiseXor", |b, n| binary(b, n, Function::Xor)),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Clip", clip),
    ("Div", |b, n| binary(b, n, Function::Div)),
    ("Equal", |b, n| compare(b, n, Function::Eq)),
    ("Greater", |b, n| compare(b, n, Function::Gt)),
    ("GreaterOrEqual", |b, n| compare(b, n, Function::Ge)),
    ("Less", |b, n| compare(b, n, Function::Lt)),
    ("LessOrEqual", |b, n| compare(b, n, Function::Le)),
    ("Max", |b, n| Ok(vec![variadic(b, n, Function::Max)?])),
    ("Mean", mean),
    ("Min", |b, n| Ok(vec![variadic(b, n, Function::Min)?])),
    ("Mod", modulo),
    ("Mul", |b, n| binary(b, n, Function::Mul)),
    ("Or", |b, n| binary(b, n, Function::Or)),
    ("Pow", pow),
    ("PRelu", prelu),
    ("Sub", |b, n| binary(b, n, Function::Sub)),
    ("Sum", |b, n| Ok(vec![variadic(b, n, Function::Add)?])),
    ("Where", select),
    ("Xor", |b, n| binary(b, n, Function::Xor)),
];

/// Tensors that one expression reads when there are many.
const AT_ONCE: usize = 8;

fn binary(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    Ok(vec![b.binary(function, node.input(0)?, node.input(1)?)?])
}

fn compare(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<Vec<TensorId>> {
    Ok(vec![b.compare(function, node.input(0)?, node.input(1)?)?])
}

/// A function of two that is applied to all inputs, one after the other.
fn variadic(b: &mut Builder, node: &NodeView<'_>, function: Function) -> Result<TensorId> {
    let all = node.variadic()?;
    let element = b.element(all[0]);
    let mut rest = &all[1..];
    let mut result = all[0];
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(AT_ONCE));
        let ids: Vec<TensorId> = std::iter::once(result).chain(now.iter().copied()).collect();
        result = b.map(&ids, element, |program, x| {
            x[1..].iter().fold(x[0], |sum, next| program.call(function, &[sum, *next]))
        })?;
        rest = later;
    }
    Ok(result)
}

fn mean(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let sum = variadic(b, node, Function::Add)?;
    let element = b.element(sum);
    let share = 1.0 / node.inputs.len() as f32;
    Ok(vec![b.map(&[sum], element, |program, x| program.call(Function::Mul, &[x[0], share.into()]))?])
}

fn modulo(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let function = if node.flag("fmod", false)? { Function::Fmod } else { Function::Mod };
    binary(b, node, function)
}

fn bit_shift(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    match node.string("direction", "")?.as_str() {
        "LEFT" => binary(b, node, Function::Shl),
        "RIGHT" => binary(b, node, Function::Shr),
        other => Err(node.invalid(format!("there is no direction '{other}'; it is LEFT or RIGHT"))),
    }
}

fn select(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    Ok(vec![b.select(node.input(0)?, node.input(1)?, node.input(2)?)?])
}

fn cast(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let element = node.element("to")?.ok_or_else(|| node.invalid("the attribute 'to' is missing"))?;
    Ok(vec![b.cast(node.input(0)?, element)?])
}

fn cast_like(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let element = b.element(node.input(1)?);
    Ok(vec![b.cast(node.input(0)?, element)?])
}

fn bit_cast(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let element = node.element("to")?.ok_or_else(|| node.invalid("the attribute 'to' is missing"))?;
    let x = node.input(0)?;
    if element.storage().size() != b.element(x).storage().size() {
        return Err(node.invalid(format!("{} has elements of another size than {element}", b.describe(&[x]))));
    }
    let dims = b.sizes(x).to_vec();
    Ok(vec![b.view(x, element, &dims)?])
}

/// Limits are attributes before version 11, and inputs since.
fn clip(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let element = b.element(x);
    let limits = [("min", 1, Function::Max), ("max", 2, Function::Min)];
    let mut result = x;
    for (name, input, function) in limits {
        let limit = match (node.optional(input), node.float_if(name)?) {
            (Some(limit), _) => b.reshape(limit, &[])?,
            (None, Some(limit)) => b.float(element, limit.into())?,
            (None, None) => continue,
        };
        result = b.binary(function, result, limit)?;
    }
    Ok(vec![result])
}

fn prelu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, slope) = (node.input(0)?, node.input(1)?);
    let element = b.element(x);
    let y = b.map(&[x, slope], element, |program, x| {
        if element.is_float() {
            return program.call(Function::Prelu, x);
        }
        let scaled = program.call(Function::Mul, x);
        let below = program.call(Function::Lt, &[x[0], int(0, element.storage())]);
        program.call(Function::Select, &[below, scaled, x[0]])
    })?;
    Ok(vec![y])
}

fn int(value: i64, dtype: DType) -> Operand {
    Operand::Constant(Scalar::Int(value, dtype))
}

/// The result has the type of the base, whatever the exponent's.
fn pow(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (base, exponent) = (node.input(0)?, node.input(1)?);
    let element = b.element(base);
    let result = match (element, b.element(exponent).is_float()) {
        (of, _) if of.is_float() => {
            let exponent = b.as_f32(exponent)?;
            b.map(&[base, exponent], element, |program, x| program.call(Function::Pow, x))?
        }
        (ElementType::Of(dtype), false) => {
            let exponent = b.cast(exponent, dtype)?;
            b.binary(Function::Pow, base, exponent)?
        }
        _ => {
            let base = b.as_f32(base)?;
            let exponent = b.as_f32(exponent)?;
            b.map(&[base, exponent], element, |program, x| {
                let power = program.call(Function::Pow, x);
                // A power that should be a whole number may be a little less, and is truncated.
                let above = program.call(Function::Mul, &[power, (1.0 + f32::EPSILON * 16.0).into()]);
                program.cast(element.value(), above)
            })?
        }
    };
    Ok(vec![result])
}
