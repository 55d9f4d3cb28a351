//! `GroupQueryAttention`: decoders whose keys and values of earlier calls come in and go out, each sequence of a batch with
//! a length of its own.

use halite_ops::{DType, expression::Function, norm::NormKind, pad::Border};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    attention::{given_mask, join_heads, split_heads},
    microsoft_attention::{columns, heads, refuse},
    microsoft_window::Window,
};
use crate::{
    build::{Builder, Normalization, Range, Scores},
    graph::TensorId,
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[("GroupQueryAttention", group_query)];

/// The input that is added to the scores, with a column for each key.
const BIAS: usize = 10;

/// The input that says how many queries of each sequence count.
const QUERY_LENGTHS: usize = 16;

/// How many keys of the longest sequence there are.
#[derive(Clone, Copy)]
enum Total {
    Known(Size),
    /// By data: so many more than there is room for, as the host reads.
    More(Size),
}

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
    /// How many keys each sequence has after the call, `i64[batch]`.
    after: TensorId,
}

/// The number of all keys, as models give it.
const TOTAL: &str = "the number of keys (total_sequence_length)";

impl Call {
    /// The sizes, from the queries' and those of the keys of earlier calls. Lengths are read when the call runs.
    fn of(b: &mut Builder, node: &NodeView<'_>, [batch, len]: [Size; 2]) -> Result<Call> {
        let after = Call::after(b, node, batch)?;
        let held = match node.optional(3) {
            Some(past) => *b.sizes(past).get(2).ok_or_else(|| {
                node.invalid(format!("{} are no keys of earlier calls", b.describe(&[past])))
            })?,
            None => 0.into(),
        };
        let given = node.optional(QUERY_LENGTHS);
        let total = Call::total(b, node, [len, held], given.is_some())?;
        let room = match total {
            Total::Known(total) if total < len => {
                return Err(node.invalid(format!("{TOTAL} is not at least that of queries, {len}")));
            }
            Total::Known(total) if held == 0 && total > len && given.is_none() => {
                return Err(node.invalid("the keys of earlier calls are missing"));
            }
            Total::Known(total) if total <= held => held,
            Total::Known(total) => total,
            Total::More(more) => held + more,
        };
        let past = match (total, given) {
            // Where all keys are new, none is old, also of a sequence that is shorter than its row.
            (Total::Known(total), None) if total == len => Past::Known(0.into()),
            _ => Call::past(b, node, [batch, len, held], after)?,
        };
        Ok(Call { batch, len, room, past, after })
    }

    /// How many keys each sequence has after the call, `i64[batch]`.
    fn after(b: &mut Builder, node: &NodeView<'_>, batch: Size) -> Result<TensorId> {
        let lengths = node.input(5)?;
        if b.tensor(lengths).count() != batch {
            return Err(node.invalid(format!("{} are not {batch} lengths", b.describe(&[lengths]))));
        }
        let after = b.plus(lengths, 1)?;
        b.reshape_to(after, &[batch])
    }

    /// How many keys lie before those of this call, by how many there are `after` it.
    fn past(
        b: &mut Builder,
        node: &NodeView<'_>,
        [batch, len, held]: [Size; 3],
        after: TensorId,
    ) -> Result<Past> {
        let past = Call::before(b, node, [batch, len], after)?;
        Ok(match b.size_values(past).as_deref() {
            Some([past]) if *past <= held => Past::Known(*past),
            _ => Past::Each(past),
        })
    }

    /// The same by data, `i64[batch]`, or one number for all.
    fn before(
        b: &mut Builder,
        node: &NodeView<'_>,
        [batch, len]: [Size; 2],
        after: TensorId,
    ) -> Result<TensorId> {
        // Rows of a sequence that do not count are the last: keys of later calls take their places.
        let new = match node.optional(QUERY_LENGTHS) {
            Some(given) if b.tensor(given).count() != batch => {
                let reason = format!("{} are not {batch} numbers of queries", b.describe(&[given]));
                return Err(node.invalid(reason));
            }
            Some(given) => {
                let given = b.reshape_to(given, &[batch])?;
                b.cast(given, DType::I64)?
            }
            None => b.computed(DType::I64, &[], vec![len])?,
        };
        let past = b.binary(Function::Sub, after, new)?;
        b.at_least(past, 0)
    }

