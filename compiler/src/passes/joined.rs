//! What joins parts of one tensor is one copy: halves that change places in rotary embeddings, cosines that are there twice,
//! patches whose elements come together. Parts may be negated.

use bytes::Bytes;
use halite_ops::{
    Operation, Values,
    concat::Concat,
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    strides::Strided,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Most parts that are looked at.
const MOST_PARTS: usize = 64;
/// Most copies that are looked through behind a part: there may be thousands of parts.
const MOST_COPIES: usize = 16;
/// Most elements of the constant that says which parts are negated.
const MOST_SIGNS: u64 = 1 << 16;
/// Most dimensions of a strided copy.
const MOST_DIMS: usize = halite_ops::moves::MOST_DIMS;

/// Puts copies in the place of concatenations; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, Found::write)
}

/// A concatenation as a copy.
struct Found {
    source: TensorId,
    copy: StridedCopy,
    signs: Option<Signs>,
}

/// What the elements of a concatenation are multiplied by.
struct Signs {
    values: Vec<f64>,
    /// The last dimensions of the result, which they have.
    dims: Vec<Size>,
}

/// What a concatenation joins, as it lies in another tensor.
struct Part {
    negated: bool,
    seen: Strided,
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let NodeOp::Operation(Operation::Concat(concat)) = &node.op else { return None };
    in_order(chain, node, concat).or_else(|| repeated(chain, node, concat))
}

/// Any number of parts of any sizes that follow each other in their source: what was split is joined again.
fn in_order(chain: &Chain<'_>, node: &Node, concat: &Concat) -> Option<Found> {
    if concat.sizes.len() < 2 || concat.outer == 0 || concat.total() * concat.inner == 0 {
        return None;
    }
    let part = |(id, size): (&TensorId, &Size)| {
        let part = Part::of(chain, *id, concat, *size * concat.inner)?;
        (!part.negated && part.seen.sizes.len() == 2).then_some(part.seen)
    };
    let mut parts = node.inputs.iter().zip(&concat.sizes).map(part);
    let mut whole = parts.next()??;
    for next in parts {
        whole = extended(whole, &next?)?;
    }
    let copy = whole.copy(chain.graph.tensor(whole.tensor).count(), concat.dtype);
    let fits = crate::backend::check(&Operation::StridedCopy(copy.clone())).is_ok();
    fits.then_some(Found { source: whole.tensor, copy, signs: None })
}

/// Rows, with those that follow them at the same distances. Single elements are at any distance.
fn extended(mut rows: Strided, next: &Strided) -> Option<Strided> {
    let single = |rows: &Strided| rows.sizes[1].is(1.into());
    let step = match (single(&rows), single(next)) {
        (false, _) => rows.strides[1],
        (true, false) => next.strides[1],
        (true, true) => next.offset - rows.offset,
    };
    let goes_on = next.tensor == rows.tensor
        && next.strides[0].is(rows.strides[0])
        && next.offset.is(rows.offset + rows.sizes[1] * step)
        && (single(next) || next.strides[1].is(step));
    rows.strides[1] = step;
    rows.sizes[1] += next.sizes[1];
    goes_on.then_some(rows)
}

/// Parts of one size, at places that go on in one or several dimensions.
fn repeated(chain: &Chain<'_>, node: &Node, concat: &Concat) -> Option<Found> {
    let size = *concat.sizes.first()?;
    let same = (2..=MOST_PARTS).contains(&concat.sizes.len()) && concat.sizes.iter().all(|own| own.is(size));
    if !same || concat.outer == 0 || size * concat.inner == 0 {
        return None;
    }
    let parts: Vec<Part> = node
        .inputs
        .iter()
        .map(|id| Part::of(chain, *id, concat, size * concat.inner))
        .collect::<Option<_>>()?;
    let first = &parts[0].seen;
    let alike = |part: &Part| {
        let seen = &part.seen;
        seen.tensor == first.tensor && seen.sizes == first.sizes && seen.strides == first.strides
    };
    if !parts.iter().all(alike) {
        return None;
    }
    let offsets: Vec<Size> = parts.iter().map(|part| part.seen.offset).collect();
    let steps = steps(&offsets)?;
    let before =
        (0..=first.sizes.len()).find(|i| first.sizes[..*i].iter().product::<Size>().is(concat.outer))?;
    let mut whole = first.clone();
    whole.sizes.splice(before..before, steps.iter().map(|(count, _)| Size::from(*count as u64)));
    whole.strides.splice(before..before, steps.iter().map(|(_, step)| *step));
    let copy = whole.copy(chain.graph.tensor(first.tensor).count(), concat.dtype);
    let fits =
        copy.shape.len() <= MOST_DIMS && crate::backend::check(&Operation::StridedCopy(copy.clone())).is_ok();
    let signs = Signs::of(&parts, concat, chain.graph.tensor(node.outputs[0]).sizes())?;
    fits.then_some(Found { source: first.tensor, copy, signs })
}

