//! What all convolutions share: the shape of grouped filters over images, where elements lie, the terms of each sum, and
//! the push constants of the kernels.

use halite_ops::{Activation, convolution::Convolution, runs::Runs, window::Layout};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, fixed_groups, groups, module, narrow},
    plans::epilogue::{Added, activation_code},
};

pub(super) mod bytes;
pub(super) mod exchange;
pub(super) mod few;
pub(super) mod grouped;
pub(super) mod image;
pub(super) mod matrix;
pub(super) mod padded;
pub(super) mod spans;
pub(super) mod window;
pub(super) mod windows;
pub(super) mod written;

/// What a kernel is given besides the shape.
pub(crate) struct KernelInputs<'a> {
    pub build: &'a str,
    pub params: &'a Params,
    pub added: Added,
    pub activation: Activation,
    /// Buffers in the order of bindings.
    pub bindings: Vec<Slot>,
    /// Push constants behind the shape.
    pub more: Vec<u32>,
}

/// Where `push` has the number of filters,
const PUSHED_FILTERS: usize = 3;
/// and elements from one image, and from one pixel, to the next, and from one pixel of the result.
const PUSHED_IMAGE: usize = 14;
const PUSHED_PIXEL: usize = 16;
const PUSHED_RESULT: usize = 23;

/// The block of `include/convolution.glsl`.
pub(super) fn push(shape: &Convolution) -> Result<Vec<Size>, Unfit> {
    let w = &shape.window;
    let number = |value: u64| Size::from(value);
    let (inputs, outputs) = (number(shape.groups * shape.channels), number(shape.groups * shape.filters));
    let (channels, filters) = (number(shape.channels), number(shape.filters));
    let ([rows, columns], taps) = (w.output(), number(w.kernel[0] * w.kernel[1]));
    let one = Size::constant(1);
    let (pixels, places) = (w.input[0] * w.input[1], rows * columns);
    let strides = match shape.layout {
        Layout::Nchw => [
            [inputs * pixels, pixels, one],
            [filters * channels * taps, channels * taps, taps],
            [outputs * places, places, one],
        ],
        Layout::Nhwc => {
            [[inputs * pixels, one, inputs], [filters, one, outputs], [outputs * places, one, outputs]]
        }
    };
    let tap = if shape.layout == Layout::Nchw { one } else { channels * outputs };
    let kernel = w.kernel.map(number);
    let sizes = [channels, w.input[0], w.input[1], filters, kernel[0], kernel[1]];
    let [strides_of, dilations, pads] =
        [w.strides, w.dilations, [w.pads[0], w.pads[1]]].map(|two| two.map(number));
    let window = [rows, columns, strides_of[0], strides_of[1], dilations[0], dilations[1]];
    let all = sizes.into_iter().chain(window).chain(pads).chain(strides[0]);
    let all = all.chain(strides[1]).chain([tap]).chain(strides[2]);
    let push = all.map(|value| narrow("a size", value)).collect::<Result<Vec<Size>, Unfit>>()?;
    narrow("a number of elements", inputs * pixels * shape.images)?;
    narrow("a number of elements", outputs * places * shape.images)?;
    narrow("a number of weights", outputs * channels * taps)?;
    Ok(push)
}

/// An invocation for each `pixels` places and `channels` filters.
pub(super) fn direct(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (channels, pixels, least) = (p("channels")?, p("pixels")?, p("min_filters")?);
    if shape.filters < u64::from(least) {
        return Err(Unfit(format!("wants at least {least} filters in a group, there are {}", shape.filters)));
    }
    let [rows, columns] = shape.window.output();
    let lanes = lanes_for(rows * columns, pixels, p("lanes")?);
    let blocks = u64::from(fixed_groups(shape.filters, channels)?) * shape.groups;
    let grid = [
        groups(rows * columns, lanes * pixels)?,
        narrow("a number of filters", blocks)?,
        narrow("a number of images", shape.images)?,
    ];
    Ok(Plan::of(step(shape, kernel, vec![lanes], grid)?))
}

/// An invocation for `filters` filters at four places, with a kernel of 1x1.
pub(super) fn pointwise(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let plain = (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]);
    if !plain || shape.layout != Layout::Nchw || shape.channels == 0 {
        return Err(Unfit("wants channels first, a kernel of 1x1, strides of 1 and no padding".into()));
    }
    let [least, most] = kernel.limits();
    let (lanes, filters) = (p("lanes")?, p("filters")?);
    mostly_there(shape, filters)?;
    let pixels = w.input[0] * w.input[1];
    // Of a number that data decide nothing is known.
    let quads = p("quads")? != 0 && divides(pixels, 4);
    let weight_quads = shape.channels.is_multiple_of(4);
    let blocks = u64::from(fixed_groups(shape.filters, filters)?) * shape.groups;
    let grid = [
        groups(pixels, lanes * 4)?,
        narrow("a number of filters", blocks)?,
        narrow("a number of images", shape.images)?,
    ];
    let constants = vec![lanes, quads.into(), weight_quads.into(), least, most];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// An invocation for `channels` filters at four places, one below the other, with a kernel of 3x3.
