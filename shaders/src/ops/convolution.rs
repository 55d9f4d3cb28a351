//! Owns what all convolutions share: the shape of grouped filters over images, where elements lie, the terms of each sum,
//! and the push constants of the kernels. Does not own: types, what becomes of the sums, or products of matrices
//! (`matrix`).

mod matrix;

use super::{Layout, finish::Added, window::Window};
use crate::{
    Activation, Params, Plan, Slot, Step, Unfit, library,
    plan::{groups, narrow},
};

/// Filters that slide over images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convolution {
    pub images: u64,
    /// Groups of channels that are convolved apart.
    pub groups: u64,
    /// Channels of a group.
    pub channels: u64,
    /// Filters of a group.
    pub filters: u64,
    pub window: Window,
    pub layout: Layout,
}

/// What a kernel is given besides the shape.
pub(crate) struct Kernel<'a> {
    pub build: &'a str,
    pub params: &'a Params,
    pub added: Added,
    pub activation: Activation,
    /// Buffers in the order of bindings.
    pub bindings: Vec<Slot>,
    /// Push constants behind the shape.
    pub more: Vec<u32>,
}

/// Place of a result: image, group, filter in the group, row, column.
pub(crate) type Place = [u64; 5];

impl Convolution {
    /// Reads the shapes of ONNX or of the layout's other order.
    pub fn new(
        input: [u64; 4],
        filter: [u64; 4],
        groups: u64,
        layout: Layout,
        window: impl Fn([u64; 2], [u64; 2]) -> Window,
    ) -> Result<Self, String> {
        let [images, channels, height, width] = match layout {
            Layout::Nchw => input,
            Layout::Nhwc => [input[0], input[3], input[1], input[2]],
        };
        let [filters, depth, rows, columns] = match layout {
            Layout::Nchw => filter,
            Layout::Nhwc => [filter[3], filter[2], filter[0], filter[1]],
        };
        if groups == 0 || filters % groups != 0 || depth.checked_mul(groups) != Some(channels) {
            return Err(format!(
                "{channels} channels and {filters} filters over {depth} channels do not make {groups} groups"
            ));
        }
        let window = window([height, width], [rows, columns]);
        window.check()?;
        Ok(Convolution { images, groups, channels: depth, filters: filters / groups, window, layout })
    }

    pub fn output_dims(&self) -> [u64; 4] {
        let [rows, columns] = self.window.output();
        let filters = self.groups * self.filters;
        match self.layout {
            Layout::Nchw => [self.images, filters, rows, columns],
            Layout::Nhwc => [self.images, rows, columns, filters],
        }
    }

    /// Length of each sum.
    pub fn depth(&self) -> u64 {
        self.channels * self.window.kernel[0] * self.window.kernel[1]
    }

    pub fn flops(&self) -> f64 {
        2.0 * self.output_dims().iter().map(|d| *d as f64).product::<f64>() * self.depth() as f64
    }

    /// Index of a filter among those of all groups.
    pub fn filter_of(&self, place: Place) -> usize {
        (place[1] * self.filters + place[2]) as usize
    }

