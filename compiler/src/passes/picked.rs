//! Moves behind each other that only change the order of rows are one look-up of rows at constant places, where no copy can do what
//! they do: pictures that are shifted in a circle, by slices and concatenations along each axis, and then cut into windows.

use halite_ops::{DType, Operation, Values, concat::Concat, copy::StridedCopy, gather::Gather};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Least bytes of a row: a shorter one takes as long as its place.
const LEAST_BYTES: u64 = 16;
/// Most rows of a result: their places are constants of the program.
const MOST_ROWS: u64 = 1 << 20;
/// Most moves behind each other that are looked at.
const MOST_MOVES: usize = 16;

/// Puts look-ups in the place of moves; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, Found::write)
}

/// A look-up, what it reads, and the places.
struct Found {
    gather: Gather,
    source: TensorId,
    places: Vec<usize>,
}

/// Where rows of a tensor lie in another one.
struct Rows {
    source: TensorId,
    places: Vec<usize>,
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let dtype = dtype_of(node)?;
    let width = match width_of(chain, node, dtype, 0)? {
        Width { moves: 2.., joined: true, elements } => elements,
        _ => return None,
    };
    let [rows, source] = [node.outputs[0], node.inputs[0]].map(|id| chain.graph.tensor(id).count());
    let fits = width * dtype.size() >= LEAST_BYTES && rows <= MOST_ROWS * width;
    if !fits || !source.is_constant() {
        return None;
    }
    let Rows { source, mut places } = rows_of(chain, node, dtype, width, 0)?;
    let from = fixed(chain.graph.tensor(source).count())? / width;
    let outer = repeated(&places, from as usize);
    places.truncate(places.len() / outer);
    let gather = Gather {
        outer: outer.into(),
        axis: (from / outer as u64).into(),
        inner: width.into(),
        indices: places.len().into(),
        dtype,
        index: DType::I32,
    };
    let fits = crate::backend::check(&Operation::Gather(gather.clone())).is_ok();
    fits.then_some(Found { gather, source, places })
}

impl Found {
    fn write(self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let mut tensor = Tensor::new(
            node.location.as_str(),
            DType::I32.into(),
            Shape::new([Size::from(self.places.len())]),
        );
        let places = Values::Int(self.places.iter().map(|place| *place as i64).collect());
        tensor.constant = Some(places.to_bytes(DType::I32).into());
        let places = graph.add_tensor(tensor);
        let op = NodeOp::Operation(Operation::Gather(self.gather));
        vec![Node { op, inputs: vec![self.source, places], ..node.clone() }]
    }
}

/// The number behind a size, where it is one.
fn fixed(size: Size) -> Option<u64> {
    size.is_constant().then(|| size.exact())
}

/// The type of a move's elements.
fn dtype_of(node: &Node) -> Option<DType> {
    match &node.op {
        NodeOp::Operation(Operation::StridedCopy(copy)) => Some(copy.dtype),
        NodeOp::Operation(Operation::Concat(concat)) => Some(concat.dtype),
        NodeOp::Operation(Operation::Gather(gather)) => Some(gather.dtype),
        _ => None,
    }
}

/// What moves keep together.
struct Width {
    /// Elements of a row.
    elements: u64,
    /// Moves, concatenations among them for each of their parts.
    moves: usize,
    /// Whether one of them is no copy.
    joined: bool,
}

/// The longest rows that a move, and those before it, keep together.
fn width_of(chain: &Chain<'_>, node: &Node, dtype: DType, depth: usize) -> Option<Width> {
    let NodeOp::Operation(operation) = &node.op else { return None };
    let (own, inputs, joined) = match operation {
        Operation::StridedCopy(copy) => (width_of_copy(copy)?, 1, false),
        Operation::Concat(concat) => (fixed(concat.inner)?, node.inputs.len(), true),
        Operation::Gather(gather) => (fixed(gather.inner)?, 1, true),
        _ => return None,
    };
    let mut width = Width { elements: own, moves: inputs, joined };
    for id in &node.inputs[..inputs] {
        if let Some(before) =
            before(chain, *id, dtype, depth).and_then(|node| width_of(chain, node, dtype, depth + 1))
        {
            width.elements = common(width.elements, before.elements);
            width.moves += before.moves;
            width.joined |= before.joined;
        }
    }
    Some(width)
}

