//! Convolutions of images whose channels lie last, as products of places by filters on matrix units: what a tap reads of a place is a
//! run of whole words. Groups are products of their own, over runs of the same places.

use halite_ops::{conv2d::Conv2d, convolution::Convolution, matmul::MatMul, window::Layout};
use halite_sizes::Size;

use crate::{
    Plan, Unfit,
    plan::{fixed, narrow},
    plans::{
        convolution::{self, KernelInputs},
        matmul,
    },
};

/// Channels and filters of a word of 16 bytes.
const WORD: u64 = 8;
/// Bits that each invocation keeps for each of its places.
const MOST_TAPS: u64 = 32;

/// The plan of `coop.comp` over an image, with bindings as other convolutions have them.
pub(in crate::plans) fn image(
    op: &Conv2d,
    shape: &Convolution,
    kernel: KernelInputs<'_>,
) -> Result<Plan, Unfit> {
    let KernelInputs { build, params, added, bindings, .. } = kernel;
    fits(shape)?;
    if shape.groups > 1 && params.get("parts")? > 1 {
        return Err(Unfit("cuts the sums of one group".into()));
    }
    // Tells of sizes that kernels cannot count.
    convolution::push(shape)?;
    let w = &shape.window;
    let [rows, columns] = w.output();
    let product = product(op, shape);
    let [data, weights, bias, result, residual] = bindings[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    let constant = |value| fixed("the kernel", value);
    let taps = w.kernel[0] * w.kernel[1];
    let mut constants = vec![
        constant(w.kernel[1])?,
        constant(taps)?,
        constant(shape.channels / WORD)?,
        (w.pads == [0; 4]).into(),
    ];
    // Filters in fragments lie group by group.
    constants.extend(params.get("ring"));
    let rhs_stride = if op.filter_fragments { shape.filters * shape.depth() } else { shape.filters };
    let number = |value: u64| Size::from(value);
    let window =
        [w.dilations[0], w.dilations[1], w.pads[0], w.pads[1], w.strides[0], w.strides[1]].map(number);
    let all = shape.groups * shape.filters;
    let push = [w.input[1], w.input[0]].into_iter().chain(window).chain([rows, columns]);
    let push = push.chain([
        number(op.read.map_or(shape.groups * shape.channels, |runs| runs.pitch) / WORD),
        number(all),
    ]);
    let sides = matmul::Sides {
        lhs_stride: shape.channels.into(),
        rhs: (rhs_stride.into(), 16),
        reads: reads(op, shape),
        across: shape.groups.into(),
        added,
        bindings: vec![data, weights, result, bias, residual],
        more: (constants, push.map(|size| narrow("a size", size)).collect::<Result<_, _>>()?),
    };
    matmul::coop_of(&product, build, params, sides)
}

/// Places by filters, for each group.
fn product(op: &Conv2d, shape: &Convolution) -> MatMul {
    let [rows, columns] = shape.window.output();
    let [filters, depth] = [shape.filters, shape.depth()].map(Size::from);
    MatMul {
        batch: shape.groups.into(),
        bias: op.bias,
        residual: op.residual,
        residual_behind: op.residual_behind,
        activation: op.activation,
        written: op.written,
        ..MatMul::new(shape.images * rows * columns, filters, depth, op.dtype, op.dtype)
    }
}

/// Where images begin that are runs of a larger tensor.
fn reads(op: &Conv2d, shape: &Convolution) -> Option<matmul::runs::Reads> {
    let [lhs_row, rhs_first] = [shape.channels, 0].map(Size::from);
    op.read.map(|runs| matmul::runs::Reads { lhs_first: runs.offset.into(), rhs_first, lhs_row })
}

/// Whether each tap of a place is whole words.
fn fits(shape: &Convolution) -> Result<(), Unfit> {
    if shape.layout != Layout::Nhwc {
        return Err(Unfit("wants channels last".into()));
    }
    if !shape.channels.is_multiple_of(WORD) || !shape.filters.is_multiple_of(WORD) {
        return Err(Unfit(format!(
            "wants channels and filters of a group in eights, there are {} and {}",
            shape.channels, shape.filters
        )));
    }
    let taps = shape.window.kernel[0].saturating_mul(shape.window.kernel[1]);
    if taps > MOST_TAPS {
        return Err(Unfit(format!("keeps a bit for each of up to {MOST_TAPS} taps, there are {taps}")));
    }
    Ok(())
}
