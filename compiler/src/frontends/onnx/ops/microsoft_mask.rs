//! Masks of keys as `com.microsoft` has them.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{NodeView, Result};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

/// What is added to the scores so that only some keys count, broadcast to `[batch, heads, queries, keys]`. Forms of masks:
/// for each sequence its length, or lengths and then starts; for each key, or query and key, whether it counts.
pub(super) fn key_mask(
    b: &mut Builder,
    node: &NodeView<'_>,
    mask: TensorId,
    [batch, queries, keys]: [Size; 3],
) -> Result<TensorId> {
    let filter = Operand::Constant(Scalar::Float(node.float("mask_filter_value", -10_000.0)?.into()));
    let zero = Operand::Constant(Scalar::Float(0.0));
    let int = |value| Operand::Constant(Scalar::Int(value, DType::I64));
    let dims = b.sizes(mask).to_vec();
    let one = Size::constant(1);
    let mask = b.cast(mask, DType::I64)?;
    if let [count] = dims[..] {
        let places = b.count_from(0, keys)?;
        let part = |b: &mut Builder, start: Size| {
            let part = b.slice(mask, &[Range { start, step: 1, count: batch }])?;
            b.reshape_to(part, &[batch, one, one, one])
        };
        if count == batch {
            let ends = part(b, 0.into())?;
            return b.map(&[places, ends], DType::F32, |p, x| {
                let inside = p.call(Function::Lt, x);
                p.call(Function::Select, &[inside, zero, filter])
            });
        }
        if count == batch * 2 {
            let (ends, starts) = (part(b, 0.into())?, part(b, batch)?);
            return b.map(&[places, ends, starts], DType::F32, |p, x| {
                let before = p.call(Function::Lt, &x[..2]);
                let behind = p.call(Function::Ge, &[x[0], x[2]]);
                let inside = p.call(Function::And, &[before, behind]);
                p.call(Function::Select, &[inside, zero, filter])
            });
        }
    }
    let mask = match dims[..] {
        [b_, k] if [b_, k] == [batch, keys] => b.reshape_to(mask, &[batch, one, one, keys])?,
        [b_, q, k] if [b_, q, k] == [batch, queries, keys] => {
            b.reshape_to(mask, &[batch, one, queries, keys])?
        }
        // A square for the longest sequence: the rows of these queries.
        [b_, middle, rows, most]
            if b_ == batch && middle == 1 && rows >= keys && most >= keys && keys >= queries =>
        {
            let rows = Range { start: keys - queries, step: 1, count: queries };
            b.slice(
                mask,
                &[Range::all(batch), Range::all(one), rows, Range { start: 0.into(), step: 1, count: keys }],
            )?
        }
        _ => {
            let reason = format!(
                "a mask {dims:?} for {batch} sequences, {queries} queries and {keys} keys is of no form that is known"
            );
            return Err(node.unsupported(reason));
        }
    };
    b.map(&[mask], DType::F32, |p, x| {
        let counts = p.call(Function::Gt, &[x[0], int(0)]);
        p.call(Function::Select, &[counts, zero, filter])
    })
}
