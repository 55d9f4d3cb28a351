//! States that grow by concatenation get rows to spare: what a call adds is written behind what is there, and nothing of that moves.
//!
//! An exporter writes `present = Concat(past, new)`, whose result has other sizes than the input that it replaces, so every call copies
//! the cache. Here the input and the output become one tensor with more rows than count, a multiple of a step, to which the new ones are
//! appended in place. What reads `present` reads the part of it that counts, which attention does where it lies.
//!
//! A cache that keeps the last rows alone moves over its buffer: the next value begins as many rows behind as were dropped.

use std::collections::HashMap;

use halite_ops::{Operation, concat::Concat, copy::StridedCopy, kv_append::KvAppend, moves::dense_strides};
use halite_sizes::Size;

use super::{HalfPrecision, Precision, Result, stacked, windows};
use crate::{
    Control, SourceLocation,
    graph::{Graph, Growing, Node, NodeOp, Shape, StatePort, Tensor, TensorId},
};

/// Makes states of the pairs that grow so.
pub(super) fn run(graph: &mut Graph, _: Precision, _: &Control) -> Result<HalfPrecision> {
    for growing in std::mem::take(&mut graph.growing) {
        let (input, output) = (&graph.inputs[growing.input], &graph.outputs[growing.output]);
        let shown = shown(graph);
        let made = shown.get(&output.tensor).copied().unwrap_or(output.tensor);
        let past = input.tensor;
        if growing.step == 0 {
            graph.windows |= found(graph, Growing { step: 1, ..growing }).is_some_and(|found| found.moves);
            continue;
        }
        stacked::join_whole(graph, (past, made), &shown);
        if let Some(found) = found(graph, growing) {
            graph.states.retain(|state| state.input != growing.input);
            found.apply(graph, growing);
        }
    }
    Ok(HalfPrecision::default())
}

/// A concatenation that makes a state grow.
struct Found {
    /// The place of its node.
    place: usize,
    /// The dimension in which it joins.
    axis: usize,
    /// Rows of the state before it.
    before: Size,
    /// The rows that the concatenation is, of those that are there and those behind them: the first and how many.
    joined: [Size; 2],
    /// The rows before those of the next value.
    dropped: Size,
    /// Whether the next value is a window of what is joined.
    moves: bool,
    /// Dimensions of the buffer, which input and output become.
    dims: Vec<Size>,
    append: KvAppend,
}

fn found(graph: &Graph, growing: Growing) -> Option<Found> {
    let (input, output) = (&graph.inputs[growing.input], &graph.outputs[growing.output]);
    let shown = shown(graph);
    let root = |id: TensorId| shown.get(&id).copied().unwrap_or(id);
    let maker = |id: TensorId| graph.body.nodes.iter().position(|node| node.outputs.contains(&id));
    let (last, window) = windows::source(graph, root(output.tensor), &shown);
    let place = maker(last)?;
    let node = &graph.body.nodes[place];
    let NodeOp::Operation(Operation::Concat(concat)) = &node.op else { return None };
    let ([past, _], [before, new]) = (&node.inputs[..], &concat.sizes[..]) else { return None };
    let (first, moved) = windows::source(graph, root(*past), &shown);
    let elements = [input.tensor, output.tensor].map(|id| graph.tensor(id).element);
    let is_whole = elements.iter().all(|element| element.storage() == concat.dtype);
    let is_free = input.shape.is_none() && output.shape.is_none() && input.tensor != output.tensor;
    if first != input.tensor || !is_whole || !is_free || !concat.dtype.is_small_float() {
        return None;
    }
    let own = graph.tensor(input.tensor).sizes();
    // Rows that the concatenation lacks at its beginning, and that the next value lacks of it.
    let rows = |window: Option<&StridedCopy>, rows: Size, kept: Size| match window {
        Some(copy) => windows::dropped(copy, concat, [rows, kept]),
        None => Some(0.into()),
    };
    let axis = axis(concat, own, graph.tensor(output.tensor).sizes())?;
    let skipped = rows(moved, own[axis], *before)?;
    let kept = graph.tensor(output.tensor).sizes()[axis];
    let dropped = skipped + rows(window, concat.total(), kept)?;
    let moves = window.is_some() || moved.is_some();
    if moved.is_none() && !own[axis].is(*before) || window.is_none() && !kept.is(concat.total()) {
        return None;
    }
    let count = (own[axis] + *new).next_multiple_of(growing.step);
    let mut dims = own.to_vec();
    dims[axis] = count;
    let append = KvAppend { start: own[axis], ..append(concat, own, axis, [*new, count])? };
    let aligned = !moves || windows::is_aligned(&append, growing.alignment);
    let given = Operation::KvAppend(append.clone());
    let known = aligned && !count.is_data() && !dropped.is_data() && crate::backend::check(&given).is_ok();
    let joined = [skipped, concat.total()];
    known.then_some(Found { place, axis, before: own[axis], joined, dropped, moves, dims, append })
}

