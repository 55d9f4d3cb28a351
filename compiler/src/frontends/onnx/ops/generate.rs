//! Operators that make tensors of nothing, or of numbers alone: constants, ranges, masks.

use halite_formats::onnx::AttributeValue;
use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::{Float, FloatFunction, Size};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Constant", constant),
    ("ConstantOfShape", constant_of_shape),
    ("EyeLike", eye_like),
    ("OneHot", one_hot),
    ("Range", range),
    ("Trilu", trilu),
];

fn constant(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if let Some((element, dims, bytes)) = node.tensor(b, "value")? {
        return Ok(vec![b.constant("", element, &dims, bytes)?]);
    }
    let floats = |all: &[f32]| Values::Float(all.iter().map(|value| f64::from(*value)).collect());
    let attribute = ["value_float", "value_floats", "value_int", "value_ints"]
        .into_iter()
        .find_map(|n| node.attribute(n));
    let made = match attribute {
        Some(AttributeValue::Float(value)) => b.values(DType::F32, &[], &floats(&[*value])),
        Some(AttributeValue::Floats(all)) => b.values(DType::F32, &[all.len() as u64], &floats(all)),
        Some(AttributeValue::Int(value)) => b.values(DType::I64, &[], &Values::Int(vec![*value])),
        Some(AttributeValue::Ints(all)) => b.ints_constant(all),
        _ => return Err(node.unsupported("a constant that is no dense tensor of numbers")),
    };
    Ok(vec![made?])
}

fn constant_of_shape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let dims = b.need_sizes(node.input(0)?, "the shape")?;
    if dims.iter().any(|size| *size < 0) {
        return Err(node.invalid(format!("{dims:?} is no shape")));
    }
    let value = match node.tensor(b, "value")? {
        Some((element, _, bytes)) => b.constant("", element, &[], bytes)?,
        None => b.float(DType::F32, 0.0)?,
    };
    Ok(vec![b.expand_to(value, &dims)?])
}

/// `start`, `start + delta`, …, below `limit`.
pub(super) fn range(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let element = b.element(node.input(0)?);
    let all = [node.input(0)?, node.input(1)?, node.input(2)?];
    if all.iter().any(|id| b.tensor(*id).constant.is_none()) {
        return Ok(vec![open_range(b, node, all)?]);
    }
    if !element.is_float() {
        let mut numbers = [0i64; 3];
        for (index, number) in numbers.iter_mut().enumerate() {
            let known = b.need_ints(node.input(index)?, "a range")?;
            *number = *known.first().ok_or_else(|| node.invalid("a range without numbers"))?;
        }
        let [start, limit, delta] = numbers.map(i128::from);
        let count = count(node, (limit - start) as f64, delta as f64)?;
        let at = |index: u64| (start + i128::from(index) * delta) as i64;
        let values = Values::Int((0..count).map(at).collect());
        return Ok(vec![b.values(element, &[count], &values)?]);
    }
    let mut numbers = [0f64; 3];
    for (index, number) in numbers.iter_mut().enumerate() {
        let known = b.need_floats(node.input(index)?, "a range")?;
        *number = *known.first().ok_or_else(|| node.invalid("a range without numbers"))?;
    }
    let [start, limit, delta] = numbers;
    let count = count(node, limit - start, delta)?;
    let values = Values::Float((0..count).map(|index| start + index as f64 * delta).collect());
    Ok(vec![b.values(element, &[count], &values)?])
}

/// A range whose numbers are not all known: from sizes that stay open, or from data.
fn open_range(b: &mut Builder, node: &NodeView<'_>, all: [TensorId; 3]) -> Result<TensorId> {
    if all.iter().any(|id| !b.tensor(*id).count().agrees(1)) {
        return Err(node.invalid("a range of what are no scalars"));
    }
    let mut scalars = all;
    for scalar in &mut scalars {
        *scalar = b.reshape(*scalar, &[])?;
    }
    let element = b.element(all[0]);
    let known: Option<Vec<Size>> = match element.is_float() {
        true => None,
        false => all.iter().map(|id| b.size_values(*id)?.first().copied()).collect(),
    };
    if let Some(count) = count_of_floats(b, scalars) {
        return b.range_along(scalars, count);
    }
    let Some(&[start, limit, delta]) = known.as_deref() else { return b.range_of(scalars) };
    if !delta.is_constant() || delta == 0 {
        if [start, limit, delta].iter().any(|number| number.is_data()) {
            return b.range_of(scalars);
        }
        let numbers = [start, limit, delta].map(Size::exact_signed);
        let [start, limit, delta] = numbers.map(i128::from);
        let count = count(node, (limit - start) as f64, delta as f64)?;
        let at = |index: u64| (start + i128::from(index) * delta) as i64;
        return b.values(element, &[count], &Values::Int((0..count).map(at).collect()));
    }
    let up = delta.signed_value() > 0;
    let (length, step) = if up { (limit - start, delta) } else { (start - limit, -delta) };
    let mut places = b.line_of_places(element, length.max(0).div_ceil(step))?;
    if delta != 1 {
        places = b.binary(Function::Mul, places, scalars[2])?;
    }
    match start.is_constant() && start == 0 {
        true => Ok(places),
        false => b.binary(Function::Add, places, scalars[0]),
    }
}

