//! Moves behind each other that only change the order of rows are one look-up of rows at constant places, where no copy can do what
//! they do: pictures that are shifted in a circle, by slices and concatenations along each axis, and then cut into windows.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

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
const MOST_ROWS: u64 = 1 << 18;
/// Most moves that are looked at, back from one of them.
const MOST_MOVES: usize = 32;
/// Most places that are computed for a region. What comes behind stays as it is: a model may have moves without end.
const MOST_WORK: u64 = 1 << 26;
/// As much as computing so many places is keeping one in the program.
const KEPT: u64 = 16;

/// Puts look-ups in the place of moves; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let (work, tables) = (Work(Cell::new(MOST_WORK)), RefCell::default());
    replace(
        graph,
        region,
        uses,
        watch,
        |chain, node| found(chain, node, &work),
        |found, graph, node| found.write(graph, node, &mut tables.borrow_mut()),
    )
}

/// What may still be computed.
struct Work(Cell<u64>);

impl Work {
    fn take(&self, places: u64) -> Option<()> {
        self.0.set(self.0.get().checked_sub(places)?);
        Some(())
    }
}

/// A look-up, what it reads, and the places.
struct Found {
    gather: Gather,
    source: TensorId,
    places: Vec<usize>,
}

fn found(chain: &Chain<'_>, node: &Node, work: &Work) -> Option<Found> {
    let dtype = moved(node)?.1;
    let mut left = MOST_MOVES;
    let moves = Moves::before(chain, node, dtype, &mut left)?;
    let width = moves.width;
    if moves.count < 2 || !moves.joined || width * dtype.size() < LEAST_BYTES {
        return None;
    }
    let from = fixed(chain.graph.tensor(moves.source).count())? / width;
    let mut places = moves.rows(chain, width, work)?;
    if places.iter().any(|place| *place as u64 >= from) {
        return None;
    }
    let outer = repeated(&places, from as usize);
    places.truncate(places.len() / outer);
    work.take(KEPT * places.len() as u64)?;
    let gather = Gather {
        outer: outer.into(),
        axis: (from / outer as u64).into(),
        inner: width.into(),
        indices: places.len().into(),
        dtype,
        index: DType::I32,
    };
    let fits = crate::backend::check(&Operation::Gather(gather.clone())).is_ok();
    fits.then_some(Found { gather, source: moves.source, places })
}

impl Found {
    /// Blocks of a network shift alike, so that their look-ups share a table.
    fn write(self, graph: &mut Graph, node: &Node, tables: &mut HashMap<Vec<usize>, TensorId>) -> Vec<Node> {
        let Found { gather, source, places } = self;
        let table = *tables.entry(places).or_insert_with_key(|places| {
            let shape = Shape::new([Size::from(places.len())]);
            let mut tensor = Tensor::new(node.location.as_str(), DType::I32.into(), shape);
            let places = Values::Int(places.iter().map(|place| *place as i64).collect());
            tensor.constant = Some(places.to_bytes(DType::I32).into());
            graph.add_tensor(tensor)
        });
        let op = NodeOp::Operation(Operation::Gather(gather));
        vec![Node { op, inputs: vec![source, table], ..node.clone() }]
    }
}

/// The number behind a size, where it is one.
fn fixed(size: Size) -> Option<u64> {
    size.is_constant().then(|| size.exact())
}

/// The tensors that a move moves, and the type of their elements.
fn moved(node: &Node) -> Option<(&[TensorId], DType)> {
    match &node.op {
        NodeOp::Operation(Operation::StridedCopy(copy)) => Some((&node.inputs[..1], copy.dtype)),
        NodeOp::Operation(Operation::Concat(concat)) => Some((&node.inputs, concat.dtype)),
        NodeOp::Operation(Operation::Gather(gather)) => Some((&node.inputs[..1], gather.dtype)),
        _ => None,
    }
}

/// Moves behind each other, back from the last of them to the one tensor that they read.
struct Moves<'a> {
    last: &'a Node,
    /// Those before it that make what it moves, in the order of its inputs; none where that is the source.
    earlier: Vec<Option<Moves<'a>>>,
    /// What the first of them read.
    source: TensorId,
    /// Elements of the longest rows that all of them keep together.
    width: u64,
    /// Dispatches, one for each part of a concatenation.
    count: usize,
    /// Whether one of them is no copy.
    joined: bool,
}

