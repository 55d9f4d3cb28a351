//! Of `ai.onnx.ml` numbers of classes: looked up, as columns of their own, and beside their shares.

use halite_ops::{
    DType, Values,
    expression::{Function, Type},
    reduce::ReduceKind,
};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const CLASSIC: &[(&str, Import)] =
    &[("LabelEncoder", encoded), ("OneHotEncoder", columns), ("ZipMap", zipped)];

/// Shares of classes, a line for each: the names of the classes are in the file.
fn zipped(_: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    Ok(vec![node.input(0)?])
}

/// Where elements are equal to each of some numbers, which are a new last dimension.
fn equal_to(b: &mut Builder, x: TensorId, keys: TensorId) -> Result<TensorId> {
    let mut dims = b.sizes(x).to_vec();
    dims.push(1.into());
    let x = b.reshape_to(x, &dims)?;
    b.compare(Function::Eq, x, keys)
}

/// A column for each category, of which one is 1, or none.
fn columns(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let Some(categories) = node.ints("cats_int64s")?.filter(|all| !all.is_empty()) else {
        return Err(node.unsupported("its categories are texts, which devices do not hold"));
    };
    let x = b.cast(node.input(0)?, DType::I64)?;
    let categories = b.ints_constant(&categories)?;
    let made = equal_to(b, x, categories)?;
    Ok(vec![b.cast(made, DType::F32)?])
}

/// The numbers that a list has for others.
fn encoded(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let keys = numbers(b, node, "keys")?;
    let values = numbers(b, node, "values")?;
    let (count, others) = (b.dims(keys)[0], b.dims(values)[0]);
    if count != others || count == 0 {
        return Err(node.invalid(format!("{count} numbers have {others} values")));
    }
    let element = b.element(values);
    let default = match element.storage() {
        DType::I64 if node.strings("values_strings")?.is_some() => {
            // The place behind all others is that of the text for what is not in the list.
            let behind = count.min(i64::MAX as u64) as i64;
            b.ints_constant(&[behind])?
        }
        DType::I64 => b.ints_constant(&[node.int("default_int64", -1)?])?,
        _ => b.float(DType::F32, f64::from(node.float("default_float", -0.0)?))?,
    };
    let own = b.element(keys);
    let x = b.cast(node.input(0)?, own)?;
    let found = equal_to(b, x, keys)?;
    let none = b.values(element, &[1], &zero(element))?;
    let picked = b.select(found, values, none)?;
    let last = b.rank(picked) - 1;
    let value = b.reduce(ReduceKind::Sum, picked, &[last], false)?;
    let found = b.map(&[found], DType::I32, |program, x| program.cast(Type::Of(DType::I32), x[0]))?;
    let found = b.reduce(ReduceKind::Max, found, &[last], false)?;
    let found = b.cast(found, ElementType::Bool)?;
    Ok(vec![b.select(found, value, default)?])
}

fn zero(element: ElementType) -> Values {
    match element.storage() {
        DType::I64 => Values::Int(vec![0]),
        _ => Values::Float(vec![0.0]),
    }
}

/// A list of numbers, each once.
fn numbers(b: &mut Builder, node: &NodeView<'_>, what: &str) -> Result<TensorId> {
    if let Some(ints) = node.ints(&format!("{what}_int64s"))? {
        if what == "keys" && ints.iter().collect::<std::collections::HashSet<_>>().len() != ints.len() {
            return Err(node.invalid("a number has two values"));
        }
        return b.ints_constant(&ints);
    }
    if let Some(texts) = node.strings("values_strings")?.filter(|_| what == "values") {
        // Their places, as those of labels: devices hold no texts.
        return b.ints_constant(&(0..texts.len() as i64).collect::<Vec<_>>());
    }
    match node.floats(&format!("{what}_floats"))? {
        Some(floats) if floats.iter().any(|float| float.is_nan()) && what == "keys" => {
            Err(node.unsupported("a value for what is no number"))
        }
        Some(floats) => {
            let values = Values::Float(floats.iter().map(|float| f64::from(*float)).collect());
            b.values(DType::F32, &[floats.len() as u64], &values)
        }
        None => Err(node.unsupported(format!("its {what} are no lists of 64-bit integers or 32-bit floats"))),
    }
}