impl Part {
    /// An input of a concatenation, which has `length` elements of it for each outer place, looked at behind negation, views
    /// and copies.
    fn of(chain: &Chain<'_>, id: TensorId, concat: &Concat, length: Size) -> Option<Part> {
        let id = chain.behind_views(id);
        let (negated, id) = match chain.scaled(id) {
            Some((-1.0, inner)) => (true, chain.behind_views(inner)),
            _ => (false, id),
        };
        let (sizes, strides) = (vec![concat.outer, length], vec![length, 1.into()]);
        let mut seen = Strided { tensor: id, offset: 0.into(), sizes, strides };
        for _ in 0..MOST_COPIES {
            let Some(Node { op: NodeOp::Operation(Operation::StridedCopy(copy)), inputs, .. }) =
                chain.producer(seen.tensor)
            else {
                break;
            };
            if copy.dtype != concat.dtype {
                break;
            }
            let Some(next) = seen.through_parts(copy, chain.behind_views(inputs[0]), MOST_DIMS) else {
                break;
            };
            seen = next;
        }
        let same = chain.graph.tensor(seen.tensor).element.storage() == concat.dtype;
        same.then_some(Part { negated, seen })
    }
}

/// The dimensions in which offsets go on, outer ones first: how often, and how far. `None` where no strides say it.
fn steps(offsets: &[Size]) -> Option<Vec<(usize, Size)>> {
    let [first, second, ..] = offsets else { return Some(Vec::new()) };
    let step = *second - *first;
    let follows = |pair: &[Size]| (pair[1] - pair[0]).is(step);
    let run = 1 + offsets.windows(2).take_while(|pair| follows(pair)).count();
    if !offsets.len().is_multiple_of(run) || !offsets.chunks(run).all(|run| run.windows(2).all(follows)) {
        return None;
    }
    let outer: Vec<Size> = offsets.iter().step_by(run).copied().collect();
    let mut steps = steps(&outer)?;
    steps.push((run, step));
    Some(steps)
}

impl Signs {
    /// Those of parts of a result with these dimensions: `None` inside where all are as they were, and `None` where it cannot
    /// be said.
    fn of(parts: &[Part], concat: &Concat, dims: &[Size]) -> Option<Option<Signs>> {
        if !parts.iter().any(|part| part.negated) {
            return Some(None);
        }
        let length = concat.total() * concat.inner;
        if !concat.dtype.is_float() || !length.is_constant() || length > MOST_SIGNS {
            return None;
        }
        let axis = (0..dims.len()).find(|i| dims[..*i].iter().product::<Size>().is(concat.outer))?;
        let each = length.exact_usize() / parts.len();
        let sign = |part: &Part| if part.negated { -1.0 } else { 1.0 };
        let values = parts.iter().flat_map(|part| std::iter::repeat_n(sign(part), each)).collect();
        Some(Some(Signs { values, dims: dims[axis..].to_vec() }))
    }
}

impl Found {
    fn write(self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let dtype = self.copy.dtype;
        let copy = Node {
            op: NodeOp::Operation(Operation::StridedCopy(self.copy)),
            inputs: vec![self.source],
            ..node.clone()
        };
        let Some(signs) = self.signs else { return vec![copy] };
        let whole = graph.tensor(node.outputs[0]);
        let (element, dims, name) =
            (whole.element, whole.sizes().to_vec(), node.location.as_str().to_owned());
        let copied = graph.add_tensor(Tensor::new(name.clone(), element, Shape::new(dims.iter().copied())));
        let by = graph.add_tensor(Tensor::new(name, element, Shape::new(signs.dims.iter().copied())));
        graph.tensors[by.index()].constant = Some(Bytes::from(Values::Float(signs.values).to_bytes(dtype)));
        let mut program = Expression::default();
        let product = program.call(Function::Mul, &[Operand::Input(0), Operand::Input(1)]);
        program.store(product, dtype);
        let operation = Elementwise::new(vec![(dtype, dims), (dtype, signs.dims)], program);
        let signed = Node {
            op: NodeOp::Operation(Operation::Elementwise(operation)),
            inputs: vec![copied, by],
            ..node.clone()
        };
        vec![Node { outputs: vec![copied], ..copy }, signed]
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::{Builder, Range};

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    fn names(graph: &Graph) -> Vec<&'static str> {
        kernels(graph).into_iter().map(Operation::name).collect()
    }

    #[test]
    fn distances_become_dimensions() {
        let of = |offsets: &[i64]| {
            let offsets: Vec<Size> = offsets.iter().map(|offset| Size::from(*offset)).collect();
            steps(&offsets)
        };
        let pairs =
            |list: &[(usize, i64)]| Some(list.iter().map(|(n, step)| (*n, Size::from(*step))).collect());
        assert_eq!(of(&[32, 0]), pairs(&[(2, -32)]));
        assert_eq!(of(&[7, 7, 7]), pairs(&[(3, 0)]));
        assert_eq!(of(&[0, 40, 5, 45]), pairs(&[(2, 5), (2, 40)]));
        assert_eq!(of(&[0, 1, 2, 4]), None);
        assert_eq!(of(&[0, 1, 2, 10, 11, 13]), None);
    }

