//! Which tensors lie in runs in the memory of what they are joined to: each row of the whole has a run of each part. Kernels write
//! and read them there, so that nothing is copied; parts of which some kernel cannot do that are copied there. What nodes cut out of
//! each row of a tensor is read where it lies, too.

use std::collections::{HashMap, HashSet};

use halite_ops::{Operation, runs::Runs};

use super::{
    parts::{Made, Parts},
    runs::{
        Seat, elementwise_reading, joins_runs, lengths, moving, parts, reading, shows_runs, within, writing,
    },
};
use crate::graph::{Graph, Node, NodeOp, Region, TensorId, each_region};

/// Where tensors lie that are joined in runs.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Tensors that lie in another.
    of: HashMap<TensorId, Seat>,
    /// Where tensors are copied to that lie by themselves.
    copied: HashMap<TensorId, Vec<Seat>>,
    /// Results of concatenations that only join, and where they lie: in another, or all of their own memory.
    joined: HashMap<TensorId, Seat>,
    /// Tensors that are only shown where they lie already: parts of each row of another.
    shown: HashMap<TensorId, Runs>,
}

/// Whether all targets compute an operation with runs by the kernel that they compute it by without.
pub(super) type Takes<'a> = &'a dyn Fn(&Operation) -> bool;

/// Whether all targets are estimated to compute the second of two operations faster than the first.
pub(super) type Prefers<'a> = &'a dyn Fn(&Operation, &Operation) -> bool;

impl Seats {
    /// Decides for all regions of a graph. Results that `own` says to have a place of their own stay out of it.
    pub(super) fn of(
        graph: &Graph,
        own: &dyn Fn(TensorId) -> bool,
        takes: Takes<'_>,
        parts: &Parts,
    ) -> Seats {
        let mut all = Seats::default();
        if graph.open.is_some() {
            return all;
        }
        each_region(&graph.body, &mut |region| {
            if region.nodes.iter().any(|node| joins_runs(node).is_some() || shows_runs(node).is_some()) {
                let found = Finder::new(graph, region, own, takes, parts).found();
                all.of.extend(found.of.into_iter().filter(|(id, _)| !found.shown.contains_key(id)));
                all.joined.extend(found.joined);
                all.shown.extend(found.shown);
            }
        });
        all
    }

    /// Where a tensor lies that is no memory of its own.
    pub(super) fn seat(&self, tensor: TensorId) -> Option<Seat> {
        self.of.get(&tensor).copied()
    }

    /// The runs of what a node cuts out of a tensor that its result is, if nothing is copied for that.
    pub(super) fn shown(&self, tensor: TensorId) -> Option<Runs> {
        self.shown.get(&tensor).copied()
    }

    /// Where the result of a concatenation lies that only joins.
    pub(super) fn joined(&self, tensor: TensorId) -> Option<Seat> {
        self.joined.get(&tensor).copied()
    }
}