/// The number of elements of a range of floats that are computed of sizes, as `torch.arange(length, dtype=torch.float32)` is written: then
/// nobody has to wait for it.
fn count_of_floats(b: &Builder, scalars: [TensorId; 3]) -> Option<Size> {
    if b.element(scalars[0]) != DType::F32.into() {
        return None;
    }
    let mut floats = Vec::new();
    for scalar in scalars {
        floats.push(b.floats_known(scalar)?.first()?.clone());
    }
    let [start, limit, delta] = <[Float; 3]>::try_from(floats).ok()?;
    let length = Float::call(FloatFunction::Sub, vec![limit, start])?;
    // What is divided by 1 stays exact.
    let times = match delta == Float::number(1.0) {
        true => length,
        false => Float::call(FloatFunction::Div, vec![length, delta])?,
    };
    let whole = Float::call(FloatFunction::Ceil, vec![times])?;
    whole.truncated().map(|count| count.max(0))
}

fn count(node: &NodeView<'_>, length: f64, delta: f64) -> Result<u64> {
    /// More numbers than this are no range that a model means.
    const MOST: f64 = 8_388_608.0;
    let count = (length / delta).ceil().max(0.0);
    if delta == 0.0 || count.is_nan() || count > MOST {
        return Err(node.invalid(format!("a range over {length} in steps of {delta}")));
    }
    Ok(count as u64)
}

/// Numbers of rows and of columns as tensors that broadcast to a matrix.
fn rows_and_columns(b: &mut Builder, rows: Size, columns: Size) -> Result<[TensorId; 2]> {
    let one = Size::constant(1);
    let down = b.line_of_places(DType::I32, rows)?;
    let right = b.line_of_places(DType::I32, columns)?;
    Ok([b.reshape_to(down, &[rows, one])?, b.reshape_to(right, &[one, columns])?])
}

fn eye_like(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let element = node.element("dtype")?.unwrap_or_else(|| b.element(data));
    let [rows, columns] = <[Size; 2]>::try_from(b.sizes(data)).map_err(|_| node.invalid("takes a matrix"))?;
    let [down, right] = rows_and_columns(b, rows, columns)?;
    let diagonal = b.float(DType::I32, node.int("k", 0)? as f64)?;
    let down = b.binary(Function::Add, down, diagonal)?;
    let mask = b.compare(Function::Eq, down, right)?;
    Ok(vec![b.cast(mask, element)?])
}

/// The upper or lower triangle of matrices; 0 elsewhere.
pub(super) fn trilu(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let element = b.element(data);
    let &[.., rows, columns] = b.sizes(data) else { return Err(node.invalid("takes matrices")) };
    let k = node.optional(1).map(|k| b.need_ints(k, "the diagonal")).transpose()?;
    let k = k.and_then(|k| k.first().copied()).unwrap_or(0).clamp(-(1 << 30), 1 << 30);
    let [down, right] = rows_and_columns(b, rows, columns)?;
    let diagonal = b.float(DType::I32, k as f64)?;
    let down = b.binary(Function::Add, down, diagonal)?;
    let function = if node.flag("upper", true)? { Function::Ge } else { Function::Le };
    let mask = b.compare(function, right, down)?;
    let zero = b.float(element, 0.0)?;
    Ok(vec![b.select(mask, data, zero)?])
}

/// Along a new axis `on` at the index, `off` elsewhere, also for indices out of range.
fn one_hot(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (indices, values) = (node.input(0)?, node.input(2)?);
    let depth = b.need_floats(node.input(1)?, "the depth")?;
    let depth = depth.first().filter(|depth| (0.0..1e9).contains(*depth)).map(|depth| *depth as u64);
    let depth = depth.ok_or_else(|| node.invalid("the depth is no size"))?;
    let mut dims = b.sizes(indices).to_vec();
    let axis = node.axis(node.int("axis", -1)?, dims.len() + 1)?;
    dims.insert(axis, 1.into());
    let indices = if b.element(indices).is_float() { b.cast(indices, DType::I64)? } else { indices };
    let element = b.element(indices);
    let dtype = element.storage();
    let wrapped = b.map(&[indices], element, |program, x| {
        let int = |value: i64| Operand::Constant(Scalar::Int(value, dtype));
        let behind = program.call(Function::Add, &[x[0], int(depth as i64)]);
        let below = program.call(Function::Lt, &[x[0], int(0)]);
        program.call(Function::Select, &[below, behind, x[0]])
    })?;
    let wrapped = b.reshape_to(wrapped, &dims)?;
    let mut line = vec![1; dims.len()];
    line[axis] = depth;
    let places = b.places(element, &line)?;
    let mask = b.compare(Function::Eq, wrapped, places)?;
    if elements(b.dims(values)) != 2 {
        return Err(node.invalid("takes two values, off and on"));
    }
    let values = b.reshape(values, &[2])?;
    let off = super::moves::part(b, values, 0, 0, 1)?;
    let on = super::moves::part(b, values, 0, 1, 1)?;
    let (off, on) = (b.reshape(off, &[])?, b.reshape(on, &[])?);
    Ok(vec![b.select(mask, on, off)?])
}
