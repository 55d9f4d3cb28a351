//! Quantization and its parameters: `quantized_decomposed` and `torchao`, with scales for a tensor, its rows, an axis or blocks.

use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{
    build::{Choice, Codes},
    graph::{ElementType, TensorId},
};

pub(super) const OPERATORS: Table = &[
    ("quantized_decomposed.quantize_per_tensor.default", quantize_tensor),
    ("quantized_decomposed.quantize_per_tensor.tensor", |n| quantize(n, One, false)),
    ("quantized_decomposed.quantize_per_tensor.Tensor", |n| quantize(n, One, false)),
    ("quantized_decomposed.quantize_per_tensor.tensor2", |n| quantize(n, One, false)),
    ("quantized_decomposed.quantize_per_channel.default", |n| quantize(n, Axis, false)),
    ("quantized_decomposed.quantize_per_token.default", |n| quantize(n, Row, true)),
    ("quantized_decomposed.quantize_per_channel_group.default", |n| quantize(n, Group, true)),
    ("quantized_decomposed.dequantize_per_tensor.default", dequantize_tensor),
    ("quantized_decomposed.dequantize_per_tensor.tensor", |n| dequantize(n, One)),
    ("quantized_decomposed.dequantize_per_tensor.Tensor", |n| dequantize(n, One)),
    ("quantized_decomposed.dequantize_per_tensor.tensor2", |n| dequantize(n, One)),
    ("quantized_decomposed.dequantize_per_channel.default", |n| dequantize(n, Axis)),
    ("quantized_decomposed.dequantize_per_token.default", |n| dequantize(n, Row)),
    ("quantized_decomposed.dequantize_per_channel_group.default", |n| dequantize(n, Group)),
    ("quantized_decomposed.choose_qparams.tensor", |n| choose_tensor(n, Choice::Whole)),
    ("quantized_decomposed.choose_qparams.Tensor", |n| choose_tensor(n, Choice::Whole)),
    ("quantized_decomposed.choose_qparams_symmetric.tensor", |n| choose_tensor(n, Choice::Symmetric)),
    ("quantized_decomposed.choose_qparams_per_token.default", choose_symmetric_rows),
    ("quantized_decomposed.choose_qparams_per_token_asymmetric.default", choose_rows),
    ("quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default", choose_rows),
    ("etvk.choose_qparams_per_row.default", choose_rows),
    ("et_vk.choose_qparams_per_row.default", choose_rows),
    ("torchao.quantize_affine.default", quantize_blocks),
    ("torchao.dequantize_affine.default", dequantize_blocks),
    ("torchao.choose_qparams_affine.default", choose_blocks),
];

/// What scales are for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Each {
    /// The tensor.
    One,
    /// The places of the axis that argument 3 tells.
    Axis,
    /// The rows along the last dimension.
    Row,
    /// As many elements of a row as argument 6 tells.
    Group,
}
use Each::{Axis, Group, One, Row};

impl Each {
    /// Index of the least code among the arguments.
    fn least(self) -> usize {
        if self == Axis { 4 } else { 3 }
    }

    /// Dimensions of scales, in a form that is broadcast to the tensor.
    fn shape(self, n: &mut Node<'_, '_>, x: TensorId) -> Result<Vec<Size>> {
        let dims = n.b().sizes(x).to_vec();
        let mut shape = vec![Size::from(1); dims.len()];
        match self {
            One | Group => return Ok(Vec::new()),
            Axis => {
                let axis = n.axis(3, dims.len())?;
                shape[axis] = dims[axis];
            }
            Row => {
                let lead = dims.len().saturating_sub(1);
                shape[..lead].copy_from_slice(&dims[..lead]);
            }
        }
        Ok(shape)
    }
}

/// The codes of a type between two bounds.
fn codes(element: ElementType, range: (i64, i64), zero_first: bool) -> Codes {
    Codes { range, element, zero_first }
}

/// The bounds of codes in arguments `i` and behind it; tensors of one element may be bounds too.
fn bounds(n: &mut Node<'_, '_>, i: usize) -> Result<(i64, i64)> {
    let mut one = |i: usize| match n.int(i) {
        Ok(value) => Ok(value),
        Err(_) => {
            let tensor = n.tensor(i)?;
            match n.b().need_ints(tensor, "a bound of codes")?[..] {
                [value] => Ok(value),
                _ => Err(n.invalid(format!("argument {i} is no bound of codes"))),
            }
        }
    };
    Ok((one(i)?, one(i + 1)?))
}

