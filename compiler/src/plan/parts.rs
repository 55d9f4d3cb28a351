//! Which tensors are parts of others in memory: slices that lie together, and what concatenations put one behind the other, which
//! is computed where it is joined.

use std::collections::{HashMap, HashSet};

use halite_abi::BINDING_ALIGNMENT;
use halite_ops::{Operation, concat::Concat, copy::StridedCopy, moves::dense_strides};

use crate::graph::{Graph, Node, NodeOp, Region, TensorId, each_region};

/// Bytes that copies begin and end at a multiple of.
const COPY_ALIGNMENT: u64 = 4;
/// Most parts that one tensor is copied to.
const MOST_COPIES: usize = 8;

/// A part of a tensor: the tensor, and the first byte.
pub(super) type Part = (TensorId, u64);

/// Tensors that are made in the memory of another.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The part that a tensor is. None is a part of a part.
    inside: HashMap<TensorId, Part>,
    /// Parts that a tensor is copied to.
    copied: HashMap<TensorId, Vec<Part>>,
    /// Results of concatenations that only join: what they join is there, or is copied there.
    joined: HashSet<TensorId>,
}

impl Parts {
    /// Decides for all regions of a graph. Results that `own` says to have a place of their own stay out of it. Of open sizes
    /// nobody knows where parts begin.
    pub(super) fn of(graph: &Graph, own: impl Fn(TensorId) -> bool) -> Parts {
        let mut parts = Parts::default();
        if graph.open.is_none() {
            each_region(&graph.body, &mut |region| parts.region(graph, region, &own));
        }
        parts
    }

    /// The part that the result of a node is.
    pub(super) fn part(&self, tensor: TensorId) -> Option<Part> {
        self.inside.get(&tensor).copied()
    }

    /// Whether a concatenation's result comes together by parts.
    pub(super) fn is_joined(&self, tensor: TensorId) -> bool {
        self.joined.contains(&tensor)
    }

    fn region(&mut self, graph: &Graph, region: &Region, own: &impl Fn(TensorId) -> bool) {
        let made = Made::of(graph, region);
        // The last first: of concatenations that join the same and more each time, the largest has the memory.
        for node in region.nodes.iter().rev() {
            let NodeOp::Operation(Operation::Concat(concat)) = &node.op else { continue };
            let result = node.outputs[0];
            if !made.nodes.contains_key(&result) || own(result) {
                continue;
            }
            let Some(offsets) = offsets(concat) else { continue };
            let inputs: Vec<(TensorId, u64)> =
                node.inputs.iter().map(|id| made.root(*id)).zip(offsets.iter().copied()).collect();
            if !self.inside.contains_key(&result)
                && let Some(part) = self.common(&inputs)
            {
                self.inside.insert(result, part);
            }
            self.join(graph, &made, result, &inputs, own);
        }
    }

    /// The part that tensors are already, one behind the other.
    fn common(&self, inputs: &[(TensorId, u64)]) -> Option<Part> {
        let there = |root: TensorId, base: u64| {
            inputs.iter().all(|(id, at)| self.places(*id).any(|part| part == (root, base + at)))
        };
        let aligned = |(_, base): &Part| base.is_multiple_of(BINDING_ALIGNMENT);
        self.places(inputs.first()?.0).filter(aligned).find(|(root, base)| there(*root, *base))
    }

    /// Where a tensor is, and where it is copied to.
    fn places(&self, id: TensorId) -> impl Iterator<Item = Part> {
        self.part(id).into_iter().chain(self.copied.get(&id).into_iter().flatten().copied())
    }

