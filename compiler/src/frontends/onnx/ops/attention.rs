//! Attention and rotary position embedding.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    pad::Border,
};

use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, Scores},
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[("Attention", attention), ("RotaryEmbedding", rotary_embedding)];

/// `[batch, len, heads * dim]` as `[batch, heads, len, dim]`.
pub(super) fn split_heads(b: &mut Builder, node: &NodeView<'_>, x: TensorId, heads: u64) -> Result<TensorId> {
    match *b.sizes(x) {
        [batch, len, width] if heads > 0 && width.exact() % heads == 0 => {
            let dim = width.exact() / heads;
            let apart = b.reshape_to(x, &[batch, len, heads.into(), dim.into()])?;
            b.transpose(apart, &[0, 2, 1, 3])
        }
        _ => Err(node.invalid(format!("{} does not split into {heads} heads", b.describe(&[x])))),
    }
}

/// The other way round.
pub(super) fn join_heads(b: &mut Builder, x: TensorId) -> Result<TensorId> {
    let joined = b.transpose(x, &[0, 2, 1, 3])?;
    let sizes = b.sizes(joined).to_vec();
    b.reshape_to(joined, &[sizes[0], sizes[1], sizes[2] * sizes[3]])
}

fn heads(node: &NodeView<'_>, name: &str) -> Result<u64> {
    Ok(u64::try_from(node.int(name, 0)?).unwrap_or(0))
}

fn attention(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (mut q, mut k, mut v) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let flat = b.rank(q) == 3;
    if flat {
        let (own, others) = (heads(node, "q_num_heads")?, heads(node, "kv_num_heads")?);
        q = split_heads(b, node, q, own)?;
        k = split_heads(b, node, k, others)?;
        v = split_heads(b, node, v, others)?;
    }
    if b.rank(q) != 4 || b.rank(k) != 4 || b.rank(v) != 4 {
        return Err(node.invalid(format!("no attention of {}", b.describe(&[q, k, v]))));
    }
    let mut past = Size::constant(0);
    if let (Some(old_k), Some(old_v)) = (node.optional(4), node.optional(5)) {
        past = b.sizes(old_k).get(2).copied().unwrap_or(past);
        k = b.concat(&[old_k, k], 2)?;
        v = b.concat(&[old_v, v], 2)?;
    }
    let Masks { mask, causal, lengths } = masks(b, node, [q, k], past)?;
    let scale = node.float_if("scale")?.map(f64::from);
    let softcap = Some(node.float("softcap", 0.0)?).filter(|cap| *cap > 0.0).map(f64::from);
    let scores = Scores { scale, softcap, causal, lengths, ..Scores::default() };
    let made = b.attention([q, k, v], mask, scores)?;
    let made = if flat { join_heads(b, made)? } else { made };
    if !node.is_used(3) {
        return Ok(vec![made, k, v]);
    }
    let stages = b.attention_scores([q, k], mask, scores)?;
    let seen = match node.int("qk_matmul_output_mode", 0)? {
        0 => stages.products,
        1 => stages.capped,
        2 => stages.masked,
        3 => stages.weights,
        other => return Err(node.invalid(format!("qk_matmul_output_mode {other}"))),
    };
    let element = b.element(q);
    Ok(vec![made, k, v, b.cast(seen, element)?])
}

/// What decides which keys count.
struct Masks {
    /// What is added to the scores.
    mask: Option<TensorId>,
    /// Whether kernels have to leave out later keys themselves.
    causal: bool,
    /// How many keys of each sequence count, where kernels see to that.
    lengths: Option<TensorId>,
}

