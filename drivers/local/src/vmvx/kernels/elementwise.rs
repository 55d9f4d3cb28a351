//! The kernels that look at one element at a time.

use halite_abi::Result;
use halite_vm::{Arguments, Results};

use super::region::{PIECE, Region, Size, in_pieces};

/// Bytes of the elements that are computed with.
const WORD: usize = 4;

/// `out = function(in)`.
pub(super) fn unary(args: &mut Arguments, function: fn(u32) -> u32) -> Result<()> {
    let input = Region::read(args, WORD, [None, None])?;
    let out = Region::read(args, WORD, [None, None])?;
    let size = Size::new(args.i64()?, args.i64()?)?;
    input.check(size)?;
    out.check(size)?;
    let mut piece = [0; PIECE];
    in_pieces(args, size, WORD, |row, column, elements| {
        let piece = &mut piece[..elements * WORD];
        input.load(row, column, piece)?;
        for word in piece.as_chunks_mut().0 {
            *word = function(u32::from_le_bytes(*word)).to_le_bytes();
        }
        out.store(row, column, piece)
    })
}

/// `out = function(lhs, rhs)`.
pub(super) fn binary(args: &mut Arguments, function: fn(u32, u32) -> Result<u32>) -> Result<()> {
    let lhs = Region::read(args, WORD, [None, None])?;
    let rhs = Region::read(args, WORD, [None, None])?;
    let out = Region::read(args, WORD, [None, None])?;
    let size = Size::new(args.i64()?, args.i64()?)?;
    for region in [&lhs, &rhs, &out] {
        region.check(size)?;
    }
    let (mut a, mut b) = ([0; PIECE], [0; PIECE]);
    in_pieces(args, size, WORD, |row, column, elements| {
        let (a, b) = (&mut a[..elements * WORD], &mut b[..elements * WORD]);
        lhs.load(row, column, a)?;
        rhs.load(row, column, b)?;
        for (a, b) in a.as_chunks_mut().0.iter_mut().zip(b.as_chunks().0) {
            *a = function(u32::from_le_bytes(*a), u32::from_le_bytes(*b))?.to_le_bytes();
        }
        out.store(row, column, a)
    })
}

/// Copies elements of `width` bytes.
pub(super) fn copy(args: &mut Arguments, width: usize) -> Result<()> {
    let input = Region::read(args, width, [None, None])?;
    let out = Region::read(args, width, [None, None])?;
    let size = Size::new(args.i64()?, args.i64()?)?;
    input.check(size)?;
    out.check(size)?;
    let mut piece = [0; PIECE];
    in_pieces(args, size, width, |row, column, elements| {
        let piece = &mut piece[..elements * width];
        input.load(row, column, piece)?;
        out.store(row, column, piece)
    })
}

/// Sets all elements to one value: `(value, out, offset, row stride, rows, columns)`.
pub(super) fn fill(args: &mut Arguments, _: &mut Results) -> Result<()> {
    let value = args.i32()?.to_le_bytes();
    let out = Region::read(args, WORD, [None, Some(1)])?;
    let size = Size::new(args.i64()?, args.i64()?)?;
    out.check(size)?;
    let mut piece = [0; PIECE];
    piece.as_chunks_mut().0.fill(value);
    in_pieces(args, size, WORD, |row, column, elements| out.store(row, column, &piece[..elements * WORD]))
}