    #[test]
    fn rotated_halves_are_read_where_they_lie() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 3, 5, 8]).unwrap();
        let angles = b.input("angles", F32, &[1, 1, 5, 4]).unwrap();
        let half = |b: &mut Builder, start: u64| {
            let ranges = [Range::all(2), Range::all(3), Range::all(5), Range { start, step: 1, count: 4 }];
            b.slice(x, &ranges).unwrap()
        };
        let (low, high) = (half(&mut b, 0), half(&mut b, 4));
        let high = b.unary(Function::Neg, high).unwrap();
        let rotated = b.concat(&[high, low], 3).unwrap();
        let twice = b.concat(&[angles, angles], 3).unwrap();
        let (cos, sin) = (b.unary(Function::Cos, twice).unwrap(), b.unary(Function::Sin, twice).unwrap());
        let (kept, turned) =
            (b.binary(Function::Mul, x, cos).unwrap(), b.binary(Function::Mul, rotated, sin).unwrap());
        let y = b.binary(Function::Add, kept, turned).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let names = names(&graph);
        assert!(!names.contains(&"concat") && !names.contains(&"copy"), "{graph}");
        assert!(names.len() <= 3, "{graph}");
    }

    #[test]
    fn patches_come_together_by_one_copy() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 6, 8, 3]).unwrap();
        let every = |start: u64, size: u64| Range { start, step: 2, count: size / 2 };
        let parts: Vec<_> = [(0, 0), (1, 0), (0, 1), (1, 1)]
            .into_iter()
            .map(|(row, column)| {
                let rows = b.slice(x, &[Range::all(1), every(row, 6), Range::all(8), Range::all(3)]).unwrap();
                b.slice(rows, &[Range::all(1), Range::all(3), every(column, 8), Range::all(3)]).unwrap()
            })
            .collect();
        let y = b.concat(&parts, 3).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["copy"], "{graph}");
    }

    /// The operations of a tensor in parts of these sizes along an axis, joined again in an order.
    fn rejoined(dims: &[u64], axis: usize, sizes: &[u64], order: impl Fn(&mut Vec<usize>)) -> Vec<Operation> {
        let mut b = Builder::new();
        let x = b.input("x", F32, dims).unwrap();
        let mut start = 0;
        let parts: Vec<_> = sizes
            .iter()
            .map(|count| {
                let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
                ranges[axis] = Range { start, step: 1, count: *count };
                start += count;
                b.slice(x, &ranges).unwrap()
            })
            .collect();
        let mut places: Vec<usize> = (0..parts.len()).collect();
        order(&mut places);
        let parts: Vec<_> = places.into_iter().map(|place| parts[place]).collect();
        let y = b.concat(&parts, axis).unwrap();
        let y = b.unary(Function::Abs, y).unwrap();
        b.output("y", y);
        kernels(&optimized(b.finish().unwrap())).into_iter().cloned().collect()
    }

    #[test]
    fn what_was_split_and_is_joined_again_costs_nothing() {
        let names = |made: Vec<Operation>| made.iter().map(Operation::name).collect::<Vec<_>>();
        let keep = |_: &mut Vec<usize>| ();
        assert_eq!(names(rejoined(&[300], 0, &[1; 300], keep)), ["elementwise"]);
        assert_eq!(names(rejoined(&[9, 4], 0, &[1, 5, 3], keep)), ["elementwise"]);
        assert_eq!(names(rejoined(&[3, 9, 4], 1, &[4, 1, 1, 3], keep)), ["elementwise"]);
        // All but the first and the last part are one part, which is read where it lies.
        let inner = |places: &mut Vec<usize>| *places = places[1..places.len() - 1].to_vec();
        assert_eq!(names(rejoined(&[3, 9, 4], 1, &[2, 3, 1, 2, 1], inner)), ["elementwise"]);
        let other = rejoined(&[3, 9, 4], 1, &[4, 3, 2], |places| places.swap(0, 1));
        assert!(other.len() > 1, "other orders move elements");
    }

    #[test]
    fn parts_of_two_tensors_or_of_other_sizes_are_joined() {
        let mut b = Builder::new();
        let (x, z) = (b.input("x", F32, &[4, 6]).unwrap(), b.input("z", F32, &[4, 6]).unwrap());
        let first = b.slice(x, &[Range::all(4), Range { start: 2, step: 1, count: 4 }]).unwrap();
        let rest = b.slice(x, &[Range::all(4), Range { start: 0, step: 1, count: 2 }]).unwrap();
        for (name, parts) in [("xz", [x, z]), ("rolled", [first, rest])] {
            let y = b.concat(&parts, 1).unwrap();
            b.output(name, y);
        }
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph).iter().filter(|name| **name == "concat").count(), 2, "{graph}");
    }
}
