//! Convolutions and transposed convolutions in any number of dimensions, and those of bytes.

mod slices;

use halite_ops::{
    DType, Operation, conv_transpose2d::ConvTranspose2d, conv1d::Conv1d, conv2d::Conv2d,
    conv2d_int8::Conv2dInt8, expression::Function, pad::Border,
};

use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::{ElementType, TensorId, elements};

/// Types that kernels convolve.
const CONVOLVED: &[DType] = &[DType::F32, DType::F16];

/// A transposed convolution.
#[derive(Clone, Copy)]
struct Transposed<'a> {
    filter: TensorId,
    bias: Option<TensorId>,
    sliding: &'a Sliding,
    /// Output padding.
    more: &'a [u64],
    groups: u64,
}

/// How a window slides over the dimensions behind the first two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sliding {
    /// From one place to the next.
    pub strides: Vec<u64>,
    /// From one tap to the next.
    pub dilations: Vec<u64>,
    /// Padding before and behind.
    pub pads: Vec<(u64, u64)>,
}

impl Sliding {
    /// One step at a time without padding.
    pub fn plain(rank: usize) -> Self {
        Sliding { strides: vec![1; rank], dilations: vec![1; rank], pads: vec![(0, 0); rank] }
    }

    /// Whether it is for so many dimensions.
    pub fn has_dims(&self, rank: usize) -> bool {
        [self.strides.len(), self.dilations.len(), self.pads.len()] == [rank; 3]
    }

    /// Of one dimension, over images of one row.
    fn with_row(&self) -> Sliding {
        Sliding {
            strides: vec![1, self.strides[0]],
            dilations: vec![1, self.dilations[0]],
            pads: vec![(0, 0), self.pads[0]],
        }
    }

    /// Without the first dimension.
    fn inner(&self) -> Sliding {
        Sliding {
            strides: self.strides[1..].to_vec(),
            dilations: self.dilations[1..].to_vec(),
            pads: self.pads[1..].to_vec(),
        }
    }

    /// Places of a window of `kernel` taps over `size` elements in dimension `d`, if it fits.
    pub fn places(&self, d: usize, size: u64, kernel: u64) -> Option<u64> {
        let padded = size.checked_add(self.pads[d].0)?.checked_add(self.pads[d].1)?;
        let reach = self.dilations[d].checked_mul(kernel.checked_sub(1)?)?.checked_add(1)?;
        padded.checked_sub(reach)?.checked_div(self.strides[d])?.checked_add(1)
    }
}

