//! Dispatches of `spans.comp`: convolutions of bytes on devices that run on a CPU, and how many filters and rows of results an
//! invocation computes.

use halite_ops::{
    convolution::Convolution,
    window::{Layout, Window},
};
use halite_sizes::Size;

use super::{KernelInputs, divides, images_32, step, window::met};
use crate::{
    Plan, Unfit,
    plan::{fixed, groups, narrow},
};

/// Most terms that floats add up exactly: 2^24 by the largest product, 255 * 128.
pub(super) const EXACT: u64 = 512;
/// Most products of a step by an invocation, all of which are written out in the code, and most filters and rows.
const MOST: (u64, u64, u64) = (1152, 32, 7);

/// The largest stride or dilation, as what lies between places is read too.
const MOST_STEP: u64 = 8;

/// What an invocation computes at a time, and its share of the time of all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    /// Filters, and rows of four results.
    rows: u64,
    down: u64,
    time: f64,
}

/// How weights and data are read.
struct Reads {
    /// Channels of a step.
    each: u64,
    /// The most bytes of a word before the weights of a step, and before the data of a row.
    weight_phase: u64,
    data_phase: u64,
}

/// An invocation for some filters at some rows of four places.
pub(in crate::plans) fn spans(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    let lanes = kernel.params.get("lanes")?;
    let taps = shape.window.kernel[0] * shape.window.kernel[1];
    if shape.layout != Layout::Nchw || shape.channels == 0 || shape.filters == 0 {
        return Err(Unfit("wants channels first, and a term in a sum".into()));
    }
    let steps = [shape.window.strides, shape.window.dilations].concat();
    if steps.iter().any(|step| *step > MOST_STEP) {
        return Err(Unfit(format!("wants strides and dilations of at most {MOST_STEP}")));
    }
    counted(shape)?;
    if taps == 0 || taps > MOST.0 / 4 {
        return Err(Unfit(format!("wants kernels of 1 to {} taps, not of {taps}", MOST.0 / 4)));
    }
    let plain = (shape.window.kernel, shape.window.strides, shape.window.pads) == ([1, 1], [1, 1], [0; 4]);
    let shape = &if plain { in_one_row(shape) } else { *shape };
    let w = &shape.window;
    let [rows, columns] = w.output();
    let quads = divides(columns, 4);
    let each = if taps == 1 && shape.channels.is_multiple_of(4) { 4 } else { 1 };
    let words = (each * taps).is_multiple_of(4) && (shape.channels * taps).is_multiple_of(4);
    let [weight_phase, data_phase] = [words, plain && quads].map(|whole| if whole { 0 } else { 3 });
    let reads = Reads { each, weight_phase, data_phase };
    let block = best(shape, &reads, lanes).ok_or_else(|| Unfit("wants a smaller kernel".into()))?;
    let chunk = (EXACT / taps / each).max(1) * each;
    let padded = w.pads != [0; 4];
    let sizes = [block.rows, block.down, w.kernel[0], w.kernel[1], w.strides[0], w.strides[1]];
    let more = [w.dilations[0], w.dilations[1], each, chunk, data_phase, weight_phase];
    let sizes = sizes.iter().chain(&more).map(|size| fixed("a size", *size));
    let sizes = sizes.collect::<Result<Vec<u32>, Unfit>>()?;
    let flags = [padded, unsigned, quads].map(u32::from);
    let constants = [&[lanes][..], &sizes, &flags].concat();
    let places = rows.div_ceil(block.down) * columns.div_ceil(4u64);
    let blocks = shape.filters.div_ceil(block.rows) * shape.groups;
    let grid = [groups(places, lanes)?, narrow("a number of filters", blocks)?, images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// Refuses images of 2 GiB, whose bytes kernels do not count: places before an image are negative.
pub(super) fn counted(shape: &Convolution) -> Result<(), Unfit> {
    let [height, width] = shape.window.input;
    let bytes = height.as_f64() * width.as_f64() * shape.images.as_f64();
    if bytes * shape.groups as f64 * shape.channels as f64 > f64::from(i32::MAX) {
        return Err(Unfit("wants images of less than 2 GiB".into()));
    }
    Ok(())
}

/// Images with all places in one row, which kernels of 1x1 do not tell apart.
pub(super) fn in_one_row(shape: &Convolution) -> Convolution {
    let mut row = *shape;
    let [height, width] = shape.window.input;
    row.window.input = [Size::constant(1), height * width];
    row
}

/// The block whose invocations take the least time, by what reads, products and results cost on llvmpipe.
fn best(shape: &Convolution, reads: &Reads, lanes: u32) -> Option<Block> {
    let w = &shape.window;
    let terms = reads.each * w.kernel[0] * w.kernel[1];
    let parts = (1..=MOST.1.min(shape.filters)).map(|most| shape.filters.div_ceil(most));
    let rows = parts.map(|parts| shape.filters.div_ceil(parts));
    // All blocks are right: the example's is the best one for that.
    let height = w.output()[0].value();
    let fits = |rows: u64, down: u64| rows * down == 1 || terms * 4 * rows * down <= MOST.0;
    let most = MOST.2.min(height.max(1));
    let blocks = rows.flat_map(|rows| (1..=most).map(move |down| (rows, down)));
    let blocks = blocks.filter(|(rows, down)| fits(*rows, *down));
    let timed =
        blocks.map(|(rows, down)| Block { rows, down, time: time(shape, reads, lanes, [rows, down]) });
    timed.min_by(|a, b| a.time.total_cmp(&b.time))
}

/// Cycles of all subgroups.
fn time(shape: &Convolution, reads: &Reads, lanes: u32, [rows, down]: [u64; 2]) -> f64 {
    let w: &Window = &shape.window;
    let [height, width] = w.output().map(Size::value);
    let terms = reads.each * w.kernel[0] * w.kernel[1];
    let held = rows.div_ceil(lanes.max(1).into());
    let span = 3 * w.strides[1] + (w.kernel[1] - 1) * w.dilations[1] + 1;
    let spans = reads.each * met(down, w, 0);
    let weight_reads = (terms + reads.weight_phase).div_ceil(4) * held;
    let data_reads = (span + reads.data_phase).div_ceil(4) * spans;
    let unpacked = terms * held + span * spans;
    let shuffles = if rows > 1 { terms * rows } else { 0 };
    let products = terms * 4 * rows * down;
    let one = (weight_reads + data_reads) as f64 * READ + unpacked as f64 * UNPACK;
    let one = one + shuffles as f64 * SHUFFLE + products as f64 * PRODUCT;
    let all = START + one * (shape.channels / reads.each.max(1)) as f64 + (rows * down) as f64 * RESULT;
    let subgroups = height.div_ceil(down) as f64 * width.div_ceil(4) as f64 / f64::from(lanes.max(1));
    all * subgroups.ceil() * shape.filters.div_ceil(rows) as f64
}

/// Cycles of a subgroup on llvmpipe.
const READ: f64 = 22.0;
const UNPACK: f64 = 4.0;
const SHUFFLE: f64 = 2.0;
const PRODUCT: f64 = 1.5;
const RESULT: f64 = 80.0;
const START: f64 = 600.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(filters: u64, size: u64, kernel: u64, groups: u64) -> Convolution {
        let window = |input, kernel| Window {
            input,
            kernel,
            strides: [1, 1],
            dilations: [1, 1],
            pads: [kernel[0] / 2; 4],
            ceil: false,
        };
        let channels = if groups > 1 { groups } else { 64 };
        let input = [1, channels, size, size].map(Size::from);
        let filter = [filters, channels / groups, kernel, kernel];
        Convolution::new(input, filter, groups, Layout::Nchw, window).unwrap()
    }

    fn chosen(shape: &Convolution) -> [u64; 2] {
        let block = best(shape, &Reads { each: 1, weight_phase: 3, data_phase: 3 }, 8).unwrap();
        [block.rows, block.down]
    }

    #[test]
    fn blocks_fit_filters_and_images() {
        assert_eq!(chosen(&shape(64, 16, 3, 1)), [8, 4], "few reads, and two whole subgroups");
        let [rows, down] = chosen(&shape(64, 4, 3, 1));
        assert!(down == 1 && rows >= 16, "a plane of 4x4 is one subgroup: {rows} x {down}");
        let [rows, down] = chosen(&shape(96, 24, 3, 96));
        assert!(rows == 1 && down >= 4, "one filter of a group, {down} rows");
    }
}