/// The longest rows that a copy keeps together.
fn width_of_copy(copy: &StridedCopy) -> Option<u64> {
    let ((last, step), rest) = (copy.shape.last().zip(copy.strides.last())?, copy.strides.len() - 1);
    if *step != 1 {
        return None;
    }
    let numbers = copy.strides[..rest].iter().chain([&copy.offset, &copy.source]);
    numbers
        .map(|size| size.is_constant().then(|| size.exact_signed().unsigned_abs()))
        .try_fold(fixed(*last)?, |a, b| Some(common(a, b?)))
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// The move that makes a tensor, of elements of a type.
fn before<'a>(chain: &Chain<'a>, id: TensorId, dtype: DType, depth: usize) -> Option<&'a Node> {
    let node = chain.nodes.get(*chain.producers.get(&chain.behind_views(id))?)?;
    (depth < MOST_MOVES && dtype_of(node) == Some(dtype)).then_some(node)
}

/// Where the rows of a move's result lie in what the first of the moves reads.
fn rows_of(chain: &Chain<'_>, node: &Node, dtype: DType, width: u64, depth: usize) -> Option<Rows> {
    let NodeOp::Operation(operation) = &node.op else { return None };
    let input = |id: TensorId| input_rows(chain, id, dtype, width, depth);
    match operation {
        Operation::StridedCopy(copy) => input(node.inputs[0])?.at(copied(copy, width)?),
        Operation::Gather(gather) => {
            input(node.inputs[0])?.at(gathered(chain, node.inputs[1], gather, width)?)
        }
        Operation::Concat(concat) => {
            let parts: Vec<Rows> = node.inputs.iter().map(|id| input(*id)).collect::<Option<_>>()?;
            joined(concat, &parts, width)
        }
        _ => None,
    }
}

/// The same of a tensor, which may be what the first of them reads.
fn input_rows(chain: &Chain<'_>, id: TensorId, dtype: DType, width: u64, depth: usize) -> Option<Rows> {
    // Whatever makes it is looked at as `width_of` did.
    let made =
        before(chain, id, dtype, depth).filter(|node| width_of(chain, node, dtype, depth + 1).is_some());
    if let Some(node) = made {
        return rows_of(chain, node, dtype, width, depth + 1);
    }
    let source = chain.behind_views(id);
    let rows = fixed(chain.graph.tensor(source).count())? / width;
    Some(Rows { source, places: (0..rows as usize).collect() })
}

impl Rows {
    /// Those at places of these.
    fn at(self, places: Vec<usize>) -> Option<Rows> {
        let places =
            places.into_iter().map(|place| self.places.get(place).copied()).collect::<Option<_>>()?;
        Some(Rows { places, ..self })
    }
}

/// The rows of its source that a copy reads.
fn copied(copy: &StridedCopy, width: u64) -> Option<Vec<usize>> {
    let width = i128::from(width);
    let number = |size: &Size| size.is_constant().then(|| i128::from(size.exact_signed()));
    let mut places = vec![number(&copy.offset)? / width];
    let last = copy.shape.len() - 1;
    for (d, (size, stride)) in copy.shape.iter().zip(&copy.strides).enumerate() {
        let (size, stride) = match d == last {
            true => (number(size)? / width, 1),
            false => (number(size)?, number(stride)? / width),
        };
        places = places.iter().flat_map(|place| (0..size).map(move |i| place + i * stride)).collect();
    }
    places.into_iter().map(|place| usize::try_from(place).ok()).collect()
}

/// The rows that a look-up by constant indices reads.
fn gathered(chain: &Chain<'_>, indices: TensorId, gather: &Gather, width: u64) -> Option<Vec<usize>> {
    let tensor = chain.graph.tensor(indices);
    let values = Values::from_bytes(tensor.element.storage(), tensor.constant.as_ref()?);
    let [outer, axis, inner] = [gather.outer, gather.axis, gather.inner / width].map(fixed);
    let (outer, axis, inner) = (outer? as usize, axis?, inner? as usize);
    let place = |i: usize| {
        let index = values.int(i);
        let index = if index < 0 { index + axis as i64 } else { index };
        u64::try_from(index).ok().filter(|index| *index < axis).map(|index| index as usize)
    };
    let picked: Vec<usize> = (0..values.len()).map(place).collect::<Option<_>>()?;
    let of = |o: usize| picked.iter().map(move |index| (o * axis as usize + index) * inner);
    Some((0..outer).flat_map(of).flat_map(|first| first..first + inner).collect())
}

