//! Of `ai.onnx.ml` ensembles of trees, as lists of nodes.

use std::collections::{HashMap, HashSet};

use halite_ops::{DType, Values, expression::Function, reduce::ReduceKind};

use super::{
    Import, NodeView, Result,
    classic_forest::{Forest, Split, Test},
    classic_scores::{above, best, either, labels, row, transformed},
};
use crate::{
    build::{Builder, budget::Cost},
    graph::TensorId,
};

pub(super) const CLASSIC: &[(&str, Import)] =
    &[("TreeEnsembleClassifier", classifier), ("TreeEnsembleRegressor", regressor)];

/// The place of each node by the number of its tree and its own.
type Places = HashMap<(i64, i64), usize>;

/// Floats of an attribute: a list, or a tensor whose name has a suffix, which may have 64 bits. Whether it has them is told too.
pub(super) fn floats(b: &Builder, node: &NodeView<'_>, name: &str) -> Result<(Vec<f64>, bool)> {
    let list = node.floats(name)?.unwrap_or_default();
    let tensor = format!("{name}_as_tensor");
    match node.has(&tensor) {
        true if list.is_empty() => tensor_of_floats(b, node, &tensor),
        true => Err(node.invalid(format!("'{name}' and '{tensor}' are both there"))),
        false => Ok((list.into_iter().map(f64::from).collect(), false)),
    }
}

/// Floats of an attribute that is a tensor, and whether they have 64 bits.
pub(super) fn tensor_of_floats(b: &Builder, node: &NodeView<'_>, name: &str) -> Result<(Vec<f64>, bool)> {
    let Some((element, _, bytes)) = node.tensor(b, name)? else { return Ok((Vec::new(), false)) };
    let dtype = element.storage();
    b.spend(Cost::Constant, (bytes.len() as u64).saturating_mul(8 / dtype.size().max(1)))?;
    Ok((Values::from_bytes(dtype, &bytes).floats(), dtype == DType::F64))
}

/// The trees, and where their nodes are.
fn forest(b: &Builder, node: &NodeView<'_>) -> Result<(Forest, Places)> {
    let list = |name: &str| Ok(node.ints(name)?.unwrap_or_default());
    let (trees, own) = (list("nodes_treeids")?, list("nodes_nodeids")?);
    let children = [list("nodes_truenodeids")?, list("nodes_falsenodeids")?];
    let features = list("nodes_featureids")?;
    let (thresholds, is_double) = floats(b, node, "nodes_values")?;
    let modes = node.strings("nodes_modes")?.unwrap_or_default();
    let mut tracks = list("nodes_missing_value_tracks_true")?;
    tracks.resize(trees.len(), 0);
    let counts =
        [own.len(), children[0].len(), children[1].len(), features.len(), thresholds.len(), modes.len()];
    if trees.is_empty() || counts.iter().any(|count| *count != trees.len()) {
        return Err(node.invalid(format!("{} nodes of trees, of which lists have {counts:?}", trees.len())));
    }
    let ids = trees.iter().copied().zip(own);
    let places: Places = ids.enumerate().map(|(place, id)| (id, place)).collect();
    let mut nodes = Vec::with_capacity(trees.len());
    let mut led = HashSet::new();
    for (place, tree) in trees.iter().enumerate() {
        let Some(test) = test(node, &modes[place])? else {
            nodes.push(None);
            continue;
        };
        let ids = children.each_ref().map(|all| (*tree, all[place]));
        let [Some(yes), Some(no)] = ids.map(|id| places.get(&id).copied()) else {
            let text = format!("node {place} leads to nodes {ids:?} of trees, which are not there");
            return Err(node.invalid(text));
        };
        led.extend([yes, no].into_iter().filter(|child| *child != place));
        let (feature, threshold, missing) = (features[place], thresholds[place], tracks[place] != 0);
        nodes.push(Some(Split { feature, threshold, test, missing, children: [yes, no] }));
    }
    // The nodes that no other leads to, in the order of their trees.
    let roots = (0..trees.len()).filter(|place| !led.contains(place)).collect();
    Ok((Forest::new(node, nodes, roots, is_double, false)?, places))
}

/// How a node compares; leaves do not.
fn test(node: &NodeView<'_>, mode: &str) -> Result<Option<Test>> {
    Ok(Some(match mode {
        "LEAF" => return Ok(None),
        "BRANCH_LEQ" => Test::AtMost,
        "BRANCH_LT" => Test::Below,
        "BRANCH_GTE" => Test::AtLeast,
        "BRANCH_GT" => Test::Above,
        "BRANCH_EQ" => Test::Equal,
        "BRANCH_NEQ" => Test::Other,
        other => return Err(node.invalid(format!("nodes of trees compare by {other}, which is no way"))),
    }))
}

