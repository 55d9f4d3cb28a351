//! Convolutions with 8-bit weights, whose layouts are those that the exporter packs (`backends/vulkan/patterns/quantized_convolution.py`).

use halite_ops::DType;

use super::{
    Node, Result, Table,
    conv::{each, sliding},
    quant_bytes::{is_relu, quantized, some_of},
};
use crate::{
    build::{Quantum, Requantized},
    graph::{TensorId, elements},
};

pub(super) const OPERATORS: Table = &[
    ("et_vk.q8ta_conv2d.default", |n| of_codes(n, Layout::Rows)),
    ("et_vk.q8ta_conv2d_general.default", |n| of_codes(n, Layout::Rows)),
    ("et_vk.q8ta_conv2d_im2col.default", |n| of_codes(n, Layout::Rows)),
    ("et_vk.q8ta_conv2d_pw.default", |n| of_codes(n, Layout::Rows)),
    ("et_vk.q8ta_conv2d_dw.default", |n| of_codes(n, Layout::Depthwise)),
    ("et_vk.conv2d_q8ta_q8csw_q8to.default", |n| of_codes(n, Layout::Rows)),
    ("et_vk.conv2d_q8ta_q8csw_dw_q8to.default", |n| of_codes(n, Layout::Depthwise)),
    ("et_vk.conv2d_q8ta_q8csw_q8to_dw.default", |n| of_codes(n, Layout::Depthwise)),
    ("et_vk.q8ta_conv2d_transposed.default", transposed),
    ("et_vk.conv2d_q8ta_q8csw.default", codes_inside),
    ("et_vk.conv2d_q8csw.default", weights_only),
];

/// How weights lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `[filters, rows * columns * channels of a group]`, filled up to whole words.
    Rows,
    /// `[rows, columns, filters]`.
    Depthwise,
}

/// Filters x channels of a group x rows x columns, of weights that are an argument.
fn filters(
    n: &mut Node<'_, '_>,
    weights: usize,
    layout: Layout,
    channels: u64,
    kernel: &[u64],
) -> Result<TensorId> {
    let weights = n.tensor(weights)?;
    let dims = n.b().dims(weights).to_vec();
    let &[rows, columns] = kernel else {
        return Err(n.invalid(format!("a kernel of {kernel:?}; it has rows and columns")));
    };
    match (layout, &dims[..]) {
        (Layout::Depthwise, &[_, _, filters]) => {
            let weights = some_of(n, weights, &[rows, columns, filters])?;
            let turned = n.b().transpose(weights, &[2, 0, 1])?;
            n.b().reshape(turned, &[filters, 1, rows, columns])
        }
        (Layout::Rows, &[filters, ..]) if dims.len() == 2 => {
            let weights = some_of(n, weights, &[filters, elements(&[rows, columns, channels])])?;
            let apart = n.b().reshape(weights, &[filters, rows, columns, channels])?;
            n.b().transpose(apart, &[0, 3, 1, 2])
        }
        _ => Err(n.invalid(format!("{dims:?} are no weights of a convolution"))),
    }
}

/// Channels of a group of images.
fn channels(n: &mut Node<'_, '_>, x: TensorId, groups: u64) -> Result<u64> {
    let dims = n.b().dims(x).to_vec();
    match (&dims[..], groups) {
        ([_, channels, _, _], 1..) if channels.is_multiple_of(groups) => Ok(channels / groups),
        _ => Err(n.invalid(format!("{groups} groups of images {dims:?}"))),
    }
}

/// A value for each filter in argument `i`, if there is one.
fn of_filters(n: &mut Node<'_, '_>, i: usize, filter: TensorId) -> Result<Option<TensorId>> {
    let count = n.b().dims(filter)[0];
    let given = n.optional(i)?;
    given.map(|given| some_of(n, given, &[count])).transpose()
}

