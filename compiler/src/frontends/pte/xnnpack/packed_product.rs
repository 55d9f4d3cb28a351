//! Products with weights of 4 bits as they lie in the file.

use halite_formats::pte::{XnnQuantization as Quantization, XnnType};
use halite_ops::{DType, Operation, Values as Numbers, expression::Function as F, quant_matmul::QuantMatMul};
use halite_sizes::Size;

use super::{
    Held, Result, Values, dynamic,
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
    let made =
        QuantMatMul { m, n, k, group, bits: 4, lhs, scales: DType::F32, out: DType::F32, zero_points: false };
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

/// The product of dynamically quantized rows, weights and their scales.
fn of_rows(
    v: &mut Values<'_>,
    product: &QuantMatMul,
    [x, weights, scale]: [TensorId; 3],
    rows: Dynamic,
) -> Result<TensorId> {
    let (m, n, k) = (v.builder.sizes(x)[0], product.n, product.k);
    let each = v.builder.reshape_to(rows.scale, &[m])?;
    let sums = Operation::QuantMatMul(product.clone());
    let sums = v.builder.kernel1(sums, &[x, weights, scale, each], DType::F32.into(), &[m, n.into()])?;
    // Zero points of rows add the same multiple of the sum of the weights to all products with a row.
    let ones = v.builder.values(DType::F32, &[1, k], &Numbers::Float(vec![1.0; k as usize]))?;
    let of_weights = QuantMatMul { m: 1.into(), lhs: DType::F32, ..product.clone() };
    let columns = Operation::QuantMatMul(of_weights);
    let columns = v.builder.kernel1(columns, &[ones, weights, scale], DType::F32.into(), &[1, n])?;
    let offsets = dynamic::offsets(&mut v.builder, rows)?;
    let offsets = v.builder.reshape_to(offsets, &[m, 1.into()])?;
    v.builder.map(&[sums, offsets, columns], DType::F32, |p, x| {
        let moved = p.call(F::Mul, &[x[1], x[2]]);
        p.call(F::Sub, &[x[0], moved])
    })
}
