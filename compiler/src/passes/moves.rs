//! Fewer and plainer moves of elements: picking by fixed indices at one distance is a strided copy, a copy of a copy is one, and
//! a copy of everything as it lies is a view.

use halite_ops::{Operation, Values, copy::StridedCopy, gather::Gather};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    strides::Strided,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Most dimensions of a strided copy.
const MOST_DIMS: usize = halite_ops::moves::MOST_DIMS;

/// Makes strided copies of gathers by constants.
pub(super) fn fixed_indices(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
) -> Result {
    replace(graph, region, uses, watch, picked, |copy, _, node| {
        vec![Node {
            op: NodeOp::Operation(Operation::StridedCopy(copy)),
            inputs: vec![node.inputs[0]],
            ..node.clone()
        }]
    })
}

/// Joins copies with those before them.
pub(super) fn join(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, joined, |(op, input), _, node| {
        vec![Node { op, inputs: vec![input], ..node.clone() }]
    })
}

/// The copy that a gather by constant indices is.
fn picked(chain: &Chain<'_>, node: &Node) -> Option<StridedCopy> {
    let NodeOp::Operation(Operation::Gather(gather)) = &node.op else { return None };
    let (start, step) = progression(chain.graph, node.inputs[1], gather)?;
    let Gather { outer, axis, inner, indices, dtype, .. } = gather.clone();
    let dims = [(outer, axis * inner), (indices, step * inner), (inner, 1.into())];
    let (shape, strides) = dims.into_iter().filter(|(size, _)| !size.is(1.into())).unzip();
    let copy = StridedCopy { source: outer * axis * inner, shape, strides, offset: start * inner, dtype };
    let copy = if copy.shape.is_empty() {
        StridedCopy { shape: vec![1.into()], strides: vec![1.into()], ..copy }
    } else {
        copy
    };
    crate::backend::check(&Operation::StridedCopy(copy.clone())).is_ok().then_some(copy)
}

/// The first of constant indices, and the distance from one to the next: all are in range.
fn progression(graph: &Graph, indices: TensorId, gather: &Gather) -> Option<(Size, Size)> {
    let tensor = graph.tensor(indices);
    let bytes = tensor.constant.as_ref()?;
    let values = Values::from_bytes(tensor.element.storage(), bytes);
    let first = (!values.is_empty()).then(|| values.int(0))?;
    let step = if values.len() > 1 { values.int(1).checked_sub(first)? } else { 0 };
    let follows = |i: usize| values.int(i).checked_sub(values.int(i - 1)) == Some(step);
    let last = values.int(values.len() - 1);
    // Those that count from the end do so all.
    let ends = [first, last];
    if !(1..values.len()).all(follows) || ends.iter().any(|end| (*end < 0) != (first < 0)) {
        return None;
    }
    let place = |index: i64| if index < 0 { gather.axis + Size::from(index) } else { index.into() };
    let inside = ends.iter().all(|end| place(*end) >= 0 && place(*end) < gather.axis);
    inside.then(|| (place(first), step.into()))
}

/// A copy that reads what another copy reads, or a view.
fn joined(chain: &Chain<'_>, node: &Node) -> Option<(NodeOp, TensorId)> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    let start = Strided {
        tensor: chain.behind_views(node.inputs[0]),
        offset: copy.offset,
        sizes: copy.shape.clone(),
        strides: copy.strides.clone(),
    };
    let (mut seen, mut source) = (start.clone(), copy.source);
    while let Some((next, from)) = before(chain, &seen, copy) {
        (seen, source) = (next, from);
    }
    if seen.is_all(source) {
        return Some((NodeOp::View, seen.tensor));
    }
    let made = seen.copy(source, copy.dtype);
    let fits = seen != start && made.shape.len() <= MOST_DIMS;
    fits.then_some((NodeOp::Operation(Operation::StridedCopy(made)), seen.tensor))
}

/// What is seen in the source of the copy that makes a tensor, and elements of that source.
fn before(chain: &Chain<'_>, seen: &Strided, last: &StridedCopy) -> Option<(Strided, Size)> {
    let node = chain.producer(seen.tensor)?;
    let (copy, inputs) = match &node.op {
        NodeOp::Operation(Operation::StridedCopy(copy)) => (copy, &node.inputs),
        // Of fixed sizes parts of results are parts of memory (`plan/parts.rs`).
        NodeOp::Operation(Operation::Concat(concat)) if chain.graph.open.is_some() => {
            let mut next = seen.through_joined(concat, &node.inputs)?;
            next.tensor = chain.behind_views(next.tensor);
            let tensor = chain.graph.tensor(next.tensor);
            let same = concat.dtype == last.dtype && tensor.element.storage() == last.dtype;
            return same.then(|| (next, tensor.count()));
        }
        _ => return None,
    };
    if copy.dtype != last.dtype {
        return None;
    }
    let from = chain.behind_views(inputs[0]);
    let next = seen.through_parts(copy, from, MOST_DIMS)?;
    Some((next, copy.source))
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::{
        super::tests::{kernels, optimized},
        *,
    };
    use crate::build::{Builder, Range};

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    fn indices(b: &mut Builder, of: &[i64]) -> TensorId {
        b.values(DType::I64, &[of.len() as u64], &Values::Int(of.to_vec())).unwrap()
    }

    #[test]
    fn fixed_indices_at_one_distance_are_slices() {
        let is_gather = |of: &[i64]| {
            let mut b = Builder::new();
            let x = b.input("x", F32, &[3, 5, 4]).unwrap();
            let at = indices(&mut b, of);
            let y = b.gather(x, at, 1).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let [operation] = kernels(&graph)[..] else { panic!("{graph}") };
            matches!(operation, Operation::Gather(_))
        };
        for slice in [&[2][..], &[-1], &[1, 3], &[4, 3, 2], &[-5, -3, -1], &[2, 2]] {
            assert!(!is_gather(slice), "{slice:?}");
        }
        // Out of range, counted from both ends, at no distance.
        for other in [&[5][..], &[-6], &[4, -4, -3], &[-1, 0], &[0, 1, 3]] {
            assert!(is_gather(other), "{other:?}");
        }
    }

    #[test]
    fn what_is_repeated_is_no_view() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 12]).unwrap();
        let at = indices(&mut b, &[0, 0]);
        let y = b.gather(x, at, 0).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [Operation::StridedCopy(copy)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert_eq!(copy.strides, [0, 1].map(Size::constant), "{graph}");
    }

    #[test]
    fn copies_of_copies_are_one_or_none() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[3, 5, 4]).unwrap();
        let turned = b.transpose(x, &[1, 0, 2]).unwrap();
        let part =
            b.slice(turned, &[Range { start: 1, step: 1, count: 2 }, Range::all(3), Range::all(4)]).unwrap();
        let back = b.transpose(part, &[1, 0, 2]).unwrap();
        let whole = b.transpose(turned, &[1, 0, 2]).unwrap();
        b.output("part", back);
        b.output("whole", whole);
        let graph = optimized(b.finish().unwrap());
        let [Operation::StridedCopy(copy)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert_eq!((copy.source, copy.offset), (60.into(), 4.into()), "{graph}");
    }
}
