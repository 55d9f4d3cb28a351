//! Tensors in runs of others: which nodes join or cut out such, and operations that read and write them there.

use halite_ops::{
    DType, Operation,
    concat::Concat,
    conv2d::Conv2d,
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{Expression, Operand},
    matmul::MatMul,
    pool2d::Pool2d,
    runs::Runs,
    strides::Strides,
};
use halite_sizes::Size;

use crate::{
    graph::{Graph, Node, NodeOp, TensorId},
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

/// The concatenation that a node is, if its inputs are several runs each, of whole words.
pub(super) fn joins_runs(node: &Node) -> Option<&Concat> {
    let NodeOp::Operation(Operation::Concat(concat)) = &node.op else { return None };
    let fixed = |size: &Size| size.is_constant() && *size > 0;
    if !fixed(&concat.outer) || !fixed(&concat.inner) || !concat.sizes.iter().all(fixed) {
        return None;
    }
    let unit = ALIGNMENT / concat.dtype.size().min(ALIGNMENT);
    let whole = concat.sizes.iter().all(|size| (*size * concat.inner).is_multiple_of(unit));
    (concat.outer > 1 && concat.sizes.len() > 1 && whole).then_some(concat)
}

/// The runs of its input that a node copies, if these are several, of whole words.
pub(super) fn shows_runs(node: &Node) -> Option<Runs> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    if halite_sizes::is_open(copy) {
        return None;
    }
    let mut dims = copy.shape.iter().zip(&copy.strides).rev().filter(|(size, _)| **size != 1).peekable();
    let mut length = Size::constant(1);
    while let Some((size, _)) = dims.next_if(|(_, stride)| stride.is(length)) {
        length *= *size;
    }
    let (mut count, pitch) = dims.next().map(|(size, stride)| (*size, *stride))?;
    for (size, stride) in dims {
        stride.is(pitch * count).then_some(())?;
        count *= *size;
    }
    let [length, pitch, offset] = [length, pitch, copy.offset].map(Size::signed_value);
    let positive = count > 0 && length > 0 && pitch > 0 && offset >= 0 && offset + length <= pitch;
    let runs = Runs { length: length as u64, pitch: pitch as u64, offset: offset as u64 };
    let whole = runs.are_multiples_of(ALIGNMENT / copy.dtype.size().min(ALIGNMENT));
    (positive && whole && copy.source.is(count * runs.pitch)).then_some(runs)
}

/// Runs of a tensor that is runs of another itself; none where the ones are not parts of the others.
pub(super) fn within(outer: Runs, inner: Runs) -> Option<Runs> {
    (outer.length == inner.pitch).then_some(Runs {
        length: inner.length,
        pitch: outer.pitch,
        offset: outer.offset + inner.offset,
    })
}

/// What copies runs of one tensor to those of another, in elements.
pub(super) fn moving(dtype: DType, count: Size, from: Runs, to: Runs) -> Option<Operation> {
    let strided = Strides {
        input: 0,
        source: count * from.pitch,
        offset: from.offset.into(),
        strides: vec![from.pitch.into(), 1.into()],
    };
    let mut program = Expression::default();
    program.store(Operand::Input(0), dtype);
    let made = Elementwise {
        strided: vec![strided],
        written: Some(to),
        ..Elementwise::new(vec![(dtype, vec![count, from.length.into()])], program)
    };
    let made = Operation::Elementwise(made);
    made.check().is_ok().then_some(made)
}

/// The elements of a run of each input of a concatenation.
pub(super) fn lengths(concat: &Concat) -> impl Iterator<Item = u64> {
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