/// What becomes of sums, by arguments: the scale of weights, that of the result and its zero point, bias.
fn requantized(
    n: &mut Node<'_, '_>,
    filter: TensorId,
    [scales, bias]: [usize; 2],
    output: Option<usize>,
) -> Result<Requantized> {
    let input = Quantum { scale: n.float(1)?, zero: n.int(2)? };
    let Some(scales) = of_filters(n, scales, filter)? else {
        return Err(n.invalid("weights without scales"));
    };
    let bias = of_filters(n, bias, filter)?;
    let output = match output {
        Some(at) => Some(Quantum { scale: n.float(at)?, zero: n.int(at + 1)? }),
        None => None,
    };
    Ok(Requantized { input, scales, bias, relu: false, output })
}

/// Arguments: codes, their scale and zero point, weights, their sums and scales, scale and zero point of the result, bias,
/// kernel, stride, padding, dilation, groups, activation. Sums are made of the weights.
fn of_codes(n: &mut Node<'_, '_>, layout: Layout) -> Result<()> {
    let (x, groups) = (n.tensor(0)?, n.size(13)?);
    let channels = channels(n, x, groups)?;
    let kernel = each(n, 9, 2)?;
    let filter = filters(n, 3, layout, channels, &kernel)?;
    let window = sliding(n, 2, [10, 11, 12])?;
    let relu = is_relu(n, 14)?;
    let to = Requantized { relu, ..requantized(n, filter, [5, 8], Some(6))? };
    let made = n.b().conv_of_codes(x, filter, &window, groups, &to)?;
    n.finish(made)
}

/// The same with an output padding behind the padding.
fn transposed(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, groups) = (n.tensor(0)?, n.size(14)?);
    let channels = channels(n, x, groups)?;
    let (kernel, more) = (each(n, 9, 2)?, each(n, 12, 2)?);
    let filter = filters(n, 3, Layout::Rows, channels, &kernel)?;
    let window = sliding(n, 2, [10, 11, 13])?;
    let relu = is_relu(n, 15)?;
    let to = Requantized { relu, ..requantized(n, filter, [5, 8], Some(6))? };
    let made = n.b().conv_transpose_of_codes(x, filter, &window, &more, groups, &to)?;
    n.finish(made)
}

/// Arguments: images, the scale and zero point of their codes, weights, their sums and scales, bias, kernel, stride, padding,
/// dilation, groups. The result is floats.
fn codes_inside(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, groups) = (n.tensor(0)?, n.size(11)?);
    let channels = channels(n, x, groups)?;
    let kernel = each(n, 7, 2)?;
    let filter = filters(n, 3, Layout::Rows, channels, &kernel)?;
    let window = sliding(n, 2, [8, 9, 10])?;
    let to = requantized(n, filter, [5, 6], None)?;
    let x = quantized(n, x, to.input)?;
    let made = n.b().conv_of_codes(x, filter, &window, groups, &to)?;
    n.finish(made)
}

/// Arguments: images, weights, their scales, bias, kernel, stride, padding, dilation, groups.
fn weights_only(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, groups) = (n.tensor(0)?, n.size(8)?);
    let channels = channels(n, x, groups)?;
    let kernel = each(n, 4, 2)?;
    let filter = filters(n, 1, Layout::Rows, channels, &kernel)?;
    let window = sliding(n, 2, [5, 6, 7])?;
    let count = n.b().dims(filter)[0];
    let Some(scales) = of_filters(n, 2, filter)? else { return Err(n.invalid("weights without scales")) };
    let scales = n.b().reshape(scales, &[count, 1, 1, 1])?;
    let element = n.b().element(x);
    let filter = n.b().dequantize_affine(filter, scales, None, DType::F32.into())?;
    let bias = of_filters(n, 3, filter)?;
    let filter = n.b().cast(filter, element)?;
    let made = n.b().conv(x, filter, bias, &window, groups)?;
    n.finish(made)
}
