//! `TreeEnsemble` of `ai.onnx.ml`: trees whose leaves are lists of their own.

use halite_ops::{DType, reduce::ReduceKind};

use super::{
    Import, NodeView, Result,
    classic_forest::{Forest, Split, Test},
    classic_scores::transform,
    classic_trees::{Weights, results, tensor_of_floats},
};
use crate::{build::Builder, graph::TensorId};

pub(super) const CLASSIC: &[(&str, Import)] = &[("TreeEnsemble", ensemble)];

/// What the numbers of `post_transform` mean.
const TRANSFORMS: [&str; 5] = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];

fn ensemble(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let results = results(node)?;
    let kind = match node.int("aggregate_function", 1)? {
        0 => ReduceKind::Mean,
        1 => ReduceKind::Sum,
        2 => ReduceKind::Min,
        3 => ReduceKind::Max,
        other => return Err(node.invalid(format!("trees are put together by {other}, which is no way"))),
    };
    let transformation = node.int("post_transform", 0)?;
    let name = usize::try_from(transformation).ok().and_then(|at| TRANSFORMS.get(at));
    let name = name.ok_or_else(|| node.invalid(format!("post_transform is {transformation}")))?;
    let ids = node.ints("leaf_targetids")?.unwrap_or_default();
    let (weights, _) = tensor_of_floats(b, node, "leaf_weights")?;
    if ids.len() != weights.len() || ids.is_empty() {
        return Err(node.invalid(format!("{} weights of {} leaves", weights.len(), ids.len())));
    }
    let (forest, inner) = forest(b, node, ids.len())?;
    let listed = ids.into_iter().zip(weights).enumerate();
    let listed: Vec<_> = listed.map(|(leaf, (id, weight))| (inner + leaf, id, weight)).collect();
    let weights = Weights::new(b, node, &forest, &listed, (results, kind))?;
    let leaves = forest.walk(b, node)?;
    let scores = weights.summed(b, leaves)?;
    let made = transform(b, node, name, scores)?;
    let element = b.element(node.input(0)?);
    Ok(vec![if element.is_float() { b.cast(made, element)? } else { made }])
}

/// The trees, and the number of nodes that compare: leaves lie behind them.
fn forest(b: &Builder, node: &NodeView<'_>, leaves: usize) -> Result<(Forest, usize)> {
    let list = |name: &str| Ok(node.ints(name)?.unwrap_or_default());
    let features = list("nodes_featureids")?;
    let children = [list("nodes_truenodeids")?, list("nodes_falsenodeids")?];
    let are_leaves = [list("nodes_trueleafs")?, list("nodes_falseleafs")?];
    let (thresholds, is_double) = tensor_of_floats(b, node, "nodes_splits")?;
    let modes = match node.tensor(b, "nodes_modes")? {
        Some((element, _, bytes)) if element.storage() == DType::U8 => bytes.to_vec(),
        _ => return Err(node.invalid("'nodes_modes' is no tensor of bytes")),
    };
    let mut tracks = list("nodes_missing_value_tracks_true")?;
    tracks.resize(features.len(), 0);
    let lists = children.iter().chain(&are_leaves).map(Vec::len);
    let counts: Vec<usize> = lists.chain([thresholds.len(), modes.len()]).collect();
    if counts.iter().any(|count| *count != features.len()) {
        return Err(node.invalid(format!("{} nodes, of which lists have {counts:?}", features.len())));
    }
    let inner = features.len();
    let mut sets = Sets::of(b, node)?;
    let mut nodes = Vec::with_capacity(inner + leaves);
    for place in 0..inner {
        let mut led = [0; 2];
        for (side, led) in led.iter_mut().enumerate() {
            let is_leaf = are_leaves[side][place] != 0;
            let (before, count) = if is_leaf { (inner, leaves) } else { (0, inner) };
            let id = children[side][place];
            let at = usize::try_from(id).ok().filter(|id| *id < count);
            let what = if is_leaf { "leaf" } else { "node" };
            *led = before
                + at.ok_or_else(|| {
                    node.invalid(format!("node {place} leads to {what} {id} of {count}, which is not there"))
                })?;
        }
        let test = match modes[place] {
            0 => Test::AtMost,
            1 => Test::Below,
            2 => Test::AtLeast,
            3 => Test::Above,
            4 => Test::Equal,
            5 => Test::Other,
            6 => Test::Among(sets.next(node)?),
            other => return Err(node.invalid(format!("node {place} compares by {other}, which is no way"))),
        };
        let (feature, threshold, missing) = (features[place], thresholds[place], tracks[place] != 0);
        nodes.push(Some(Split { feature, threshold, test, missing, children: led }));
    }
    nodes.extend((0..leaves).map(|_| None));
    let roots = roots(node, inner)?;
    Ok((Forest::new(node, nodes, roots, is_double, true)?, inner))
}

/// The nodes that trees begin with.
fn roots(node: &NodeView<'_>, inner: usize) -> Result<Vec<usize>> {
    let roots = node.ints("tree_roots")?.unwrap_or_default().into_iter().map(|root| {
        let place = usize::try_from(root).ok().filter(|place| *place < inner);
        place.ok_or_else(|| node.invalid(format!("a tree begins with node {root} of {inner}")))
    });
    roots.collect()
}

/// Sets of numbers, one behind the other, each of which ends with what is no number.
struct Sets {
    left: std::vec::IntoIter<f64>,
}

impl Sets {
    fn of(b: &Builder, node: &NodeView<'_>) -> Result<Sets> {
        Ok(Sets { left: tensor_of_floats(b, node, "membership_values")?.0.into_iter() })
    }

    fn next(&mut self, node: &NodeView<'_>) -> Result<Vec<f64>> {
        if self.left.len() == 0 {
            return Err(node.invalid("'membership_values' has less sets than nodes ask for"));
        }
        Ok(self.left.by_ref().take_while(|number| !number.is_nan()).collect())
    }
}