    /// Lets what a concatenation joins be computed in its result, where it can.
    fn join(
        &mut self,
        graph: &Graph,
        made: &Made<'_>,
        result: TensorId,
        inputs: &[(TensorId, u64)],
        own: &impl Fn(TensorId) -> bool,
    ) {
        let (root, base) = self.part(result).unwrap_or((result, 0));
        let bytes = |id: TensorId| graph.tensor(id).byte_size().value();
        let fits = |(id, at): &(TensorId, u64)| {
            let few = self.copied.get(id).is_none_or(|copies| copies.len() < MOST_COPIES);
            few && bytes(*id).is_multiple_of(COPY_ALIGNMENT) && at.is_multiple_of(COPY_ALIGNMENT)
        };
        if !inputs.iter().all(fits) {
            return;
        }
        let mut there = 0;
        for (id, at) in inputs {
            let part = (root, base + at);
            let fits = part.1.is_multiple_of(BINDING_ALIGNMENT) && bytes(*id) > 0;
            let alone = !self.inside.contains_key(id) && !own(*id) && *id != root;
            if fits && alone && made.nodes.get(id).is_some_and(|node| !is_slice(graph, node)) {
                self.inside.insert(*id, part);
            }
            there += usize::from(self.places(*id).any(|place| place == part));
        }
        // Where all would be copied, the kernel that joins does that.
        if there == 0 {
            return;
        }
        for (id, at) in inputs {
            let part = (root, base + at);
            if !self.places(*id).any(|place| place == part) {
                self.copied.entry(*id).or_default().push(part);
            }
        }
        self.joined.insert(result);
    }
}

/// What the nodes of a region compute in calls.
pub(super) struct Made<'a> {
    /// The node that computes a tensor.
    pub(super) nodes: HashMap<TensorId, &'a Node>,
    /// What views show.
    shown: HashMap<TensorId, TensorId>,
}

impl<'a> Made<'a> {
    pub(super) fn of(graph: &Graph, region: &'a Region) -> Self {
        let mut made = Made { nodes: HashMap::new(), shown: HashMap::new() };
        // What comes of constants alone is computed at load.
        let mut known: HashSet<TensorId> = HashSet::new();
        for node in &region.nodes {
            let constant = |id: &TensorId| known.contains(id) || graph.tensor(*id).constant.is_some();
            match &node.op {
                NodeOp::View => {
                    let root = made.root(node.inputs[0]);
                    made.shown.insert(node.outputs[0], root);
                    if constant(&node.inputs[0]) {
                        known.insert(node.outputs[0]);
                    }
                }
                NodeOp::Operation(_) if node.inputs.iter().all(constant) => known.extend(&node.outputs),
                NodeOp::Operation(_) | NodeOp::Foreign(_) => {
                    made.nodes.extend(node.outputs.iter().map(|id| (*id, node)));
                }
                NodeOp::If(_) | NodeOp::Loop(_) | NodeOp::Host(_) => {}
            }
        }
        made
    }

    /// What a tensor is a view of, in the end.
    pub(super) fn root(&self, id: TensorId) -> TensorId {
        self.shown.get(&id).copied().unwrap_or(id)
    }
}

/// Where the inputs of a concatenation begin in its result, which has one behind the other.
fn offsets(concat: &Concat) -> Option<Vec<u64>> {
    let mut end = 0u64;
    let each = concat.sizes.iter().map(|size| {
        let at = end;
        end += (*size * concat.inner).value() * concat.dtype.size();
        at
    });
    concat.outer.is(1.into()).then(|| each.collect())
}

/// Whether a node only shows a part of a tensor.
fn is_slice(graph: &Graph, node: &Node) -> bool {
    matches!(&node.op, NodeOp::Operation(Operation::StridedCopy(copy))
        if graph.open.is_none() && slice(copy).is_some())
}

/// The first byte of what a copy copies, if that lies together and can be bound by itself.
pub(super) fn slice(copy: &StridedCopy) -> Option<u64> {
    let dense = dense_strides(&copy.shape);
    let each = copy.shape.iter().zip(&copy.strides).zip(dense);
    let together = each.into_iter().all(|((size, stride), dense)| size.is(1.into()) || stride.is(dense));
    let begin = copy.offset * copy.dtype.size();
    let some = copy.shape.iter().all(|size| *size > 0);
    (together && some && begin.is_constant() && begin.value().is_multiple_of(BINDING_ALIGNMENT))
        .then(|| begin.value())
}