pub(super) fn strips(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    if (w.kernel, w.strides, w.dilations) != ([3, 3], [1, 1], [1, 1]) {
        return Err(Unfit("wants a kernel of 3x3 with strides of 1 and no dilation".into()));
    }
    at_least(shape, p("min_filters")?)?;
    let [rows, columns] = w.output();
    let strips = rows.div_ceil(4) * columns;
    let lanes = lanes_for(strips, 1, p("lanes")?);
    let blocks = u64::from(fixed_groups(shape.filters, p("channels")?)?) * shape.groups;
    let grid = [groups(strips, lanes)?, narrow("a number of filters", blocks)?, images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, vec![lanes], grid)?))
}

/// So many filters are half of the smallest block of `patches.comp`: the heads of networks that give a class or a colour of each place.
const FEW_FILTERS: u64 = 4;

/// An invocation for `filters` filters at four rows of `across` places, with a kernel of 3x3; with strides of 1 of any dilation.
pub(super) fn patches(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (lanes, filters, across) = (p("lanes")?, p("filters")?, p("across")?);
    let stride = p("stride")?;
    let apart = if stride == 1 { shape.window.dilations } else { [1, 1] };
    patched(shape, stride, apart)?;
    let workgroups = patch_groups(shape, across, lanes, apart)?;
    let places = workgroups * u64::from(lanes * 4 * across);
    // Either computes the convolution. Neighbours of a patch are a dilation apart, so that more of them are not there.
    let there = shape.window.output().into_iter().fold(Size::constant(1), |all, size| all * size);
    if apart != [1, 1] && places.value() > there.value() * 7 / 4 {
        return Err(Unfit(format!("computes {places} places for {there}")));
    }
    // The others read each window anew at every place, which takes longer than filters that are lost of the smallest block.
    let smallest = stride == 1 && u64::from(filters) <= 2 * FEW_FILTERS;
    if !smallest || (shape.groups > 1 && shape.filters <= FEW_FILTERS) {
        mostly_there(shape, filters)?;
    }
    let blocks = u64::from(fixed_groups(shape.filters, filters)?) * shape.groups;
    let grid = [workgroups, narrow("a number of filters", blocks)?, images_32(shape)?];
    let [least, most] = kernel.limits();
    Ok(Plan::of(step(shape, kernel, vec![lanes, least, most], grid)?))
}

/// An invocation for `filters` filters at `across` neighbours, with a kernel of `columns` columns.
pub(super) fn rows(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let (lanes, filters, across) = (p("lanes")?, p("filters")?, p("across")?);
    let (columns, stride) = (p("columns")?, p("stride")?);
    let fits = (w.kernel[1], w.strides[1], w.dilations[1]) == (columns.into(), stride.into(), 1);
    if !fits || shape.layout != Layout::Nchw {
        return Err(Unfit(format!(
            "wants channels first, and {columns} columns with strides of {stride} and no dilation"
        )));
    }
    let [least, most] = kernel.limits();
    mostly_there(shape, filters)?;
    let [rows, columns] = w.output();
    let blocks = u64::from(fixed_groups(shape.filters, filters)?) * shape.groups;
    let grid = [
        groups(rows * columns.div_ceil(across.max(1)), lanes)?,
        narrow("a number of filters", blocks)?,
        images_32(shape)?,
    ];
    Ok(Plan::of(step(shape, kernel, vec![lanes, least, most], grid)?))
}

/// An invocation for four rows of `across` places of one filter over one channel, with a kernel of 3x3.
pub(super) fn depthwise_patches(shape: &Convolution, mut kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (lanes, across) = (p("lanes")?, p("across")?);
    patched(shape, p("stride")?, [1, 1])?;
    if shape.channels != 1 {
        return Err(Unfit(format!("wants one channel in a group, there are {}", shape.channels)));
    }
    let filters = fixed("filters", shape.groups * shape.filters)?;
    kernel.more.extend([filters, 0]);
    let [least, most] = kernel.limits();
    let quads = divides(shape.window.output()[1], 4);
    let grid = [patch_groups(shape, across, lanes, [1, 1])?, filters.into(), images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, vec![lanes, least, most, quads.into()], grid)?))
}