    /// Every result, in the order in which results lie.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let [rows, columns] = self.window.output();
        let (count, filters, layout) = (self.groups * self.filters, self.filters, self.layout);
        (0..self.images * count * rows * columns).map(move |index| {
            let split = |at: u64, last: u64| (at / last, at % last);
            let (image, filter, row, column) = match layout {
                Layout::Nchw => {
                    let (at, column) = split(index, columns);
                    let (at, row) = split(at, rows);
                    let (image, filter) = split(at, count);
                    (image, filter, row, column)
                }
                Layout::Nhwc => {
                    let (at, filter) = split(index, count);
                    let (at, column) = split(at, columns);
                    let (image, row) = split(at, rows);
                    (image, filter, row, column)
                }
            };
            [image, filter / filters, filter % filters, row, column]
        })
    }

    /// The terms of a sum: index in the input, or none in the padding, and index in the filters.
    pub fn terms(&self, place: Place) -> impl Iterator<Item = (Option<usize>, usize)> {
        let [image, group, filter, row, column] = place;
        let (of, window) = (*self, self.window);
        let [rows, columns] = window.kernel;
        let taps = (0..rows).flat_map(move |ky| (0..columns).map(move |kx| (ky, kx)));
        taps.flat_map(move |(ky, kx)| {
            let met = window.element(0, row, ky).zip(window.element(1, column, kx));
            (0..of.channels).map(move |channel| {
                let input = met.map(|(y, x)| of.input_at(image, group, channel, y, x));
                (input, of.filter_at(group, filter, channel, ky, kx))
            })
        })
    }

    fn input_at(&self, image: u64, group: u64, channel: u64, y: u64, x: u64) -> usize {
        let ([rows, columns], count) = (self.window.input, self.groups * self.channels);
        let channel = group * self.channels + channel;
        let index = match self.layout {
            Layout::Nchw => ((image * count + channel) * rows + y) * columns + x,
            Layout::Nhwc => ((image * rows + y) * columns + x) * count + channel,
        };
        index as usize
    }

    fn filter_at(&self, group: u64, filter: u64, channel: u64, ky: u64, kx: u64) -> usize {
        let ([rows, columns], count) = (self.window.kernel, self.groups * self.filters);
        let filter = group * self.filters + filter;
        let index = match self.layout {
            Layout::Nchw => ((filter * self.channels + channel) * rows + ky) * columns + kx,
            Layout::Nhwc => ((ky * columns + kx) * self.channels + channel) * count + filter,
        };
        index as usize
    }

    /// The block of `include/convolution.glsl`.
    pub fn push(&self) -> Result<Vec<u32>, Unfit> {
        let w = &self.window;
        let (inputs, outputs) = (self.groups * self.channels, self.groups * self.filters);
        let ([rows, columns], taps) = (w.output(), w.kernel[0] * w.kernel[1]);
        let (pixels, places) = (w.input[0] * w.input[1], rows * columns);
        let strides = match self.layout {
            Layout::Nchw => [
                [inputs * pixels, pixels, 1],
                [self.filters * self.channels * taps, self.channels * taps, taps],
                [outputs * places, places, 1],
            ],
            Layout::Nhwc => {
                [[inputs * pixels, 1, inputs], [self.filters, 1, outputs], [outputs * places, 1, outputs]]
            }
        };
        let tap = if self.layout == Layout::Nchw { 1 } else { self.channels * outputs };
        let sizes = [self.channels, w.input[0], w.input[1], self.filters, w.kernel[0], w.kernel[1]];
        let window = [rows, columns, w.strides[0], w.strides[1], w.dilations[0], w.dilations[1]];
        let all = sizes.into_iter().chain(window).chain([w.pads[0], w.pads[1]]).chain(strides[0]);
        let all = all.chain(strides[1]).chain([tap]).chain(strides[2]);
        let push = all.map(|value| narrow("a size", value)).collect::<Result<Vec<u32>, Unfit>>()?;
        let total = |each: u64| each.saturating_mul(self.images);
        narrow("a number of elements", total(inputs * pixels))?;
        narrow("a number of elements", total(outputs * places))?;
        narrow("a number of weights", outputs * self.channels * taps)?;
        Ok(push)
    }

    /// An invocation for each `pixels` places and `channels` filters.
    pub fn direct(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let p = |name| kernel.params.get(name);
        let (channels, pixels, least) = (p("channels")?, p("pixels")?, p("min_filters")?);
        if self.filters < u64::from(least) {
            return Err(Unfit(format!(
                "wants at least {least} filters in a group, there are {}",
                self.filters
            )));
        }
        let [rows, columns] = self.window.output();
        let lanes = lanes_for(rows * columns, pixels, p("lanes")?);
        let blocks = u64::from(groups(self.filters, channels)?) * self.groups;
        let grid = [
            groups(rows * columns, lanes * pixels)?,
            narrow("a number of filters", blocks)?,
            self.images_32()?,
        ];
        Ok(Plan::of(self.step(kernel, vec![lanes], grid)?))
    }

    /// An invocation for `filters` filters at four places, with a kernel of 1x1.
    pub fn pointwise(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let (p, w) = (|name| kernel.params.get(name), &self.window);
        let plain = (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]);
        if !plain || self.layout != Layout::Nchw || self.channels == 0 {
            return Err(Unfit("wants channels first, a kernel of 1x1, strides of 1 and no padding".into()));
        }
        let [least, most] = kernel.limits();
        let (lanes, filters) = (p("lanes")?, p("filters")?);
        self.mostly_there(filters)?;
        let pixels = w.input[0] * w.input[1];
        let quads = p("quads")? != 0 && pixels.is_multiple_of(4);
        let weight_quads = self.channels.is_multiple_of(4);
        let blocks = u64::from(groups(self.filters, filters)?) * self.groups;
        let grid = [groups(pixels, lanes * 4)?, narrow("a number of filters", blocks)?, self.images_32()?];
        let constants = vec![lanes, quads.into(), weight_quads.into(), least, most];
        Ok(Plan::of(self.step(kernel, constants, grid)?))
    }

    /// An invocation for `channels` filters at four places, one below the other, with a kernel of 3x3.
    pub fn strips(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let (p, w) = (|name| kernel.params.get(name), &self.window);
        if (w.kernel, w.strides, w.dilations) != ([3, 3], [1, 1], [1, 1]) {
            return Err(Unfit("wants a kernel of 3x3 with strides of 1 and no dilation".into()));
        }
        self.at_least(p("min_filters")?)?;
        let [rows, columns] = w.output();
        let strips = rows.div_ceil(4) * columns;
        let lanes = lanes_for(strips, 1, p("lanes")?);
        let blocks = u64::from(groups(self.filters, p("channels")?)?) * self.groups;
        let grid = [groups(strips, lanes)?, narrow("a number of filters", blocks)?, self.images_32()?];
        Ok(Plan::of(self.step(kernel, vec![lanes], grid)?))
    }

    /// An invocation for `filters` filters at four rows of `across` places, with a kernel of 3x3.
    pub fn patches(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let p = |name| kernel.params.get(name);
        let (lanes, filters, across) = (p("lanes")?, p("filters")?, p("across")?);
        self.patched(p("stride")?)?;
        self.mostly_there(filters)?;
        let blocks = u64::from(groups(self.filters, filters)?) * self.groups;
        let grid =
            [self.patch_groups(across, lanes)?, narrow("a number of filters", blocks)?, self.images_32()?];
        let [least, most] = kernel.limits();
        Ok(Plan::of(self.step(kernel, vec![lanes, least, most], grid)?))
    }

    /// An invocation for `filters` filters at `across` neighbours, with a kernel of `columns` columns.
    pub fn rows(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let (p, w) = (|name| kernel.params.get(name), &self.window);
        let (lanes, filters, across) = (p("lanes")?, p("filters")?, p("across")?);
        let (columns, stride) = (p("columns")?, p("stride")?);
        let fits = (w.kernel[1], w.strides[1], w.dilations[1]) == (columns.into(), stride.into(), 1);
        if !fits || self.layout != Layout::Nchw {
            return Err(Unfit(format!(
                "wants channels first, and {columns} columns with strides of {stride} and no dilation"
            )));
        }
        let [least, most] = kernel.limits();
        self.mostly_there(filters)?;
        let [rows, columns] = w.output();
        let blocks = u64::from(groups(self.filters, filters)?) * self.groups;
        let grid = [
            groups(rows * columns.div_ceil(across.max(1).into()), lanes)?,
            narrow("a number of filters", blocks)?,
            self.images_32()?,
        ];
        Ok(Plan::of(self.step(kernel, vec![lanes, least, most], grid)?))
    }

    /// An invocation for four rows of `across` places of one filter over one channel, with a kernel of 3x3.
    pub fn depthwise_patches(&self, mut kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let p = |name| kernel.params.get(name);
        let (lanes, across) = (p("lanes")?, p("across")?);
        self.patched(p("stride")?)?;
        if self.channels != 1 {
            return Err(Unfit(format!("wants one channel in a group, there are {}", self.channels)));
        }
        let filters = narrow("filters", self.groups * self.filters)?;
        kernel.more.extend([filters, 0]);
        let [least, most] = kernel.limits();
        let quads = self.window.output()[1].is_multiple_of(4);
        let grid = [self.patch_groups(across, lanes)?, filters, self.images_32()?];
        Ok(Plan::of(self.step(kernel, vec![lanes, least, most, quads.into()], grid)?))
    }

    /// Whether patches of results can be computed.
    fn patched(&self, stride: u32) -> Result<(), Unfit> {
        let w = &self.window;
        let window = (w.kernel, w.strides, w.dilations) == ([3, 3], [stride.into(); 2], [1, 1]);
        if !window || self.layout != Layout::Nchw {
            return Err(Unfit(format!(
                "wants channels first, a kernel of 3x3 with strides of {stride} and no dilation"
            )));
        }
        Ok(())
    }

    /// Workgroups for patches of four rows by `across` places.
    fn patch_groups(&self, across: u32, lanes: u32) -> Result<u32, Unfit> {
        let [rows, columns] = self.window.output();
        groups(rows.div_ceil(4) * columns.div_ceil(across.max(1).into()), lanes)
    }

    /// Refuses kernels that compute many filters at a time where few of them are there: what is computed of others is lost.
    fn mostly_there(&self, filters: u32) -> Result<(), Unfit> {
        let computed = self.filters.next_multiple_of(u64::from(filters.max(1)));
        if computed.saturating_mul(3) > self.filters.saturating_mul(4) {
            return Err(Unfit(format!(
                "computes {filters} filters at a time, and there are {}",
                self.filters
            )));
        }
        Ok(())
    }

    /// An invocation for four places, one below the other, of a filter over one channel.
    pub fn depthwise(&self, mut kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let p = |name| kernel.params.get(name);
        let (lanes, stride, w) = (p("lanes")?, u64::from(p("stride")?), &self.window);
        if self.channels != 1 {
            return Err(Unfit(format!("wants one channel in a group, there are {}", self.channels)));
        }
        if stride > 0 && (w.kernel, w.strides, w.dilations) != ([3, 3], [stride; 2], [1, 1]) {
            return Err(Unfit(format!("wants a kernel of 3x3 with strides of {stride} and no dilation")));
        }
        let filters = self.groups * self.filters;
        let [rows, columns] = w.output();
        let strips = narrow("a number of invocations", filters * rows.div_ceil(4) * columns)?;
        kernel.more.extend([narrow("filters", filters)?, (self.layout == Layout::Nhwc).into()]);
        let grid = [strips.div_ceil(lanes), self.images_32()?, 1];
        Ok(Plan::of(self.step(kernel, vec![lanes], grid)?))
    }

    fn at_least(&self, filters: u32) -> Result<(), Unfit> {
        if self.filters < u64::from(filters) {
            return Err(Unfit(format!(
                "wants at least {filters} filters in a group, there are {}",
                self.filters
            )));
        }
        Ok(())
    }

    pub fn images_32(&self) -> Result<u32, Unfit> {
        narrow("a number of images", self.images)
    }

    /// A dispatch; `constants` are lanes and those behind the activation.
    pub fn step(&self, kernel: Kernel<'_>, constants: Vec<u32>, grid: [u32; 3]) -> Result<Step, Unfit> {
        let module =
            library::module(kernel.build).ok_or_else(|| Unfit(format!("has no build '{}'", kernel.build)))?;
        let mut all = vec![constants[0], kernel.added.code(), kernel.activation.code()];
        all.extend(&constants[1..]);
        let mut push = self.push()?;
        push.extend(kernel.more);
        Ok(Step { module, constants: all, push, bindings: kernel.bindings, grid, subgroup_size: 0 })
    }
}

impl Kernel<'_> {
    /// Bits of the limits that the activation is; infinities where it is more than limits, which a kernel knows by its code.
    fn limits(&self) -> [u32; 2] {
        self.activation.limits().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]).map(f32::to_bits)
    }
}

/// Invocations of a workgroup, at most `most` and at least 8, each with `pixels` places: of those that leave the fewest
/// without work, the most.
pub(crate) fn lanes_for(places: u64, pixels: u32, most: u32) -> u32 {
    let covered = |lanes: u32| places.next_multiple_of(u64::from(lanes * pixels).max(1));
    let choices = std::iter::successors(Some(most), |lanes| (*lanes >= 16).then_some(lanes / 2));
    choices.min_by_key(|lanes| covered(*lanes)).unwrap_or(most)
}

/// The largest term of a sum: the product of an element and a weight, or what is added to the products.
pub(super) fn largest_term(magnitudes: &[f64]) -> f64 {
    magnitudes[2..].iter().copied().fold(magnitudes[0] * magnitudes[1], f64::max)
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
