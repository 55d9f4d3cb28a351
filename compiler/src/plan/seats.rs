//! Which tensors lie in runs in the memory of what they are joined to: each row of the whole has a run of each part. Kernels write
//! and read them there, so that nothing is copied; parts of which some kernel cannot do that are copied there.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    Operation, concat::Concat, conv2d::Conv2d, copy::StridedCopy, elementwise::Elementwise, matmul::MatMul,
    pool2d::Pool2d, runs::Runs,
};
use halite_sizes::Size;

use super::parts::Made;
use crate::{
    graph::{Graph, Node, NodeOp, Region, TensorId, each_region},
    passes::strided_read,
};

/// Bytes that runs begin and end at a multiple of: those that kernels read and write at a time.
const ALIGNMENT: u64 = 16;

/// A tensor that others lie in, and the runs that one of them is there, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    /// The tensor that has the memory.
    pub root: TensorId,
    /// The runs.
    pub runs: Runs,
}

/// Where tensors lie that are joined in runs.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Tensors that lie in another.
    of: HashMap<TensorId, Seat>,
    /// Where tensors are copied to that lie by themselves.
    copied: HashMap<TensorId, Vec<Seat>>,
    /// Results of concatenations that only join, and where they lie: in another, or all of their own memory.
    joined: HashMap<TensorId, Seat>,
}

/// Whether all targets compute an operation with runs in as many dispatches as without.
pub(super) type Takes<'a> = &'a dyn Fn(&Operation) -> bool;

impl Seats {
    /// Decides for all regions of a graph. Results that `own` says to have a place of their own stay out of it.
    pub(super) fn of(graph: &Graph, own: &dyn Fn(TensorId) -> bool, takes: Takes<'_>) -> Seats {
        let mut all = Seats::default();
        if graph.open.is_some() {
            return all;
        }
        each_region(&graph.body, &mut |region| {
            if region.nodes.iter().any(|node| joins_runs(node).is_some()) {
                let found = Finder::new(graph, region, own, takes).found();
                all.of.extend(found.of);
                all.joined.extend(found.joined);
            }
        });
        all
    }

    /// Where a tensor lies that is no memory of its own.
    pub(super) fn seat(&self, tensor: TensorId) -> Option<Seat> {
        self.of.get(&tensor).copied()
    }

    /// Where the result of a concatenation lies that only joins.
    pub(super) fn joined(&self, tensor: TensorId) -> Option<Seat> {
        self.joined.get(&tensor).copied()
    }
}

/// The concatenation that a node is, if its inputs are several runs each, of whole words.
fn joins_runs(node: &Node) -> Option<&Concat> {
    let NodeOp::Operation(Operation::Concat(concat)) = &node.op else { return None };
    let fixed = |size: &Size| size.is_constant() && *size > 0;
    if !fixed(&concat.outer) || !fixed(&concat.inner) || !concat.sizes.iter().all(fixed) {
        return None;
    }
    let unit = ALIGNMENT / concat.dtype.size().min(ALIGNMENT);
    let whole = concat.sizes.iter().all(|size| (*size * concat.inner).is_multiple_of(unit));
    (concat.outer > 1 && concat.sizes.len() > 1 && whole).then_some(concat)
}

/// The elements of a run of each input of a concatenation.
fn lengths(concat: &Concat) -> impl Iterator<Item = u64> {
    concat.sizes.iter().map(|size| (*size * concat.inner).exact())
}

/// The runs of the inputs of a concatenation that lies so itself.
pub(super) fn parts(concat: &Concat, whole: Seat) -> impl Iterator<Item = Seat> {
    let mut offset = whole.runs.offset;
    lengths(concat).map(move |length| {
        let runs = Runs { length, offset, ..whole.runs };
        offset += length;
        Seat { runs, ..whole }
    })
}

/// An operation with its first input in runs; none where it cannot have it so.
pub(super) fn reading(operation: &Operation, runs: Runs) -> Option<Operation> {
    let read = Some(runs);
    let made = match operation {
        Operation::Conv2d(op) => Operation::Conv2d(Conv2d { read, ..op.clone() }),
        Operation::MatMul(op) => Operation::MatMul(MatMul { read, ..op.clone() }),
        Operation::Pool2d(op) => Operation::Pool2d(Pool2d { read, ..op.clone() }),
        _ => return None,
    };
    made.check().is_ok().then_some(made)
}

