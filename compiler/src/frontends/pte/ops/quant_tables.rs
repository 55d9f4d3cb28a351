//! Look-ups of rows in tables of quantized weights, which stay packed.

use halite_ops::{
    DType,
    expression::{Function as F, Operand, Scalar},
};

use super::{Node, Result, Table};
use crate::{
    build::QuantWeights,
    graph::{ElementType, TensorId},
};

pub(super) const OPERATORS: Table = &[
    ("et_vk.embedding_q4gsw.default", of_groups),
    ("quantized_decomposed.embedding_byte.default", |n| rows(n, 8)),
    ("quantized_decomposed.embedding_byte.dtype", |n| rows(n, 8)),
    ("quantized_decomposed.embedding_4bit.default", |n| rows(n, 4)),
    ("quantized_decomposed.embedding_4bit.dtype", |n| rows(n, 4)),
    ("quantized_decomposed.embedding_2bit.default", |n| rows(n, 2)),
    ("quantized_decomposed.embedding_2bit.dtype", |n| rows(n, 2)),
];

/// A table's rows and the elements of one, each `bits` of a byte.
fn size(n: &mut Node<'_, '_>, table: TensorId, bits: u32) -> Result<[u64; 2]> {
    match *n.b().dims(table) {
        [rows, bytes] => Ok([rows, bytes.saturating_mul(u64::from(8 / bits))]),
        _ => {
            let what = n.b().describe(&[table]);
            Err(n.invalid(format!("{what} is no table of rows")))
        }
    }
}

/// Arguments: table, its scales, size of groups, indices, whether the lower halves of bytes come first.
fn of_groups(n: &mut Node<'_, '_>) -> Result<()> {
    let (table, scales, group, indices) = (n.tensor(0)?, n.tensor(1)?, n.size(2)?, n.tensor(3)?);
    let lower_first = n.count() > 4 && n.flag(4)?;
    let [rows, length] = size(n, table, 4)?;
    let packed = if lower_first { table } else { n.b().swap_nibbles(table)? };
    let groups = length.div_ceil(group.max(1));
    // One scale may be for all rows.
    let scales = match n.b().tensor(scales).elements() {
        1 => {
            let one = n.b().reshape(scales, &[1, 1])?;
            n.b().expand(one, &[rows, groups])?
        }
        _ => n.b().reshape(scales, &[rows, groups])?,
    };
    let weights = QuantWeights { packed, bits: 4, length, scales, zeros: None, group };
    let element = n.element()?;
    let made = n.b().quant_rows(&weights, indices, element)?;
    n.finish(made)
}

/// Arguments: table, its scales and zero points for rows or groups of them, least and largest code, indices. Zero points are
/// floats in the range of the codes with their sign.
fn rows(n: &mut Node<'_, '_>, bits: u32) -> Result<()> {
    let (table, scales, zeros, indices) = (n.tensor(0)?, n.tensor(1)?, n.optional(2)?, n.tensor(5)?);
    let [rows, length] = size(n, table, bits)?;
    let groups = n.b().tensor(scales).elements().checked_div(rows).unwrap_or(0);
    if groups == 0 || !length.is_multiple_of(groups) {
        let what = n.b().describe(&[table, scales]);
        return Err(n.invalid(format!("{what} are no table and its scales")));
    }
    let scales = n.b().reshape(scales, &[rows, groups])?;
    let element = n.element()?;
    let signed = n.b().element(table) == ElementType::Of(DType::I8);
    // Without zero points the layout is that of products, but for 2 bits and bytes without a sign.
    let packed = match (bits, signed, zeros) {
        (4, false, None) => Some(n.b().swap_nibbles(table)?),
        (8, true, None) => Some(n.b().weights_of_bytes(table, scales)?.packed),
        _ => None,
    };
    let made = match packed {
        Some(packed) => {
            let group = length / groups;
            let weights = QuantWeights { packed, bits, length, scales, zeros: None, group };
            n.b().quant_rows(&weights, indices, element)?
        }
        None => picked(n, [table, scales, indices], zeros, bits)?,
    };
    n.finish(made)
}

/// Rows that are picked packed, with their scales and zero points, and then taken apart.
fn picked(
    n: &mut Node<'_, '_>,
    [table, scales, indices]: [TensorId; 3],
    zeros: Option<TensorId>,
    bits: u32,
) -> Result<TensorId> {
    let dims = n.b().dims(indices).to_vec();
    let element = n.element()?;
    let mut codes = n.b().gather(table, indices, 0)?;
    if bits < 8 {
        if bits == 4 {
            codes = n.b().swap_nibbles(codes)?;
        }
        codes = n.b().bits_apart(codes, bits)?;
        let middle = Operand::Constant(Scalar::Int(1 << (bits - 1), DType::I8));
        codes = n.b().map(&[codes], DType::I8, |p, x| {
            let signed = p.cast(halite_ops::expression::Type::Of(DType::I8), x[0]);
            p.call(F::Sub, &[signed, middle])
        })?;
    }
    let groups = n.b().dims(scales).to_vec();
    let width = n.b().dims(codes).last().copied().unwrap_or(0);
    let each = [&dims[..], &[groups[1], 1]].concat();
    let scale = n.b().gather(scales, indices, 0)?;
    let scale = n.b().reshape(scale, &each)?;
    let zero = match zeros {
        Some(zeros) => {
            let zeros = n.b().reshape(zeros, &groups)?;
            let zero = n.b().gather(zeros, indices, 0)?;
            Some(n.b().reshape(zero, &each)?)
        }
        None => None,
    };
    let apart = n.b().reshape(codes, &[&dims[..], &[groups[1], width / groups[1].max(1)]].concat())?;
    let made = n.b().dequantize_affine(apart, scale, zero, element)?;
    n.b().reshape(made, &[&dims[..], &[width]].concat())
}