    /// The number of all keys of the longest sequence. Where only data say it, the results have the room that keys of earlier calls
    /// have, if that is fixed: a model that updates caches in place. Where that is open caches may grow, and the host reads it,
    /// unless there is a bias, which has a column for each key.
    fn total(b: &mut Builder, node: &NodeView<'_>, [len, held]: [Size; 2], bound: bool) -> Result<Total> {
        let total = node.input(6)?;
        Ok(match b.size_values(total).as_deref() {
            Some([total]) => Total::Known(*total),
            Some(_) => return Err(node.invalid(format!("{} is not {TOTAL}", b.describe(&[total])))),
            None if let Some(keys) = biased_keys(b, node) => Total::Known(keys),
            None if held.is_constant() && held > 0 && held >= len => Total::Known(held),
            // Without earlier keys there are no others than those of this call.
            None if !bound && held == 0 => Total::Known(len),
            None => {
                let total = b.reshape(total, &[])?;
                let total = b.cast(total, DType::I64)?;
                let held = b.computed(DType::I64, &[], vec![held])?;
                let more = b.binary(Function::Sub, total, held)?;
                let more = b.at_least(more, 0)?;
                Total::More(b.need_sizes(more, TOTAL)?[0])
            }
        })
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
        let past = if self.room.is(held) {
            past
        } else {
            let none = [Size::constant(0); 2];
            b.pad_open(past, &[none, none, [0.into(), self.room - held], none], Border::Constant, 0.0)?
        };
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

    /// Queries and keys turned by their places.
    fn turned(self, b: &mut Builder, node: &NodeView<'_>, both: [TensorId; 2]) -> Result<[TensorId; 2]> {
        let tables = [node.input(7)?, node.input(8)?];
        let dim = b.sizes(both[0])[3].exact();
        let turned = b.sizes(tables[0]).get(1).map_or(0, |half| half.exact().saturating_mul(2)).min(dim);
        let places = match node.optional(9) {
            Some(places) => places,
            None => self.places(b)?,
        };
        let interleaved = node.flag("rotary_interleaved", false)?;
        let [q, k] = both;
        Ok([
            b.rotary(q, places, tables, turned, interleaved)?,
            b.rotary(k, places, tables, turned, interleaved)?,
        ])
    }

    /// Attention to all keys that count, `[batch, heads, len, dim]`.
    fn attended(self, b: &mut Builder, node: &NodeView<'_>, qkv: [TensorId; 3]) -> Result<TensorId> {
        let causal = node.flag("causal", true)?;
        // A window has the query's own key, too.
        let left = Some(node.int("local_window_size", -1)?).filter(|size| *size > 0).map(|size| size - 1);
        let mut mask = node.optional(BIAS).map(|bias| given_mask(b, bias, self.room)).transpose()?;
        if left.is_some() {
            let places = self.places(b)?;
            let one = Size::constant(1);
            let places = b.reshape_to(places, &[self.batch, one, self.len, one])?;
            let band = b.band_around(places, self.room, left, Some(0))?;
            mask = Some(match mask {
                Some(bias) => b.binary(Function::Add, band, bias)?,
                None => band,
            });
        }
        let number = |name| Ok(Some(node.float(name, 0.0)?).filter(|value| *value != 0.0).map(f64::from));
        let lengths = match (left, causal) {
            (Some(_), _) => None,
            (None, true) => self.lengths(b)?,
            (None, false) => Some(self.after),
        };
        let (scale, softcap) = (number("scale")?, number("softcap")?);
        let scores =
            Scores { scale, softcap, causal: causal && left.is_none(), lengths, ..Scores::default() };
        let sinks = node.optional(11);
        if sinks.is_some() || node.flag("smooth_softmax", false)? {
            return with_sinks(b, qkv, mask, scores, sinks);
        }
        b.attention(qkv, mask, scores)
    }

    /// A number for each sequence, `i64[batch]`.
    fn each(self, b: &mut Builder, number: Size) -> Result<TensorId> {
        let number = b.computed(DType::I64, &[1], vec![number])?;
        b.expand_to(number, &[self.batch])
    }
}

/// How many keys the bias is for, if there is one.
fn biased_keys(b: &Builder, node: &NodeView<'_>) -> Option<Size> {
    b.sizes(node.optional(BIAS)?).last().copied()
}

/// Queries, keys and values, apart or side by side, `[batch, heads, len, dim]`.
fn given(b: &mut Builder, node: &NodeView<'_>, own: u64, others: u64) -> Result<[TensorId; 3]> {
    let q = node.input(0)?;
    let (q, k, v) = match (node.optional(1), node.optional(2)) {
        (Some(k), Some(v)) => (q, k, v),
        _ => {
            let width = b.sizes(q).last().map_or(0, |size| size.exact());
            let all = others.checked_mul(2).and_then(|others| own.checked_add(others));
            let Some(dim) = all.filter(|all| width.is_multiple_of(*all)).map(|all| width / all) else {
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

/// Queries or keys, each head's elements by the root of the mean of their squares.
fn normalized(
    b: &mut Builder,
    node: &NodeView<'_>,
    x: TensorId,
    input: usize,
    epsilon: &str,
) -> Result<TensorId> {
    let Some(weight) = node.optional(input) else { return Ok(x) };
    let both = node.float("qk_norm_epsilon", 1e-6)?;
    let norm = Normalization {
        kind: NormKind::Rms,
        first: 3,
        end: 4,
        groups: 1,
        epsilon: node.float(epsilon, both)?,
    };
    b.normalize(x, Some(weight), None, norm)
}

/// Attention where the sum of each head's weights has one more term, e^`sink`, of a key that has no value. `sinks` are those of the
/// heads, 0 without.
fn with_sinks(
    b: &mut Builder,
    [q, k, v]: [TensorId; 3],
    mask: Option<TensorId>,
    scores: Scores,
    sinks: Option<TensorId>,
) -> Result<TensorId> {
    let scores = b.attention_scores([q, k], mask, scores)?.masked;
    let &[batch, heads, queries, keys] = b.sizes(scores) else {
        return Err(b.invalid("scores have four dimensions"));
    };
    let one = Size::constant(1);
    let sinks = match sinks {
        Some(sinks) => b.as_f32(sinks)?,
        None => b.float(DType::F32, 0.0)?,
    };
    let own = if b.tensor(sinks).count() == one { one } else { heads };
    let sinks = b.reshape_to(sinks, &[one, own, one, one])?;
    let sinks = b.expand_to(sinks, &[batch, heads, queries, one])?;
    let all = b.concat(&[scores, sinks], 3)?;
    let weights = b.softmax(all, 3, false)?;
    let first = Range { start: 0.into(), step: 1, count: keys };
    let ranges = [Range::all(batch), Range::all(heads), Range::all(queries), first];
    let weights = b.slice(weights, &ranges)?;
    let made = b.attend(weights, v)?;
    let element = b.element(q);
    b.cast(made, element)
}

/// What these kernels do not do.
fn refuse_forms(node: &NodeView<'_>) -> Result<()> {
    let instead = "caches of bytes are not taken; export the model with caches of floats";
    refuse(node, &[(12, "k_scale"), (13, "v_scale")], instead)?;
    if node.flag("sliding_window_cache", false)? && node.optional(BIAS).is_some() {
        return Err(node.unsupported(
            "attention_bias with sliding_window_cache: export the model with whole caches (windowed_kv_cache=false for onnxruntime-genai's builder)",
        ));
    }
    if node.is_used(3) {
        return Err(node.unsupported(
            "scores as an output: leave them out, or take Attention of opset 23, which has them",
        ));
    }
    Ok(())
}

fn group_query(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    refuse_forms(node)?;
    let (own, others) = (heads(node, "num_heads")?, heads(node, "kv_num_heads")?);
    let [mut q, mut k, v] = given(b, node, own, others)?;
    let &[batch, _, len, _] = b.sizes(q) else { return Err(node.invalid("queries have heads")) };
    if b.sizes(k)[2] != len || b.sizes(v)[2] != len {
        return Err(
            node.unsupported(format!("keys that are not as many as queries: {}", b.describe(&[q, k, v])))
        );
    }
    let window = Window::size(node)?;
    let call = match window {
        Some(_) => {
            let after = Call::after(b, node, batch)?;
            let before = Call::before(b, node, [batch, len], after)?;
            Call { batch, len, room: len, past: Past::Each(before), after }
        }
        None => Call::of(b, node, [batch, len])?,
    };
    q = normalized(b, node, q, 14, "q_norm_epsilon")?;
    k = normalized(b, node, k, 15, "k_norm_epsilon")?;
    if node.flag("do_rotary", false)? {
        [q, k] = call.turned(b, node, [q, k])?;
    }
    if let (Some(size), Past::Each(before)) = (window, call.past) {
        return windowed(b, node, (call, before, size), [q, k, v]);
    }
    let (k, v) = (call.present(b, node.optional(3), k)?, call.present(b, node.optional(4), v)?);
    let made = call.attended(b, node, [q, k, v])?;
    Ok(vec![join_heads(b, made)?, k, v])
}

/// The results where caches hold a window of `size` keys alone: this call's rows go behind the old ones, and what stays of both is the new
/// cache. Each sequence had `before` keys.
fn windowed(
    b: &mut Builder,
    node: &NodeView<'_>,
    (call, before, size): (Call, TensorId, u64),
    [q, k, v]: [TensorId; 3],
) -> Result<Vec<TensorId>> {
    let (Some(keys), Some(values)) = (node.optional(3), node.optional(4)) else {
        return Err(node.invalid("sliding_window_cache=1 needs past_key and past_value"));
    };
    let &[_, _, held, _] = b.sizes(keys) else {
        return Err(node.invalid(format!("{} are no keys of earlier calls", b.describe(&[keys]))));
    };
    let window = Window::of(b, size, held, [before, call.after])?;
    let room = window.capacity + call.len;
    let rows = Call { room, past: Past::Each(window.held), ..call };
    let behind = |b: &mut Builder, past, own| {
        if held != 0 {
            return rows.present(b, Some(past), own);
        }
        let none = [Size::constant(0); 2];
        b.pad_open(own, &[none, none, [0.into(), window.capacity], none], Border::Constant, 0.0)
    };
    let (k, v) = (behind(b, keys, k)?, behind(b, values, v)?);
    let made = rows.attended(b, node, [q, k, v])?;
    Ok(vec![join_heads(b, made)?, window.kept(b, k)?, window.kept(b, v)?])
}
