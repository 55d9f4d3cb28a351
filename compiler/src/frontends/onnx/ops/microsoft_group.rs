//! `GroupQueryAttention`: decoders whose keys and values of earlier calls come in and go out, each sequence of a batch with
//! a length of its own.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    pad::Border,
};

use super::{
    Import, NodeView, Result,
    attention::{join_heads, split_heads},
    microsoft_attention::{columns, heads, refuse},
};
use crate::{
    build::{Builder, Range, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[("GroupQueryAttention", group_query)];

/// How many keys lie before those of this call.
#[derive(Clone, Copy)]
enum Past {
    /// As many in each sequence.
    Known(u64),
    /// `i64[batch]`.
    Each(TensorId),
}

/// The sizes of a call.
#[derive(Clone, Copy)]
struct Call {
    batch: u64,
    /// Queries of each sequence.
    len: u64,
    /// Keys of the longest sequence.
    total: u64,
    past: Past,
}

impl Call {
    fn of(b: &mut Builder, node: &NodeView<'_>, [batch, len]: [u64; 2]) -> Result<Call> {
        let what = "the number of keys (total_sequence_length)";
        let total = match b.need_ints(node.input(6)?, what)?[..] {
            [total] => u64::try_from(total).ok().filter(|total| *total >= len),
            _ => None,
        };
        let total =
            total.ok_or_else(|| node.invalid(format!("{what} is not at least that of queries, {len}")))?;
        let lengths = node.input(5)?;
        if b.tensor(lengths).elements() != batch {
            return Err(node.invalid(format!("{} are not {batch} lengths", b.describe(&[lengths]))));
        }
        // The longest sequence has all keys, so one alone needs no length of its own; and where all keys are new, none is old.
        let past = if batch == 1 || total == len {
            Past::Known(total - len)
        } else {
            let lengths = b.cast(lengths, DType::I64)?;
            let lengths = b.reshape(lengths, &[batch])?;
            // The lengths are those of everything, less one.
            let more = Operand::Constant(Scalar::Int(1 - len as i64, DType::I64));
            Past::Each(b.map(&[lengths], DType::I64, |p, x| p.call(Function::Add, &[x[0], more]))?)
        };
        Ok(Call { batch, len, total, past })
    }

    /// Places of the queries among the keys, `i64[batch, len]`.
    fn places(self, b: &mut Builder) -> Result<TensorId> {
        match self.past {
            Past::Known(past) => {
                let row = b.count_from(past as i64, self.len)?;
                b.expand(row, &[self.batch, self.len])
            }
            Past::Each(past) => {
                let past = b.reshape(past, &[self.batch, 1])?;
                let row = b.count_from(0, self.len)?;
                b.binary(Function::Add, past, row)
            }
        }
    }

    /// Keys or values with those of earlier calls: as many as `past` has room for, and at least all that count; zeros behind
    /// those of each sequence.
    fn present(self, b: &mut Builder, past: Option<TensorId>, own: TensorId) -> Result<TensorId> {
        let &[batch, heads, len, dim] = b.dims(own) else {
            return Err(b.invalid("keys have four dimensions"));
        };
        let Some(past) = past else {
            return if self.total == len {
                Ok(own)
            } else {
                Err(b.invalid("the keys of earlier calls are missing"))
            };
        };
        let &[b_past, h_past, room, d_past] = b.dims(past) else {
            return Err(b.invalid(format!("{} are no keys of earlier calls", b.describe(&[past]))));
        };
        if [b_past, h_past, d_past] != [batch, heads, dim] {
            return Err(b.invalid(format!(
                "{} do not go before {}",
                b.describe(&[past]),
                b.describe(&[own])
            )));
        }
        let all = room.max(self.total);
        let rows = |start: u64, count: u64| {
            [Range::all(batch), Range::all(heads), Range { start, step: 1, count }, Range::all(dim)]
        };
        match self.past {
            Past::Known(before) if before > room => {
                Err(b.invalid(format!("{before} keys of earlier calls in {}", b.describe(&[past]))))
            }
            Past::Known(before) => {
                let first = b.slice(past, &rows(0, before))?;
                let both = b.concat(&[first, own], 2)?;
                let more = (all - before - len) as i64;
                b.pad(both, &[(0, 0), (0, 0), (0, more), (0, 0)], Border::Constant, 0.0)
            }
            Past::Each(before) => {
                let more = (all - room) as i64;
                let past = b.pad(past, &[(0, 0), (0, 0), (0, more), (0, 0)], Border::Constant, 0.0)?;
                // Behind the old keys and the new ones is one of zeros.
                let both = b.concat(&[past, own], 2)?;
                let both = b.pad(both, &[(0, 0), (0, 0), (0, 1), (0, 0)], Border::Constant, 0.0)?;
                let both = b.transpose(both, &[0, 2, 1, 3])?;
                let places = b.count_from(0, all)?;
                let before = b.reshape(before, &[batch, 1])?;
                let int = |value: u64| Operand::Constant(Scalar::Int(value as i64, DType::I64));
                let from = b.map(&[places, before], DType::I64, |p, x| {
                    let ahead = p.call(Function::Sub, x);
                    let old = p.call(Function::Lt, &[ahead, int(0)]);
                    let new = p.call(Function::Min, &[ahead, int(len)]);
                    let new = p.call(Function::Add, &[new, int(all)]);
                    p.call(Function::Select, &[old, x[0], new])
                })?;
                let from = b.reshape(from, &[batch, all, 1])?;
                let made = b.gather_nd(both, from, 1)?;
                b.transpose(made, &[0, 2, 1, 3])
            }
        }
    }
}

/// Queries, keys and values, apart or side by side, `[batch, heads, len, dim]`.
fn given(b: &mut Builder, node: &NodeView<'_>, own: u64, others: u64) -> Result<[TensorId; 3]> {
    let q = node.input(0)?;
    let (q, k, v) = match (node.optional(1), node.optional(2)) {
        (Some(k), Some(v)) => (q, k, v),
        _ => {
            let width = b.dims(q).last().copied().unwrap_or(0);
            let all = others.checked_mul(2).and_then(|others| own.checked_add(others));
            let Some(dim) = all.filter(|all| width % all == 0).map(|all| width / all) else {
                let reason = format!("{} is not of {own} and {others} heads", b.describe(&[q]));
                return Err(node.invalid(reason));
            };
            let k = columns(b, q, own * dim, others * dim)?;
            let v = columns(b, q, (own + others) * dim, others * dim)?;
            (columns(b, q, 0, own * dim)?, k, v)
        }
    };
    Ok([split_heads(b, node, q, own)?, split_heads(b, node, k, others)?, split_heads(b, node, v, others)?])
}

fn group_query(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    refuse(node, &[(11, "head_sink"), (12, "k_scale"), (13, "v_scale")])?;
    if node.flag("smooth_softmax", false)? || node.is_used(3) {
        return Err(node.unsupported("smooth_softmax, and scores as an output"));
    }
    let (own, others) = (heads(node, "num_heads")?, heads(node, "kv_num_heads")?);
    let [mut q, mut k, v] = given(b, node, own, others)?;
    let &[batch, _, len, dim] = b.dims(q) else { return Err(node.invalid("queries have heads")) };
    let call = Call::of(b, node, [batch, len])?;
    if node.flag("do_rotary", false)? {
        let tables = [node.input(7)?, node.input(8)?];
        let turned = b.dims(tables[0]).get(1).map_or(0, |half| half.saturating_mul(2)).min(dim);
        let places = match node.optional(9) {
            Some(places) => places,
            None => call.places(b)?,
        };
        let interleaved = node.flag("rotary_interleaved", false)?;
        q = b.rotary(q, places, tables, turned, interleaved)?;
        k = b.rotary(k, places, tables, turned, interleaved)?;
    }
    let (k, v) = (call.present(b, node.optional(3), k)?, call.present(b, node.optional(4), v)?);
    let counted = |b: &mut Builder, x: TensorId| {
        let mut ranges: Vec<Range> = b.dims(x).iter().map(|size| Range::all(*size)).collect();
        ranges[2] = Range { start: 0, step: 1, count: call.total };
        b.slice(x, &ranges)
    };
    let (keys, values) = (counted(b, k)?, counted(b, v)?);
    let left = Some(node.int("local_window_size", -1)?).filter(|size| *size > 0).map(|size| size - 1);
    let by_kernel = matches!(call.past, Past::Known(_)) && left.is_none();
    let mut mask = node.optional(10).map(|bias| b.as_f32(bias)).transpose()?;
    if !by_kernel {
        let places = call.places(b)?;
        let places = b.reshape(places, &[batch, 1, len, 1])?;
        let band = b.band_around(places, call.total, left, Some(0))?;
        mask = Some(match mask {
            Some(bias) => b.binary(Function::Add, band, bias)?,
            None => band,
        });
    }
    let number = |name| Ok(Some(node.float(name, 0.0)?).filter(|value| *value != 0.0).map(f64::from));
    let scores = Scores { scale: number("scale")?, softcap: number("softcap")?, causal: by_kernel };
    let made = b.attention([q, keys, values], mask, scores)?;
    Ok(vec![join_heads(b, made)?, k, v])
}
