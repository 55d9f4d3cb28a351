//! Of `ai.onnx.ml` what networks and neighbours of scikit-learn have beside operators of ONNX's own.

use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const CLASSIC: &[(&str, Import)] = &[("ArrayFeatureExtractor", features)];

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