/// Whether patches of results can be computed.
fn patched(shape: &Convolution, stride: u32, dilations: [u64; 2]) -> Result<(), Unfit> {
    let w = &shape.window;
    let window = (w.kernel, w.strides, w.dilations) == ([3, 3], [stride.into(); 2], dilations);
    if !window || shape.layout != Layout::Nchw {
        return Err(Unfit(format!(
            "wants channels first, a kernel of 3x3 with strides of {stride} and no other dilation"
        )));
    }
    Ok(())
}

/// Workgroups for patches of four rows by `across` places, which are `apart` from each other.
fn patch_groups(shape: &Convolution, across: u32, lanes: u32, apart: [u64; 2]) -> Result<Size, Unfit> {
    let [rows, columns] = shape.window.output();
    let down = rows.div_ceil(4 * apart[0]) * apart[0];
    groups(down * (columns.div_ceil(u64::from(across.max(1)) * apart[1]) * apart[1]), lanes)
}

/// Whether a number divides a size whatever callers and data decide.
pub(super) fn divides(size: Size, by: u32) -> bool {
    let rest = size % u64::from(by);
    rest.is_constant() && rest == 0
}

/// Refuses kernels that compute many filters at a time where few of them are there: what is computed of others is lost.
fn mostly_there(shape: &Convolution, filters: u32) -> Result<(), Unfit> {
    let computed = shape.filters.next_multiple_of(u64::from(filters.max(1)));
    if computed.saturating_mul(3) > shape.filters.saturating_mul(4) {
        return Err(Unfit(format!("computes {filters} filters at a time, and there are {}", shape.filters)));
    }
    Ok(())
}

/// An invocation for four places, one below the other, of a filter over one channel.
pub(super) fn depthwise(shape: &Convolution, mut kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (lanes, stride, w) = (p("lanes")?, u64::from(p("stride")?), &shape.window);
    if shape.channels != 1 {
        return Err(Unfit(format!("wants one channel in a group, there are {}", shape.channels)));
    }
    if stride > 0 && (w.kernel, w.strides, w.dilations) != ([3, 3], [stride; 2], [1, 1]) {
        return Err(Unfit(format!("wants a kernel of 3x3 with strides of {stride} and no dilation")));
    }
    let filters = shape.groups * shape.filters;
    let [rows, columns] = w.output();
    let strips = narrow("a number of invocations", rows.div_ceil(4u64) * columns * filters)?;
    kernel.more.extend([fixed("filters", filters)?, (shape.layout == Layout::Nhwc).into()]);
    let grid = [groups(strips, lanes)?, narrow("a number of images", shape.images)?, 1.into()];
    Ok(Plan::of(step(shape, kernel, vec![lanes], grid)?))
}

/// Invocations that keep a large GPU busy: two columns for each are better only where there are as many.
const MANY_INVOCATIONS: u64 = 65_536;

/// The largest window that `depthwise_columns.comp` is written out for: taps each way, and strides.
const MOST_TAPS: (u64, u64) = (7, 2);