/// Arguments: input, scale, zero point, least and largest code, type.
fn quantize_tensor(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scale, zero, element) = (n.tensor(0)?, n.float(1)?, n.int(2)?, n.element()?);
    let range = bounds(n, 3)?;
    let made = n.b().quantize_by_number(x, scale, zero, codes(element, range, false))?;
    n.finish(made)
}

/// Arguments: codes, scale, zero point, least and largest code, types.
fn dequantize_tensor(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scale, zero, element) = (n.tensor(0)?, n.float(1)?, n.int(2)?, n.element()?);
    let scale = n.b().float(halite_ops::DType::F32, scale)?;
    let zero = n.b().float(halite_ops::DType::I32, zero as f64)?;
    let made = n.b().dequantize_affine(x, scale, Some(zero), element)?;
    n.finish(made)
}

/// A tensor in arguments 0 to 2, seen so that its scales and zero points are broadcast to it.
fn parts(n: &mut Node<'_, '_>, each: Each) -> Result<(TensorId, TensorId, Option<TensorId>)> {
    let (x, scale, zero) = (n.tensor(0)?, n.tensor(1)?, n.optional(2)?);
    let (x, shape) = if each == Group {
        let rank = n.b().rank(x);
        let mut blocks = vec![1; rank];
        if let Some(last) = blocks.last_mut() {
            *last = n.int(6)?;
        }
        // One scale for more than there is.
        let width = n.b().sizes(x).last().copied().unwrap_or(1.into());
        if let Some(last) = blocks.last_mut().filter(|size| width < **size) {
            *last = -1;
        }
        n.b().in_blocks(x, &blocks)?
    } else {
        let shape = each.shape(n, x)?;
        (x, shape)
    };
    let scale = n.b().reshape_to(scale, &shape)?;
    let zero = zero.map(|zero| n.b().reshape_to(zero, &shape)).transpose()?;
    Ok((x, scale, zero))
}

fn quantize(n: &mut Node<'_, '_>, each: Each, zero_first: bool) -> Result<()> {
    let whole = n.tensor(0)?;
    let dims = n.b().sizes(whole).to_vec();
    let (x, scale, zero) = parts(n, each)?;
    let (range, element) = (bounds(n, each.least())?, n.element()?);
    let made = n.b().quantize_affine(x, scale, zero, codes(element, range, zero_first))?;
    let made = n.b().reshape_to(made, &dims)?;
    n.finish(made)
}

fn dequantize(n: &mut Node<'_, '_>, each: Each) -> Result<()> {
    let whole = n.tensor(0)?;
    let dims = n.b().sizes(whole).to_vec();
    let ((x, scale, zero), element) = (parts(n, each)?, n.element()?);
    let made = n.b().dequantize_affine(x, scale, zero, element)?;
    let made = n.b().reshape_to(made, &dims)?;
    n.b().remember_codes(made, whole, scale, zero);
    n.finish(made)
}

/// Arguments: input, least and largest code, smallest scale, type.
fn choose_tensor(n: &mut Node<'_, '_>, choice: fn(f64) -> Choice) -> Result<()> {
    let x = n.tensor(0)?;
    let (range, smallest) = (bounds(n, 1)?, n.float(3)?);
    let axes: Vec<usize> = (0..n.b().rank(x)).collect();
    let codes = codes(halite_ops::DType::I32.into(), range, false);
    let [scale, zero] = n.b().choose_affine(x, &axes, choice(smallest), codes)?;
    finish(n, [scale, zero])
}

/// Arguments: input, type. Rows along the last dimension have scales of their own.
fn choose_rows(n: &mut Node<'_, '_>) -> Result<()> {
    let range = if n.count() > 2 { bounds(n, 1)? } else { (-128, 127) };
    of_rows(n, Choice::Nearer(f64::from(f32::EPSILON)), range)
}

/// The same with zero in the middle.
fn choose_symmetric_rows(n: &mut Node<'_, '_>) -> Result<()> {
    of_rows(n, Choice::SymmetricUnclipped(1e-5 / 127.0), (-127, 127))
}

fn of_rows(n: &mut Node<'_, '_>, choice: Choice, range: (i64, i64)) -> Result<()> {
    let x = n.tensor(0)?;
    let Some(last) = n.b().rank(x).checked_sub(1) else {
        return Err(n.invalid("a number has no rows"));
    };
    let made = n.b().choose_affine(x, &[last], choice, codes(halite_ops::DType::I32.into(), range, false))?;
    finish(n, made)
}

