//! Caches of keys and values: rows that are put into them where they are, and attention to the rows that count. The first
//! position may be a number that the device computes, so that one recording is for all of them.

use halite_ops::{DType, expression::Function as F, scatters::Reduction};
use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{
    build::{Range, Scores},
    graph::{ElementType, TensorId},
};

pub(super) const OPERATORS: Table = &[
    ("sdpa_with_kv_cache.default", keep_and_attend),
    ("llama.sdpa_with_kv_cache.default", keep_and_attend),
    ("update_cache.default", keep_one),
    ("llama.update_cache.default", keep_one),
    ("llama.update_cache_with_indices.default", keep_by_indices),
    ("llama.custom_sdpa.default", |n| attend(n, [0, 1, 2], 3, 4)),
];

/// Heads before rows and back.
const TURN: [usize; 4] = [0, 2, 1, 3];

/// Arguments: queries, keys, values `[batch, rows, heads, size]`, the caches of both, the first position, how many rows, and how
/// attention is done.
fn keep_and_attend(n: &mut Node<'_, '_>) -> Result<()> {
    keep(n, 1, 3, 5)?;
    keep(n, 2, 4, 5)?;
    attend(n, [0, 3, 4], 5, 7)
}

/// Arguments: rows, the cache, the first position. What is given is nothing but a sign that it is done.
fn keep_one(n: &mut Node<'_, '_>) -> Result<()> {
    keep(n, 0, 1, 2)?;
    done(n, 1)
}

/// Says what the result is: the cache, where somebody could mean it.
fn done(n: &mut Node<'_, '_>, cache: usize) -> Result<()> {
    let cache = n.tensor(cache)?;
    match n.declared() {
        Ok(declared) if n.scope.builder.dims(cache) == declared.dims => n.finish(cache),
        _ => Ok(()),
    }
}

/// Puts rows `[batch, rows, ..]` into a cache `[batch, capacity, ..]` from a position on.
fn keep(n: &mut Node<'_, '_>, rows: usize, cache: usize, start: usize) -> Result<()> {
    let (rows, held) = (n.tensor(rows)?, n.tensor(cache)?);
    let element = n.b().element(held);
    let rows = n.b().cast(rows, element)?;
    let start = n.number_tensor(start)?;
    let floats = matches!(element, ElementType::Of(dtype) if dtype.is_small_float());
    let made = if floats && n.b().rank(held) == 4 {
        let batch = n.b().dims(held)[0];
        let start = n.b().reshape(start, &[1])?;
        let starts = n.b().expand(start, &[batch])?;
        let (rows, held) = (n.b().transpose(rows, &TURN)?, n.b().transpose(held, &TURN)?);
        let made = n.b().append(rows, held, starts)?;
        n.b().transpose(made, &TURN)?
    } else {
        let count = n.b().dims(rows).get(1).copied().unwrap_or(0);
        let along = n.b().count_from(0, count)?;
        let places = n.b().binary(F::Add, along, start)?;
        put_rows(n, held, rows, places)?
    };
    n.change(cache, made)
}

/// Rows of the second dimension by their places.
fn put_rows(n: &mut Node<'_, '_>, held: TensorId, rows: TensorId, places: TensorId) -> Result<TensorId> {
    let (dims, own) = (n.b().dims(held).to_vec(), n.b().dims(rows).to_vec());
    let fits = dims.len() >= 2 && own.len() == dims.len() && own[0] == dims[0] && own[2..] == dims[2..];
    if !fits || n.b().tensor(places).elements() != own[1] {
        let what = n.b().describe(&[rows, held]);
        return Err(n.invalid(format!("rows do not go into a cache: {what}")));
    }
    let shape = [own[0], own[1], 1];
    let outer = n.b().count_from(0, own[0])?;
    let outer = n.b().reshape(outer, &[own[0], 1, 1])?;
    let outer = n.b().expand(outer, &shape)?;
    let places = n.b().cast(places, DType::I64)?;
    let places = n.b().reshape(places, &[1, own[1], 1])?;
    let places = n.b().expand(places, &shape)?;
    let indices = n.b().concat(&[outer, places], 2)?;
    n.b().scatter_nd([held, indices, rows], Reduction::None)
}