/// What decides for a region.
struct Finder<'a> {
    graph: &'a Graph,
    region: &'a Region,
    own: &'a dyn Fn(TensorId) -> bool,
    takes: Takes<'a>,
    made: Made<'a>,
    /// What lies in parts of others that lie together.
    parts: &'a Parts,
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
        parts: &'a Parts,
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
        Finder { graph, region, own, takes, made, parts, readers, elsewhere, alone: HashSet::new() }
    }

    /// Seats that all writers and readers take. Each turn leaves out those that some do not.
    fn found(mut self) -> Seats {
        loop {
            let seats = self.wanted();
            let misfits: Vec<TensorId> =
                seats.of.keys().filter(|id| !self.fits(&seats, **id)).copied().collect();
            if misfits.is_empty() {
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
            // Runs begin where their memory does, and not where a part of it begins.
            if self.parts.part(whole.root).is_some() {
                continue;
            }
            for (id, part) in inputs.iter().zip(parts(concat, whole)) {
                let may = self.made.nodes.get(id).is_some_and(|node| shows_runs(node).is_none());
                if may
                    && !self.alone.contains(id)
                    && !(self.own)(*id)
                    && *id != whole.root
                    && !self.elsewhere.contains(id)
                {
                    seats.of.entry(*id).or_insert(part);
                }
                let copies = seats.copied.entry(*id).or_default();
                if seats.of.get(id) != Some(&part) && !copies.contains(&part) {
                    copies.push(part);
                }
            }
            seats.joined.insert(result, whole);
        }
        for node in &self.region.nodes {
            if let Some((runs, seat)) = self.shown(&seats, node) {
                seats.shown.insert(node.outputs[0], runs);
                seats.of.insert(node.outputs[0], seat);
            }
        }
        self.leave_copies(&mut seats);
        seats
    }

    /// Where all would be copied, the kernel that joins does that.
    fn leave_copies(&self, seats: &mut Seats) {
        let mut used: HashSet<TensorId> = HashSet::new();
        for node in &self.region.nodes {
            let Some(whole) = joins_runs(node).and_then(|_| seats.joined(node.outputs[0])) else { continue };
            let mut inputs = node.inputs.iter().map(|id| self.made.root(*id));
            let is_there = |id: TensorId| {
                let inside = seats.seat(id).is_some_and(|seat| seat.root == whole.root);
                seats.shown.contains_key(&id) || inside && !seats.joined.contains_key(&id)
            };
            if inputs.any(is_there) {
                used.insert(whole.root);
            }
        }
        seats.joined.retain(|_, seat| used.contains(&seat.root));
        let Seats { of, shown, .. } = seats;
        of.retain(|id, seat| used.contains(&seat.root) || shown.contains_key(id));
    }

    /// The runs of its input that a node cuts out, and where they lie then, if its result can be just that.
    fn shown(&self, seats: &Seats, node: &Node) -> Option<(Runs, Seat)> {
        let (runs, result) = (shows_runs(node)?, node.outputs[0]);
        let whole = self.made.root(*node.inputs.first()?);
        let alone = self.alone.contains(&result) || self.elsewhere.contains(&result) || (self.own)(result);
        let same = self.graph.tensor(result).element == self.graph.tensor(whole).element;
        if alone || !same || (self.own)(whole) {
            return None;
        }
        if let Some(seat) = seats.seat(whole) {
            return Some((runs, Seat { runs: within(seat.runs, runs)?, ..seat }));
        }
        let made = self.made.nodes.get(&whole);
        // What is cut out in one piece is a part of something itself, as what is joined of such pieces may be.
        let cut = |node: &&Node| matches!(node.op, NodeOp::Operation(Operation::StridedCopy(_)));
        let computed = made.is_some_and(|node| matches!(node.op, NodeOp::Operation(_)) && !cut(node));
        let given = self.graph.inputs.iter().any(|port| port.tensor == whole);
        let whole_one = self.parts.part(whole).is_none();
        ((computed || given) && whole_one).then_some((runs, Seat { root: whole, runs }))
    }

    /// Whether what makes a tensor and all that read it take it where it lies.
    fn fits(&self, seats: &Seats, id: TensorId) -> bool {
        let (seat, node) = (seats.of[&id], self.made.nodes[&id]);
        let written = match &node.op {
            _ if seats.shown.contains_key(&id) => true,
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
                let Some(part) = whole.and_then(|whole| parts(concat, whole).nth(input)) else {
                    return false;
                };
                let count = self.graph.tensor(node.inputs[input]).count() / seat.runs.length;
                let moved = || moving(concat.dtype, count, seat.runs, part.runs);
                // What is shown is copied from where it lies. What is computed in runs has to be in the runs that are joined.
                let shown = seats.shown.contains_key(&self.made.root(node.inputs[input]));
                part == seat || shown && moved().is_some_and(|op| (self.takes)(&op))
            }
            Operation::StridedCopy(_) => seats.shown.contains_key(&node.outputs[0]),
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