/// What leaves give to each of some results.
pub(super) struct Weights {
    /// For each node of the forest its weight for each result.
    all: Vec<f64>,
    results: u64,
    /// The results that some leaf gives something to.
    given: HashSet<i64>,
    /// Whether no weight is below 0.
    positive: bool,
    kind: ReduceKind,
}

/// What stands for a leaf that gives nothing.
fn nothing(kind: ReduceKind) -> f64 {
    match kind {
        ReduceKind::Min => f64::INFINITY,
        ReduceKind::Max => f64::NEG_INFINITY,
        _ => 0.0,
    }
}

impl Weights {
    /// A table of what was listed: the place of a leaf, a result, the weight.
    pub(super) fn new(
        b: &Builder,
        node: &NodeView<'_>,
        forest: &Forest,
        listed: &[(usize, i64, f64)],
        (results, kind): (u64, ReduceKind),
    ) -> Result<Weights> {
        let elements = results.saturating_mul(forest.len() as u64);
        b.spend(Cost::Constant, elements.saturating_mul(8))?;
        let mut all = vec![nothing(kind); elements as usize];
        for (place, id, weight) in listed {
            let Some(result) = u64::try_from(*id).ok().filter(|id| *id < results) else {
                let text = format!("a leaf gives something to result {id} of {results}, which is not there");
                return Err(node.invalid(text));
            };
            let own = &mut all[place * results as usize + result as usize];
            *own = match kind {
                ReduceKind::Min => own.min(*weight),
                ReduceKind::Max => own.max(*weight),
                _ => *own + *weight,
            };
        }
        let positive = listed.iter().all(|(_, _, weight)| *weight >= 0.0);
        let given = listed.iter().map(|(_, id, _)| *id).collect();
        Ok(Weights { all, results, given, positive, kind })
    }

    /// The lists of a node whose names begin in a way.
    fn of(
        b: &Builder,
        node: &NodeView<'_>,
        (forest, places): &(Forest, Places),
        what: &str,
        results: (u64, ReduceKind),
    ) -> Result<Weights> {
        let list = |name: &str| Ok(node.ints(&format!("{what}_{name}"))?.unwrap_or_default());
        let (trees, own, ids) = (list("treeids")?, list("nodeids")?, list("ids")?);
        let (weights, _) = floats(b, node, &format!("{what}_weights"))?;
        if [trees.len(), own.len(), ids.len()].iter().any(|count| *count != weights.len()) {
            return Err(
                node.invalid(format!("{} weights of leaves, and lists of other lengths", weights.len()))
            );
        }
        let mut listed = Vec::with_capacity(ids.len());
        for (((tree, own), id), weight) in trees.into_iter().zip(own).zip(ids).zip(weights) {
            let Some(place) = places.get(&(tree, own)) else {
                let text = format!("node {own} of tree {tree} gives something, and is not there");
                return Err(node.invalid(text));
            };
            listed.push((*place, id, weight));
        }
        Weights::new(b, node, forest, &listed, results)
    }

    /// The weights of what trees came to, for each line and result.
    pub(super) fn summed(&self, b: &mut Builder, leaves: TensorId) -> Result<TensorId> {
        let nodes = self.all.len() as u64 / self.results;
        let table = row(b, &[nodes, self.results], self.all.iter().map(|weight| *weight as f32))?;
        let each = b.gather(table, leaves, 0)?;
        let made = b.reduce(self.kind, each, &[1], false)?;
        let nothing = nothing(self.kind);
        if nothing == 0.0 {
            return Ok(made);
        }
        // Where no leaf gave anything.
        let (nothing, zero) = (b.float(DType::F32, nothing)?, b.float(DType::F32, 0.0)?);
        b.map(&[made, nothing, zero], DType::F32, |program, x| {
            let is_nothing = program.call(Function::Eq, &x[..2]);
            program.call(Function::Select, &[is_nothing, x[2], x[0]])
        })
    }
}

/// How many results there are, by an attribute.
pub(super) fn results(node: &NodeView<'_>) -> Result<u64> {
    let results = node.int("n_targets", 1)?;
    let found = u64::try_from(results).ok().filter(|results| *results > 0);
    found.ok_or_else(|| node.invalid(format!("{results} results of trees")))
}

