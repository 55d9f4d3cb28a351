//! What moves elements: other orders and sizes, parts, borders, joining.

use halite_formats::pte::{XnnNode, XnnQuantization};
use halite_ops::pad::Border;
use halite_sizes::Size;

use super::{
    Held, Result, Values,
    numbers::{element_of, integer_of},
};
use crate::build::Range;

/// The operand of a node: as it is held when its result stands for the same numbers, else as floats; and which.
fn moved(v: &mut Values<'_>, node: &XnnNode) -> Result<(Held, bool)> {
    let (x, to) = (v.operand(node, 0)?, v.result(node)?);
    if v.same(x, to) { Ok((v.value(x)?, true)) } else { Ok((v.floats(x)?, false)) }
}

fn finish(v: &mut Values<'_>, node: &XnnNode, made: Held, held: bool) -> Result<()> {
    if held { v.finish_held(node, made) } else { v.finish(node, made) }
}

/// Sizes in a node, of which there has to be one for each dimension.
fn each(v: &Values<'_>, x: &Held, list: &[u32], what: &str) -> Result<Vec<u64>> {
    if list.len() == x.order.len() {
        return Ok(list.iter().map(|size| u64::from(*size)).collect());
    }
    Err(v.builder.invalid(format!("{} {what} for {} dimensions", list.len(), x.order.len())))
}

pub(super) fn transpose(v: &mut Values<'_>, node: &XnnNode, order: &[u32]) -> Result<()> {
    let (x, held) = moved(v, node)?;
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.order.len() as u32) {
        return Err(v.builder.invalid(format!("{order:?} is no order of {} dimensions", x.order.len())));
    }
    let order: Vec<usize> = order.iter().map(|d| x.order[*d as usize]).collect();
    let made = Held::ordered(x.tensor, &order);
    finish(v, node, made, held)
}

pub(super) fn reshape(v: &mut Values<'_>, node: &XnnNode, dims: &[u32]) -> Result<()> {
    let (x, held) = moved(v, node)?;
    let tensor = x.in_order(&mut v.builder)?;
    let count = v.builder.tensor(tensor).count();
    let mut dims: Vec<Size> = dims.iter().map(|size| Size::from(u64::from(*size))).collect();
    let open: Vec<usize> = (0..dims.len()).filter(|i| dims[*i] == 0).collect();
    if let ([open], true) = (&open[..], count > 0) {
        let known: Size = dims.iter().filter(|size| **size != 0).product();
        dims[*open] = count / known;
    }
    let made = v.builder.reshape_to(tensor, &dims)?;
    let made = Held::plain(&v.builder, made);
    finish(v, node, made, held)
}

pub(super) fn slice(v: &mut Values<'_>, node: &XnnNode, starts: &[u32], sizes: &[u32]) -> Result<()> {
    let (x, held) = moved(v, node)?;
    let (starts, sizes) = (each(v, &x, starts, "offsets")?, each(v, &x, sizes, "sizes")?);
    let dims = x.sizes(&v.builder);
    let mut ranges: Vec<Range<Size>> = vec![Range::all(0.into()); dims.len()];
    for (i, place) in x.order.iter().enumerate() {
        // A size of 0 reaches to the end.
        let count = if sizes[i] == 0 { (dims[i] - starts[i]).max(0) } else { sizes[i].into() };
        ranges[*place] = Range { start: starts[i].into(), step: 1, count };
    }
    let made = v.builder.slice(x.tensor, &ranges)?;
    finish(v, node, x.with(made), held)
}

pub(super) fn pad(
    v: &mut Values<'_>,
    node: &XnnNode,
    before: &[u32],
    behind: &[u32],
    value: f32,
) -> Result<()> {
    let (x, held) = moved(v, node)?;
    let (before, behind) = (each(v, &x, before, "paddings")?, each(v, &x, behind, "paddings")?);
    let mut borders = vec![(0, 0); x.order.len()];
    for (i, place) in x.order.iter().enumerate() {
        borders[*place] = (before[i] as i64, behind[i] as i64);
    }
    let about = v.about(v.result(node)?);
    let value = match about.quantization {
        XnnQuantization::Tensor { scale, zero } if held => {
            f64::from(integer_of(value, scale, zero, element_of(about.datatype).storage()))
        }
        _ => f64::from(value),
    };
    let made = v.builder.pad(x.tensor, &borders, Border::Constant, value)?;
    finish(v, node, x.with(made), held)
}

pub(super) fn concatenate(v: &mut Values<'_>, node: &XnnNode, axis: u32) -> Result<()> {
    let ids: Result<Vec<usize>> = (0..node.inputs.len()).map(|i| v.operand(node, i)).collect();
    let (ids, to) = (ids?, v.result(node)?);
    let held = ids.iter().all(|id| v.same(*id, to));
    let mut parts = Vec::new();
    for id in ids {
        let part = if held { v.value(id)? } else { v.floats(id)? };
        let tensor = if held { part.tensor } else { v.builder.as_f32(part.tensor)? };
        parts.push(part.with(tensor));
    }
    let order = parts[0].order.clone();
    let same_rank = parts.iter().all(|part| part.order.len() == order.len());
    let Some(axis) = order.get(axis as usize).copied().filter(|_| same_rank) else {
        return Err(v.builder.invalid(format!("joining along dimension {axis} of {}", order.len())));
    };
    let tensors: Result<Vec<_>> = parts.iter().map(|part| part.laid(&mut v.builder, &order)).collect();
    let made = v.builder.concat(&tensors?, axis)?;
    finish(v, node, Held::ordered(made, &order), held)
}

pub(super) fn copy(v: &mut Values<'_>, node: &XnnNode) -> Result<()> {
    let (x, held) = moved(v, node)?;
    finish(v, node, x, held)
}