impl Builder {
    /// Convolution of images x channels x … with filters x channels of a group x …, and a bias for each filter. Computed as
    /// `f32` or `f16`; the result has the type of the images.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn conv(
        &mut self,
        x: TensorId,
        filter: TensorId,
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let element = self.element(x);
        let rank = self.convolved(x, filter, sliding)?;
        let x = self.in_type_of(x, CONVOLVED, "a convolution")?;
        let dtype = self.element(x).storage();
        let filter = self.cast(filter, dtype)?;
        let bias = bias.map(|bias| self.cast(bias, dtype)).transpose()?;
        let inputs: Vec<_> = [x, filter].into_iter().chain(bias).collect();
        let (input, taps) = (self.sizes(x).to_vec(), self.dims(filter).to_vec());
        let made = match rank {
            1 => {
                let (pads, bias) = ([sliding.pads[0].0, sliding.pads[0].1], bias.is_some());
                let (stride, dilation) = (sliding.strides[0], sliding.dilations[0]);
                let plain = Conv1d::new(three(&input), three(&taps), dtype);
                Operation::Conv1d(Conv1d { stride, dilation, pads, groups, bias, ..plain })
            }
            2 => Operation::Conv2d(Conv2d {
                strides: two(&sliding.strides),
                dilations: two(&sliding.dilations),
                pads: four_pads(sliding),
                groups,
                bias: bias.is_some(),
                ..Conv2d::new(four(&input), four(&taps), dtype)
            }),
            _ => {
                let made = self.conv_by_slices(x, filter, bias, sliding, groups)?;
                return self.cast(made, element);
            }
        };
        crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
        let dims = made.outputs()[0].dims.clone();
        let made = self.kernel1(made, &inputs, dtype.into(), &dims)?;
        self.cast(made, element)
    }

    /// Number of dimensions that a filter slides over.
    pub(super) fn convolved(&self, x: TensorId, filter: TensorId, sliding: &Sliding) -> Result<usize> {
        let (input, taps) = (self.sizes(x), self.dims(filter));
        let rank = input.len().saturating_sub(2);
        let strides = sliding.strides.iter().chain(&sliding.dilations).all(|v| *v > 0);
        if rank == 0
            || taps.len() != rank + 2
            || !sliding.has_dims(rank)
            || !strides
            || taps[2..].contains(&0)
        {
            let what = self.describe(&[x, filter]);
            return Err(self.invalid(format!("no convolution of {what} with {sliding:?}")));
        }
        Ok(rank)
    }

    /// A convolution over three or more dimensions: each place of the first is an image, whose channels are those of all the
    /// taps of that dimension.
    fn conv_by_slices(
        &mut self,
        x: TensorId,
        filter: TensorId,
        bias: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let (slices, places) = self.taps_as_channels(x, self.dims(filter)[2], sliding)?;
        let mut taps = self.dims(filter).to_vec();
        taps[1] = elements(&taps[1..3]);
        taps.remove(2);
        let filter = self.reshape(filter, &taps)?;
        let made = self.conv(slices, filter, bias, &sliding.inner(), groups)?;
        let out = self.dims(made).to_vec();
        let images = self.dims(x)[0];
        let split = [&[images, places], &out[1..]].concat();
        let made = self.reshape(made, &split)?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
        self.transpose(made, &order)
    }

    /// Images x channels x depth x … as (images * places) x (channels * taps) x …; and the number of places.
    fn taps_as_channels(&mut self, x: TensorId, taps: u64, sliding: &Sliding) -> Result<(TensorId, u64)> {
        let dims = self.dims(x).to_vec();
        let places = sliding.places(0, dims[2], taps);
        let Some(places) = places else {
            return Err(self.invalid(format!("{taps} taps do not fit into {}", self.describe(&[x]))));
        };
        let mut borders = vec![(0, 0); dims.len()];
        borders[2] = (sliding.pads[0].0 as i64, sliding.pads[0].1 as i64);
        let padded = self.pad(x, &borders, Border::Constant, 0.0)?;
        let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..dims.len()).collect();
        let padded = self.transpose(padded, &order)?;
        let met =
            |tap| Range { start: tap * sliding.dilations[0], step: sliding.strides[0] as i64, count: places };
        Ok((self.slices_as_channels(padded, places, (0..taps).map(met))?, places))
    }

    /// Of images x slices x channels x …, `places` slices for each tap: as (images * places) x (channels * taps) x ….
    fn slices_as_channels(
        &mut self,
        slices: TensorId,
        places: u64,
        taps: impl Iterator<Item = Range>,
    ) -> Result<TensorId> {
        let shape = self.dims(slices).to_vec();
        let single = [&shape[..3], &[1], &shape[3..]].concat();
        let slices = self.reshape(slices, &single)?;
        let mut parts = Vec::new();
        for met in taps {
            let mut ranges: Vec<Range> = single.iter().map(|size| Range::all(*size)).collect();
            ranges[1] = met;
            parts.push(self.slice(slices, &ranges)?);
        }
        let joined = self.concat(&parts, 3)?;
        let merged = [&[shape[0] * places, shape[2] * parts.len() as u64], &shape[3..]].concat();
        self.reshape(joined, &merged)
    }

    /// Transposed convolution of images x channels x … with channels x filters of a group x …, as ONNX `ConvTranspose`;
    /// `pads` of `sliding` are cut off, `more` is added behind.
    ///
    /// # Errors
    /// The sizes do not go together.
    pub fn conv_transpose(
        &mut self,
        x: TensorId,
        filter: TensorId,
        bias: Option<TensorId>,
        sliding: &Sliding,
        more: &[u64],
        groups: u64,
    ) -> Result<TensorId> {
        let element = self.element(x);
        let rank = self.convolved(x, filter, sliding)?;
        if more.len() != rank {
            return Err(self.invalid(format!("{more:?} is no output padding of {rank} dimensions")));
        }
        let x = self.in_type_of(x, CONVOLVED, "a transposed convolution")?;
        let dtype = self.element(x).storage();
        let filter = self.cast(filter, dtype)?;
        let bias = bias.map(|bias| self.cast(bias, dtype)).transpose()?;
        let (input, taps) = (self.sizes(x).to_vec(), self.dims(filter).to_vec());
        let made = match rank {
            _ if input[1].is(taps[0].into()) && self.is_of_places(x, sliding, more, groups) => {
                self.conv_transpose_of_places(x, filter, bias)?
            }
            1 => {
                let wide = [input[0], input[1], 1.into(), input[2]];
                let sliding = sliding.with_row();
                let x = self.reshape_to(x, &wide)?;
                let filter = self.reshape(filter, &[taps[0], taps[1], 1, taps[2]])?;
                let made = self.conv_transpose(x, filter, bias, &sliding, &[0, more[0]], groups)?;
                let dims = self.sizes(made).to_vec();
                self.reshape_to(made, &[dims[0], dims[1], dims[3]])?
            }
            2 => {
                let made = Operation::ConvTranspose2d(ConvTranspose2d {
                    dilations: two(&sliding.dilations),
                    pads: four_pads(sliding),
                    output_padding: two(more),
                    groups,
                    bias: bias.is_some(),
                    ..ConvTranspose2d::new(four(&input), four(&taps), two(&sliding.strides), dtype)
                });
                crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
                let dims = made.outputs()[0].dims.clone();
                let inputs: Vec<_> = [x, filter].into_iter().chain(bias).collect();
                self.kernel1(made, &inputs, dtype.into(), &dims)?
            }
            _ => self.conv_transpose_of_volumes(x, &Transposed { filter, bias, sliding, more, groups })?,
        };
        self.cast(made, element)
    }

    /// Convolution of bytes with filters of `i8` as one operation: to bytes again, which `factor` of each filter scales and
    /// `zero` is added to. A `bias` of `i32` is added to the sums, one of `f32` to what they are by `factor`.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_to_bytes(
        &mut self,
        [x, filter, factor]: [TensorId; 3],
        bias: Option<TensorId>,
        input_zero: i32,
        (out, zero): (DType, i32),
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let out = (out, zero, [None, None]);
        self.conv_to_limited([x, filter, factor], bias, input_zero, out, sliding, groups)
    }

    /// The same, with the least and the most that results may be, where that is not what their type says.
    pub(super) fn conv_to_limited(
        &mut self,
        [x, filter, factor]: [TensorId; 3],
        bias: Option<TensorId>,
        input_zero: i32,
        (out, zero, [least, most]): (DType, i32, [Option<i32>; 2]),
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        self.convolved(x, filter, sliding)?;
        let filters = self.dims(filter)[0];
        let factor = self.cast(factor, DType::F32)?;
        let factor = self.expand(factor, &[filters])?;
        let data = self.element(x).storage();
        let signal = self.rank(x) == 3;
        let wide = if signal { sliding.with_row() } else { sliding.clone() };
        let made = Operation::Conv2dInt8(Conv2dInt8 {
            strides: two(&wide.strides),
            dilations: two(&wide.dilations),
            pads: four_pads(&wide),
            groups,
            input_zero,
            output_zero: zero,
            least,
            most,
            bias: bias.is_some(),
            bias_type: bias.map_or(DType::I32, |bias| self.element(bias).storage()),
            ..Conv2dInt8::new(planes(self.sizes(x)), planes(self.dims(filter)), data, out)
        });
        crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
        let mut dims = made.outputs()[0].dims.clone();
        if signal {
            dims.remove(2);
        }
        let inputs: Vec<_> = [x, filter].into_iter().chain(bias).chain([factor]).collect();
        self.kernel1(made, &inputs, out.into(), &dims)
    }

    /// Convolution of bytes less zero points, as exact `i32` sums. The zero point of the images is one number, which need
    /// not be known; that of the filters one, or one for each filter.
    ///
    /// # Errors
    /// The sizes or types do not go together.
    pub fn conv_of_bytes(
        &mut self,
        x: TensorId,
        zero: Option<TensorId>,
        filter: TensorId,
        filter_zero: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let known = match zero {
            None => Some(0),
            Some(zero) if self.tensor(zero).elements() != 1 => {
                return Err(self.unsupported("zero points of images for each channel; there is one for all"));
            }
            Some(zero) => self.ints(zero).map(|all| all[0]),
        };
        if let (None, Some(zero)) = (known, zero) {
            // The sum of w * (x - z) is that of w * x less z times that of w, over the taps that lie inside.
            let sums = self.conv_of_known_bytes(x, 0, filter, filter_zero, sliding, groups)?;
            let one = self.float(self.element(x), 1.0)?;
            let place = [&[Size::constant(1)], &self.sizes(x)[1..]].concat();
            let ones = self.expand_to(one, &place)?;
            let taps = self.conv_of_known_bytes(ones, 0, filter, filter_zero, sliding, groups)?;
            let zero = self.reshape(zero, &[])?;
            let zero = self.cast(zero, DType::I32)?;
            return self.add_product(sums, taps, zero, -1);
        }
        self.conv_of_known_bytes(x, known.unwrap_or(0), filter, filter_zero, sliding, groups)
    }

    fn conv_of_known_bytes(
        &mut self,
        x: TensorId,
        zero: i64,
        filter: TensorId,
        filter_zero: Option<TensorId>,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let rank = self.convolved(x, filter, sliding)?;
        if rank == 1 {
            let (input, taps) = (planes(self.sizes(x)), planes(self.dims(filter)));
            let (x, filter) = (self.reshape_to(x, &input)?, self.reshape(filter, &taps)?);
            let made = self.conv_of_known_bytes(x, zero, filter, filter_zero, &sliding.with_row(), groups)?;
            let dims = self.sizes(made).to_vec();
            return self.reshape_to(made, &[dims[0], dims[1], dims[3]]);
        }
        if rank > 2 {
            return Err(
                self.unsupported(format!("convolutions of bytes over {rank} dimensions; there are 1 and 2"))
            );
        }
        let (filter, offset) = self.signed_bytes(filter, filter_zero)?;
        let sums = self.conv2d_of_bytes(x, zero, filter, sliding, groups)?;
        let Some(offset) =
            offset.filter(|offset| self.ints(*offset).is_none_or(|all| all.iter().any(|v| *v != 0)))
        else {
            return Ok(sums);
        };
        // The sum of (w + p) * x is that of w * x and p times that of x, which a filter of ones gives for each group.
        let taps = self.dims(filter).to_vec();
        let ones_dims = [groups, taps[1], taps[2], taps[3]];
        let one = self.float(DType::I8, 1.0)?;
        let ones = self.expand(one, &ones_dims)?;
        let of_group = self.conv2d_of_bytes(x, zero, ones, sliding, groups)?;
        let out = self.sizes(sums).to_vec();
        let (filters, one) = (out[1].exact(), Size::constant(1));
        let each = filters / groups.max(1);
        let places = out[2] * out[3];
        let apart = self.reshape_to(of_group, &[out[0], groups.into(), one, places])?;
        let sums = self.reshape_to(sums, &[out[0], groups.into(), each.into(), places])?;
        let offset = match self.tensor(offset).elements() {
            1 => self.reshape(offset, &[])?,
            n if n == filters => self.reshape(offset, &[groups, each, 1])?,
            n => return Err(self.invalid(format!("{n} zero points for {filters} filters"))),
        };
        let made = self.add_product(sums, apart, offset, 1)?;
        self.reshape_to(made, &out)
    }

    fn conv2d_of_bytes(
        &mut self,
        x: TensorId,
        zero: i64,
        filter: TensorId,
        sliding: &Sliding,
        groups: u64,
    ) -> Result<TensorId> {
        let data = self.element(x).storage();
        let Ok(input_zero) = i32::try_from(zero) else {
            return Err(self.invalid(format!("a zero point of {zero}")));
        };
        let made = Operation::Conv2dInt8(Conv2dInt8 {
            strides: two(&sliding.strides),
            dilations: two(&sliding.dilations),
            pads: four_pads(sliding),
            groups,
            input_zero,
            ..Conv2dInt8::new(four(self.sizes(x)), four(self.dims(filter)), data, DType::I32)
        });
        crate::backend::check(&made).map_err(|reason| self.invalid(reason))?;
        let dims = made.outputs()[0].dims.clone();
        self.kernel1(made, &[x, filter], ElementType::Of(DType::I32), &dims)
    }

    /// A value for each channel, dimension 1, added.
    ///
    /// # Errors
    /// There are not as many.
    pub fn add_to_channels(&mut self, x: TensorId, bias: TensorId) -> Result<TensorId> {
        let rank = self.rank(x);
        let mut dims = vec![1; rank.saturating_sub(1)];
        if let Some(first) = dims.first_mut() {
            *first = self.tensor(bias).elements();
        }
        let bias = self.reshape(bias, &dims)?;
        self.binary(Function::Add, x, bias)
    }
}

pub(super) fn two(list: &[u64]) -> [u64; 2] {
    [list[0], list[1]]
}

fn three<N: Copy>(list: &[N]) -> [N; 3] {
    [list[0], list[1], list[2]]
}

pub(super) fn four<N: Copy>(list: &[N]) -> [N; 4] {
    [list[0], list[1], list[2], list[3]]
}

/// The sizes of a signal as those of images of one row, or those of images.
fn planes<N: Copy + From<u32>>(dims: &[N]) -> [N; 4] {
    if let [images, channels, places] = dims {
        [*images, *channels, N::from(1u32), *places]
    } else {
        four(dims)
    }
}

pub(super) fn four_pads(sliding: &Sliding) -> [u64; 4] {
    let [(top, bottom), (left, right)] = [sliding.pads[0], sliding.pads[1]];
    [top, left, bottom, right]
}

/// Filters of so many channels, groups and taps, with their taps in reverse.
pub(super) fn mirrored(filter: &[u64]) -> Vec<Range> {
    let range = |(d, size): (usize, &u64)| match d {
        0 | 1 => Range::all(*size),
        _ => Range { start: size - 1, step: -1, count: *size },
    };
    filter.iter().enumerate().map(range).collect()
}
