//! What layers share whose tokens go in pieces and correct what a state has: the tokens of a piece, and the inverse of the triangular matrix
//! that tells what each corrects of what those before it wrote. Blocks of its diagonal are inverted, then pairs of them as one, until there
//! is one block.

use halite_ops::{DType, expression::Function};
use halite_sizes::Size;

use super::Result;
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// Some tokens of what is `[sequences, heads, len, …]`.
pub(super) fn some_tokens(b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).to_vec().into_iter().map(Range::all).collect();
    ranges[2] = Range { start: first.into(), step: 1, count: count.into() };
    b.slice(x, &ranges)
}

/// The inverse of the identity and a matrix with numbers below its diagonal alone, `[…, count, count]`. Two neighbouring blocks with
/// their inverses have as theirs, below the diagonal, minus the second times what is between them times the first.
pub(super) fn inverse(b: &mut Builder, below: TensorId, count: u64) -> Result<TensorId> {
    let between = |b: &mut Builder, size: u64| {
        let is_it = |row: u64, column: u64| row / size == column / size + 1 && row / size % 2 == 1;
        let cells = (0..count).flat_map(|row| (0..count).map(move |column| (row, column)));
        let bytes: Vec<u8> =
            cells.flat_map(|(row, column)| f32::from(u8::from(is_it(row, column))).to_le_bytes()).collect();
        let mask = b.constant("between", DType::F32.into(), &[count, count], bytes.into())?;
        b.binary(Function::Mul, below, mask)
    };
    let cells = (0..count).flat_map(|row| (0..count).map(move |column| row == column));
    let bytes: Vec<u8> = cells.flat_map(|is_own| f32::from(u8::from(is_own)).to_le_bytes()).collect();
    let identity = b.constant("identity", DType::F32.into(), &[count, count], bytes.into())?;
    let first = between(b, 1)?;
    let mut made = b.binary(Function::Sub, identity, first)?;
    let mut size = 2;
    while size < count {
        let part = between(b, size)?;
        let part = b.matmul(made, part)?;
        let part = b.matmul(part, made)?;
        made = b.map(&[made, part], DType::F32, |p, x| p.call(Function::Sub, x))?;
        size *= 2;
    }
    Ok(made)
}
