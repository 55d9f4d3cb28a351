//! Windows of caches: rows that are taken out of what was joined, or before something is joined to them.

use std::collections::HashMap;

use halite_ops::{Operation, concat::Concat, copy::StridedCopy, kv_append::KvAppend};
use halite_sizes::Size;

use crate::graph::{Graph, NodeOp, TensorId};

/// What a tensor is part of, and how it is taken out of that; the tensor itself where it is none.
pub(super) fn source<'a>(
    graph: &'a Graph,
    id: TensorId,
    shown: &HashMap<TensorId, TensorId>,
) -> (TensorId, Option<&'a StridedCopy>) {
    let made = graph.body.nodes.iter().find(|node| node.outputs.contains(&id));
    match made.map(|node| (&node.op, &node.inputs[..])) {
        Some((NodeOp::Operation(Operation::StridedCopy(copy)), [from])) => {
            (shown.get(from).copied().unwrap_or(*from), Some(copy))
        }
        _ => (id, None),
    }
}

/// How many rows a copy leaves out that takes the last `kept` of `rows` rows of all that a concatenation joins; `None` where it is another.
pub(super) fn dropped(copy: &StridedCopy, concat: &Concat, [rows, kept]: [Size; 2]) -> Option<Size> {
    let (outer, inner) = (concat.outer, concat.inner);
    let dropped = copy.offset / inner;
    let left = rows - dropped;
    let lines = merged(copy);
    let line = [kept * inner, 1.into()];
    let fits = match &lines[..] {
        [only] => outer.is(1.into()) && same(*only, line),
        [first, last] => same(*first, [outer, rows * inner]) && same(*last, line),
        _ => false,
    };
    let is_whole = copy.source.is(outer * rows * inner) && copy.offset.is(dropped * inner);
    // Front ends may not know that no more is dropped than there is, and say that no less than nothing is left: a guard says the rest.
    (fits && is_whole && (kept.is(left) || kept == left)).then_some(dropped)
}

fn same(one: [Size; 2], other: [Size; 2]) -> bool {
    one.iter().zip(other).all(|(a, b)| a.is(b))
}

/// The sizes and strides of a copy, of as few dimensions as are needed.
fn merged(copy: &StridedCopy) -> Vec<[Size; 2]> {
    let mut lines: Vec<[Size; 2]> = Vec::new();
    for (size, stride) in copy.shape.iter().zip(&copy.strides).filter(|(size, _)| !size.is(1.into())) {
        match lines.last_mut() {
            Some([whole, step]) if step.is(*size * *stride) => (*whole, *step) = (*whole * *size, *stride),
            _ => lines.push([*size, *stride]),
        }
    }
    lines
}

/// Whether rows begin where a device can bind memory.
pub(super) fn is_aligned(append: &KvAppend, alignment: u64) -> bool {
    let row = append.head_dim * append.cache.size();
    alignment > 0 && row.is_multiple_of(alignment)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, attention::Attention};
    use halite_sizes::Trace;

    use super::super::tests::kernels;
    use super::*;
    use crate::{
        Capacities,
        build::{Builder, Range},
        graph::{ElementType, OpenSizes},
    };

    const F32: ElementType = ElementType::Of(DType::F32);
    const WINDOW: u64 = 6;

    /// Keys `[1, 2, past, 8]` that a call appends a row to, of which the last rows alone are kept; attention reads all of them, or those that
    /// are kept. An open `past` is 8 here, else it is the window's.
    fn decoder(is_open: bool, reads_all: bool) -> Graph {
        let trace = Trace::new();
        let entered = trace.enter();
        let past = if is_open { trace.symbol("past", 8, 2, 1 << 20) } else { WINDOW.into() };
        let mut b = Builder::new();
        let dims = |rows: Size| [1.into(), 2.into(), rows, 8.into()];
        let held = b.input_of("past_k", F32, &dims(past)).unwrap();
        let new = b.input_of("x", F32, &dims(1.into())).unwrap();
        let last = |b: &mut Builder, of, first: Size| {
            let mut ranges: Vec<Range<Size>> = b.sizes(of).iter().map(|size| Range::all(*size)).collect();
            (ranges[2].start, ranges[2].count) = (first, ranges[2].count - first);
            b.slice(of, &ranges).unwrap()
        };
        let all = b.concat(&[held, new], 2).unwrap();
        let first = (past + 1 - Size::from(WINDOW)).max(0);
        let kept = last(&mut b, all, first);
        let read = if reads_all { all } else { kept };
        let operation = Attention::new(2, 1, b.sizes(read)[2], 8, DType::F32);
        let shape = [1, 2, 1, 8].map(Size::from);
        let out = b.kernel1(Operation::Attention(operation), &[new, read, read], F32, &shape).unwrap();
        b.output("y", out);
        b.output("present_k", kept);
        let mut graph = b.finish().unwrap();
        if is_open {
            graph.open = Some(OpenSizes { trace: trace.clone(), symbols: vec![(0, 2)], data: Vec::new() });
        }
        drop(entered);
        graph
    }

    fn optimized(mut graph: Graph, alignment: u64) -> Graph {
        let _entered = graph.enter();
        graph.bind_states([("past_k", "present_k")]);
        graph.note_growing([("past_k", "present_k")], [256, alignment]);
        super::super::optimize(&mut graph).unwrap();
        graph.check().unwrap();
        graph
    }

    #[test]
    fn windows_move_over_their_rows() {
        for (is_open, reads_all) in [(true, true), (true, false), (false, true), (false, false)] {
            let graph = optimized(decoder(is_open, reads_all), 16);
            let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
            assert_eq!(names, ["kv_append", "attention"], "{graph}");
            let state = graph.states[0];
            assert_eq!((state.grows, graph.states.len()), (Some(2), 1));
            let capacities = Capacities::of(&graph);
            let past = if is_open { 8 } else { WINDOW };
            let shapes = |past: u64| [vec![1, 2, past, 8], vec![1, 2, 1, 8]];
            let rows = |past: u64| {
                let one = capacities.each(&shapes(past)).next().unwrap();
                (one.rows, one.dropped)
            };
            assert_eq!(rows(past), (256, past + 1 - WINDOW));
            if is_open {
                assert_eq!(
                    [rows(2), rows(5), rows(6), rows(300)],
                    [(256, 0), (256, 0), (256, 1), (512, 295)]
                );
            }
        }
    }

    #[test]
    fn windows_stay_where_a_device_cannot_bind_their_rows() {
        for alignment in [0, 64] {
            let graph = optimized(decoder(true, true), alignment);
            assert!(graph.states.is_empty(), "{graph}");
            // Of one size it is a state whose value is copied.
            let graph = optimized(decoder(false, true), alignment);
            assert_eq!(graph.states[0].grows, None, "{graph}");
        }
    }
}