fn regressor(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (results, trees) = (results(node)?, forest(b, node)?);
    let kind = match node.string("aggregate_function", "SUM")?.as_str() {
        "SUM" => ReduceKind::Sum,
        "AVERAGE" => ReduceKind::Mean,
        "MIN" => ReduceKind::Min,
        "MAX" => ReduceKind::Max,
        other => return Err(node.invalid(format!("trees are put together by {other}, which is no way"))),
    };
    let weights = Weights::of(b, node, &trees, "target", (results, kind))?;
    let leaves = trees.0.walk(b, node)?;
    let mut made = weights.summed(b, leaves)?;
    let (base, _) = floats(b, node, "base_values")?;
    if !base.is_empty() {
        if base.len() as u64 != results {
            return Err(node.invalid(format!("{} base values for {results} results", base.len())));
        }
        let base = row(b, &[1, results], base.into_iter().map(|base| base as f32))?;
        made = b.binary(Function::Add, made, base)?;
    }
    Ok(vec![transformed(b, node, made)?])
}

fn classifier(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (trees, labels) = (forest(b, node)?, labels(node)?);
    let weights = Weights::of(b, node, &trees, "class", (labels.len() as u64, ReduceKind::Sum))?;
    let leaves = trees.0.walk(b, node)?;
    let scores = weights.summed(b, leaves)?;
    let base: Vec<f32> = floats(b, node, "base_values")?.0.into_iter().map(|base| base as f32).collect();
    if labels.len() == 2 && weights.given.len() == 1 {
        let only = *weights.given.iter().next().expect("there is one");
        return of_one_class(b, node, scores, &base, ([labels[1], labels[0]], only, weights.positive));
    }
    if !base.is_empty() && (base.len() != labels.len() || labels.len() == 2) {
        return Err(node.unsupported(format!("{} base values for {} classes", base.len(), labels.len())));
    }
    let mut scores = scores;
    if !base.is_empty() {
        let base = row(b, &[1, labels.len() as u64], base)?;
        scores = b.binary(Function::Add, scores, base)?;
    }
    let label = if labels.len() == 2 {
        // So ONNX Runtime chooses where both classes have scores: by the second alone.
        let second = b.values(DType::I32, &[1], &Values::Int(vec![1]))?;
        let second = b.gather(scores, second, 1)?;
        let condition = above(b, second, 0.0)?;
        either(b, condition, [1, 0])?
    } else {
        best(b, scores, &labels)?
    };
    Ok(vec![label, transformed(b, node, scores)?])
}

/// Label and scores of two classes, of which trees give a score to one. What ONNX does not say is as ONNX Runtime has it.
fn of_one_class(
    b: &mut Builder,
    node: &NodeView<'_>,
    scores: TensorId,
    base: &[f32],
    (labels, only, positive): ([i64; 2], i64, bool),
) -> Result<Vec<TensorId>> {
    let place = b.values(DType::I32, &[1], &Values::Int(vec![only]))?;
    let mut score = b.gather(scores, place, 1)?;
    if let (Some(base), 0) = (base.first(), only) {
        let base = b.float(DType::F32, f64::from(*base))?;
        score = b.binary(Function::Add, score, base)?;
    }
    let condition = above(b, score, if positive { 0.5 } else { 0.0 })?;
    let label = either(b, condition, labels)?;
    let both = match (only, base) {
        (0, [] | [_]) => return Ok(vec![label, with_other(b, node, score, positive)?]),
        (0, [_, _]) => {
            let none = b.binary(Function::Sub, score, score)?;
            b.concat(&[score, none], 1)?
        }
        // ONNX Runtime leaves out the base value, too.
        (_, [] | [_]) => scores,
        _ => return Err(node.unsupported(format!("{} base values of the second class alone", base.len()))),
    };
    Ok(vec![label, transformed(b, node, both)?])
}

/// The score of one class behind that of the other, which has the rest of 1, or the score with the other sign.
fn with_other(b: &mut Builder, node: &NodeView<'_>, score: TensorId, positive: bool) -> Result<TensorId> {
    let transform = node.string("post_transform", "NONE")?;
    let other = if positive && transform != "LOGISTIC" {
        let one = b.float(DType::F32, 1.0)?;
        b.binary(Function::Sub, one, score)?
    } else {
        b.unary(Function::Neg, score)?
    };
    let both = b.concat(&[other, score], 1)?;
    // Shares that add up to 1 are left as they are.
    match transform.as_str() {
        "PROBIT" | "LOGISTIC" => transformed(b, node, both),
        _ => Ok(both),
    }
}