/// An operation with its result in runs; none where it cannot have it so.
pub(super) fn writing(operation: &Operation, runs: Runs) -> Option<Operation> {
    let written = Some(runs);
    let made = match operation {
        Operation::Conv2d(op) => Operation::Conv2d(Conv2d { written, ..op.clone() }),
        Operation::MatMul(op) => Operation::MatMul(MatMul { written, ..op.clone() }),
        Operation::Pool2d(op) => Operation::Pool2d(Pool2d { written, ..op.clone() }),
        Operation::Elementwise(op) => Operation::Elementwise(Elementwise { written, ..op.clone() }),
        _ => return None,
    };
    made.check().is_ok().then_some(made)
}

/// An elementwise node with those of its inputs in runs that `runs_of` has some for.
pub(super) fn elementwise_reading(
    graph: &Graph,
    node: &Node,
    runs_of: impl Fn(TensorId) -> Option<Runs>,
) -> Option<Node> {
    let mut made = node.clone();
    for input in 0..node.inputs.len() {
        let Some(runs) = runs_of(node.inputs[input]) else { continue };
        let NodeOp::Operation(Operation::Elementwise(elementwise)) = &made.op else { return None };
        let (dtype, dims) = elementwise.inputs.0.get(input)?;
        if elementwise.strides_of(input).is_some() {
            return None;
        }
        let count = dims.iter().product::<Size>() / runs.length;
        let view = StridedCopy {
            source: count * runs.pitch,
            shape: vec![count, runs.length.into()],
            strides: vec![runs.pitch.into(), 1.into()],
            offset: runs.offset.into(),
            dtype: *dtype,
        };
        made = strided_read(graph, &made, input, &view)?;
    }
    Some(made)
}

/// What decides for a region.
struct Finder<'a> {
    graph: &'a Graph,
    region: &'a Region,
    own: &'a dyn Fn(TensorId) -> bool,
    takes: Takes<'a>,
    made: Made<'a>,
    /// The nodes that read a tensor, also through views, and which input it is.
    readers: HashMap<TensorId, Vec<(&'a Node, usize)>>,
    /// Tensors that are read by something else, or as something else.
    elsewhere: HashSet<TensorId>,
    /// Tensors that were found to have to lie by themselves.
    alone: HashSet<TensorId>,
}

impl<'a> Finder<'a> {
    fn new(
        graph: &'a Graph,
        region: &'a Region,
        own: &'a dyn Fn(TensorId) -> bool,
        takes: Takes<'a>,
    ) -> Self {
        let made = Made::of(graph, region);
        let (mut readers, mut elsewhere) = (HashMap::new(), HashSet::new());
        for node in &region.nodes {
            for (input, id) in node.inputs.iter().enumerate() {
                let root = made.root(*id);
                let same = graph.tensor(*id).element == graph.tensor(root).element;
                match &node.op {
                    NodeOp::View
                        if same && graph.tensor(node.outputs[0]).element == graph.tensor(root).element => {}
                    NodeOp::Operation(_) if same => {
                        readers.entry(root).or_insert_with(Vec::new).push((node, input));
                    }
                    _ => drop(elsewhere.insert(root)),
                }
            }
        }
        elsewhere.extend(region.results.iter().map(|id| made.root(*id)));
        graph.each_region(&mut |other| {
            if !std::ptr::eq(other, region) {
                let read = other.nodes.iter().flat_map(|node| &node.inputs).chain(&other.results);
                elsewhere.extend(read.map(|id| made.root(*id)));
            }
        });
        Finder { graph, region, own, takes, made, readers, elsewhere, alone: HashSet::new() }
    }

    /// Seats that all writers and readers take. Each turn leaves out those that some do not.
    fn found(mut self) -> Seats {
        loop {
            let mut seats = self.wanted();
            let misfits: Vec<TensorId> =
                seats.of.keys().filter(|id| !self.fits(&seats, **id)).copied().collect();
            if misfits.is_empty() {
                // Where all would be copied, the kernel that joins does that.
                let parts = seats.of.iter().filter(|(id, _)| !seats.joined.contains_key(id));
                let used: HashSet<TensorId> = parts.map(|(_, seat)| seat.root).collect();
                seats.joined.retain(|_, seat| used.contains(&seat.root));
                seats.of.retain(|_, seat| used.contains(&seat.root));
                return seats;
            }
            self.alone.extend(misfits);
        }
    }

