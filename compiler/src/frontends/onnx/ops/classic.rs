//! Of `ai.onnx.ml` what networks and neighbours of scikit-learn have beside operators of ONNX's own.

use halite_ops::{DType, Values, expression::Function};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

pub(super) const CLASSIC: &[(&str, Import)] = &[("ArrayFeatureExtractor", features), ("Imputer", imputed)];

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
