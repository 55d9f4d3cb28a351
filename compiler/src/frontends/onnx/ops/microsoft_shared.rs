//! Attention whose keys and values lie in buffers that have room for more (`past_present_share_buffer`): those of a call are written behind
//! as many as `past_sequence_length` says, and the others count no more than what is behind them.

use halite_ops::{DType, Values, expression::Function};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    attention::{join_heads, split_heads},
    microsoft_attention::{columns, heads, key_mask, packed_projection, refuse},
};
use crate::{
    build::{Builder, Range, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] =
    &[("DecoderMaskedMultiHeadAttention", decoder_multi_head), ("DecoderMaskedSelfAttention", decoder_self)];

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

/// Attention of one query of each sequence, to earlier keys or to those of another sequence.
fn decoder_multi_head(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if node.is_used(3) {
        return Err(
            node.unsupported("the scores of DecoderMaskedMultiHeadAttention as an output: leave it out")
        );
    }
    let heads = heads(node, "num_heads")?;
    let mut qkv = [node.input(0)?; 3];
    let packed = node.optional(1).is_none();
    let width = b.sizes(qkv[0]).last().map_or(0, |size| size.exact());
    for (index, part) in qkv.iter_mut().enumerate() {
        match node.optional(index) {
            Some(own) if !packed => *part = own,
            _ if packed => *part = columns(b, *part, index as u64 * (width / 3), width / 3)?,
            _ => return Err(node.invalid("values are missing")),
        }
    }
    let mut start = 0;
    for part in &mut qkv {
        // Keys and values of another sequence have their heads apart, and no bias.
        if b.rank(*part) == 4 {
            continue;
        }
        if let Some(bias) = node.optional(10) {
            let width = b.sizes(*part).last().map_or(0, |size| size.exact());
            let own = columns(b, bias, start, width)?;
            *part = b.binary(Function::Add, *part, own)?;
            start += width;
        }
        *part = split_heads(b, node, *part, heads)?;
    }
    let (mask, bias) = (node.optional(3), node.optional(4));
    let (Some(keys), Some(values)) = (node.optional(5), node.optional(6)) else {
        refuse(node, &[(9, "cache_indirection")], "keys of another sequence are the same for all beams")?;
        return Ok(vec![others(b, node, qkv, mask, bias)?]);
    };
    if !node.flag("past_present_share_buffer", false)? {
        return Err(node.unsupported(
            "past keys that share no buffer: ONNX Runtime does not run them on processors either, and MultiHeadAttention takes them",
        ));
    }
    let call = Call {
        qkv,
        buffers: [keys, values],
        past: node.input(7)?,
        mask,
        bias,
        beams: node.optional(9),
        causal: false,
    };
    Ok(attend(b, node, &call)?.to_vec())
}

/// Attention to another sequence.
fn others(
    b: &mut Builder,
    node: &NodeView<'_>,
    qkv: [TensorId; 3],
    mask: Option<TensorId>,
    bias: Option<TensorId>,
) -> Result<TensorId> {
    let (&[batch, _, len, _], &[_, _, keys, _]) = (b.sizes(qkv[0]), b.sizes(qkv[1])) else {
        return Err(node.invalid(format!("no attention of {}", b.describe(&qkv))));
    };
    let mut mask = mask.map(|mask| key_mask(b, node, mask, [batch, len, keys])).transpose()?;
    if let Some(bias) = bias {
        mask = Some(match mask {
            Some(mask) => b.binary(Function::Add, mask, bias)?,
            None => bias,
        });
    }
    let scale = Some(node.float("scale", 0.0)?).filter(|scale| *scale != 0.0).map(f64::from);
    let made = b.attention(qkv, mask, Scores { scale, ..Scores::default() })?;
    join_heads(b, made)
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

/// Keys of a buffer whose heads lie in parts of 16 bytes, a part of all rows behind another, in plain order, or the other way round.
fn in_parts(b: &mut Builder, node: &NodeView<'_>, keys: TensorId, plain: bool) -> Result<TensorId> {
    let &[batch, heads, room, dim] = b.sizes(keys) else {
        return Err(node.invalid(format!("{} is no buffer of keys", b.describe(&[keys]))));
    };
    let part = if b.element(keys) == DType::F16.into() { 8 } else { 4 };
    if !dim.exact().is_multiple_of(part) {
        return Err(node.invalid(format!("heads of {dim} elements are not in parts of {part}")));
    }
    let parts = Size::from(dim.exact() / part);
    let (from, order) = match plain {
        true => ([batch, heads, parts, room, part.into()], [0, 1, 3, 2, 4]),
        false => ([batch, heads, room, parts, part.into()], [0, 1, 3, 2, 4]),
    };
    let apart = b.reshape_to(keys, &from)?;
    let turned = b.transpose(apart, &order)?;
    b.reshape_to(turned, &[batch, heads, room, dim])
}

/// The same of queries, keys and values that one product gives; keys of the buffer are in parts.
fn decoder_self(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if node.flag("do_rotary", false)? {
        return Err(node.unsupported("do_rotary: turn queries and keys with RotaryEmbedding"));
    }
    let qkv = packed_projection(b, node)?;
    let [keys, values] = halves(b, node, node.input(4)?)?;
    let keys = in_parts(b, node, keys, true)?;
    let call = Call {
        qkv,
        buffers: [keys, values],
        past: node.input(6)?,
        mask: node.optional(3),
        bias: node.optional(5),
        beams: node.optional(8),
        causal: false,
    };
    let [made, keys, values] = attend(b, node, &call)?;
    let keys = in_parts(b, node, keys, false)?;
    Ok(vec![made, joined(b, [keys, values])?])
}