/// Scales and zero points under the dimensions that the file says.
fn finish(n: &mut Node<'_, '_>, made: [TensorId; 2]) -> Result<()> {
    let mut all = Vec::new();
    for (k, id) in made.into_iter().enumerate() {
        let rank = n.item_rank(k)?;
        let dims = n.b().sizes(id).to_vec();
        let shape = match rank {
            rank if rank == dims.len() => dims,
            rank if rank + 1 == dims.len() && dims[rank] == 1 => dims[..rank].to_vec(),
            // Dimensions of one element are left out of results, or stay.
            rank => {
                let wide: Vec<Size> = dims.iter().copied().filter(|size| *size != 1).collect();
                [vec![1.into(); rank.saturating_sub(wide.len())], wide].concat()
            }
        };
        all.push(Some(n.b().reshape_to(id, &shape)?));
    }
    n.finish_list(&all)
}

/// Arguments of `torchao`: input, sizes of blocks, scale, zero point, type, least and largest code. Bounds that are none are
/// those of the type.
fn block_parts(n: &mut Node<'_, '_>) -> Result<(TensorId, TensorId, Option<TensorId>)> {
    let (x, blocks, scale, zero) = (n.tensor(0)?, n.ints(1)?, n.tensor(2)?, n.optional(3)?);
    let (x, shape) = n.b().in_blocks(x, &blocks)?;
    let scale = n.b().reshape_to(scale, &shape)?;
    // No zero points are none, or as many as none.
    let zero = zero.filter(|zero| n.b().tensor(*zero).count() > 0);
    let zero = zero.map(|zero| n.b().reshape_to(zero, &shape)).transpose()?;
    Ok((x, scale, zero))
}

/// Bounds in arguments `i` and behind it, or those of a type.
fn bounds_or(n: &mut Node<'_, '_>, i: usize, element: ElementType) -> Result<(i64, i64)> {
    if i + 1 < n.count() && !n.is_none(i)? {
        return bounds(n, i);
    }
    match element.storage().name() {
        "i8" => Ok((-128, 127)),
        "u8" => Ok((0, 255)),
        "i16" => Ok((-32_768, 32_767)),
        "i32" => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
        other => Err(n.unsupported(format!("codes of the type {other}; there is i8, u8, i16 and i32"))),
    }
}

fn quantize_blocks(n: &mut Node<'_, '_>) -> Result<()> {
    let whole = n.tensor(0)?;
    let (dims, element) = (n.b().sizes(whole).to_vec(), n.element()?);
    let ((x, scale, zero), range) = (block_parts(n)?, bounds_or(n, 5, element)?);
    let made = n.b().quantize_affine(x, scale, zero, codes(element, range, false))?;
    let made = n.b().reshape_to(made, &dims)?;
    n.finish(made)
}

fn dequantize_blocks(n: &mut Node<'_, '_>) -> Result<()> {
    let whole = n.tensor(0)?;
    let (dims, element) = (n.b().sizes(whole).to_vec(), n.element()?);
    let (x, scale, zero) = block_parts(n)?;
    let made = n.b().dequantize_affine(x, scale, zero, element)?;
    let made = n.b().reshape_to(made, &dims)?;
    n.b().remember_codes(made, whole, scale, zero);
    n.finish(made)
}

/// Arguments: input, how ranges become scales, sizes of blocks, type, least and largest code, smallest scale, types, whether
/// dimensions stay.
fn choose_blocks(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, blocks) = (n.tensor(0)?, n.ints(2)?);
    let range = bounds_or(n, 4, halite_ops::DType::I8.into())?;
    let smallest = if n.count() > 6 { n.optional_float(6)? } else { None };
    let smallest = smallest.unwrap_or(f64::from(f32::MIN_POSITIVE));
    let choice = match n.text(1)? {
        "ASYMMETRIC" | "" => Choice::Whole(smallest),
        "SYMMETRIC" => Choice::Symmetric(smallest),
        "SYMMETRIC_NO_CLIPPING_ERR" => Choice::SymmetricUnclipped(smallest),
        other => {
            return Err(n.invalid(format!(
                "the mapping {other:?}; there are \"ASYMMETRIC\", \"SYMMETRIC\" and \"SYMMETRIC_NO_CLIPPING_ERR\""
            )));
        }
    };
    let (apart, each) = n.b().in_blocks(x, &blocks)?;
    let wide = n.b().sizes(apart).to_vec();
    let axes: Vec<usize> = (0..wide.len()).filter(|d| !wide[*d].is(each[*d])).collect();
    let codes = codes(halite_ops::DType::I32.into(), range, false);
    let made = n.b().choose_affine(apart, &axes, choice, codes)?;
    finish(n, made)
}
