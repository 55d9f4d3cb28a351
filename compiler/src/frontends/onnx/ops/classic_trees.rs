//! Of `ai.onnx.ml` ensembles of trees. All trees are walked at once, a level at a time: for each line and tree there is the place of a node,
//! which tables give the next place for.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Values,
    expression::{Function, Type},
    reduce::ReduceKind,
};

use super::{
    Import, NodeView, Result,
    classic_scores::{above, best, either, labels, lines, row, transformed},
};
use crate::{
    build::{Builder, budget::Cost},
    graph::TensorId,
};

pub(super) const CLASSIC: &[(&str, Import)] =
    &[("TreeEnsembleClassifier", classifier), ("TreeEnsembleRegressor", regressor)];

/// Nodes of trees. Each goes to its first child where the feature is at most the threshold.
struct Forest {
    features: Vec<i64>,
    thresholds: Vec<f32>,
    /// Two for each node; leaves lead to themselves.
    children: Vec<i64>,
    /// Whether what is no number goes to the first child.
    missing: Vec<bool>,
    roots: Vec<i64>,
    /// Steps from a root to the last leaf.
    depth: usize,
    /// The place of a node by the number of its tree and its own.
    places: HashMap<(i64, i64), usize>,
}

impl Forest {
    fn of(node: &NodeView<'_>) -> Result<Forest> {
        if node.has("nodes_values_as_tensor") {
            return Err(node.unsupported("its thresholds have 64 bits"));
        }
        let list = |name: &str| Ok(node.ints(name)?.unwrap_or_default());
        let (trees, own) = (list("nodes_treeids")?, list("nodes_nodeids")?);
        let children = [list("nodes_truenodeids")?, list("nodes_falsenodeids")?];
        let (features, values) =
            (list("nodes_featureids")?, node.floats("nodes_values")?.unwrap_or_default());
        let modes = node.strings("nodes_modes")?.unwrap_or_default();
        let mut tracks = list("nodes_missing_value_tracks_true")?;
        tracks.resize(trees.len(), 0);
        let counts =
            [own.len(), children[0].len(), children[1].len(), features.len(), values.len(), modes.len()];
        if trees.is_empty() || counts.iter().any(|count| *count != trees.len()) {
            return Err(
                node.invalid(format!("{} nodes of trees, of which lists have {counts:?}", trees.len()))
            );
        }
        let ids = trees.iter().copied().zip(own);
        let places: HashMap<_, _> = ids.clone().enumerate().map(|(place, id)| (id, place)).collect();
        let mut made = Forest {
            features,
            thresholds: values,
            children: Vec::new(),
            missing: tracks.iter().map(|tracks| *tracks != 0).collect(),
            roots: Vec::new(),
            depth: 0,
            places,
        };
        for (place, (tree, _)) in ids.enumerate() {
            let each =
                made.branch(node, &modes[place], place, children.each_ref().map(|all| (tree, all[place])))?;
            made.children.extend(each);
        }
        made.find_roots(&trees);
        made.measure(node)?;
        Ok(made)
    }

    /// The children of a node. Other comparisons are said by "at most": of the next smaller number, or with the children changed.
    fn branch(
        &mut self,
        node: &NodeView<'_>,
        mode: &str,
        place: usize,
        ids: [(i64, i64); 2],
    ) -> Result<[i64; 2]> {
        if mode == "LEAF" {
            (self.features[place], self.thresholds[place], self.missing[place]) = (0, 0.0, false);
            return Ok([place as i64; 2]);
        }
        let of = |id: &(i64, i64)| self.places.get(id).map(|place| *place as i64);
        let (Some(yes), Some(no)) = (of(&ids[0]), of(&ids[1])) else {
            return Err(
                node.invalid(format!("node {place} leads to nodes {ids:?} of trees, which are not there"))
            );
        };
        let (below, changed) = match mode {
            "BRANCH_LEQ" => (false, false),
            "BRANCH_LT" => (true, false),
            "BRANCH_GT" => (false, true),
            "BRANCH_GTE" => (true, true),
            other => {
                return Err(
                    node.unsupported(format!("nodes of trees compare by {other}; others compare sizes"))
                );
            }
        };
        if below {
            self.thresholds[place] = self.thresholds[place].next_down();
        }
        if changed {
            self.missing[place] = !self.missing[place];
        }
        Ok(if changed { [no, yes] } else { [yes, no] })
    }