/// The rows of parts of one tensor that are joined.
fn joined(concat: &Concat, parts: &[Rows], width: u64) -> Option<Rows> {
    let source = parts.first()?.source;
    if parts.iter().any(|part| part.source != source) {
        return None;
    }
    let (outer, inner) = (fixed(concat.outer)? as usize, (fixed(concat.inner)? / width) as usize);
    let lengths: Vec<usize> =
        concat.sizes.iter().map(|size| Some(fixed(*size)? as usize * inner)).collect::<Option<_>>()?;
    let mut places = Vec::new();
    for o in 0..outer {
        for (part, length) in parts.iter().zip(&lengths) {
            places.extend_from_slice(part.places.get(o * length..(o + 1) * length)?);
        }
    }
    Some(Rows { source, places })
}

/// How often the places repeat themselves, each time in the next part of `from` rows.
fn repeated(places: &[usize], from: usize) -> usize {
    let repeats = |times: &usize| {
        let (own, step) = (places.len() / times, from / times);
        let here = |i: usize| places[i % own] + i / own * step;
        own > 0
            && places[..own].iter().all(|place| *place < step)
            && (0..places.len()).all(|i| places[i] == here(i))
    };
    let both = common(places.len() as u64, from as u64) as usize;
    let divisors = (1..=both.isqrt()).filter(|d| both.is_multiple_of(*d)).map(|d| both / d);
    divisors.chain((1..=both.isqrt()).rev().filter(|d| both.is_multiple_of(*d))).find(repeats).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::{
        super::tests::{kernels, optimized},
        *,
    };
    use crate::build::{Builder, Range};

    /// A picture that is moved in a circle along an axis.
    fn rolled(b: &mut Builder, x: TensorId, dims: &[u64], axis: usize, by: u64) -> TensorId {
        let part = |start: u64, count: u64| {
            let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
            ranges[axis] = Range { start, step: 1, count };
            ranges
        };
        let first = b.slice(x, &part(by, dims[axis] - by)).unwrap();
        let second = b.slice(x, &part(0, by)).unwrap();
        b.concat(&[first, second], axis).unwrap()
    }

    #[test]
    fn shifted_windows_are_one_look_up() {
        let mut b = Builder::new();
        let dims = [2, 4, 6, 8];
        let x = b.input("x", DType::F32.into(), &dims).unwrap();
        let down = rolled(&mut b, x, &dims, 1, 1);
        let both = rolled(&mut b, down, &dims, 2, 2);
        let cut = b.reshape(both, &[2, 2, 2, 3, 2, 8]).unwrap();
        let windows = b.transpose(cut, &[0, 1, 3, 2, 4, 5]).unwrap();
        b.output("y", windows);
        let graph = optimized(b.finish().unwrap());
        let [Operation::Gather(gather)] = kernels(&graph)[..] else { panic!("{graph}") };
        let wanted = Gather {
            outer: 2.into(),
            axis: 24.into(),
            inner: 8.into(),
            indices: 24.into(),
            dtype: DType::F32,
            index: DType::I32,
        };
        assert_eq!(*gather, wanted, "{graph}");
        // Look-ups of parts of the chain were there before, and their constants are.
        let tables = graph.tensors.iter().rev().filter_map(|tensor| tensor.constant.as_ref());
        let table = tables.into_iter().find(|table| table.len() == 24 * 4).unwrap();
        let places = Values::from_bytes(DType::I32, table);
        let row = |y: usize, x: usize| ((y + 1) % 4 * 6 + (x + 2) % 6) as i64;
        let mut wanted = Vec::new();
        for (down, right) in (0..2).flat_map(|down| (0..3).map(move |right| (down, right))) {
            for (y, x) in (0..2).flat_map(|y| (0..2).map(move |x| (y, x))) {
                wanted.push(row(2 * down + y, 2 * right + x));
            }
        }
        assert_eq!((0..24).map(|i| places.int(i)).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn narrow_rows_and_parts_of_two_tensors_stay() {
        let mut b = Builder::new();
        let dims = [5, 2];
        let (x, y) = (b.input("x", DType::F32.into(), &dims), b.input("y", DType::F32.into(), &dims));
        let (x, y) = (x.unwrap(), y.unwrap());
        let narrow = rolled(&mut b, x, &dims, 0, 2);
        let both = b.concat(&[narrow, y], 1).unwrap();
        b.output("z", both);
        let graph = optimized(b.finish().unwrap());
        let looked_up = kernels(&graph).iter().any(|kernel| matches!(kernel, Operation::Gather(_)));
        assert!(!looked_up, "{graph}");
    }
}
