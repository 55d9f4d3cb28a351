//! Products with quantized weights, whose layouts are those that the exporter packs
//! (`backends/vulkan/patterns/weight_packing_utils.py`).

use halite_ops::{DType, expression::Function as F};

use super::{
    Node, Result, Table,
    quant_bytes::{is_relu, quantized, some_of},
};
use crate::{
    build::{QuantRows, QuantWeights, Quantum, Requantized},
    graph::{TensorId, elements},
};

pub(super) const OPERATORS: Table = &[
    ("aten._weight_int8pack_mm.default", |n| of_bytes(n, None)),
    ("et_vk.linear_q8csw.default", |n| of_bytes(n, Some(3))),
    ("et_vk.linear_qcs4w.default", of_columns),
    ("et_vk.linear_q4gsw.default", of_groups),
    ("et_vk.q4gsw_linear.default", of_groups),
    ("et_vk.linear_dq8ca_q4gsw.default", dynamic),
    ("et_vk.linear_q8ta_q8csw.default", |n| of_codes(n, Codes::Inside)),
    ("et_vk.q8ta_linear.default", |n| of_codes(n, Codes::Outside)),
    ("et_vk.q8ta_linear_gemv.default", |n| of_codes(n, Codes::Outside)),
    ("quantized_decomposed.mixed_mm.default", |n| mixed(n, false)),
    ("quantized_decomposed.mixed_linear.default", |n| mixed(n, true)),
];

/// Adds a bias that is argument `i`, if there is one, and finishes.
fn finish(n: &mut Node<'_, '_>, made: TensorId, i: Option<usize>) -> Result<()> {
    let bias = match i.filter(|i| *i < n.count()) {
        Some(i) => n.optional(i)?,
        None => None,
    };
    let made = match bias {
        Some(bias) => {
            let columns = n.b().sizes(made).last().map_or(1, |columns| columns.exact());
            let bias = some_of(n, bias, &[columns])?;
            let element = n.b().element(made);
            let bias = n.b().cast(bias, element)?;
            n.b().binary(F::Add, made, bias)?
        }
        None => made,
    };
    n.finish(made)
}

/// Arguments: input, weights `i8[columns, length]`, a scale for each column, bias.
fn of_bytes(n: &mut Node<'_, '_>, bias: Option<usize>) -> Result<()> {
    let (x, weights, scales) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let columns = n.b().dims(weights).first().copied().unwrap_or(0);
    let scales = some_of(n, scales, &[columns])?;
    let weights = n.b().weights_of_bytes(weights, scales)?;
    let made = n.b().quant_product(x, &weights)?;
    finish(n, made, bias)
}

/// The last dimension of a tensor.
fn width(n: &mut Node<'_, '_>, x: TensorId) -> Result<u64> {
    match n.b().sizes(x).last() {
        Some(width) => Ok(width.exact()),
        None => {
            let what = n.b().describe(&[x]);
            Err(n.invalid(format!("{what} has no rows")))
        }
    }
}

/// Rows of packed nibbles, as many columns as a product needs of rows of `length`: rows are filled up to whole bytes or more.
fn packed(n: &mut Node<'_, '_>, weights: TensorId, length: u64) -> Result<TensorId> {
    let Some(rows) = n.b().dims(weights).first().copied() else {
        return Err(n.invalid("weights are a matrix"));
    };
    some_of(n, weights, &[rows, length.div_ceil(2)])
}

/// Arguments: input, weights `u8[columns, length / 2]` whose upper halves come first, a scale for each column.
fn of_columns(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, weights, scales) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let length = width(n, x)?;
    let weights = packed(n, weights, length)?;
    let packed = n.b().swap_nibbles(weights)?;
    let columns = n.b().dims(packed)[0];
    let scales = some_of(n, scales, &[columns])?;
    let scales = n.b().reshape(scales, &[columns, 1])?;
    let group = length.max(1);
    let made = QuantWeights { packed, bits: 4, length, scales, zeros: None, group };
    let made = n.b().quant_product(x, &made)?;
    finish(n, made, Some(3))
}