    /// The nodes that no other leads to, in the order of their trees.
    fn find_roots(&mut self, trees: &[i64]) {
        let led = |(at, child): (usize, &i64)| (*child != at as i64 / 2).then_some(*child);
        let led: HashSet<i64> = self.children.iter().enumerate().filter_map(led).collect();
        let all = (0..trees.len() as i64).filter(|place| !led.contains(place));
        self.roots = all.collect();
    }

    /// The depth. Each node is reached once.
    fn measure(&mut self, node: &NodeView<'_>) -> Result<()> {
        let mut level = self.roots.clone();
        let mut reached = level.len();
        while !level.is_empty() {
            let inner = level.iter().filter(|place| self.children[**place as usize * 2] != **place);
            let next: Vec<i64> =
                inner.flat_map(|place| self.children[*place as usize * 2..][..2].to_vec()).collect();
            reached += next.len();
            if reached > self.features.len() {
                return Err(node.invalid("a node of a tree is reached in two ways"));
            }
            self.depth += usize::from(!next.is_empty());
            level = next;
        }
        match reached == self.features.len() {
            true => Ok(()),
            false => Err(node.invalid("nodes of trees are in a circle")),
        }
    }

    /// The places of leaves, for each line and tree.
    fn walk(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        let (trees, nodes) = (self.roots.len() as u64, self.features.len() as u64);
        let ints = |list: &[i64]| Values::Int(list.to_vec());
        let features = b.values(DType::I32, &[nodes], &ints(&self.features))?;
        let children = b.values(DType::I32, &[2 * nodes], &ints(&self.children))?;
        let thresholds = row(b, &[nodes], self.thresholds.iter().copied())?;
        let missing: Vec<i64> = self.missing.iter().map(|missing| i64::from(*missing)).collect();
        let tracks = missing.contains(&1);
        let missing = b.values(DType::I32, &[nodes], &Values::Int(missing))?;
        let at = b.values(DType::I32, &[1, trees], &ints(&self.roots))?;
        let lines = b.sizes(x)[0];
        let mut at = b.expand_to(at, &[lines, trees.into()])?;
        for _ in 0..self.depth {
            let feature = b.gather(features, at, 0)?;
            let (value, threshold) = (b.gather_elements(x, feature, 1)?, b.gather(thresholds, at, 0)?);
            let mut read = vec![at, value, threshold];
            if tracks {
                read.push(b.gather(missing, at, 0)?);
            }
            let next = b.map(&read, DType::I32, |program, x| {
                let mut first = program.call(Function::Le, &x[1..3]);
                if let Some(missing) = x.get(3) {
                    let nan = program.call(Function::IsNan, &x[1..2]);
                    let goes = program.cast(Type::Bool, *missing);
                    let goes = program.call(Function::And, &[nan, goes]);
                    first = program.call(Function::Or, &[first, goes]);
                }
                let second = program.call(Function::Not, &[first]);
                let second = program.cast(Type::Of(DType::I32), second);
                let pair = program.call(Function::Add, &[x[0], x[0]]);
                program.call(Function::Add, &[pair, second])
            })?;
            at = b.gather(children, next, 0)?;
        }
        Ok(at)
    }
}

/// What leaves give to each of some results.
struct Weights {
    /// For each node of the forest its weight for each result.
    all: Vec<f32>,
    results: u64,
    /// The results that some leaf gives something to.
    given: HashSet<i64>,
    /// Whether no weight is below 0.
    positive: bool,
}

impl Weights {
    fn of(b: &Builder, node: &NodeView<'_>, forest: &Forest, what: &str, results: u64) -> Result<Weights> {
        if node.has(&format!("{what}_weights_as_tensor")) {
            return Err(node.unsupported("its weights have 64 bits"));
        }
        let list = |name: &str| Ok(node.ints(&format!("{what}_{name}"))?.unwrap_or_default());
        let (trees, own, ids) = (list("treeids")?, list("nodeids")?, list("ids")?);
        let weights = node.floats(&format!("{what}_weights"))?.unwrap_or_default();
        if [trees.len(), own.len(), ids.len()].iter().any(|count| *count != weights.len()) {
            return Err(
                node.invalid(format!("{} weights of leaves, and lists of other lengths", weights.len()))
            );
        }
        let elements = results.saturating_mul(forest.features.len() as u64);
        b.spend(Cost::Constant, elements.saturating_mul(4))?;
        let mut all = vec![0.0; elements as usize];
        for (((tree, own), id), weight) in trees.iter().zip(&own).zip(&ids).zip(&weights) {
            let place = forest.places.get(&(*tree, *own)).copied();
            let result = u64::try_from(*id).ok().filter(|id| *id < results);
            let (Some(place), Some(result)) = (place, result) else {
                let text = format!("node {own} of tree {tree} gives something to result {id} of {results}");
                return Err(node.invalid(format!("{text}, and one of them is not there")));
            };
            all[place * results as usize + result as usize] += *weight;
        }
        let positive = weights.iter().all(|weight| *weight >= 0.0);
        Ok(Weights { all, results, given: ids.into_iter().collect(), positive })
    }

