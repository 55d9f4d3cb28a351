//! Products whose left operand or result is runs of a larger tensor: what `coop.comp` is told of them.

use halite_ops::{Operation, matmul::MatMul, runs::Runs};
use halite_sizes::{Size, is_worth};

use super::normalized;
use crate::{
    Params, Unfit,
    plan::narrow,
    plans::runs::{Around, Taken},
};

/// Elements that results are stored in, and elements of 16-bit floats in the words that operands are read in.
const QUAD: u64 = 4;
const OCTET: u64 = 8;
const WORD: u64 = 8;

/// Whether a run of operands begins and ends with whole words.
pub(in crate::plans) fn is_read(runs: Runs, length: Size) -> bool {
    runs.are_multiples_of(WORD) && length.is(runs.length.into())
}

/// Which runs the kernels of a template take.
pub(super) fn taken(op: &MatMul, template: &str, params: &Params) -> Taken {
    let rows = |runs: Runs, row: Size| row.is(runs.length.into()) || (row * op.m).is(runs.length.into());
    if !super::is_coop(template) || op.norm.is_some() {
        return Taken::default();
    }
    let halves = op.lhs.size() == 2 && op.k.is_constant() && op.k.is_multiple_of(WORD);
    // A dispatch that normalizes rows before reads the tensor by itself.
    let own = op.lhs_norm.is_none() || normalized::is_taken(op, template, params);
    let read = |runs: Runs| own && halves && runs.are_multiples_of(WORD) && rows(runs, op.k);
    Taken { read: op.read.is_some_and(read), written: op.written.is_some_and(|runs| rows(runs, op.n)) }
}

/// The product with the runs that the kernels of a template take, and what is done around it for the others, if there are such.
pub(super) fn left(op: &MatMul, template: &str, params: &Params) -> Option<(MatMul, Around)> {
    let (own, other) = taken(op, template, params).split(op.read, op.written);
    let around = Around::of(other, Operation::MatMul(MatMul { read: None, written: None, ..op.clone() }))?;
    Some((MatMul { read: own[0], written: own[1], ..op.clone() }, around))
}

/// Where operands begin, in elements, and elements from a row of the left one to the next.
#[derive(Clone, Copy)]
pub(in crate::plans) struct Reads {
    pub lhs_first: Size,
    pub rhs_first: Size,
    pub lhs_row: Size,
}

/// Where results begin, in elements, and elements from a row, and from a matrix of the batch, to the next.
#[derive(Clone, Copy)]
pub(in crate::plans) struct Writes {
    pub first: Size,
    pub row: Size,
    pub matrix: Size,
}

/// How the left operand of a product lies, and elements from one matrix of the batch to the next.
pub(super) fn reads(op: &MatMul) -> Option<(Reads, Size)> {
    op.read.map(|runs| {
        let [first, pitch] = [runs.offset, runs.pitch].map(Size::from);
        let (row, matrix) = if op.k.is(runs.length.into()) { (pitch, op.m * pitch) } else { (op.k, pitch) };
        (Reads { lhs_first: first, rhs_first: 0.into(), lhs_row: row }, matrix)
    })
}

/// How the results of a product lie: rows of `across` products side by side, or whole results.
pub(super) fn writes(op: &MatMul, across: Size) -> Option<Writes> {
    op.written.map(|runs| {
        let [first, pitch] = [runs.offset, runs.pitch].map(Size::from);
        if (op.n * across).is(runs.length.into()) {
            let matrix = if across.is(1.into()) { op.m * pitch } else { op.n };
            return Writes { first, row: pitch, matrix };
        }
        Writes { first, row: op.n, matrix: pitch }
    })
}

/// How the results of a product lie that are no runs.
pub(super) fn dense(op: &MatMul, across: Size) -> Writes {
    let matrix = if across.is(1.into()) { op.m * op.n } else { op.n };
    Writes { first: 0.into(), row: op.n * across, matrix }
}

/// Whether results are stored in quads.
pub(super) fn in_quads(op: &MatMul) -> bool {
    op.written.is_none_or(|runs| runs.pitch.is_multiple_of(QUAD) && runs.offset.is_multiple_of(QUAD))
}

/// Whether results are stored in octets.
pub(super) fn in_octets(op: &MatMul) -> bool {
    is_worth(|| op.n.is_multiple_of(OCTET))
        && op.written.is_none_or(|runs| runs.pitch.is_multiple_of(OCTET) && runs.offset.is_multiple_of(OCTET))
}

/// Six push constants, for rows of so many elements of the left operand where it lies by itself. Operands are counted in words where so many bytes of them are read at a time, or else in elements.
pub(super) fn push(
    reads: Option<Reads>,
    writes: Option<Writes>,
    row: Size,
    bytes: [u32; 2],
) -> Result<Vec<Size>, Unfit> {
    let [lhs, rhs] = bytes.map(|bytes| if bytes == 16 { WORD } else { 1 });
    let zero = Size::constant(0);
    let reads = reads.unwrap_or(Reads { lhs_first: zero, rhs_first: zero, lhs_row: row });
    let writes = writes.unwrap_or(Writes { first: zero, row: zero, matrix: zero });
    let operands = [reads.lhs_first / lhs, reads.rhs_first / rhs, reads.lhs_row / WORD];
    let all = operands.into_iter().chain([writes.first, writes.row, writes.matrix]);
    all.map(|size| narrow("a place in a larger tensor", size)).collect()
}
