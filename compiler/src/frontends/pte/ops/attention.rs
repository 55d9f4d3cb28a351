//! Attention and rotary position embedding.

use halite_ops::{
    Operation,
    attention::{Attention, Mask},
    expression::{Expression, Function as F, Operand},
};
use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{build::Range, graph::TensorId};

pub(super) const OPERATORS: Table = &[
    ("et_vk.apply_rotary_emb.default", rotate_pairs),
    ("et_vk.apply_rotary_emb_hf.default", rotate_halves),
    ("et_vk.apply_rotary_emb_interleaved.default", rotate_interleaved),
    ("et_vk.sdpa.default", attention),
];

/// Arguments: queries `[b, s, h, d]`, keys `[b, s, h', d]`, cosines and sines `[s, d / 2]`. Neighbouring elements are turned
/// together.
fn rotate_pairs(n: &mut Node<'_, '_>) -> Result<()> {
    let tables = [n.tensor(2)?, n.tensor(3)?];
    let mut turned = Vec::new();
    for i in 0..2 {
        let x = n.tensor(i)?;
        let dims = n.b().sizes(x).to_vec();
        let [_, rows, _, width] = dims[..] else {
            return Err(n.invalid(format!("{dims:?} are no heads that are turned")));
        };
        if let Some(made) = turned_heads(n, x, tables)? {
            turned.push(Some(made));
            continue;
        }
        let shape = [1.into(), rows, 1.into(), width / 2];
        let [cos, sin] = [n.b().reshape_to(tables[0], &shape)?, n.b().reshape_to(tables[1], &shape)?];
        turned.push(Some(turn_pairs(n, x, cos, sin)?));
    }
    n.finish_list(&turned)
}

/// Most elements of a head that the operation turns.
const MOST_TURNED: u64 = 256;

/// Heads `[b, s, h, d]` that one operation turns, if it takes them: row `s` by that of the tables.
fn turned_heads(n: &mut Node<'_, '_>, x: TensorId, tables: [TensorId; 2]) -> Result<Option<TensorId>> {
    let dims = n.b().sizes(x).to_vec();
    let [batch, rows, heads, width] = dims[..] else { return Ok(None) };
    let half = width / 2;
    let fits = heads.is_constant() && width.is_constant() && width.is_multiple_of(2) && width <= MOST_TURNED;
    let floats = n.b().element(x).is_float() && tables.iter().all(|id| n.b().element(*id).is_float());
    if !fits || !floats || width == 0 {
        return Ok(None);
    }
    let table = [rows, half];
    let tables = [n.b().reshape_to(tables[0], &table)?, n.b().reshape_to(tables[1], &table)?];
    let line = n.b().count_from(0, rows)?;
    let line = n.b().reshape_to(line, &[1.into(), rows])?;
    let places = n.b().expand_to(line, &[batch, rows])?;
    let order = [0, 2, 1, 3];
    let apart = n.b().transpose(x, &order)?;
    let made = n.b().rotary(apart, places, tables, width.exact(), true)?;
    n.b().transpose(made, &order).map(Some)
}

/// Arguments: `[b, n, c]`, and numbers of which each pair is a cosine and a sine for a pair of elements `[n, c / 2]`.
fn rotate_interleaved(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, table) = (n.tensor(0)?, n.tensor(1)?);
    let dims = n.b().sizes(x).to_vec();
    let [_, rows, width] = dims[..] else {
        return Err(n.invalid(format!("{dims:?} are no rows that are turned")));
    };
    let table = n.b().reshape_to(table, &[rows, width / 2, 2.into()])?;
    let (cos, sin) = (part(n, table, 2, 0..1)?, part(n, table, 2, 1..2)?);
    let shape = [1.into(), rows, width / 2];
    let (cos, sin) = (n.b().reshape_to(cos, &shape)?, n.b().reshape_to(sin, &shape)?);
    let made = turn_pairs(n, x, cos, sin)?;
    n.finish(made)
}

/// Elements of a dimension.
fn part<N: Into<Size>>(
    n: &mut Node<'_, '_>,
    x: TensorId,
    axis: usize,
    of: std::ops::Range<N>,
) -> Result<TensorId> {
    let (start, end) = (of.start.into(), of.end.into());
    let mut ranges: Vec<Range<Size>> = n.b().sizes(x).iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start, step: 1, count: end - start };
    n.b().slice(x, &ranges)
}

/// `a x + b y`, or the difference.
fn combine(p: &mut Expression, f: F, [a, x, b, y]: [Operand; 4]) -> Operand {
    let (first, second) = (p.call(F::Mul, &[a, x]), p.call(F::Mul, &[b, y]));
    p.call(f, &[first, second])
}