    /// Seats for all that may have one: the last concatenations first, so that of those that join the same and more each time the
    /// largest has the memory.
    fn wanted(&self) -> Seats {
        let mut seats = Seats::default();
        for node in self.region.nodes.iter().rev() {
            let Some(concat) = joins_runs(node) else { continue };
            let result = node.outputs[0];
            if (self.own)(result) || !self.made.nodes.contains_key(&result) {
                continue;
            }
            let inputs: Vec<TensorId> = node.inputs.iter().map(|id| self.made.root(*id)).collect();
            let length = lengths(concat).sum();
            if !self.alone.contains(&result)
                && !seats.of.contains_key(&result)
                && let Some(seat) = common(&seats, &inputs, length)
            {
                seats.of.insert(result, seat);
            }
            let dense = Seat { root: result, runs: Runs { length, pitch: length, offset: 0 } };
            let whole = seats.seat(result).unwrap_or(dense);
            for (id, part) in inputs.iter().zip(parts(concat, whole)) {
                let may = self.made.nodes.contains_key(id) && !self.alone.contains(id) && !(self.own)(*id);
                if may && *id != whole.root && !self.elsewhere.contains(id) {
                    seats.of.entry(*id).or_insert(part);
                }
                let copies = seats.copied.entry(*id).or_default();
                if seats.of.get(id) != Some(&part) && !copies.contains(&part) {
                    copies.push(part);
                }
            }
            seats.joined.insert(result, whole);
        }
        seats
    }

    /// Whether what makes a tensor and all that read it take it where it lies.
    fn fits(&self, seats: &Seats, id: TensorId) -> bool {
        let (seat, node) = (seats.of[&id], self.made.nodes[&id]);
        let written = match &node.op {
            NodeOp::Operation(Operation::Concat(_)) => seats.joined.contains_key(&id),
            NodeOp::Operation(operation) if node.outputs.len() == 1 => {
                writing(operation, seat.runs).is_some_and(|op| (self.takes)(&op))
            }
            _ => false,
        };
        let mut readers = self.readers.get(&id).into_iter().flatten();
        written
            && !self.elsewhere.contains(&id)
            && readers.all(|(node, input)| self.reads(seats, node, *input, seat))
    }

    /// Whether a node reads an input where it lies.
    fn reads(&self, seats: &Seats, node: &Node, input: usize, seat: Seat) -> bool {
        let NodeOp::Operation(operation) = &node.op else { return false };
        match operation {
            Operation::Concat(concat) => {
                let whole = seats.joined(node.outputs[0]);
                whole.is_some_and(|whole| parts(concat, whole).nth(input) == Some(seat))
            }
            Operation::Elementwise(_) => {
                let runs = |id| seats.seat(self.made.root(id)).map(|seat| seat.runs);
                elementwise_reading(self.graph, node, runs).is_some()
            }
            _ => input == 0 && reading(operation, seat.runs).is_some_and(|op| (self.takes)(&op)),
        }
    }
}

/// The runs that tensors are already, side by side, or are copied to.
fn common(seats: &Seats, inputs: &[TensorId], length: u64) -> Option<Seat> {
    let follow = |first: &Seat| {
        let mut end = first.runs.offset;
        inputs.iter().all(|id| {
            let next = |seat: &Seat| {
                seat.root == first.root && seat.runs.pitch == first.runs.pitch && seat.runs.offset == end
            };
            let found = places(seats, *id).find(next);
            end += found.map_or(0, |seat| seat.runs.length);
            found.is_some()
        })
    };
    let first = places(seats, *inputs.first()?).find(follow)?;
    Some(Seat { runs: Runs { length, ..first.runs }, ..first })
}

/// Where a tensor lies, and where it is copied to.
fn places(seats: &Seats, id: TensorId) -> impl Iterator<Item = Seat> {
    seats.seat(id).into_iter().chain(seats.copied.get(&id).into_iter().flatten().copied())
}
