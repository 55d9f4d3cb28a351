//! Attention over buffers of keys and values that have room for more: those of a call are written behind as many as count.

use halite_ops::{DType, Values, expression::Function};
use halite_sizes::Size;

use super::{NodeView, Result, attention::join_heads, microsoft_mask::key_mask};
use crate::{
    build::{Builder, Range, Scores},
    graph::TensorId,
};

/// What a call of attention over buffers reads; queries, keys and values are `[batch, heads, len, dim]`.
pub(super) struct Call {
    pub(super) qkv: [TensorId; 3],
    /// Buffers of keys and of values, `[batch, heads, room, dim]`.
    pub(super) buffers: [TensorId; 2],
    /// How many rows of them count.
    pub(super) past: TensorId,
    /// Which keys count, and what is added to scores.
    pub(super) mask: Option<TensorId>,
    pub(super) bias: Option<TensorId>,
    /// For each key the sequence of its beam that has it, `[batch, beams, room]`.
    pub(super) beams: Option<TensorId>,
    pub(super) causal: bool,
}

/// The result, `[batch, queries, heads * dim]`, and the buffers after the call.
pub(super) fn attend(b: &mut Builder, node: &NodeView<'_>, call: &Call) -> Result<[TensorId; 3]> {
    let [q, k, v] = call.qkv;
    let (&[batch, _, len, _], &[_, _, room, _]) = (b.sizes(q), b.sizes(call.buffers[0])) else {
        return Err(node.invalid(format!("no attention of {} with buffers", b.describe(&call.qkv))));
    };
    let past = b.reshape(call.past, &[])?;
    let past = b.cast(past, DType::I64)?;
    // Numbers come with the call: none may lie before the buffer.
    let past = b.at_least(past, 0)?;
    let starts = b.expand_to(past, &[batch])?;
    let new = b.computed(DType::I64, &[], vec![len])?;
    let lengths = b.binary(Function::Add, starts, new)?;
    let present = [b.append(k, call.buffers[0], starts)?, b.append(v, call.buffers[1], starts)?];
    let read = match call.beams {
        None => present,
        Some(beams) => {
            let mut chosen = call.buffers;
            for buffer in &mut chosen {
                *buffer = of_beams(b, node, *buffer, beams)?;
            }
            [b.append(k, chosen[0], starts)?, b.append(v, chosen[1], starts)?]
        }
    };
    let mut mask = None;
    if let Some(given) = call.mask {
        // Lengths of sequences are of no size; other masks have a column for each key that counts.
        let keys = if b.rank(given) == 1 { room } else { *b.sizes(given).last().unwrap_or(&room) };
        let added = key_mask(b, node, given, [batch, len, keys])?;
        mask = Some(widened(b, added, room)?);
    }
    if let Some(bias) = call.bias {
        let bias = b.as_f32(bias)?;
        let bias = widened(b, bias, room)?;
        mask = Some(match mask {
            Some(mask) => b.binary(Function::Add, mask, bias)?,
            None => bias,
        });
    }
    let scale = Some(node.float("scale", 0.0)?).filter(|scale| *scale != 0.0).map(f64::from);
    let scores = Scores { scale, causal: call.causal, lengths: Some(lengths), ..Scores::default() };
    let made = b.attention([q, read[0], read[1]], mask, scores)?;
    Ok([join_heads(b, made)?, present[0], present[1]])
}

/// What is added to scores, for as many keys as there is room for: what is behind those that count does not matter.
fn widened(b: &mut Builder, added: TensorId, room: Size) -> Result<TensorId> {
    let mut dims = b.sizes(added).to_vec();
    let axis = dims.len().saturating_sub(1);
    if dims.last().is_none_or(|own| own.is(room)) {
        return Ok(added);
    }
    dims[axis] = room;
    let zero = b.values(DType::F32, &[], &Values::Float(vec![0.0]))?;
    let behind = b.expand_to(zero, &dims)?;
    let both = b.concat(&[added, behind], axis)?;
    let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: 0.into(), step: 1, count: room };
    b.slice(both, &ranges)
}

/// The rows of a buffer that the sequences of beams have.
fn of_beams(b: &mut Builder, node: &NodeView<'_>, buffer: TensorId, beams: TensorId) -> Result<TensorId> {
    let (&[all, heads, room, dim], &[groups, each, places]) = (b.sizes(buffer), b.sizes(beams)) else {
        return Err(node.invalid(format!("{} are no beams of a buffer", b.describe(&[beams]))));
    };
    if !(groups * each).agrees(all) || !places.agrees(room) {
        return Err(node.invalid(format!(
            "{} are no beams of {}",
            b.describe(&[beams]),
            b.describe(&[buffer])
        )));
    }
    let one = Size::constant(1);
    let times = |b: &mut Builder, x: TensorId, size: Size| {
        let size = b.computed(DType::I64, &[], vec![size])?;
        b.binary(Function::Mul, x, size)
    };
    let first = b.count_from(0, groups)?;
    let first = b.reshape_to(first, &[groups, one, one])?;
    let first = times(b, first, each)?;
    let own = b.cast(beams, DType::I64)?;
    let sequence = b.binary(Function::Add, first, own)?;
    let sequence = b.reshape_to(sequence, &[all, one, room])?;
    let of_sequence = times(b, sequence, heads)?;
    let head = b.count_from(0, heads)?;
    let head = b.reshape_to(head, &[heads, one])?;
    let row = b.binary(Function::Add, of_sequence, head)?;
    let row = times(b, row, room)?;
    let place = b.count_from(0, room)?;
    let row = b.binary(Function::Add, row, place)?;
    let rows = b.reshape_to(buffer, &[all * heads * room, dim])?;
    b.gather(rows, row, 0)
}

/// The two halves of a buffer that has keys before values.
pub(super) fn halves(b: &mut Builder, node: &NodeView<'_>, both: TensorId) -> Result<[TensorId; 2]> {
    let &[count, batch, heads, room, dim] = b.sizes(both) else {
        return Err(node.invalid(format!("{} is no buffer of keys and values", b.describe(&[both]))));
    };
    if count != 2 {
        return Err(node.invalid(format!("{} is no buffer of keys and values", b.describe(&[both]))));
    }
    let mut part = |index: u64| {
        let mut ranges = [count, batch, heads, room, dim].map(Range::all).to_vec();
        ranges[0] = Range { start: index.into(), step: 1, count: 1.into() };
        let own = b.slice(both, &ranges)?;
        b.reshape_to(own, &[batch, heads, room, dim])
    };
    Ok([part(0)?, part(1)?])
}

/// The other way round.
pub(super) fn joined(b: &mut Builder, parts: [TensorId; 2]) -> Result<TensorId> {
    let mut apart = Vec::new();
    for part in parts {
        let dims = [&[1.into()], b.sizes(part)].concat();
        apart.push(b.reshape_to(part, &dims)?);
    }
    b.concat(&apart, 0)
}