/// Arguments: rows, the cache, the first position, which counts for nothing here, the place of each row `[batch, rows]`.
fn keep_by_indices(n: &mut Node<'_, '_>) -> Result<()> {
    let (rows, held, places) = (n.tensor(0)?, n.tensor(1)?, n.tensor(3)?);
    let element = n.b().element(held);
    let rows = n.b().cast(rows, element)?;
    let [batch, count] = n.b().dims(places).to_vec()[..] else {
        return Err(n.invalid("the places of rows have two dimensions"));
    };
    if batch != 1 {
        return Err(n.unsupported(format!("rows of {batch} sequences that are put by index; there is one")));
    }
    let places = n.b().reshape(places, &[count])?;
    let made = put_rows(n, held, rows, places)?;
    n.change(1, made)?;
    done(n, 1)
}

/// Attention of queries to a cache of which the rows up to the queries count. Arguments from `rest` on: mask, dropout, whether
/// queries see no later rows, scale.
fn attend(n: &mut Node<'_, '_>, [q, k, v]: [usize; 3], start: usize, rest: usize) -> Result<()> {
    let mut parts = Vec::new();
    for i in [q, k, v] {
        let x = n.tensor(i)?;
        if n.b().rank(x) != 4 {
            let what = n.b().describe(&[x]);
            return Err(n.invalid(format!("attention of {what}, which has no four dimensions")));
        }
        parts.push(n.b().transpose(x, &TURN)?);
    }
    let (queries, batch) = (n.b().sizes(parts[0])[2], n.b().dims(parts[0])[0]);
    let start = n.number_tensor(start)?;
    let count = n.b().computed(DType::I64, &[], vec![queries])?;
    let length = n.b().binary(F::Add, start, count)?;
    let length = n.b().reshape(length, &[1])?;
    let lengths = Some(n.b().expand(length, &[batch])?);
    let (mask, causal) = (n.optional(rest)?, n.flag(rest + 2)?);
    let mask = mask.map(|mask| added(n, mask, parts[1])).transpose()?;
    let scores = Scores { scale: n.optional_float(rest + 3)?, causal, lengths, ..Scores::default() };
    let made = n.b().attention([parts[0], parts[1], parts[2]], mask, scores)?;
    let made = n.b().transpose(made, &TURN)?;
    n.finish(made)
}

/// What a mask adds to scores for all rows of the keys, of which it may tell fewer: the others lie behind those that count.
fn added(n: &mut Node<'_, '_>, mask: TensorId, keys: TensorId) -> Result<TensorId> {
    let mask = if n.b().element(mask) == ElementType::Bool {
        let (zero, least) = (n.b().float(DType::F32, 0.0)?, n.b().float(DType::F32, f64::NEG_INFINITY)?);
        n.b().select(mask, zero, least)?
    } else {
        mask
    };
    let (sizes, rows) = (n.b().sizes(mask).to_vec(), n.b().sizes(keys)[2]);
    let Some((own, lead)) = sizes.split_last() else { return Ok(mask) };
    if *own == rows {
        return Ok(mask);
    }
    if *own > rows {
        let mut ranges: Vec<Range<Size>> = lead.iter().map(|size| Range::all(*size)).collect();
        ranges.push(Range { start: 0.into(), step: 1, count: rows });
        return n.b().slice(mask, &ranges);
    }
    let mut borders = vec![(0, 0); lead.len()];
    borders.push((0, (rows - *own).exact_signed()));
    n.b().pad(mask, &borders, halite_ops::pad::Border::Constant, f64::NEG_INFINITY)
}