impl<'a> Moves<'a> {
    /// Those that end with a node, of elements of a type. What moves in another way, and what joins parts of several tensors, is the
    /// source for the moves behind it; so is everything when no more are `left`.
    fn before(chain: &'a Chain<'_>, last: &'a Node, dtype: DType, left: &mut usize) -> Option<Moves<'a>> {
        *left = left.checked_sub(1)?;
        let (inputs, own) =
            moved(last).filter(|(_, own)| *own == dtype).map(|(ids, _)| (ids, width_of(chain, last)))?;
        let mut moves = Moves {
            last,
            earlier: Vec::new(),
            source: inputs[0],
            width: own?,
            count: inputs.len(),
            joined: true,
        };
        moves.joined = !matches!(&last.op, NodeOp::Operation(Operation::StridedCopy(_)));
        for (i, id) in inputs.iter().enumerate() {
            let id = chain.behind_views(*id);
            let earlier = chain.producer(id).and_then(|node| Moves::before(chain, node, dtype, left));
            let source = earlier.as_ref().map_or(id, |earlier| earlier.source);
            if i > 0 && source != moves.source {
                return None;
            }
            moves.source = source;
            if let Some(earlier) = &earlier {
                moves.width = common(moves.width, earlier.width);
                moves.count += earlier.count;
                moves.joined |= earlier.joined;
            }
            moves.earlier.push(earlier);
        }
        Some(moves)
    }

    /// Where the rows of the result lie in the source.
    fn rows(&self, chain: &Chain<'_>, width: u64, work: &Work) -> Option<Vec<usize>> {
        let rows = fixed(chain.graph.tensor(self.last.outputs[0]).count())? / width;
        if rows > MOST_ROWS {
            return None;
        }
        work.take(rows)?;
        let NodeOp::Operation(operation) = &self.last.op else { return None };
        let parts = self.earlier.iter().map(|earlier| {
            Some(match earlier {
                Some(moves) => Part::At(moves.rows(chain, width, work)?),
                None => Part::Whole,
            })
        });
        let parts: Vec<Part> = parts.collect::<Option<_>>()?;
        match operation {
            Operation::StridedCopy(copy) => parts[0].at(copied(copy, width)?),
            Operation::Gather(gather) => parts[0].at(gathered(chain, self.last.inputs[1], gather, width)?),
            Operation::Concat(concat) => joined(concat, &parts, width),
            _ => None,
        }
    }
}

/// Rows of what a move reads, by their places in the source.
enum Part {
    /// It is the source.
    Whole,
    At(Vec<usize>),
}

impl Part {
    /// Those at places of these.
    fn at(&self, places: Vec<usize>) -> Option<Vec<usize>> {
        match self {
            Part::Whole => Some(places),
            Part::At(own) => places.into_iter().map(|place| own.get(place).copied()).collect(),
        }
    }
}

/// The longest rows that a move keeps together, where it is the same in each call.
fn width_of(chain: &Chain<'_>, node: &Node) -> Option<u64> {
    match &node.op {
        NodeOp::Operation(Operation::StridedCopy(copy)) => width_of_copy(copy),
        NodeOp::Operation(Operation::Concat(concat)) => fixed(concat.inner),
        NodeOp::Operation(Operation::Gather(gather)) => {
            let known = chain.graph.tensor(node.inputs[1]).constant.is_some();
            known.then(|| fixed(gather.inner)).flatten()
        }
        _ => None,
    }
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
fn joined(concat: &Concat, parts: &[Part], width: u64) -> Option<Vec<usize>> {
    let (outer, inner) = (fixed(concat.outer)? as usize, (fixed(concat.inner)? / width) as usize);
    let lengths: Vec<usize> =
        concat.sizes.iter().map(|size| Some(fixed(*size)? as usize * inner)).collect::<Option<_>>()?;
    let mut places = Vec::new();
    for o in 0..outer {
        for (part, length) in parts.iter().zip(&lengths) {
            places.extend(part.at((o * length..(o + 1) * length).collect())?);
        }
    }
    Some(places)
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
    use halite_ops::{DType, expression::Function};

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
    fn shifts_of_all_blocks_share_their_tables_and_long_chains_end() {
        let mut b = Builder::new();
        let dims = [2, 5, 8];
        let mut x = b.input("x", DType::F32.into(), &dims).unwrap();
        let y = b.input("y", DType::F32.into(), &dims).unwrap();
        for step in 0..300 {
            x = rolled(&mut b, x, &dims, 1, 2);
            if step % 3 == 2 {
                x = b.binary(Function::Add, x, y).unwrap();
            }
        }
        b.output("y", x);
        let graph = optimized(b.finish().unwrap());
        let made = kernels(&graph);
        let looked_up = made.iter().filter(|kernel| matches!(kernel, Operation::Gather(_))).count();
        assert_eq!((looked_up, made.len()), (100, 200), "{graph}");
        // Shifts by two, four and six, as they were found.
        let tables =
            graph.tensors.iter().filter(|tensor| tensor.constant.as_ref().is_some_and(|t| t.len() == 20));
        assert_eq!(tables.count(), 3);
    }

    /// `optimized` compares the results before and after with each other.
    #[test]
    fn any_moves_behind_each_other_keep_their_results() {
        let (mut state, mut shorter) = (20_261_129_u64, 0);
        for _ in 0..60 {
            let mut below = |most: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % most
            };
            let mut b = Builder::new();
            let mut dims = vec![2, 3, 4, 4];
            let mut x = b.input("x", DType::F32.into(), &dims).unwrap();
            for _ in 0..4 {
                let axis = below(3) as usize;
                match below(4) {
                    0 if dims[axis] > 1 => x = rolled(&mut b, x, &dims, axis, 1 + below(dims[axis] - 1)),
                    1 => {
                        let order = [[1, 0, 2, 3], [2, 1, 0, 3], [1, 2, 0, 3]][below(3) as usize];
                        x = b.transpose(x, &order).unwrap();
                        dims = order.iter().map(|d| dims[*d]).collect();
                    }
                    2 => {
                        let picked: Vec<i64> = (0..=below(4)).map(|_| below(dims[axis]) as i64).collect();
                        dims[axis] = picked.len() as u64;
                        let picked = b.values(DType::I64, &[dims[axis]], &Values::Int(picked)).unwrap();
                        x = b.gather(x, picked, axis).unwrap();
                    }
                    _ if dims[axis] < 6 => {
                        let turned = rolled(&mut b, x, &dims, axis, dims[axis] / 2);
                        x = b.concat(&[x, turned], axis).unwrap();
                        dims[axis] *= 2;
                    }
                    _ => (),
                }
            }
            b.output("y", x);
            let graph = optimized(b.finish().unwrap());
            let made = kernels(&graph);
            shorter += usize::from(made.len() == 1 && matches!(made[0], Operation::Gather(_)));
        }
        assert!(shorter > 20, "{shorter} of 60 are one look-up");
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
