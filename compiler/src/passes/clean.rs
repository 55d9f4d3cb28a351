//! Leaving out what is not needed: nodes whose results nobody reads, and nodes that compute what another one computed.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use halite_ops::Operation;
use halite_sizes::{Size, Written};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ById, ElementType, Graph, Node, NodeOp, Region, TensorId},
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
    let mut first = Firsts::default();
    let mut now: ById<TensorId, TensorId> = ById::default();
    let mut kept = Vec::with_capacity(region.nodes.len());
    for mut node in region.nodes.drain(..) {
        watch.check()?;
        rename(&mut node, &now, uses);
        let Some(outputs) = first.like(graph, &node, &kept) else {
            kept.push(node);
            continue;
        };
        let pairs = || node.outputs.iter().copied().zip(outputs.iter().copied());
        if pairs().all(|(own, other)| is_like(graph, own, other)) {
            now.extend(pairs());
            node.inputs.iter().for_each(|id| uses.remove(*id));
        } else if let ([own], [other]) = (&node.outputs[..], outputs)
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

fn rename(node: &mut Node, now: &ById<TensorId, TensorId>, uses: &mut Uses) {
    node.inputs.iter_mut().for_each(|id| replace(id, now, uses));
    match &mut node.op {
        NodeOp::If(branches) => branches.iter_mut().for_each(|branch| rename_region(branch, now, uses)),
        NodeOp::Loop(body) => rename_region(body, now, uses),
        NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
    }
}

fn rename_region(region: &mut Region, now: &ById<TensorId, TensorId>, uses: &mut Uses) {
    region.nodes.iter_mut().for_each(|node| rename(node, now, uses));
    region.results.iter_mut().for_each(|id| replace(id, now, uses));
}

fn replace(id: &mut TensorId, now: &ById<TensorId, TensorId>, uses: &mut Uses) {
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

/// Where nodes that may have equals are among those that are kept, by the hash of what they compute.
#[derive(Default)]
struct Firsts {
    places: HashMap<u64, Vec<usize>>,
    state: RandomState,
}

impl Firsts {
    /// What an equal node computes. Without one, a node that may have equals is noted as the next of those kept.
    fn like<'k>(&mut self, graph: &Graph, node: &Node, kept: &'k [Node]) -> Option<&'k [TensorId]> {
        let own = Computed::of(graph, node)?;
        let places = self.places.entry(self.state.hash_one(&own)).or_default();
        let equal = |place: &&usize| Computed::of(graph, &kept[**place]).is_some_and(|other| other == own);
        let found = places.iter().find(equal).copied();
        if found.is_none() {
            places.push(kept.len());
        }
        found.map(|place| &kept[place].outputs[..])
    }
}

/// What a node computes, of what: borrowed, for graphs have many nodes, and passes that look for equals are several.
#[derive(PartialEq, Eq, Hash)]
struct Computed<'a> {
    what: Written<What<'a>>,
    of: Vec<Source<'a>>,
}

#[derive(PartialEq, Eq, Hash)]
enum What<'a> {
    Operation(&'a Operation),
    View(ElementType, &'a [Size]),
}

impl<'a> Computed<'a> {
    /// `None` for nodes whose results are never those of another.
    fn of(graph: &'a Graph, node: &'a Node) -> Option<Self> {
        let what = match &node.op {
            NodeOp::Operation(operation) => What::Operation(operation),
            NodeOp::View => {
                let to = graph.tensor(node.outputs[0]);
                What::View(to.element, to.sizes())
            }
            NodeOp::Foreign(_) | NodeOp::If(_) | NodeOp::Loop(_) | NodeOp::Host(_) => return None,
        };
        Some(Computed {
            what: Written(what),
            of: node.inputs.iter().map(|id| Source::of(graph, *id)).collect(),
        })
    }
}

/// What a node reads: a tensor, or the bytes of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source<'a> {
    Tensor(TensorId),
    Constant { element: ElementType, dims: &'a [u64], at: usize, len: usize },
}

impl<'a> Source<'a> {
    fn of(graph: &'a Graph, id: TensorId) -> Self {
        let tensor = graph.tensor(id);
        match &tensor.constant {
            Some(bytes) => Source::Constant {
                element: tensor.element,
                dims: tensor.dims(),
                at: bytes.as_ptr().addr(),
                len: bytes.len(),
            },
            None => Source::Tensor(id),
        }
    }
}