/// What each view of a tensor of the same type shows in the end.
fn shown(graph: &Graph) -> HashMap<TensorId, TensorId> {
    let mut shown: HashMap<TensorId, TensorId> = HashMap::new();
    for node in graph.body.nodes.iter().filter(|node| matches!(node.op, NodeOp::View)) {
        let (from, to) = (node.inputs[0], node.outputs[0]);
        if graph.tensor(from).element == graph.tensor(to).element {
            let root = shown.get(&from).copied().unwrap_or(from);
            shown.insert(to, root);
        }
    }
    shown
}

/// The dimension of an input and an output in which a concatenation joins, if they differ in no other: what is before and behind it are the
/// concatenation's.
fn axis(concat: &Concat, own: &[Size], after: &[Size]) -> Option<usize> {
    let is_axis = |axis: &usize| {
        (0..own.len()).all(|at| at == *axis || own[at].is(after[at]))
            && own[..*axis].iter().product::<Size>().is(concat.outer)
            && own[*axis + 1..].iter().product::<Size>().is(concat.inner)
    };
    let mut fitting = (0..own.len()).filter(|axis| own.len() == after.len() && is_axis(axis));
    fitting.next().filter(|_| fitting.next().is_none())
}

/// What appends `new` rows to `rows`: those of heads where one dimension stands before that of the rows, and one behind it.
fn append(concat: &Concat, own: &[Size], axis: usize, [new, rows]: [Size; 2]) -> Option<KvAppend> {
    let head_dim = concat.inner.is_constant().then(|| concat.inner.exact()).filter(|dim| *dim > 0)?;
    let heads = axis.checked_sub(1).map(|at| own[at]).filter(|heads| heads.is_constant() && *heads > 0);
    let (batch, heads) = match heads {
        Some(heads) => (own[..axis - 1].iter().product(), heads.exact()),
        None => (concat.outer, 1),
    };
    Some(KvAppend { batch, ..KvAppend::new(heads, new, rows, head_dim, concat.dtype) })
}

impl Found {
    fn apply(self, graph: &mut Graph, growing: Growing) {
        let (input, output) = (&graph.inputs[growing.input], &graph.outputs[growing.output]);
        let (past, present) = (input.tensor, output.tensor);
        let [(name, element, given), (new_name, _, result)] = [past, present].map(|id| {
            let tensor = graph.tensor(id);
            (tensor.name.clone(), tensor.element, tensor.sizes().to_vec())
        });
        let mut buffer = |name| graph.add_tensor(Tensor::new(name, element, Shape::new(self.dims.clone())));
        let (held, written) = (buffer(name), buffer(new_name));
        let node = graph.body.nodes[self.place].clone();
        let append = Node {
            op: NodeOp::Operation(Operation::KvAppend(self.append.clone())),
            inputs: vec![node.inputs[1], held],
            outputs: vec![written],
            location: node.location.clone(),
        };
        let joined = self.rows_of(written, node.outputs[0], self.joined, &node.location);
        graph.body.nodes.splice(self.place..=self.place, [append, joined]);
        if graph.body.nodes.iter().any(|node| node.reads().contains(&past))
            || graph.body.results.contains(&past)
        {
            let first = self.rows_of(held, past, [0.into(), self.before], &node.location);
            graph.body.nodes.insert(0, first);
        }
        let (input, output) = (&mut graph.inputs[growing.input], &mut graph.outputs[growing.output]);
        (input.tensor, input.shape) = (held, Some(Shape::new(given)));
        (output.tensor, output.shape) = (written, Some(Shape::new(result)));
        graph.body.parameters[growing.input] = held;
        graph.body.results[growing.output] = written;
        let (input, output) = (growing.input, growing.output);
        let (grows, dropped) = (Some(self.axis), self.dropped);
        graph.states.push(StatePort { input, output, grows, dropped });
    }

