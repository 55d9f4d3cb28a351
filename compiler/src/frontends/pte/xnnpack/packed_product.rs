//! Products with weights of 4 bits as they lie in the file.

use halite_formats::pte::{XnnQuantization as Quantization, XnnType};
use halite_ops::{DType, Operation, quant_matmul::QuantMatMul};
use halite_sizes::Size;

use super::{
    Held, Result, Values,
    layout::Dynamic,
    packed::{blocks, stored},
};
use crate::graph::{ElementType, TensorId};

/// What a product with weights reads.
pub(super) struct Product {
    pub(super) x: usize,
    pub(super) filter: usize,
    pub(super) bias: Option<usize>,
    /// Whether weights are outputs x inputs.
    pub(super) by_outputs: bool,
}

impl Product {
    /// The dimension of the weights that has the outputs.
    pub(super) fn outputs(&self) -> usize {
        usize::from(!self.by_outputs)
    }
}

/// Rows of a tensor and their length.
fn rows(dims: &[Size]) -> Option<(Size, Size)> {
    let (length, lead) = dims.split_last()?;
    Some((lead.iter().product(), *length))
}

/// The product with weights of 4 bits as they lie in the file; none where they are others, or no kernel takes them.
pub(super) fn compute(v: &mut Values<'_>, product: &Product, input: &Held) -> Result<Option<TensorId>> {
    let about = v.about(product.filter);
    let [outputs, inputs] = about.dims[..] else { return Ok(None) };
    let (n, k) = (u64::from(outputs), u64::from(inputs));
    let (scales, group, from) = match &about.quantization {
        Quantization::Channels { scales, axis: 0 } => (scales, k, DType::F32),
        Quantization::Blocks { scales, size } => (scales, *size, stored(scales)),
        _ => return Ok(None),
    };
    let Some(in_row) = blocks(&[n, k], group) else { return Ok(None) };
    let quantized = input.dynamic.is_some();
    let x = input.in_order(&mut v.builder)?;
    let dims = v.builder.sizes(x).to_vec();
    let lhs = match v.builder.element(x) {
        ElementType::Of(DType::I8) if quantized => DType::I8,
        element if element.is_float() => DType::F32,
        _ => return Ok(None),
    };
    let Some((m, length)) = rows(&dims) else { return Ok(None) };
    let by_rows = input.dynamic.is_none_or(|rows| v.builder.tensor(rows.scale).count() == m);
    let made = of_nibbles(m, [n, k], group, lhs);
    let fits = crate::backend::check(&Operation::QuantMatMul(made.clone())).is_ok();
    if about.datatype != XnnType::U4 || !fits || length != k || !by_rows {
        return Ok(None);
    }
    let weights = v.value(product.filter)?.tensor;
    let scale = v.scales_of(scales, n * in_row, from)?;
    let scale = v.builder.reshape(scale, &[n, in_row])?;
    let x = if lhs == DType::I8 { x } else { v.builder.cast(x, lhs)? };
    let x = v.builder.reshape_to(x, &[m, k.into()])?;
    let result = [&dims[..dims.len() - 1], &[n.into()]].concat();
    let made = match input.dynamic {
        Some(rows) => of_rows(v, &made, [x, weights, scale], rows)?,
        None => {
            let inputs = [x, weights, scale];
            v.builder.kernel1(Operation::QuantMatMul(made), &inputs, DType::F32.into(), &[m, n.into()])?
        }
    };
    v.builder.reshape_to(made, &result).map(Some)
}

/// The product of `m` rows by `n` columns of `k` weights, whose scales are for groups. Rows of bytes have zero points.
fn of_nibbles(m: Size, [n, k]: [u64; 2], group: u64, lhs: DType) -> QuantMatMul {
    let (scales, out) = (DType::F32, DType::F32);
    QuantMatMul { group, lhs, scales, out, lhs_zeros: lhs == DType::I8, ..QuantMatMul::new(m, [n, k]) }
}

/// The product of dynamically quantized rows, weights and their scales.
fn of_rows(
    v: &mut Values<'_>,
    product: &QuantMatMul,
    [x, weights, scale]: [TensorId; 3],
    rows: Dynamic,
) -> Result<TensorId> {
    let m = v.builder.sizes(x)[0];
    let each = v.builder.reshape_to(rows.scale, &[m])?;
    // Rows were quantized here or in another delegate, by zero points of bytes.
    let zeros = v.builder.cast(rows.zero, DType::I32)?;
    let zeros = v.builder.reshape_to(zeros, &[m])?;
    let (operation, dims) = (Operation::QuantMatMul(product.clone()), [m, product.n.into()]);
    v.builder.kernel1(operation, &[x, weights, scale, each, zeros], DType::F32.into(), &dims)
}
