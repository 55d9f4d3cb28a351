//! Of `ai.onnx.ml` what prepares features.

use halite_ops::{DType, Values, expression::Function, pad::Border, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    classic_scores::{above, lines, row},
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const CLASSIC: &[(&str, Import)] = &[
    ("ArrayFeatureExtractor", features),
    ("Binarizer", binarized),
    ("FeatureVectorizer", joined),
    ("Imputer", imputed),
    ("Normalizer", normalized),
    ("Scaler", scaled),
];

/// 1 where features are above a threshold, 0 elsewhere.
fn binarized(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let element = b.element(x);
    let threshold = f64::from(node.float("threshold", 0.0)?);
    let floats = b.as_f32(x)?;
    let made = above(b, floats, threshold)?;
    Ok(vec![b.cast(made, element)?])
}

/// Features of several tensors beside each other, of each as many as is said: what is more is left out, what lacks is 0.
fn joined(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let inputs = node.variadic()?;
    let counts = node.ints("inputdimensions")?.unwrap_or_default();
    if counts.len() != inputs.len() {
        return Err(node.invalid(format!(
            "{} tensors and {} numbers of features",
            inputs.len(),
            counts.len()
        )));
    }
    let mut parts = Vec::with_capacity(inputs.len());
    for (place, count) in counts.into_iter().enumerate() {
        let x = lines(b, &node.over(inputs[place], 1))?;
        let features = b.sizes(x)[1];
        if !features.is_constant() || count < 1 {
            let text = format!("{count} of {features} features: there is at least one of a known number");
            return Err(node.unsupported(text));
        }
        let more = count - features.value() as i64;
        let x = if more == 0 { x } else { b.pad(x, &[(0, 0), (0, more)], Border::Constant, 0.0)? };
        parts.push(x);
    }
    Ok(vec![b.concat(&parts, 1)?])
}

/// Features with an offset taken off, and a factor.
fn scaled(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = lines(b, node)?;
    let list = |name: &str, b: &mut Builder| -> Result<Option<TensorId>> {
        let Some(values) = node.floats(name)?.filter(|values| !values.is_empty()) else { return Ok(None) };
        let count = values.len() as u64;
        if count != 1 && !b.sizes(x)[1].agrees(count) {
            return Err(node.invalid(format!("'{name}' has {count} values for {}", b.describe(&[x]))));
        }
        row(b, &[1, count], values).map(Some)
    };
    let (offset, scale) = (list("offset", b)?, list("scale", b)?);
    let mut made = x;
    for (function, values) in [(Function::Sub, offset), (Function::Mul, scale)] {
        if let Some(values) = values {
            made = b.binary(function, made, values)?;
        }
    }
    let dims = b.sizes(node.input(0)?).to_vec();
    Ok(vec![b.reshape_to(made, &dims)?])
}

/// Lines over their norm; lines of zeros stay.
fn normalized(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = lines(b, node)?;
    let kind = match node.string("norm", "MAX")?.as_str() {
        "MAX" => ReduceKind::Max,
        "L1" => ReduceKind::L1,
        "L2" => ReduceKind::L2,
        other => return Err(node.invalid(format!("the norm {other}; there are MAX, L1 and L2"))),
    };
    let norm = b.reduce(kind, x, &[1], true)?;
    let (none, one) = (b.float(DType::F32, 0.0)?, b.float(DType::F32, 1.0)?);
    let made = b.map(&[x, norm, none, one], DType::F32, |program, x| {
        let zero = program.call(Function::Eq, &x[1..3]);
        let norm = program.call(Function::Select, &[zero, x[3], x[1]]);
        program.call(Function::Div, &[x[0], norm])
    })?;
    let dims = b.sizes(node.input(0)?).to_vec();
    Ok(vec![b.reshape_to(made, &dims)?])
}

/// One value of a feature, or what is missing, in place of another.
fn imputed(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let element = b.element(x);
    let (name, values, missing) = match element.storage() {
        DType::I64 => {
            let all = node.ints("imputed_value_int64s")?.unwrap_or_default();
            let missing = b.ints_constant(&[node.int("replaced_value_int64", 0)?])?;
            ("imputed_value_int64s", b.ints_constant(&all)?, b.compare(Function::Eq, x, missing)?)
        }
        DType::F32 => {
            let all = node.floats("imputed_value_floats")?.unwrap_or_default();
            let values = Values::Float(all.iter().map(|value| f64::from(*value)).collect());
            let values = b.values(DType::F32, &[all.len() as u64], &values)?;
            let replaced = node.float("replaced_value_float", 0.0)?;
            let missing = if replaced.is_nan() {
                b.map(&[x], ElementType::Bool, |program, x| program.call(Function::IsNan, &[x[0]]))?
            } else {
                let replaced = b.float(DType::F32, f64::from(replaced))?;
                b.compare(Function::Eq, x, replaced)?
            };
            ("imputed_value_floats", values, missing)
        }
        _ => {
            return Err(node.unsupported(format!(
                "{}: numbers of 32-bit floats or 64-bit integers are imputed",
                b.describe(&[x])
            )));
        }
    };
    let count = b.sizes(values)[0];
    let last = b.sizes(x).last().copied();
    // Of which dimension the features are is said nowhere, and ONNX Runtime takes the second of all.
    if count != 1 && b.sizes(x).len() > 2 {
        return Err(node.unsupported(format!(
            "values for each feature of {}, which is no list of lines",
            b.describe(&[x])
        )));
    }
    if count != 1 && last != Some(count) || count == 0 {
        let text = format!(
            "'{name}' has {count} values for {}; there is one, or one for each feature",
            b.describe(&[x])
        );
        return Err(node.invalid(text));
    }
    Ok(vec![b.select(missing, values, x)?])
}

/// Places of the last dimension; of a line a matrix of one row.
fn features(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, places) = (node.input(0)?, node.input(1)?);
    let mut dims = b.sizes(x).to_vec();
    let count: Size = b.sizes(places).iter().product();
    let Some(last) = dims.len().checked_sub(1) else {
        return Err(node.invalid(format!("{} has no features", b.describe(&[x]))));
    };
    let flat = b.reshape_to(places, &[count])?;
    let made = b.gather(x, flat, last)?;
    dims[last] = count;
    if last == 0 {
        dims.insert(0, 1.into());
    }
    Ok(vec![b.reshape_to(made, &dims)?])
}
