//! Operators that move elements: joining, borders, shapes, parts, orders, and picking by index.

use halite_formats::tosa::ElementType as Tosa;
use halite_ops::{DType, Values, pad::Border, scatters::Reduction};

use super::{super::Result, call::Call};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

/// CONCAT.
pub(super) fn concat(b: &mut Builder, call: &Call<'_>, axis: i64) -> Result<TensorId> {
    let axis = call.axis(b, axis)?;
    b.concat(call.inputs, axis)
}

/// PAD with the one element of the second input.
pub(super) fn pad(b: &mut Builder, call: &Call<'_>, padding: &[i64]) -> Result<TensorId> {
    let [x, fill] = *call.inputs else { unreachable!("the number of inputs was checked") };
    let sizes = call.sizes(b, padding, "a padding")?;
    let rank = b.dims(x).len();
    if sizes.len() != 2 * rank || b.tensor(fill).elements() != 1 {
        let what = b.describe(&[x, fill]);
        return Err(b.invalid(format!("PAD of {what} by {padding:?}")));
    }
    let borders: Vec<(i64, i64)> = padding.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if let Some(known) = b.known(fill) {
        return b.pad(x, &borders, Border::Constant, known.float(0));
    }
    // What is not known yet is chosen where a border of zeros around ones says so.
    let padded = b.pad(x, &borders, Border::Constant, 0.0)?;
    let one = b.values(DType::U8, &[], &Values::Int(vec![1]))?;
    let dims = b.dims(x).to_vec();
    let ones = b.expand(one, &dims)?;
    let inside = b.pad(ones, &borders, Border::Constant, 0.0)?;
    let inside = b.cast(inside, ElementType::Bool)?;
    let fill = b.reshape(fill, &[])?;
    b.select(inside, padded, fill)
}

/// RESHAPE.
pub(super) fn reshape(b: &mut Builder, call: &Call<'_>, shape: &[i64]) -> Result<TensorId> {
    let dims = call.sizes(b, shape, "a size")?;
    b.reshape(call.inputs[0], &dims)
}

/// REVERSE.
pub(super) fn reverse(b: &mut Builder, call: &Call<'_>, axis: i64) -> Result<TensorId> {
    let axis = call.axis(b, axis)?;
    let mut ranges: Vec<Range> = b.dims(call.inputs[0]).iter().map(|size| Range::all(*size)).collect();
    let count = ranges[axis].count;
    ranges[axis] = Range { start: count.saturating_sub(1), step: -1, count };
    b.slice(call.inputs[0], &ranges)
}

/// SLICE.
pub(super) fn slice(b: &mut Builder, call: &Call<'_>, start: &[i64], size: &[i64]) -> Result<TensorId> {
    let (start, size) = (call.sizes(b, start, "a start")?, call.sizes(b, size, "a size")?);
    let dims = b.dims(call.inputs[0]);
    let fits = |d: usize| start[d].checked_add(size[d]).is_some_and(|end| end <= dims[d]);
    if start.len() != dims.len() || size.len() != dims.len() || !(0..dims.len()).all(fits) {
        let what = b.describe(call.inputs);
        return Err(b.invalid(format!("SLICE of {what} from {start:?}, {size:?} elements")));
    }
    let ranges =
        start.iter().zip(&size).map(|(start, count)| Range { start: *start, step: 1, count: *count });
    b.slice(call.inputs[0], &ranges.collect::<Vec<_>>())
}

/// TILE, an axis after the other.
pub(super) fn tile(b: &mut Builder, call: &Call<'_>, multiples: &[i64]) -> Result<TensorId> {
    let multiples = call.sizes(b, multiples, "a multiple")?;
    let mut x = call.inputs[0];
    if multiples.len() != b.dims(x).len() {
        let what = b.describe(&[x]);
        return Err(b.invalid(format!("TILE of {what} by {multiples:?}")));
    }
    for (axis, multiple) in multiples.iter().enumerate() {
        if *multiple == 1 {
            continue;
        }
        let dims = b.dims(x).to_vec();
        let mut apart = dims.clone();
        apart.insert(axis, 1);
        x = b.reshape(x, &apart)?;
        apart[axis] = *multiple;
        x = b.expand(x, &apart)?;
        let mut whole = dims;
        whole[axis] = whole[axis].saturating_mul(*multiple);
        x = b.reshape(x, &whole)?;
    }
    Ok(x)
}

/// TRANSPOSE.
pub(super) fn transpose(b: &mut Builder, call: &Call<'_>, perms: &[i64]) -> Result<TensorId> {
    let order: Vec<usize> = perms.iter().map(|axis| usize::try_from(*axis).unwrap_or(usize::MAX)).collect();
    b.transpose(call.inputs[0], &order)
}

/// GATHER: of each batch the rows that its indices name. What is out of range, where the specification asks for nothing, is
/// zeros.
pub(super) fn gather(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let ([batch, _, _], [same, count]) = (call.dims(b, 0)?, call.dims(b, 1)?);
    check_indices(b, call, batch == same)?;
    let indices = b.reshape(call.inputs[1], &[same, count, 1])?;
    b.gather_nd(call.inputs[0], indices, 1)
}

/// SCATTER: rows that replace those which indices name. What is out of range is not written.
pub(super) fn scatter(b: &mut Builder, call: &Call<'_>) -> Result<TensorId> {
    let ([batch, _, _], [same, count]) = (call.dims(b, 0)?, call.dims(b, 1)?);
    check_indices(b, call, batch == same)?;
    b.countable(batch)?;
    let rows = b.values(DType::I32, &[batch, 1, 1], &Values::Int((0..batch as i64).collect()))?;
    let rows = b.expand(rows, &[batch, count, 1])?;
    let indices = b.reshape(call.inputs[1], &[batch, count, 1])?;
    let places = b.concat(&[rows, indices], 2)?;
    b.scatter_nd([call.inputs[0], places, call.inputs[2]], Reduction::None)
}

fn check_indices(b: &Builder, call: &Call<'_>, fits: bool) -> Result<()> {
    if call.element(1) == Tosa::I32 && fits {
        return Ok(());
    }
    let what = b.describe(call.inputs);
    Err(b.invalid(format!(
        "{} of {what}; indices are i32, as many rows of them as there are batches",
        call.name()
    )))
}
