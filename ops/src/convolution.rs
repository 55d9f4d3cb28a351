//! What all convolutions share: the shape of grouped filters over images, where elements lie, the terms of each sum, and
//! the push constants of the kernels.

use halite_sizes::Size;

use crate::window::{Layout, Window};

/// Filters that slide over images.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// Number of images.
    pub images: Size,
    /// Groups of channels that are convolved apart.
    pub groups: u64,
    /// Channels of a group.
    pub channels: u64,
    /// Filters of a group.
    pub filters: u64,
    /// How filters slide.
    pub window: Window,
    /// How images and filters lie.
    pub layout: Layout,
}

/// Place of a result: image, group, filter in the group, row, column.
pub type OutputIndex = [u64; 5];

impl Convolution {
    /// Reads the shapes of ONNX or of the layout's other order.
    ///
    /// # Errors
    /// The numbers do not go together.
    pub fn new(
        input: [Size; 4],
        filter: [u64; 4],
        groups: u64,
        layout: Layout,
        window: impl Fn([Size; 2], [u64; 2]) -> Window,
    ) -> Result<Self, String> {
        let [images, channels, height, width] = match layout {
            Layout::Nchw => input,
            Layout::Nhwc => [input[0], input[3], input[1], input[2]],
        };
        let [filters, depth, rows, columns] = match layout {
            Layout::Nchw => filter,
            Layout::Nhwc => [filter[3], filter[2], filter[0], filter[1]],
        };
        if groups == 0 || filters % groups != 0 || depth.checked_mul(groups).is_none_or(|all| channels != all)
        {
            return Err(format!(
                "{channels} channels and {filters} filters over {depth} channels do not make {groups} groups"
            ));
        }
        let window = window([height, width], [rows, columns]);
        window.check()?;
        Ok(Convolution { images, groups, channels: depth, filters: filters / groups, window, layout })
    }

    /// Dimensions of the results.
    pub fn output_dims(&self) -> [Size; 4] {
        let [rows, columns] = self.window.output();
        let filters = Size::from(self.groups * self.filters);
        match self.layout {
            Layout::Nchw => [self.images, filters, rows, columns],
            Layout::Nhwc => [self.images, rows, columns, filters],
        }
    }

    /// Length of each sum.
    pub fn depth(&self) -> u64 {
        self.channels * self.window.kernel[0] * self.window.kernel[1]
    }

    /// Arithmetic operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.output_dims().iter().map(|d| d.as_f64()).product::<f64>() * self.depth() as f64
    }

    /// Whether a filter covers its image, so that the convolution is the product of images by filters: the tensors of both lie alike,
    /// and so do the results.
    pub fn is_product(&self) -> bool {
        let w = &self.window;
        let covers = |d: usize| {
            // Taps lie as elements do where there are as many of them.
            w.input[d].is(w.kernel[d].into()) && (w.kernel[d] == 1 || w.dilations[d] == 1)
        };
        self.groups == 1 && w.pads == [0; 4] && covers(0) && covers(1)
    }

    /// Index of a filter among those of all groups.
    pub fn filter_of(&self, place: OutputIndex) -> usize {
        (place[1] * self.filters + place[2]) as usize
    }

    /// Every result, in the order in which results lie.
    pub fn places(&self) -> impl Iterator<Item = OutputIndex> {
        let [rows, columns] = self.window.output().map(Size::exact);
        let (count, filters, layout) = (self.groups * self.filters, self.filters, self.layout);
        (0..self.images.exact() * count * rows * columns).map(move |index| {
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
    pub fn terms(&self, place: OutputIndex) -> impl Iterator<Item = (Option<usize>, usize)> {
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
        let ([rows, columns], count) = (self.window.input.map(Size::exact), self.groups * self.channels);
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
}

/// The largest term of a sum: the product of an element and a weight, or what is added to the products.
pub fn largest_term(magnitudes: &[f64]) -> f64 {
    magnitudes[2..].iter().copied().fold(magnitudes[0] * magnitudes[1], f64::max)
}