/// Turns neighbouring elements of the last dimension by angles that have as many dimensions.
fn turn_pairs(n: &mut Node<'_, '_>, x: TensorId, cos: TensorId, sin: TensorId) -> Result<TensorId> {
    let (dims, element) = (n.b().sizes(x).to_vec(), n.b().element(x));
    let last = dims.len() - 1;
    if !dims[last].is_multiple_of(2) {
        return Err(n.invalid(format!("{dims:?} are no pairs")));
    }
    let half = [&dims[..last], &[dims[last] / 2]].concat();
    let pairs = n.b().reshape_to(x, &[&half[..], &[2.into()]].concat())?;
    let (even, odd) = (part(n, pairs, last + 1, 0..1)?, part(n, pairs, last + 1, 1..2)?);
    let (even, odd) = (n.b().reshape_to(even, &half)?, n.b().reshape_to(odd, &half)?);
    let inputs = [even, odd, cos, sin];
    let first = n.b().map(&inputs, element, |p, x| combine(p, F::Sub, [x[0], x[2], x[1], x[3]]))?;
    let second = n.b().map(&inputs, element, |p, x| combine(p, F::Add, [x[0], x[3], x[1], x[2]]))?;
    let column = [&half[..], &[1.into()]].concat();
    let both = [n.b().reshape_to(first, &column)?, n.b().reshape_to(second, &column)?];
    let joined = n.b().concat(&both, last + 1)?;
    n.b().reshape_to(joined, &dims)
}

/// Arguments: queries `[b, s, h, d]`, keys `[b, s, h', d]`, cosines and sines with `r` columns, the row of the first position.
/// The first `r` elements of each head are turned, each with the one half of `r` further; the others stay.
fn rotate_halves(n: &mut Node<'_, '_>) -> Result<()> {
    let (tables, start) = ([n.tensor(2)?, n.tensor(3)?], n.extent(4)?);
    let mut turned = Vec::new();
    for i in 0..2 {
        let x = n.tensor(i)?;
        let [cos, sin] = [rows_of(n, x, tables[0], start)?, rows_of(n, x, tables[1], start)?];
        turned.push(Some(turn_halves(n, x, cos, sin)?));
    }
    n.finish_list(&turned)
}

/// The rows of a table that belong to the positions of heads: `[1, s, 1, r]`.
fn rows_of(n: &mut Node<'_, '_>, heads: TensorId, table: TensorId, start: Size) -> Result<TensorId> {
    let (dims, own) = (n.b().sizes(heads).to_vec(), n.b().sizes(table).to_vec());
    let wrong = format!("a table of {own:?} for heads of {dims:?} from position {start} on");
    let ([_, positions, _, width], [lead @ .., columns]) = (&dims[..], &own[..]) else {
        return Err(n.invalid(wrong));
    };
    let rows: Size = lead.iter().product();
    let end = start + *positions;
    if start < 0 || end > rows || columns > width || !columns.is_multiple_of(2) {
        return Err(n.invalid(wrong));
    }
    let table = n.b().reshape_to(table, &[rows, *columns])?;
    let rows = part(n, table, 0, start..end)?;
    n.b().reshape_to(rows, &[1.into(), *positions, 1.into(), *columns])
}

fn turn_halves(n: &mut Node<'_, '_>, x: TensorId, cos: TensorId, sin: TensorId) -> Result<TensorId> {
    let (width, element) = (n.b().sizes(x)[3], n.b().element(x));
    let turned = n.b().sizes(cos)[3];
    let (zero, half) = (Size::from(0), turned / 2);
    let split = |n: &mut Node<'_, '_>, id| -> Result<[TensorId; 2]> {
        Ok([part(n, id, 3, zero..half)?, part(n, id, 3, half..turned)?])
    };
    let ([a, b], [cos_a, cos_b], [sin_a, sin_b]) = (split(n, x)?, split(n, cos)?, split(n, sin)?);
    let first =
        n.b().map(&[a, b, cos_a, sin_a], element, |p, x| combine(p, F::Sub, [x[0], x[2], x[1], x[3]]))?;
    let second =
        n.b().map(&[a, b, cos_b, sin_b], element, |p, x| combine(p, F::Add, [x[1], x[2], x[0], x[3]]))?;
    let mut parts = vec![first, second];
    if turned < width {
        parts.push(part(n, x, 3, turned..width)?);
    }
    n.b().concat(&parts, 3)
}

/// Arguments: queries `[b, h, s, d]`, keys and values `[b, h, l, d]`, a mask that is added or none, the factor or none.
fn attention(n: &mut Node<'_, '_>) -> Result<()> {
    let (q, k, v, mask) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.optional(3)?);
    let (dims, keys) = (n.b().sizes(q).to_vec(), n.b().sizes(k).to_vec());
    let ([batch, heads, q_len, head_dim], [_, _, kv_len, _]) = (&dims[..], &keys[..]) else {
        return Err(n.invalid(format!("attention of {dims:?} to {keys:?}")));
    };
    let element = n.b().element(q);
    let made = Attention {
        batch: *batch,
        scale: n.optional_float(4)?.map(Into::into),
        mask: if mask.is_some() { Mask::Full } else { Mask::None },
        ..Attention::new(heads.exact(), *q_len, *kv_len, head_dim.exact(), element.storage())
    };
    let same = [*batch, *heads, *kv_len, *head_dim];
    if keys != same || n.b().sizes(v) != same {
        let what = n.b().describe(&[q, k, v]);
        return Err(n.unsupported(format!("attention of {what}; all have as many heads, of the same size")));
    }
    let mut inputs = vec![q, n.b().cast(k, element)?, n.b().cast(v, element)?];
    if let Some(mask) = mask {
        let mask = n.b().cast(mask, element)?;
        inputs.push(n.b().expand_to(mask, &[*batch, *heads, *q_len, *kv_len])?);
    }
    let made = n.b().kernel1(Operation::Attention(made), &inputs, element, &dims)?;
    n.finish(made)
}