fn masks(b: &mut Builder, node: &NodeView<'_>, [q, k]: [TensorId; 2], past: Size) -> Result<Masks> {
    let (queries, keys, batch) = (b.sizes(q)[2], b.sizes(k)[2], b.sizes(q)[0]);
    let one = Size::constant(1);
    let mut all: Vec<TensorId> =
        node.optional(3).map(|id| given_mask(b, id, keys)).transpose()?.into_iter().collect();
    let causal = node.flag("is_causal", false)?;
    let side = |name| Ok(Some(node.int(name, -1)?).filter(|size| *size >= 0));
    let (left, right) = (side("left_window_size")?, side("right_window_size")?);
    let right = if causal { Some(0) } else { right };
    let lengths = node.optional(6);
    if let Some(lengths) = lengths.filter(|_| all.is_empty() && left.is_none() && (right.is_none() || causal))
    {
        return Ok(Masks { mask: None, causal, lengths: Some(lengths) });
    }
    let by_kernel = causal && left.is_none() && lengths.is_none() && queries + past == keys;
    if let Some(lengths) = lengths {
        let lengths = b.cast(lengths, DType::I64)?;
        let lengths = b.reshape_to(lengths, &[batch, one, one, one])?;
        if left.is_some() || right.is_some() {
            // The queries are the last of what counts of each sequence.
            let rows = b.count_from(-queries, queries)?;
            let rows = b.reshape_to(rows, &[queries, one])?;
            let places = b.binary(Function::Add, lengths, rows)?;
            all.push(b.band_around(places, keys, left, right)?);
        }
        let last = b.map(&[lengths], DType::I64, |p, x| {
            p.call(Function::Sub, &[x[0], Operand::Constant(Scalar::Int(1, DType::I64))])
        })?;
        all.push(b.band_around(last, keys, None, Some(0))?);
    } else if (left.is_some() || right.is_some()) && !by_kernel {
        all.push(b.band(queries, keys, past, left, right)?);
    }
    let mut sum = None;
    for mask in all {
        sum = Some(match sum {
            None => mask,
            Some(sum) => b.binary(Function::Add, sum, mask)?,
        });
    }
    Ok(Masks { mask: sum, causal: by_kernel, lengths: None })
}

/// A mask as `f32` that is added; for keys that it does not have, minus infinity.
pub(super) fn given_mask(b: &mut Builder, mask: TensorId, keys: Size) -> Result<TensorId> {
    let added = if b.element(mask) == ElementType::Bool {
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        b.map(&[mask], DType::F32, |p, x| {
            p.call(Function::Select, &[x[0], float(0.0), float(f64::NEG_INFINITY)])
        })?
    } else {
        b.as_f32(mask)?
    };
    let rank = b.rank(added);
    match b.sizes(added).last().copied() {
        Some(own) if own < keys => {
            let mut borders = vec![[Size::constant(0); 2]; rank];
            borders[rank - 1][1] = keys - own;
            b.pad_open(added, &borders, Border::Constant, f64::NEG_INFINITY)
        }
        _ => Ok(added),
    }
}

fn rotary_embedding(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, cosines, sines) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let flat = b.rank(x) == 3;
    let apart = if flat { split_heads(b, node, x, heads(node, "num_heads")?)? } else { x };
    let made = turned(b, node, apart, [cosines, sines], node.optional(3))?;
    Ok(vec![if flat { join_heads(b, made)? } else { made }])
}

/// `[batch, heads, len, dim]` turned by tables, or by a row of them for each place of the batch.
fn turned(
    b: &mut Builder,
    node: &NodeView<'_>,
    x: TensorId,
    tables: [TensorId; 2],
    positions: Option<TensorId>,
) -> Result<TensorId> {
    let [batch, _, len, dim] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} has no heads", b.describe(&[x]))));
    };
    let turned = match heads(node, "rotary_embedding_dim")? {
        0 => dim.exact(),
        some => some,
    };
    let interleaved = node.flag("interleaved", false)?;
    if let Some(positions) = positions {
        return b.rotary(x, positions, tables, turned, interleaved);
    }
    let [cosines, sines] = tables;
    let rows = [batch * len, (turned / 2).into()];
    let tables = [b.reshape_to(cosines, &rows)?, b.reshape_to(sines, &rows)?];
    let positions = b.count_from(0, batch * len)?;
    b.rotary(x, positions, tables, turned, interleaved)
}
