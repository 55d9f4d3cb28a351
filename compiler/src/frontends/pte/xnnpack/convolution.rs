//! Convolutions of images: of 8-bit integers in integers where the result is quantized, else of floats.

use halite_formats::pte::{XnnConvolution, XnnNode, XnnQuantization as Quantization};
use halite_ops::{
    DType,
    expression::{Function as F, Operand, Scalar},
};

use super::{
    Held, Result, Values,
    linear::factors,
    numbers::{element_of, integer_of, range},
    pool,
};
use crate::{
    build::{Builder, Sliding},
    graph::{ElementType, TensorId},
};

/// Where filters, rows, columns and channels of a group have to be found in weights, for filters x channels x rows x columns.
struct Weights {
    /// Which dimension each one is.
    order: [usize; 4],
    /// The dimension that has the filters.
    filters: usize,
}

const PLAIN: Weights = Weights { order: [0, 3, 1, 2], filters: 0 };
const DEPTHWISE: Weights = Weights { order: [3, 0, 1, 2], filters: 3 };

pub(super) fn plain(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnConvolution) -> Result<()> {
    straight(v, node, numbers, &PLAIN)
}

pub(super) fn depthwise(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnConvolution) -> Result<()> {
    straight(v, node, numbers, &DEPTHWISE)
}

fn straight(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnConvolution, weights: &Weights) -> Result<()> {
    if let Some(whole) = Whole::of(v, node, weights)? {
        return whole.convolve(v, node, numbers, weights);
    }
    let (x, filter, bias) = operands(v, node)?;
    let filter = turned(&mut v.builder, &filter, &weights.order)?;
    let window = window(v, x, node.flags, numbers)?;
    let made = v.builder.conv(x, filter, bias, &window, u64::from(numbers.groups))?;
    v.finish(node, Held::of_channels_first(made))
}

/// Images with channels first, weights and bias as floats.
fn operands(v: &mut Values<'_>, node: &XnnNode) -> Result<(TensorId, Held, Option<TensorId>)> {
    let (x, filter) = (v.operand(node, 0)?, v.operand(node, 1)?);
    let x = v.floats(x)?.channels_first(&mut v.builder)?;
    let filter = v.floats(filter)?;
    let bias = match v.optional(node, 2) {
        Some(bias) => {
            let bias = v.floats(bias)?;
            Some(bias.in_order(&mut v.builder)?)
        }
        None => None,
    };
    Ok((x, filter, bias))
}

fn turned(b: &mut Builder, filter: &Held, order: &[usize; 4]) -> Result<TensorId> {
    let own = filter.in_order(b)?;
    if b.rank(own) != order.len() {
        return Err(b.invalid(format!("weights of {:?} for images", b.dims(own))));
    }
    b.transpose(own, order)
}

fn window(v: &Values<'_>, x: TensorId, flags: u32, numbers: &XnnConvolution) -> Result<Sliding> {
    pool::sliding(v, x, flags, numbers.pads, [numbers.kernel, numbers.strides, numbers.dilations])
}

pub(super) fn transposed(v: &mut Values<'_>, node: &XnnNode, numbers: &XnnConvolution) -> Result<()> {
    let (x, filter, bias) = operands(v, node)?;
    let filter = filter.in_order(&mut v.builder)?;
    let groups = u64::from(numbers.groups);
    let dims = v.builder.dims(filter).to_vec();
    let [filters, rows, columns, channels] = dims[..] else {
        return Err(v.builder.invalid(format!("weights of {dims:?} for images")));
    };
    if groups == 0 || !filters.is_multiple_of(groups) {
        return Err(v.builder.invalid(format!("{filters} filters do not make {groups} groups")));
    }
    // Group, filter, row, column, channel to group, channel, filter, row, column.
    let each = filters / groups;
    let apart = v.builder.reshape(filter, &[groups, each, rows, columns, channels])?;
    let apart = v.builder.transpose(apart, &[0, 4, 1, 2, 3])?;
    let filter = v.builder.reshape(apart, &[groups * channels, each, rows, columns])?;
    let window = window(v, x, node.flags, numbers)?;
    let more = numbers.more.map(u64::from);
    let made = v.builder.conv_transpose(x, filter, bias, &window, &more, groups)?;
    v.finish(node, Held::of_channels_first(made))
}

/// A convolution all of whose tensors are integers of one scale, or of one for each filter.
struct Whole {
    input_zero: i32,
    out: DType,
    out_scale: f32,
    out_zero: i32,
    /// What sums are multiplied with, for each filter.
    factor: TensorId,
}

impl Whole {
    fn of(v: &mut Values<'_>, node: &XnnNode, weights: &Weights) -> Result<Option<Whole>> {
        let (x, filter, to) = (v.operand(node, 0)?, v.operand(node, 1)?, v.result(node)?);
        let (
            Quantization::Tensor { scale: input_scale, zero: input_zero },
            Quantization::Tensor { scale: out_scale, zero: out_zero },
        ) = (&v.about(x).quantization, &v.about(to).quantization)
        else {
            return Ok(None);
        };
        let [input, own, out] = [x, filter, to].map(|id| element_of(v.about(id).datatype));
        let bytes = |element| matches!(element, ElementType::Of(DType::I8 | DType::U8));
        let bias = v.optional(node, 2).map(|id| element_of(v.about(id).datatype));
        let sums = bias.is_none_or(|element| element == ElementType::Of(DType::I32));
        if !bytes(input) || own != ElementType::Of(DType::I8) || !bytes(out) || !sums {
            return Ok(None);
        }
        let factor = factors(v, filter, weights.filters, *input_scale / *out_scale)?;
        Ok(factor.map(|factor| Whole {
            input_zero: *input_zero,
            out: out.storage(),
            out_scale: *out_scale,
            out_zero: *out_zero,
            factor,
        }))
    }

    fn convolve(
        &self,
        v: &mut Values<'_>,
        node: &XnnNode,
        numbers: &XnnConvolution,
        weights: &Weights,
    ) -> Result<()> {
        let (x, filter) = (v.operand(node, 0)?, v.operand(node, 1)?);
        let x = v.value(x)?.channels_first(&mut v.builder)?;
        let filter = v.value(filter)?;
        let filter = turned(&mut v.builder, &filter, &weights.order)?;
        let bias = match v.optional(node, 2) {
            Some(bias) => Some(v.value(bias)?.tensor),
            None => None,
        };
        let window = window(v, x, node.flags, numbers)?;
        let groups = u64::from(numbers.groups);
        let to = (self.out, self.out_zero);
        let made =
            v.builder.conv_to_bytes([x, filter, self.factor], bias, self.input_zero, to, &window, groups)?;
        let made = self.limited(v, made, node.limits)?;
        v.finish_held(node, Held::of_channels_first(made))
    }

    /// Integers within limits of the numbers that they stand for.
    fn limited(&self, v: &mut Values<'_>, made: TensorId, limits: Option<[f32; 2]>) -> Result<TensorId> {
        let Some(limits) = limits else { return Ok(made) };
        let [least, most] = limits.map(|limit| integer_of(limit, self.out_scale, self.out_zero, self.out));
        if (least, most) == range(self.out) {
            return Ok(made);
        }
        let bound = |value: i32| Operand::Constant(Scalar::Int(i64::from(value), self.out));
        v.builder.map(&[made], self.out, |p, x| p.call(F::Clip, &[x[0], bound(least), bound(most)]))
    }
}