/// Weights `u8[columns, length / 2]`, lower halves first, scales `[groups, columns]` and the size of groups, in arguments.
pub(super) fn grouped(
    n: &mut Node<'_, '_>,
    length: u64,
    [weights, scales, group]: [usize; 3],
) -> Result<QuantWeights> {
    let (weights, scales, group) = (n.tensor(weights)?, n.tensor(scales)?, n.size(group)?);
    let packed = packed(n, weights, length)?;
    let columns = n.b().dims(packed)[0];
    let groups = length.div_ceil(group.max(1));
    let scales = some_of(n, scales, &[groups, columns])?;
    let scales = n.b().turned(scales)?;
    Ok(QuantWeights { packed, bits: 4, length, scales, zeros: None, group })
}

/// Arguments: input, weights, scales, size of groups, bias.
fn of_groups(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let length = width(n, x)?;
    let weights = grouped(n, length, [1, 2, 3])?;
    let made = n.b().quant_product(x, &weights)?;
    finish(n, made, Some(4))
}

/// Arguments: input, its scales and zero points of rows, weights, their sums, scales, size of groups, bias. Sums are made of
/// the weights.
fn dynamic(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, scales, zeros) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let length = width(n, x)?;
    let weights = grouped(n, length, [3, 5, 6])?;
    let mut each = n.b().sizes(x).to_vec();
    if let Some(last) = each.last_mut() {
        *last = 1.into();
    }
    let (scales, zeros) = (n.b().reshape_to(scales, &each)?, n.b().reshape_to(zeros, &each)?);
    let codes = crate::build::Codes { range: (-128, 127), element: DType::I8.into(), zero_first: false };
    let codes = n.b().quantize_affine(x, scales, Some(zeros), codes)?;
    let made = n.b().quant_product_of_rows(&QuantRows { codes, scales, zeros: Some(zeros) }, &weights)?;
    finish(n, made, Some(7))
}

/// Where rows become codes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Codes {
    /// Rows are floats, and results too.
    Inside,
    /// Rows and results are codes.
    Outside,
}

/// Arguments: input, its scale and zero point, weights `i8[columns, length]`, their sums and scales, then those of the result
/// where it is codes, bias, activation. Sums are made of the weights.
fn of_codes(n: &mut Node<'_, '_>, given: Codes) -> Result<()> {
    let (x, weights, scales) = (n.tensor(0)?, n.tensor(3)?, n.tensor(5)?);
    let input = Quantum { scale: n.float(1)?, zero: n.int(2)? };
    let columns = n.b().dims(weights).first().copied().unwrap_or(0);
    let length = width(n, x)?;
    let weights = some_of(n, weights, &[columns, length])?;
    let scales = some_of(n, scales, &[columns])?;
    let outside = given == Codes::Outside;
    let output = if outside { Some(Quantum { scale: n.float(6)?, zero: n.int(7)? }) } else { None };
    let bias = n.optional(if outside { 8 } else { 6 })?;
    let bias = bias.map(|bias| some_of(n, bias, &[columns])).transpose()?;
    let relu = outside && is_relu(n, 9)?;
    let x = if outside { x } else { quantized(n, x, input)? };
    let made = n.b().linear_of_codes(x, weights, &Requantized { input, scales, bias, relu, output })?;
    n.finish(made)
}

/// Arguments: input, weights of bytes, scales, zero points: `[length, columns]` with scales for rows, or `transposed` and for
/// groups of them.
fn mixed(n: &mut Node<'_, '_>, transposed: bool) -> Result<()> {
    let (x, weights, scales, zeros) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.optional(3)?);
    let dims = n.b().dims(weights).to_vec();
    let ([rows, width], true) = (&dims[..], elements(&dims) > 0) else {
        return Err(n.invalid(format!("weights are a matrix, not {dims:?}")));
    };
    let groups = n.b().tensor(scales).elements() / rows;
    let block = width.checked_div(groups).unwrap_or(0);
    let (apart, each) = n.b().in_blocks(weights, &[1, block as i64])?;
    let scales = n.b().reshape_to(scales, &each)?;
    let zeros = zeros.map(|zeros| n.b().reshape_to(zeros, &each)).transpose()?;
    let element = n.b().element(x);
    let plain = n.b().dequantize_affine(apart, scales, zeros, element)?;
    let plain = n.b().reshape(plain, &dims)?;
    let made = n.b().product(x, plain, transposed)?;
    n.finish(made)
}
