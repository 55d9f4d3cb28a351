//! Attention as `com.microsoft` has it: packed inputs, masks of several forms, keys and values of earlier calls.

use halite_ops::{DType, Values, expression::Function, norm::NormKind, reduce::ReduceKind};

use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    attention::{join_heads, split_heads},
    microsoft_buffers as buffers,
    microsoft_mask::key_mask,
    microsoft_quantized::to_float,
};
use crate::{
    build::{Builder, Normalization, Range, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[
    ("Attention", attention),
    ("EmbedLayerNormalization", |b, node| embed(b, node, false)),
    ("MultiHeadAttention", multi_head),
    ("QAttention", quantized_attention),
    ("QEmbedLayerNormalization", |b, node| embed(b, node, true)),
];

/// Queries, keys and values, `[batch, heads, len, dim]`, those of earlier calls included.
struct Parts {
    qkv: [TensorId; 3],
    /// Keys of earlier calls.
    past: Size,
}

/// What weighs keys besides queries.
#[derive(Clone, Copy)]
struct Weighing {
    /// Which keys count, in one of the forms of [`key_mask`].
    keys: Option<TensorId>,
    /// Added to the scores.
    bias: Option<TensorId>,
    causal: bool,
}

/// A number of heads.
pub(super) fn heads(node: &NodeView<'_>, name: &str) -> Result<u64> {
    let value = node.int(name, 0)?;
    u64::try_from(value)
        .ok()
        .filter(|heads| *heads > 0)
        .ok_or_else(|| node.invalid(format!("{name} is {value}")))
}

/// Inputs of an operator for which there is no form here, and what to do instead.
pub(super) fn refuse(node: &NodeView<'_>, inputs: &[(usize, &str)], instead: &str) -> Result<()> {
    match inputs.iter().find(|(index, _)| node.optional(*index).is_some()) {
        Some((_, name)) => Err(node.unsupported(format!("the input {name}: {instead}"))),
        None => Ok(()),
    }
}

/// A part of the last dimension.
pub(super) fn columns(b: &mut Builder, x: TensorId, start: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().map(|size| Range::all(*size)).collect();
    if let Some(last) = ranges.last_mut() {
        *last = Range { start: start.into(), step: 1, count: count.into() };
    }
    b.slice(x, &ranges)
}

/// Attention, `[batch, queries, heads * dim]`.
fn attend(b: &mut Builder, node: &NodeView<'_>, parts: &Parts, weighing: Weighing) -> Result<TensorId> {
    let [q, k, _] = parts.qkv;
    let (queries, keys) = match (b.sizes(q), b.sizes(k)) {
        ([_, _, queries, _], [_, _, keys, _]) => (*queries, *keys),
        _ => return Err(node.invalid(format!("no attention of {}", b.describe(&parts.qkv)))),
    };
    let batch = b.sizes(q)[0];
    let mut mask = weighing.keys.map(|id| key_mask(b, node, id, [batch, queries, keys])).transpose()?;
    if let Some(bias) = weighing.bias {
        let bias = b.as_f32(bias)?;
        mask = Some(match mask {
            Some(mask) => b.binary(Function::Add, mask, bias)?,
            None => bias,
        });
    }
    let by_kernel = weighing.causal && queries + parts.past == keys;
    if weighing.causal && !by_kernel {
        return Err(node.unsupported("queries that attend to what is before them in another sequence"));
    }
    let scale = Some(node.float("scale", 0.0)?).filter(|scale| *scale != 0.0).map(f64::from);
    let made = b.attention(parts.qkv, mask, Scores { scale, causal: by_kernel, ..Scores::default() })?;
    join_heads(b, made)
}

/// Keys or values with those of earlier calls before them.
fn behind(b: &mut Builder, past: Option<TensorId>, own: TensorId) -> Result<TensorId> {
    past.map_or(Ok(own), |past| b.concat(&[past, own], 2))
}

/// The widths of queries, keys and values that lie side by side.
fn widths(node: &NodeView<'_>, whole: u64) -> Result<[u64; 3]> {
    match node.ints("qkv_hidden_sizes")? {
        None => Ok([whole / 3; 3]),
        Some(list) => {
            let widths: Option<Vec<u64>> = list.iter().map(|width| u64::try_from(*width).ok()).collect();
            let widths = widths.and_then(|widths| <[u64; 3]>::try_from(widths).ok());
            let fits = |w: &[u64; 3]| w[0].checked_add(w[1]).and_then(|n| n.checked_add(w[2])) == Some(whole);
            widths
                .filter(fits)
                .ok_or_else(|| node.invalid(format!("qkv_hidden_sizes {list:?} of {whole} columns")))
        }
    }
}

fn attention(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let [mask, past, bias, count] = [3, 4, 5, 6].map(|input| node.optional(input));
    if let (true, Some(past), Some(count)) = (node.flag("past_present_share_buffer", false)?, past, count) {
        let qkv = packed_projection(b, node)?;
        let own = buffers::halves(b, node, past)?;
        let causal = node.flag("unidirectional", false)?;
        let call = buffers::Call { qkv, buffers: own, past: count, mask, bias, beams: None, causal };
        let [made, keys, values] = buffers::attend(b, node, &call)?;
        return Ok(vec![made, buffers::joined(b, [keys, values])?]);
    }
    let packed = projection(b, node)?;
    of_packed(b, node, packed, past, mask, bias)
}

/// Queries, keys and values side by side, as the first three inputs give them.
fn projection(b: &mut Builder, node: &NodeView<'_>) -> Result<TensorId> {
    let packed = b.product(node.input(0)?, node.input(1)?, false)?;
    match node.optional(2) {
        Some(bias) => b.binary(Function::Add, packed, bias),
        None => Ok(packed),
    }
}

/// The same apart, `[batch, heads, len, dim]`.
pub(super) fn packed_projection(b: &mut Builder, node: &NodeView<'_>) -> Result<[TensorId; 3]> {
    let packed = projection(b, node)?;
    apart(b, node, packed)
}

/// Queries, keys and values that lie side by side, `[batch, heads, len, dim]`.
fn apart(b: &mut Builder, node: &NodeView<'_>, packed: TensorId) -> Result<[TensorId; 3]> {
    let heads = heads(node, "num_heads")?;
    let widths = widths(node, b.sizes(packed).last().map_or(0, |size| size.exact()))?;
    let mut start = 0;
    let mut qkv = [packed; 3];
    for (part, width) in qkv.iter_mut().zip(widths) {
        let own = columns(b, packed, start, width)?;
        *part = split_heads(b, node, own, heads)?;
        start += width;
    }
    Ok(qkv)
}

/// Attention of queries, keys and values side by side.
fn of_packed(
    b: &mut Builder,
    node: &NodeView<'_>,
    packed: TensorId,
    past: Option<TensorId>,
    keys: Option<TensorId>,
    bias: Option<TensorId>,
) -> Result<Vec<TensorId>> {
    if node.flag("do_rotary", false)? {
        return Err(node
            .unsupported("do_rotary: turn queries and keys with RotaryEmbedding before MultiHeadAttention"));
    }
    let mut parts = Parts { qkv: apart(b, node, packed)?, past: 0.into() };
    if let Some(past) = past {
        behind_past(b, node, &mut parts, past)?;
    }
    let causal = node.flag("unidirectional", false)?;
    let made = attend(b, node, &parts, Weighing { keys, bias, causal })?;
    let mut outputs = vec![made];
    if node.is_used(1) {
        let each: Result<Vec<TensorId>> = parts.qkv[1..]
            .iter()
            .map(|id| {
                let dims = [&[1.into()], b.sizes(*id)].concat();
                b.reshape_to(*id, &dims)
            })
            .collect();
        outputs.push(b.concat(&each?, 0)?);
    }
    Ok(outputs)
}

/// Puts keys and values behind those of before, which lie one behind the other.
fn behind_past(b: &mut Builder, node: &NodeView<'_>, parts: &mut Parts, past: TensorId) -> Result<()> {
    let dims = b.sizes(past).to_vec();
    let [both, batch, heads, len, dim] = dims[..] else {
        return Err(node.invalid(format!("{} is not the past of keys and values", b.describe(&[past]))));
    };
    if both != 2 {
        return Err(node.invalid(format!("{} is not the past of keys and values", b.describe(&[past]))));
    }
    for index in 0..2u64 {
        let mut ranges = [batch, heads, len, dim].map(Range::all).to_vec();
        ranges.insert(0, Range { start: index.into(), step: 1, count: 1.into() });
        let own = b.slice(past, &ranges)?;
        let own = b.reshape_to(own, &[batch, heads, len, dim])?;
        let place = &mut parts.qkv[index as usize + 1];
        *place = behind(b, Some(own), *place)?;
    }
    parts.past = len;
    Ok(())
}

/// The same with bytes for the input and the weights.
fn quantized_attention(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let one = |b: &mut Builder, id: TensorId| {
        if b.tensor(id).elements() == 1 { b.reshape(id, &[]) } else { Ok(id) }
    };
    let (x, weights) = (node.input(0)?, node.input(1)?);
    let scales = [one(b, node.input(3)?)?, one(b, node.input(4)?)?];
    let zeros = [6, 7].map(|input| node.optional(input).map(|zero| one(b, zero)).transpose());
    let [x_zero, w_zero] = zeros;
    let sums = b.product_of_bytes(x, x_zero?, weights, w_zero?)?;
    let packed = to_float(b, sums, scales, Some(node.input(2)?))?;
    of_packed(b, node, packed, node.optional(8), node.optional(5), None)
}

/// Queries, keys and values as the operator has them: side by side in one tensor, keys and values in one, or apart.
fn given(b: &mut Builder, node: &NodeView<'_>, heads: u64) -> Result<[TensorId; 3]> {
    let q = node.input(0)?;
    let packed = match (b.rank(q), node.optional(1), node.optional(2)) {
        (5, None, None) => Some((q, 3)),
        (3, Some(kv), None) if b.rank(kv) == 5 => Some((kv, 2)),
        _ => None,
    };
    let bias = node.optional(3);
    if let Some((packed, count)) = packed {
        if bias.is_some() {
            return Err(node.unsupported("a bias of queries, keys and values that lie in one tensor"));
        }
        let [batch, len, own, parts, dim] = *b.sizes(packed) else {
            return Err(node.invalid(format!("{} are no keys and values", b.describe(&[packed]))));
        };
        if own != heads || parts != count {
            return Err(node.invalid(format!("{} is not of {heads} heads", b.describe(&[packed]))));
        }
        let ordered = b.transpose(packed, &[3, 0, 2, 1, 4])?;
        let part = |b: &mut Builder, index: u64| {
            let mut ranges = [batch, own, len, dim].map(Range::all).to_vec();
            ranges.insert(0, Range { start: index.into(), step: 1, count: 1.into() });
            let part = b.slice(ordered, &ranges)?;
            b.reshape_to(part, &[batch, own, len, dim])
        };
        if count == 3 {
            return Ok([part(b, 0)?, part(b, 1)?, part(b, 2)?]);
        }
        return Ok([split_heads(b, node, q, heads)?, part(b, 0)?, part(b, 1)?]);
    }
    biased_heads(b, node, [q, node.input(1)?, node.input(2)?], bias, heads)
}

/// The heads of queries, keys and values, each behind its part of a bias. Those of another sequence may have their heads apart, and
/// no bias.
pub(super) fn biased_heads(
    b: &mut Builder,
    node: &NodeView<'_>,
    mut parts: [TensorId; 3],
    bias: Option<TensorId>,
    heads: u64,
) -> Result<[TensorId; 3]> {
    let mut start = 0;
    for part in &mut parts {
        if b.rank(*part) == 4 {
            continue;
        }
        if let Some(bias) = bias {
            let width = b.sizes(*part).last().map_or(0, |size| size.exact());
            let own = columns(b, bias, start, width)?;
            *part = b.binary(Function::Add, *part, own)?;
            start += width;
        }
        *part = split_heads(b, node, *part, heads)?;
    }
    Ok(parts)
}

fn multi_head(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    if node.is_used(3) {
        return Err(node.unsupported("the scores of MultiHeadAttention as an output: leave it out, or take Attention of opset 23, which has them"));
    }
    let heads = heads(node, "num_heads")?;
    let [q, mut k, mut v] = given(b, node, heads)?;
    let (past_k, past_v) = (node.optional(6), node.optional(7));
    if let (Some(keys), Some(values), Some(past)) = (past_k, past_v, node.optional(8)) {
        let (mask, bias, beams) = (node.optional(4), node.optional(5), node.optional(9));
        let causal = node.flag("unidirectional", false)?;
        let call = buffers::Call { qkv: [q, k, v], buffers: [keys, values], past, mask, bias, beams, causal };
        return Ok(buffers::attend(b, node, &call)?.to_vec());
    }
    refuse(node, &[(9, "cache_indirection")], "it is for keys in buffers, with past_sequence_length")?;
    let past = past_k.and_then(|past| b.sizes(past).get(2).copied()).unwrap_or(0.into());
    (k, v) = (behind(b, past_k, k)?, behind(b, past_v, v)?);
    let weighing = Weighing {
        keys: node.optional(4),
        bias: node.optional(5),
        causal: node.flag("unidirectional", false)?,
    };
    let made = attend(b, node, &Parts { qkv: [q, k, v], past }, weighing)?;
    Ok(vec![made, k, v])
}

/// The inputs of an embedding's tables of codes that have their scales and zero points: so far behind the tables.
const SCALES: usize = 6;
const ZEROS: usize = 11;

/// A table or vector of an embedding, or rows of it: floats, or what codes stand for.
fn table(
    b: &mut Builder,
    node: &NodeView<'_>,
    input: usize,
    rows: Option<TensorId>,
    coded: bool,
) -> Result<TensorId> {
    let mut own = node.input(input)?;
    if let Some(rows) = rows {
        own = b.gather(own, rows, 0)?;
    }
    if !coded {
        return Ok(own);
    }
    let scale = b.reshape(node.input(input + SCALES)?, &[])?;
    let zero = b.reshape(node.input(input + ZEROS)?, &[])?;
    b.dequantize(own, scale, Some(zero), DType::F32.into())
}

/// Sums of rows for words, places and segments, normalized; `coded` where tables are codes.
fn embed(b: &mut Builder, node: &NodeView<'_>, coded: bool) -> Result<Vec<TensorId>> {
    let (words, segments) = (node.input(0)?, node.optional(1));
    let &[batch, len] = b.sizes(words) else {
        return Err(node.invalid(format!("{} is no batch of words", b.describe(&[words]))));
    };
    let mut sum = table(b, node, 2, Some(words), coded)?;
    let places = match node.optional(8).filter(|_| !coded) {
        Some(places) => places,
        None => {
            let row = b.count_from(0, len)?;
            b.reshape_to(row, &[1.into(), len])?
        }
    };
    let of_places = table(b, node, 3, Some(places), coded)?;
    sum = b.binary(Function::Add, sum, of_places)?;
    if let (Some(segments), Some(_)) = (segments, node.optional(4)) {
        let of_segments = table(b, node, 4, Some(segments), coded)?;
        sum = b.binary(Function::Add, sum, of_segments)?;
    }
    let rank = b.rank(sum);
    let epsilon = node.float("epsilon", 1e-12)?;
    let norm = Normalization { kind: NormKind::Group, first: rank - 1, end: rank, groups: 1, epsilon };
    let (scale, shift) = (table(b, node, 5, None, coded)?, table(b, node, 6, None, coded)?);
    let made = b.normalize(sum, Some(scale), Some(shift), norm)?;
    let lengths = match node.optional(7) {
        Some(mask) => b.reduce(ReduceKind::Sum, mask, &[1], false)?,
        None => {
            let none = b.values(DType::I32, &[], &Values::Int(vec![0]))?;
            b.expand_to(none, &[batch])?
        }
    };
    Ok(vec![made, lengths, sum])
}