/// An invocation for four rows of one or two columns of a filter over one channel, with sizes of the window that are constants.
pub(super) fn depthwise_columns(shape: &Convolution, mut kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let (lanes, w) = (kernel.params.get("lanes")?, &shape.window);
    if shape.channels != 1 {
        return Err(Unfit(format!("wants one channel in a group, there are {}", shape.channels)));
    }
    let written = (0..2).all(|d| w.kernel[d] <= MOST_TAPS.0 && w.strides[d] <= MOST_TAPS.1);
    if !written || w.dilations != [1, 1] {
        return Err(Unfit("wants a kernel of up to 7x7 with strides of up to 2 and no dilation".into()));
    }
    let filters = shape.groups * shape.filters;
    let [rows, columns] = w.output();
    let blocks = rows.div_ceil(4u64) * filters;
    // Either computes the convolution.
    let in_pairs = (blocks * columns.div_ceil(2u64) * shape.images).value();
    let across = if in_pairs >= MANY_INVOCATIONS { 2u32 } else { 1 };
    let patches = narrow("a number of invocations", blocks * columns.div_ceil(u64::from(across)))?;
    kernel.more.extend([fixed("filters", filters)?, (shape.layout == Layout::Nhwc).into()]);
    let window = [w.kernel, w.strides].concat();
    let mut constants = vec![lanes];
    for size in window {
        constants.push(fixed("a window", size)?);
    }
    constants.push(across);
    let grid = [groups(patches, lanes)?, images_32(shape)?, 1.into()];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// The same with the channels last, four of them at one, two or four places of a row: of these the most with which at least `enough`
/// invocations have work.
pub(super) fn depthwise_last(
    shape: &Convolution,
    mut kernel: KernelInputs<'_>,
    runs: [Option<Runs>; 2],
) -> Result<Plan, Unfit> {
    let [lanes, enough, narrow_below] = ["lanes", "enough", "narrow"].map(|name| kernel.params.get(name));
    let (lanes, enough, narrow_below, w) = (lanes?, enough?, u64::from(narrow_below?), &shape.window);
    let fours = shape.groups.is_multiple_of(4) && (shape.channels, shape.filters) == (1, 1);
    if shape.layout != Layout::Nhwc || !fours {
        return Err(Unfit("wants channels last, in fours, and a group with a filter for each".into()));
    }
    let taps = u64::from(kernel.params.get("taps")?);
    let written = (0..2).all(|d| w.kernel[d] <= taps) && w.strides[1] <= MOST_TAPS.1;
    if !written || w.dilations != [1, 1] {
        return Err(Unfit(format!(
            "wants a kernel of up to {taps}x{taps} with strides of up to 2 and no dilation"
        )));
    }
    let [rows, columns] = w.output();
    let quads = shape.groups / 4;
    // Each computes the convolution.
    let invocations = |across: u32| rows * columns.div_ceil(u64::from(across)) * quads;
    let is_enough = |across: &u32| (invocations(*across) * shape.images).value() >= u64::from(enough);
    let across = [4u32, 2].into_iter().find(is_enough).unwrap_or(1);
    // Few workgroups leave units without work, and long windows leave those that have some waiting.
    let groups_of = |lanes: u32| (invocations(across) * shape.images).div_ceil(u64::from(lanes));
    let is_narrow = w.kernel.iter().any(|size| *size > 3) && groups_of(lanes).value() < narrow_below;
    let lanes = if is_narrow { lanes / 2 } else { lanes };
    let mut constants = vec![lanes];
    for size in [w.kernel[0], w.kernel[1], w.strides[1]] {
        constants.push(fixed("a window", size)?);
    }
    constants.push(across);
    let all = narrow("a number of invocations", invocations(across))?;
    let grid = [groups(all, lanes)?, images_32(shape)?, 1.into()];
    for runs in runs {
        kernel.more.push(fixed("a first channel", runs.map_or(0, |runs| runs.offset / 4))?);
    }
    let mut step = step(shape, kernel, constants, grid)?;
    let [read, written] = runs.map(|runs| Size::from(runs.map_or(shape.groups, |runs| runs.pitch)));
    step.push[PUSHED_IMAGE] = narrow("an image", read * w.input[0] * w.input[1])?;
    step.push[PUSHED_PIXEL] = narrow("a pixel", read)?;
    step.push[PUSHED_RESULT] = narrow("a pixel", written)?;
    Ok(Plan::of(step))
}

fn at_least(shape: &Convolution, filters: u32) -> Result<(), Unfit> {
    if shape.filters < u64::from(filters) {
        return Err(Unfit(format!(
            "wants at least {filters} filters in a group, there are {}",
            shape.filters
        )));
    }
    Ok(())
}

pub(super) fn images_32(shape: &Convolution) -> Result<Size, Unfit> {
    narrow("a number of images", shape.images)
}

/// A dispatch; `constants` are lanes and those behind the activation.
pub(super) fn step(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    constants: Vec<u32>,
    grid: [Size; 3],
) -> Result<Step, Unfit> {
    let module = module(kernel.build)?;
    let mut all = vec![constants[0], kernel.added.code(), activation_code(kernel.activation)];
    all.extend(&constants[1..]);
    let mut push = push(shape)?;
    push.extend(kernel.more.into_iter().map(Size::from));
    Ok(Step { module, constants: all, push, bindings: kernel.bindings, grid, subgroup_size: 0 })
}

impl KernelInputs<'_> {
    /// Bits of the limits that the activation is; infinities where it is more than limits, which a kernel knows by its code.
    fn limits(&self) -> [u32; 2] {
        self.activation.limits().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]).map(f32::to_bits)
    }
}

/// Invocations of a workgroup, at most `most` and at least 8, each with `pixels` places: of those that leave the fewest
/// without work, the most.
pub(crate) fn lanes_for(places: impl Into<Size>, pixels: u32, most: u32) -> u32 {
    let places = places.into();
    if places.is_data() {
        return most;
    }
    // Any number is right: it is the best one for the example.
    let places = places.value();
    let covered = |lanes: u32| places.next_multiple_of(u64::from(lanes * pixels).max(1));
    let choices = std::iter::successors(Some(most), |lanes| (*lanes >= 16).then_some(lanes / 2));
    choices.min_by_key(|lanes| covered(*lanes)).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workgroups_fit_small_images() {
        assert_eq!(lanes_for(56 * 56, 4, 16), 16);
        assert_eq!(lanes_for(14 * 14, 4, 32), 8, "224 places instead of 256");
        assert_eq!(lanes_for(7 * 7, 4, 32), 16, "the larger of those with 64");
        assert_eq!(lanes_for(0, 4, 32), 32);
    }
}
