//! Dispatches of `depthwise_window.comp` and `depthwise_square.comp`: convolutions of groups of one channel with any window, or one
//! of those that the code is written for, and the patch of results of an invocation that fits the image best.

use halite_ops::{
    convolution::Convolution,
    window::{Layout, Window},
};

use super::{KernelInputs, divides, images_32, step};
use halite_sizes::Size;

use crate::{
    Plan, Unfit,
    plan::{fixed, groups},
};

/// Most taps of a window, and most products of an invocation: all are written out in the code.
const MOST: (u64, u64) = (128, 800);

/// A patch of results of one invocation, and its share of the time of all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Patch {
    rows: u64,
    across: u64,
    time: f64,
}

/// An invocation for a patch of one filter over one channel.
pub(in crate::plans) fn depthwise(shape: &Convolution, mut kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (lanes, w) = (kernel.params.get("lanes")?, &shape.window);
    if shape.channels != 1 || shape.layout != Layout::Nchw {
        return Err(Unfit("wants channels first, and one channel in a group".into()));
    }
    let taps = w.kernel[0] * w.kernel[1];
    if taps == 0 || taps > MOST.0 {
        return Err(Unfit(format!("wants windows of 1 to {} taps, not of {taps}", MOST.0)));
    }
    let patch = best(w, lanes).ok_or_else(|| Unfit("wants a smaller window".into()))?;
    let filters = fixed("filters", shape.groups * shape.filters)?;
    kernel.more.extend([filters, 0]);
    let [least, most] = kernel.limits();
    let sizes = [patch.rows, patch.across, w.kernel[0], w.kernel[1]];
    let steps = [w.strides[0], w.strides[1], w.dilations[0], w.dilations[1]];
    let sizes = sizes.iter().chain(&steps).map(|size| fixed("a size", *size));
    let sizes = sizes.collect::<Result<Vec<u32>, Unfit>>()?;
    let [rows, columns] = w.output();
    let patches = rows.div_ceil(patch.rows) * columns.div_ceil(patch.across);
    let quads = divides(columns, 4) && patch.across.is_multiple_of(4);
    let constants = [&[lanes, least, most][..], &sizes, &[quads.into()]].concat();
    let grid = [groups(patches, lanes)?, filters.into(), images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// An invocation for four rows of four neighbours of one filter over one channel, with a window that the code is written for:
/// `depthwise_square.comp`.
pub(in crate::plans) fn depthwise_square(
    shape: &Convolution,
    mut kernel: KernelInputs<'_>,
) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let (lanes, size, stride) = (p("lanes")?, p("kernel")?, p("stride")?);
    let window = (w.kernel, w.strides, w.dilations) == ([size.into(); 2], [stride.into(); 2], [1, 1]);
    if !window || shape.channels != 1 || shape.layout != Layout::Nchw {
        return Err(Unfit(format!(
            "wants channels first, one channel in a group, a kernel of {size}x{size} with strides of {stride} and no dilation"
        )));
    }
    let filters = fixed("filters", shape.groups * shape.filters)?;
    kernel.more.extend([filters, 0]);
    let [least, most] = kernel.limits();
    let [rows, columns] = w.output();
    let quads = divides(columns, 4);
    let grid = [groups(rows.div_ceil(4) * columns.div_ceil(4), lanes)?, filters.into(), images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, vec![lanes, least, most, quads.into()], grid)?))
}

/// The patch whose invocations take the least time, by what an element that is read, a product and a result cost on llvmpipe.
fn best(window: &Window, lanes: u32) -> Option<Patch> {
    // All patches are right: the example's is the best one for that.
    let [height, width] = window.output().map(Size::value);
    let taps = window.kernel[0] * window.kernel[1];
    let patches =
        [1u64, 2, 3, 4, 5, 7].into_iter().flat_map(|rows| [1u64, 2, 4, 7, 8].map(|across| (rows, across)));
    let patches = patches.filter(|(rows, across)| rows * across * taps <= MOST.1 || rows * across == 1);
    let timed = patches.map(|(rows, across)| {
        let reads = met(rows, window, 0) * met(across, window, 1);
        let (products, results) = (rows * across * taps, rows * across);
        let one = reads as f64 * READ + products as f64 * PRODUCT + results as f64 * RESULT + START;
        let count = height.div_ceil(rows) * width.div_ceil(across);
        Patch { rows, across, time: one * count.div_ceil(u64::from(lanes.max(1))) as f64 }
    });
    timed.min_by(|a, b| a.time.total_cmp(&b.time))
}

/// Cycles of a subgroup on llvmpipe.
const READ: f64 = 22.0;
const PRODUCT: f64 = 1.5;
const RESULT: f64 = 22.0;
const START: f64 = 300.0;

/// Rows (axis 0) or columns of the input that `results` neighbours meet.
pub(super) fn met(results: u64, window: &Window, axis: usize) -> u64 {
    let (stride, dilation, kernel) = (window.strides[axis], window.dilations[axis], window.kernel[axis]);
    let mut all: Vec<u64> =
        (0..results).flat_map(|r| (0..kernel).map(move |k| r * stride + k * dilation)).collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(input: [u64; 2], kernel: u64, stride: u64) -> Window {
        let pad = kernel / 2;
        Window {
            input: input.map(Size::from),
            kernel: [kernel; 2],
            strides: [stride; 2],
            dilations: [1, 1],
            pads: [pad; 4],
            ceil: false,
        }
    }

    #[test]
    fn patches_share_what_they_read_and_fit_small_images() {
        assert_eq!(met(4, &window([56, 56], 3, 1), 0), 6);
        assert_eq!(met(4, &window([56, 56], 3, 2), 0), 9);
        let large = best(&window([112, 112], 5, 1), 8).unwrap();
        assert!(large.rows * large.across >= 16, "{large:?}");
        let small = best(&window([7, 7], 5, 1), 8).unwrap();
        let invocations = 7u64.div_ceil(small.rows) * 7u64.div_ceil(small.across);
        assert!(invocations <= 8, "one subgroup for a plane of 7x7: {small:?}");
        let wide = best(&window([56, 56], 11, 1), 8).unwrap();
        assert!(wide.rows * wide.across * 121 <= MOST.1, "{wide:?}");
    }
}