    /// The weights of what trees came to, for each line and result.
    fn summed(&self, b: &mut Builder, leaves: TensorId, kind: ReduceKind) -> Result<TensorId> {
        let nodes = self.all.len() as u64 / self.results;
        let table = row(b, &[nodes, self.results], self.all.iter().copied())?;
        let each = b.gather(table, leaves, 0)?;
        b.reduce(kind, each, &[1], false)
    }
}

fn regressor(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, forest) = (lines(b, node)?, Forest::of(node)?);
    let results = node.int("n_targets", 1)?;
    let Some(results) = u64::try_from(results).ok().filter(|results| *results > 0) else {
        return Err(node.invalid(format!("{results} results of trees")));
    };
    let weights = Weights::of(b, node, &forest, "target", results)?;
    let kind = match node.string("aggregate_function", "SUM")?.as_str() {
        "SUM" => ReduceKind::Sum,
        "AVERAGE" => ReduceKind::Mean,
        "MIN" if results == 1 => ReduceKind::Min,
        "MAX" if results == 1 => ReduceKind::Max,
        other => {
            return Err(node.unsupported(format!("{results} results of trees are put together by {other}")));
        }
    };
    let leaves = forest.walk(b, x)?;
    let mut made = weights.summed(b, leaves, kind)?;
    let base = node.floats("base_values")?.unwrap_or_default();
    if !base.is_empty() {
        if base.len() as u64 != results {
            return Err(node.invalid(format!("{} base values for {results} results", base.len())));
        }
        let base = row(b, &[1, results], base)?;
        made = b.binary(Function::Add, made, base)?;
    }
    Ok(vec![transformed(b, node, made)?])
}

fn classifier(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, forest, labels) = (lines(b, node)?, Forest::of(node)?, labels(node)?);
    let weights = Weights::of(b, node, &forest, "class", labels.len() as u64)?;
    let leaves = forest.walk(b, x)?;
    let scores = weights.summed(b, leaves, ReduceKind::Sum)?;
    let base = node.floats("base_values")?.unwrap_or_default();
    // ONNX Runtime gives the first class a score of 0 then. Of the first class alone it makes two scores, as `of_one_score` does.
    if labels.len() == 2 && weights.given.iter().eq([&1]) {
        return Err(node.unsupported("weights of the second class alone"));
    }
    if labels.len() == 2 && weights.given.len() == 1 {
        let only = *weights.given.iter().next().expect("there is one");
        let only = b.values(DType::I32, &[1], &Values::Int(vec![only]))?;
        let score = b.gather(scores, only, 1)?;
        return of_one_score(b, node, score, &base, [labels[1], labels[0]], weights.positive);
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

/// Label and scores of two classes, of which trees give a score to one.
fn of_one_score(
    b: &mut Builder,
    node: &NodeView<'_>,
    score: TensorId,
    base: &[f32],
    labels: [i64; 2],
    positive: bool,
) -> Result<Vec<TensorId>> {
    let mut score = score;
    // With two base values the second counts, and the first class has the score with the other sign.
    if let Some(base) = base.last() {
        let base = b.float(DType::F32, f64::from(*base))?;
        score = b.binary(Function::Add, score, base)?;
    }
    let condition = above(b, score, if positive { 0.5 } else { 0.0 })?;
    let label = either(b, condition, labels)?;
    let transform = node.string("post_transform", "NONE")?;
    let other = if positive && base.len() < 2 && transform != "LOGISTIC" {
        let one = b.float(DType::F32, 1.0)?;
        b.binary(Function::Sub, one, score)?
    } else {
        b.unary(Function::Neg, score)?
    };
    let both = b.concat(&[other, score], 1)?;
    // Shares that add up to 1 are left as they are.
    let both = match (base.len() == 2, transform.as_str()) {
        (true, _) | (false, "PROBIT" | "LOGISTIC") => transformed(b, node, both)?,
        _ => both,
    };
    Ok(vec![label, both])
}