    /// The node that computes a tensor of rows of a buffer: the first of them, and how many.
    fn rows_of(
        &self,
        buffer: TensorId,
        to: TensorId,
        [first, rows]: [Size; 2],
        location: &SourceLocation,
    ) -> Node {
        let KvAppend { batch, kv_heads, head_dim, .. } = self.append;
        let dims = |rows: Size| vec![batch * kv_heads, rows, head_dim.into()];
        let all = dims(self.dims[self.axis]);
        let copy = StridedCopy {
            source: all.iter().product(),
            shape: dims(rows),
            strides: dense_strides(&all),
            offset: first * Size::from(head_dim),
            dtype: self.append.cache,
        };
        Node {
            op: NodeOp::Operation(Operation::StridedCopy(copy)),
            inputs: vec![buffer],
            outputs: vec![to],
            location: location.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, attention::Attention, expression::Function};
    use halite_sizes::Trace;

    use super::super::tests::kernels;
    use super::*;
    use crate::{
        Capacities, Capacity, Coverage,
        build::{Builder, Range},
        graph::{ElementType, OpenSizes},
    };

    const F32: ElementType = ElementType::Of(DType::F32);

    /// Keys `[1, 2, past, 8]` that a call appends a row to, of which `past` is open; `read` says what else is done with all of them.
    fn decoder(read: impl FnOnce(&mut Builder, [TensorId; 3])) -> Graph {
        let trace = Trace::new();
        let entered = trace.enter();
        let past = trace.symbol("past", 8, 2, 1 << 20);
        let mut b = Builder::new();
        let dims = |rows: Size| [1.into(), 2.into(), rows, 8.into()];
        let held = b.input_of("past_k", F32, &dims(past)).unwrap();
        let new = b.input_of("x", F32, &dims(1.into())).unwrap();
        let all = b.concat(&[held, new], 2).unwrap();
        read(&mut b, [held, new, all]);
        b.output("present_k", all);
        let mut graph = b.finish().unwrap();
        graph.open = Some(OpenSizes { trace: trace.clone(), symbols: vec![(0, 2)], data: Vec::new() });
        drop(entered);
        graph
    }

    fn optimized(mut graph: Graph) -> Graph {
        let _entered = graph.enter();
        graph.note_growing([("past_k", "present_k")], [256, 16]);
        super::super::optimize(&mut graph).unwrap();
        graph.check().unwrap();
        graph
    }

    #[test]
    fn attention_reads_the_rows_that_count() {
        let graph = optimized(decoder(|b, [_, new, all]| {
            let rows = b.sizes(all)[2];
            let operation = Attention::new(2, 1, rows, 8, DType::F32);
            let shape = [1, 2, 1, 8].map(Size::from);
            let out = b.kernel1(Operation::Attention(operation), &[new, all, all], F32, &shape).unwrap();
            b.output("y", out);
        }));
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert_eq!(names, ["kv_append", "attention"], "{graph}");
        let state = graph.states[0];
        assert_eq!(state.grows, Some(2));
        // Callers know nothing of the rows to spare.
        let sizes = |port| graph.port_sizes(port).iter().map(|size| size.value()).collect::<Vec<_>>();
        assert_eq!(sizes(&graph.inputs[0]), [1, 2, 8, 8]);
        assert_eq!(sizes(&graph.outputs[state.output]), [1, 2, 9, 8]);
        assert_eq!(graph.tensor(graph.inputs[0].tensor).sizes()[2].value(), 256);
        // Whatever the sizes are: a step behind another is no other graph.
        let _entered = graph.enter();
        let coverage = Coverage::of(&graph);
        let shapes = |past: u64| [vec![1, 2, past, 8], vec![1, 2, 1, 8]];
        for past in [2, 8, 254, 255, 256, 257, 1000, 5000] {
            assert!(coverage.has(shapes(past).iter().map(Vec::as_slice)), "{past}");
        }
        let capacities = Capacities::of(&graph);
        let rows = |past: u64| capacities.each(&shapes(past)).collect::<Vec<_>>();
        let of = |rows| vec![Capacity { input: "past_k", output: "present_k", axis: 2, rows, dropped: 0 }];
        assert_eq!([2, 254, 255, 256, 511, 512].map(rows), [256, 256, 256, 512, 512, 768].map(of));
    }

    #[test]
    fn what_was_there_before_can_be_read_too() {
        let graph = optimized(decoder(|b, [held, _, all]| {
            for (name, tensor) in [("old", held), ("new", all)] {
                let twice = b.binary(Function::Add, tensor, tensor).unwrap();
                b.output(name, twice);
            }
            b.output("again", all);
        }));
        assert_eq!(graph.states.len(), 1, "{graph}");
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert!(names.contains(&"kv_append") && !names.contains(&"concat"), "{graph}");
    }

    /// Keys and values `[2, 1, 2, past, 8]` in one tensor, each of which gets a row; attention reads both.
    fn stacked(order: [usize; 2]) -> Graph {
        let trace = Trace::new();
        let entered = trace.enter();
        let past = trace.symbol("past", 8, 2, 1 << 20);
        let mut b = Builder::new();
        let dims = |rows: Size| [1.into(), 2.into(), rows, 8.into()];
        let held = b.input_of("past_k", F32, &[2.into(), 1.into(), 2.into(), past, 8.into()]).unwrap();
        let new = ["k", "v"].map(|name| b.input_of(name, F32, &dims(1.into())).unwrap());
        let whole = [0u64, 1].map(|part| {
            let rest = [1.into(), 2.into(), past, 8.into()].map(Range::all);
            let one = Range { start: Size::from(part), step: 1, count: 1.into() };
            let own = b.slice(held, &[&[one], &rest[..]].concat()).unwrap();
            let own = b.reshape_to(own, &dims(past)).unwrap();
            b.concat(&[own, new[part as usize]], 2).unwrap()
        });
        let rows = b.sizes(whole[0])[2];
        let operation = Attention::new(2, 1, rows, 8, DType::F32);
        let shape = [1, 2, 1, 8].map(Size::from);
        let reads = [new[0], whole[0], whole[1]];
        let out = b.kernel1(Operation::Attention(operation), &reads, F32, &shape).unwrap();
        b.output("y", out);
        let parts = order
            .map(|part| b.reshape_to(whole[part], &[1.into(), 1.into(), 2.into(), rows, 8.into()]).unwrap());
        let all = b.concat(&parts, 0).unwrap();
        b.output("present_k", all);
        let mut graph = b.finish().unwrap();
        graph.open = Some(OpenSizes { trace: trace.clone(), symbols: vec![(0, 3)], data: Vec::new() });
        drop(entered);
        graph
    }

    #[test]
    fn keys_and_values_in_one_tensor_grow_in_place() {
        let graph = optimized(stacked([0, 1]));
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert_eq!(names, ["concat", "kv_append", "attention"], "{graph}");
        assert_eq!(graph.states[0].grows, Some(3));
        // In another order they are no rows behind those that are there.
        let graph = optimized(stacked([1, 0]));
        assert!(graph.states.is_empty(), "{graph}");
    }

    #[test]
    fn other_joins_stay() {
        // Rows before those that are there move these.
        let trace = Trace::new();
        let _entered = trace.enter();
        let past = trace.symbol("past", 8, 2, 1 << 20);
        let mut b = Builder::new();
        let held = b.input_of("past_k", F32, &[Size::from(2), past]).unwrap();
        let new = b.input_of("x", F32, &[2, 1]).unwrap();
        let all = b.concat(&[new, held], 1).unwrap();
        b.output("present_k", all);
        let mut graph = b.finish().unwrap();
        graph.open = Some(OpenSizes { trace: trace.clone(), symbols: vec![(0, 1)], data: Vec::new() });
        graph.note_growing([("past_k", "present_k")], [256, 16]);
        super::super::optimize(&mut graph).unwrap();
        assert!(graph.states.is_empty() && graph.growing.is_empty(), "{graph}");
    }
}
