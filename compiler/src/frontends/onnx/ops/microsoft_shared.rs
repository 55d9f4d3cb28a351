//! Attention whose keys and values lie in buffers that have room for more (`past_present_share_buffer`): those of a call are written behind
//! as many as `past_sequence_length` says, and the others count no more than what is behind them.

use halite_ops::{DType, expression::Function};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    attention::join_heads,
    microsoft_attention::{biased_heads, columns, heads, packed_projection, refuse},
    microsoft_buffers::{Call, attend, halves, joined},
    microsoft_mask::key_mask,
};
use crate::{
    build::{Builder, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] =
    &[("DecoderMaskedMultiHeadAttention", decoder_multi_head), ("DecoderMaskedSelfAttention", decoder_self)];

/// Queries, keys and values, with their biases and heads apart: of one tensor, or of three.
fn own_parts(b: &mut Builder, node: &NodeView<'_>) -> Result<[TensorId; 3]> {
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
    biased_heads(b, node, qkv, node.optional(10), heads)
}

/// Attention of one query of each sequence, to earlier keys or to those of another sequence.
fn decoder_multi_head(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if node.is_used(3) {
        return Err(
            node.unsupported("the scores of DecoderMaskedMultiHeadAttention as an output: leave it out")
        );
    }
    let qkv = own_parts(b, node)?;
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
