//! `GroupQueryAttention`: decoders whose keys and values of earlier calls come in and go out, each sequence of a batch with
//! a length of its own.

use halite_ops::{DType, expression::Function, pad::Border};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    attention::{given_mask, join_heads, split_heads},
    microsoft_attention::{columns, heads, refuse},
};
use crate::{
    build::{Builder, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[("GroupQueryAttention", group_query)];

/// How many keys lie before those of this call.
#[derive(Clone, Copy)]
enum Past {
    /// As many in each sequence.
    Known(Size),
    /// `i64[batch]`.
    Each(TensorId),
}

/// The sizes of a call.
#[derive(Clone, Copy)]
struct Call {
    batch: Size,
    /// Queries of each sequence.
    len: Size,
    /// Keys that the results have room for.
    room: Size,
    past: Past,
}

impl Call {
    /// The sizes, from the queries' and those of the keys of earlier calls. Only where these grow by every call, or there are
    /// none, is the number of all keys needed to be known: elsewhere lengths are read when the call runs.
    fn of(b: &mut Builder, node: &NodeView<'_>, [batch, len]: [Size; 2]) -> Result<Call> {
        let what = "the number of keys (total_sequence_length)";
        let lengths = node.input(5)?;
        if b.tensor(lengths).count() != batch {
            return Err(node.invalid(format!("{} are not {batch} lengths", b.describe(&[lengths]))));
        }
        let held = match node.optional(3) {
            Some(past) => *b.sizes(past).get(2).ok_or_else(|| {
                node.invalid(format!("{} are no keys of earlier calls", b.describe(&[past])))
            })?,
            None => 0.into(),
        };
        let total = node.input(6)?;
        let total = match b.size_values(total).as_deref() {
            Some([total]) => *total,
            None if held > 0 => held,
            _ => match b.need_ints(total, what)?[..] {
                [total] => total.into(),
                _ => 0.into(),
            },
        };
        if total < len {
            return Err(node.invalid(format!("{what} is not at least that of queries, {len}")));
        }
        // Where all keys are new, none is old, also of a sequence that is shorter than its row. A single sequence that fills what it
        // has grows by this call.
        let grows = batch == 1 && held + len == total;
        let past = if held == 0 && total > len {
            return Err(node.invalid("the keys of earlier calls are missing"));
        } else if total == len {
            Past::Known(0.into())
        } else if grows {
            Past::Known(held)
        } else {
            // The lengths are those of everything, less one.
            let lengths = b.reshape_to(lengths, &[batch])?;
            let less = b.computed(DType::I64, &[], vec![Size::constant(1) - len])?;
            let lengths = b.cast(lengths, DType::I64)?;
            let past = b.binary(Function::Add, lengths, less)?;
            let past = b.at_least(past, 0)?;
            match b.size_values(past).as_deref() {
                Some([past]) if *past <= held => Past::Known(*past),
                _ => Past::Each(past),
            }
        };
        Ok(Call { batch, len, room: if total <= held { held } else { total }, past })
    }

    /// Places of the queries among the keys, `i64[batch, len]`.
    fn places(self, b: &mut Builder) -> Result<TensorId> {
        match self.past {
            Past::Known(past) => {
                let row = b.count_from(past, self.len)?;
                b.expand_to(row, &[self.batch, self.len])
            }
            Past::Each(past) => {
                let past = b.reshape_to(past, &[self.batch, 1.into()])?;
                let row = b.count_from(0, self.len)?;
                b.binary(Function::Add, past, row)
            }
        }
    }

    /// Keys or values with those of earlier calls: as many as there is room for.
    fn present(self, b: &mut Builder, past: Option<TensorId>, own: TensorId) -> Result<TensorId> {
        let &[batch, heads, _, dim] = b.sizes(own) else {
            return Err(b.invalid("keys have four dimensions"));
        };
        let Some(past) = past else { return Ok(own) };
        let &[b_past, h_past, held, d_past] = b.sizes(past) else {
            return Err(b.invalid(format!("{} are no keys of earlier calls", b.describe(&[past]))));
        };
        if [b_past, h_past, d_past] != [batch, heads, dim] {
            return Err(b.invalid(format!(
                "{} do not go before {}",
                b.describe(&[past]),
                b.describe(&[own])
            )));
        }
        if let Past::Known(before) = self.past
            && before == held
            && held + self.len == self.room
        {
            return b.concat(&[past, own], 2);
        }
        let more = if self.room == held { 0 } else { (self.room - held).exact_signed() };
        let past = b.pad(past, &[(0, 0), (0, 0), (0, more), (0, 0)], Border::Constant, 0.0)?;
        let starts = match self.past {
            Past::Known(before) => self.each(b, before)?,
            Past::Each(before) => before,
        };
        b.append(own, past, starts)
    }

    /// How many keys count in each sequence: those of earlier calls and this one's. None where all in the results do.
    fn lengths(self, b: &mut Builder) -> Result<Option<TensorId>> {
        match self.past {
            Past::Known(past) if past + self.len == self.room => Ok(None),
            Past::Known(past) => self.each(b, past + self.len).map(Some),
            Past::Each(past) => {
                let len = b.computed(DType::I64, &[], vec![self.len])?;
                b.binary(Function::Add, past, len).map(Some)
            }
        }
    }

    /// A number for each sequence, `i64[batch]`.
    fn each(self, b: &mut Builder, number: Size) -> Result<TensorId> {
        let number = b.computed(DType::I64, &[1], vec![number])?;
        b.expand_to(number, &[self.batch])
    }
}

/// Queries, keys and values, apart or side by side, `[batch, heads, len, dim]`.
fn given(b: &mut Builder, node: &NodeView<'_>, own: u64, others: u64) -> Result<[TensorId; 3]> {
    let q = node.input(0)?;
    let (q, k, v) = match (node.optional(1), node.optional(2)) {
        (Some(k), Some(v)) => (q, k, v),
        _ => {
            let width = b.sizes(q).last().map_or(0, |size| size.exact());
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
    let &[batch, _, len, dim] = b.sizes(q) else { return Err(node.invalid("queries have heads")) };
    let (call, dim) = (Call::of(b, node, [batch, len])?, dim.exact());
    if node.flag("do_rotary", false)? {
        let tables = [node.input(7)?, node.input(8)?];
        let turned = b.sizes(tables[0]).get(1).map_or(0, |half| half.exact().saturating_mul(2)).min(dim);
        let places = match node.optional(9) {
            Some(places) => places,
            None => call.places(b)?,
        };
        let interleaved = node.flag("rotary_interleaved", false)?;
        q = b.rotary(q, places, tables, turned, interleaved)?;
        k = b.rotary(k, places, tables, turned, interleaved)?;
    }
    let (k, v) = (call.present(b, node.optional(3), k)?, call.present(b, node.optional(4), v)?);
    let left = Some(node.int("local_window_size", -1)?).filter(|size| *size > 0).map(|size| size - 1);
    let by_kernel = left.is_none();
    let mut mask = node.optional(10).map(|bias| given_mask(b, bias, call.room)).transpose()?;
    if !by_kernel {
        let places = call.places(b)?;
        let one = Size::constant(1);
        let places = b.reshape_to(places, &[batch, one, len, one])?;
        let band = b.band_around(places, call.room, left, Some(0))?;
        mask = Some(match mask {
            Some(bias) => b.binary(Function::Add, band, bias)?,
            None => band,
        });
    }
    let number = |name| Ok(Some(node.float(name, 0.0)?).filter(|value| *value != 0.0).map(f64::from));
    let lengths = if by_kernel { call.lengths(b)? } else { None };
    let (scale, softcap) = (number("scale")?, number("softcap")?);
    let made = b.attention([q, k, v], mask, Scores { scale, softcap, causal: by_kernel, lengths })?;
    Ok(vec![join_heads(b, made)?, k, v])
}
