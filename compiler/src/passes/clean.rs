//! Leaving out what is not needed: nodes whose results nobody reads, and nodes that compute what another one computed.

use std::collections::HashMap;

use halite_ops::Operation;
use halite_sizes::{Size, Written};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, TensorId},
};

pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    join(graph, region, uses, watch)?;
    drop_unused(region, uses, watch)
}

/// Nodes without effect on any result go, from the last to the first.
fn drop_unused(region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut kept: Vec<Node> = Vec::with_capacity(region.nodes.len());
    for node in region.nodes.drain(..).rev() {
        watch.check()?;
        if has_symbols(&node) || node.outputs.iter().any(|id| uses.count(*id) > 0) {
            kept.push(node);
            continue;
        }
        node.inputs.iter().for_each(|id| uses.remove(*id));
        let inner: &[Region] = match &node.op {
            NodeOp::If(branches) => branches.as_slice(),
            NodeOp::Loop(body) => std::slice::from_ref(body),
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => &[],
        };
        for gone in inner.iter().map(Uses::of) {
            uses.subtract(&gone);
        }
    }
    kept.reverse();
    region.nodes = kept;
    Ok(())
}

/// Of equal nodes over equal inputs the first is kept. Constants are equal when their bytes lie at the same place. Where a result has
/// other dimensions than the first one's, as copies may that name none of size 1, it becomes a view of that.
fn join(graph: &Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut first: HashMap<(Written<Computed>, Vec<Source>), Vec<TensorId>> = HashMap::new();
    let mut now: HashMap<TensorId, TensorId> = HashMap::new();
    let mut kept = Vec::with_capacity(region.nodes.len());
    for mut node in region.nodes.drain(..) {
        watch.check()?;
        rename(&mut node, &now, uses);
        let computed = match &node.op {
            NodeOp::Operation(operation) => Computed::Operation(operation.clone()),
            NodeOp::View => {
                let to = graph.tensor(node.outputs[0]);
                Computed::View(to.element, to.sizes().to_vec())
            }
            NodeOp::Foreign(_) | NodeOp::If(_) | NodeOp::Loop(_) | NodeOp::Host(_) => {
                kept.push(node);
                continue;
            }
        };
        let key = (Written(computed), node.inputs.iter().map(|id| Source::of(graph, *id)).collect());
        let Some(outputs) = first.get(&key) else {
            first.insert(key, node.outputs.clone());
            kept.push(node);
            continue;
        };
        let pairs = || node.outputs.iter().copied().zip(outputs.iter().copied());
        if pairs().all(|(own, other)| is_like(graph, own, other)) {
            now.extend(pairs());
            node.inputs.iter().for_each(|id| uses.remove(*id));
        } else if let ([own], [other]) = (&node.outputs[..], &outputs[..])
            && has_elements_of(graph, *own, *other)
        {
            node.inputs.iter().for_each(|id| uses.remove(*id));
            uses.add(*other);
            kept.push(Node { op: NodeOp::View, inputs: vec![*other], ..node });
        } else {
            kept.push(node);
        }
    }
    region.nodes = kept;
    for result in &mut region.results {
        replace(result, &now, uses);
    }
    Ok(())
}

/// Whether two tensors have the same type and dimensions.
fn is_like(graph: &Graph, one: TensorId, other: TensorId) -> bool {
    let [one, other] = [one, other].map(|id| graph.tensor(id));
    one.element == other.element && Written(one.sizes()) == Written(other.sizes())
}

/// Whether a tensor may be a view of another: its type is the same, and so is the number of its elements.
fn has_elements_of(graph: &Graph, one: TensorId, other: TensorId) -> bool {
    let [one, other] = [one, other].map(|id| graph.tensor(id));
    let count = |sizes: &[Size]| sizes.iter().product::<Size>();
    one.element == other.element && Written(count(one.sizes())) == Written(count(other.sizes()))
}

fn rename(node: &mut Node, now: &HashMap<TensorId, TensorId>, uses: &mut Uses) {
    node.inputs.iter_mut().for_each(|id| replace(id, now, uses));
    match &mut node.op {
        NodeOp::If(branches) => branches.iter_mut().for_each(|branch| rename_region(branch, now, uses)),
        NodeOp::Loop(body) => rename_region(body, now, uses),
        NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
    }
}

fn rename_region(region: &mut Region, now: &HashMap<TensorId, TensorId>, uses: &mut Uses) {
    region.nodes.iter_mut().for_each(|node| rename(node, now, uses));
    region.results.iter_mut().for_each(|id| replace(id, now, uses));
}

fn replace(id: &mut TensorId, now: &HashMap<TensorId, TensorId>, uses: &mut Uses) {
    if let Some(other) = now.get(id) {
        uses.remove(*id);
        uses.add(*other);
        *id = *other;
    }
}

/// Whether a node gives symbols their values: sizes may be computed of these where nothing reads its tensors.
fn has_symbols(node: &Node) -> bool {
    let gives = |op: &NodeOp| matches!(op, NodeOp::Host(_));
    let mut found = gives(&node.op);
    let regions: &[Region] = match &node.op {
        NodeOp::If(branches) => branches.as_slice(),
        NodeOp::Loop(body) => std::slice::from_ref(body),
        _ => &[],
    };
    let mut look = |region: &Region| found |= region.nodes.iter().any(|node| gives(&node.op));
    regions.iter().for_each(|region| crate::graph::each_region(region, &mut look));
    found
}

/// What a node computes of what it reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Computed {
    Operation(Operation),
    View(ElementType, Vec<Size>),
}

/// What a node reads: a tensor, or the bytes of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Tensor(TensorId),
    Constant { element: ElementType, dims: Vec<u64>, at: usize, len: usize },
}

impl Source {
    fn of(graph: &Graph, id: TensorId) -> Self {
        let tensor = graph.tensor(id);
        match &tensor.constant {
            Some(bytes) => Source::Constant {
                element: tensor.element,
                dims: tensor.dims().to_vec(),
                at: bytes.as_ptr().addr(),
                len: bytes.len(),
            },
            None => Source::Tensor(id),
        }
    }
}
