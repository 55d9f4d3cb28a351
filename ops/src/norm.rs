//! Normalizations: layer, root mean square, group, instance, and batch normalization as inference does it.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    Activation, DType, Exact, Op, TensorDesc, Tolerance, Values,
    line_order::LineOrder,
    lines::{self, Lines},
};

/// Which elements are normalized together, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    /// Channels and spatial elements of a group, by their mean and variance. Layer normalization has one group and
    /// `spatial` 1, instance normalization a group for each channel.
    Group,
    /// The same, by the mean of squares alone.
    Rms,
    /// Nothing: mean and variance of each channel are inputs, behind `in`.
    Batch,
}

/// Normalizes a tensor of batch x channels x spatial elements:
/// `activation((x - mean) / sqrt(variance + epsilon) * scale[channel] + bias[channel])`. The variance is the mean of the squares of
/// differences from the mean, without Bessel's correction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Norm {
    /// What is normalized together.
    #[serde(default = "group")]
    pub kind: NormKind,
    /// Product of the axes before the channels.
    #[serde(default = "lines::one")]
    pub batch: Size,
    /// Elements with a scale and a bias of their own.
    pub channels: u64,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub spatial: Size,
    /// Groups of neighbouring channels.
    #[serde(default = "one")]
    pub groups: u64,
    /// Whether there is a factor for each channel.
    #[serde(default)]
    pub scale: bool,
    /// Whether something is added for each channel.
    #[serde(default)]
    pub bias: bool,
    /// Added to the variance.
    #[serde(default = "epsilon")]
    pub epsilon: Exact<f32>,
    /// Type of all tensors: `f32`, `f16` or `bf16`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
    /// What is applied to the results; nothing behind batch normalization, and to lines of an order.
    #[serde(default, skip_serializing_if = "Activation::is_none")]
    pub activation: Activation,
    /// Whether the channels come last: tensors of batch x spatial x channels. They are groups then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub channels_last: bool,
    /// How lines are read and written, if not one behind the other: those of one group without spatial elements, which have their
    /// own mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Box<LineOrder>>,
}

fn group() -> NormKind {
    NormKind::Group
}

fn one() -> u64 {
    1
}

fn epsilon() -> Exact<f32> {
    Exact(1e-5)
}

impl Norm {
    /// So many lines of so many elements, without scale and bias.
    pub fn of_lines(kind: NormKind, lines: Size, length: u64, epsilon: Exact<f32>, dtype: DType) -> Norm {
        Norm {
            kind,
            batch: lines,
            channels: length,
            spatial: 1.into(),
            groups: 1,
            scale: false,
            bias: false,
            epsilon,
            dtype,
            activation: Activation::None,
            channels_last: false,
            order: None,
        }
    }

    /// Whether it does nothing but normalize lines of neighbouring elements, each with a scale and a bias of its own.
    pub fn is_of_lines(&self) -> bool {
        let is_plain = self.order.is_none() && self.activation.is_none() && !self.channels_last;
        is_plain && self.kind != NormKind::Batch && self.groups == 1 && self.spatial == 1
    }

    /// The lines that are normalized, one behind the other unless channels come last.
    pub fn lines(&self) -> Lines {
        let length = self.channels / self.groups.max(1) * self.spatial;
        Lines { outer: self.batch * self.groups, length, inner: 1.into() }
    }

    /// Number of elements.
    pub fn elements(&self) -> Size {
        self.batch * self.channels * self.spatial
    }
}

impl Norm {
    /// Which inputs have the scale and the bias, or the elements where there is none.
    pub fn channel_inputs(&self) -> [usize; 2] {
        let first = if self.kind == NormKind::Batch { 3 } else { 1 };
        let scale = if self.scale { first } else { 0 };
        let bias = if self.bias { first + usize::from(self.scale) } else { 0 };
        [scale, bias]
    }

    /// Sizes of the tensor.
    fn sizes(&self) -> [Size; 3] {
        let channels = self.channels.into();
        if self.channels_last {
            [self.batch, self.spatial, channels]
        } else {
            [self.batch, channels, self.spatial]
        }
    }

    /// Where the elements of every line are read, and where they are written.
    fn places(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let same = |line: Vec<usize>| (line.clone(), line);
        if self.channels_last {
            return self.groups_of_images().map(same).collect();
        }
        let Some(order) = &self.order else {
            return self.lines().places().map(same).collect();
        };
        let (read, write) = order.steps();
        let (read, write) = (read.exact(), write.exact());
        let line = |base: u64, step: u64| (0..self.channels).map(|at| (base + at * step) as usize).collect();
        let places = |number: u64| {
            let (from, to) = order.bases(number);
            (line(from, read), line(to, write))
        };
        (0..self.batch.exact()).map(places).collect()
    }

    /// Where the elements of each group of each image lie, channels being last.
    fn groups_of_images(&self) -> impl Iterator<Item = Vec<usize>> {
        let (spatial, channels) = (self.spatial.exact(), self.channels);
        let (groups, width) = (self.groups, channels / self.groups.max(1));
        let group = move |image: u64, group: u64| {
            let first = move |place: u64| (image * spatial + place) * channels + group * width;
            (0..spatial)
                .flat_map(move |place| first(place)..first(place) + width)
                .map(|at| at as usize)
                .collect()
        };
        (0..self.batch.exact()).flat_map(move |image| (0..groups).map(move |number| group(image, number)))
    }

    /// The channel of an element, in a tensor without an order.
    fn channel(&self, at: usize) -> usize {
        let behind = if self.channels_last { 1 } else { self.spatial.exact_usize().max(1) };
        at / behind % self.channels.max(1) as usize
    }

    /// Mean and variance of a line.
    fn moments(&self, inputs: &[Values], line: &[usize]) -> (f64, f64) {
        let count = line.len() as f64;
        let mean = match self.kind {
            NormKind::Rms => 0.0,
            _ => line.iter().map(|at| inputs[0].float(*at)).sum::<f64>() / count,
        };
        let squares = line.iter().map(|at| (inputs[0].float(*at) - mean).powi(2)).sum::<f64>();
        (mean, squares / count)
    }
}

impl Op for Norm {
    fn check(&self) -> Result<(), String> {
        if !self.dtype.is_small_float() {
            return Err("elements are f32, f16 or bf16".into());
        }
        if self.groups == 0 || !self.channels.is_multiple_of(self.groups) {
            return Err("channels are a multiple of groups".into());
        }
        if self.kind == NormKind::Batch && self.groups != 1 {
            return Err("batch normalization has no groups".into());
        }
        if let Some(order) = &self.order {
            if self.kind == NormKind::Batch || self.groups != 1 || self.spatial != 1 {
                return Err("lines of an order are of one group, without spatial elements".into());
            }
            order.check(self.batch, self.channels.into())?;
        }
        let is_of_groups = self.kind != NormKind::Batch && self.order.is_none();
        if !is_of_groups && (self.channels_last || !self.activation.is_none()) {
            return Err("channels that come last, and activations, are for groups in no other order".into());
        }
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let channels = |name| TensorDesc::new(name, self.dtype, [self.channels]);
        let elements = match &self.order {
            Some(order) => TensorDesc::new("in", self.dtype, [order.source]),
            None => TensorDesc::new("in", self.dtype, self.sizes()),
        };
        let mut inputs = vec![elements];
        if self.kind == NormKind::Batch {
            inputs.extend([channels("mean"), channels("variance")]);
        }
        inputs.extend(self.scale.then(|| channels("scale")));
        inputs.extend(self.bias.then(|| channels("bias")));
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.sizes())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        let kind = match self.kind {
            NormKind::Batch => "batch_",
            _ if self.channels_last => "last_",
            _ => "",
        };
        format!("{kind}{}", self.dtype)
    }

    fn flops(&self) -> f64 {
        6.0 * self.elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let [scale, bias] = self.channel_inputs();
        let mut out = vec![0.0; self.elements().exact_usize()];
        for (line, to) in self.places() {
            let own = (self.kind != NormKind::Batch).then(|| self.moments(inputs, &line));
            for (element, (at, to)) in line.into_iter().zip(to).enumerate() {
                let c = if self.order.is_some() { element } else { self.channel(at) };
                let (mean, variance) = own.unwrap_or_else(|| (inputs[1].float(c), inputs[2].float(c)));
                let factor = (variance + f64::from(self.epsilon.0)).sqrt().recip();
                let mut value = (inputs[0].float(at) - mean) * factor;
                value *= if self.scale { inputs[scale].float(c) } else { 1.0 };
                value += if self.bias { inputs[bias].float(c) } else { 0.0 };
                out[to] = self.dtype.round(self.activation.apply(value));
            }
        }
        vec![Values::Float(out)]
    }

    /// The mean is off by a `length`-th of what [`Tolerance::of_sum`] says, a difference from it by one rounding more, and
    /// the variance by a part of itself, as all its terms are positive. The division by the deviation makes
    /// absolute errors larger: deviations of what kernels are tried with are at least a tenth of the magnitude.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let (u, length) = (DType::F32.epsilon(), self.lines().length.as_f64().max(1.0));
        let of_last = |back: usize| magnitudes[magnitudes.len() - back];
        let channel = if self.scale { of_last(1 + usize::from(self.bias)).max(1.0) } else { 1.0 };
        // A difference from the mean is at most two magnitudes.
        let difference = 8.0 * (length.sqrt().recip() + 1.0) * u * 10.0;
        let bias = if self.bias { 2.0 * u * of_last(1) } else { 0.0 };
        let computed = Tolerance {
            absolute: difference * channel + bias + self.dtype.min_normal(),
            relative: (16.0 + 8.0 * length.sqrt()) * u + self.dtype.epsilon(),
        };
        self.activation.after(computed)
    }
}

/// Lines that are read and written in other orders.
#[cfg(any(test, feature = "testing"))]
fn ordered(dtype: DType) -> Vec<Norm> {
    /// Kind, channels, sizes, elements that are read, the first, from, to.
    type Sample = (NormKind, u64, &'static [u64], u64, u64, &'static [u64], &'static [u64]);
    const SAMPLES: &[Sample] = &[
        // Columns to rows, rows to columns, columns to columns.
        (NormKind::Group, 40, &[2, 35], 2800, 0, &[1400, 1, 35], &[1400, 40, 1]),
        (NormKind::Group, 24, &[70], 1680, 0, &[24, 1], &[1, 70]),
        (NormKind::Rms, 9, &[3, 17], 459, 0, &[153, 1, 17], &[153, 1, 17]),
        // Windows of 2x3 rows of 4x6; a part of longer rows.
        (NormKind::Group, 16, &[2, 2, 2, 3], 384, 0, &[192, 48, 96, 16, 1], &[192, 96, 48, 16, 1]),
        (NormKind::Group, 33, &[2, 2, 2, 3], 792, 0, &[396, 99, 198, 33, 1], &[396, 198, 99, 33, 1]),
        (NormKind::Rms, 64, &[21], 2688, 64, &[128, 1], &[64, 1]),
        (NormKind::Rms, 8, &[5], 200, 3, &[40, 2], &[8, 1]),
    ];
    let sizes = |list: &[u64]| list.iter().map(Size::from).collect::<Vec<Size>>();
    let of = |(kind, channels, lines, source, offset, from, to): &Sample| {
        let (source, offset) = (source.into(), offset.into());
        let order = LineOrder { sizes: sizes(lines), source, offset, from: sizes(from), to: sizes(to) };
        let batch = lines.iter().product::<u64>().into();
        let plain = Norm::of_lines(*kind, batch, *channels, epsilon(), dtype);
        Norm { scale: true, bias: *kind == NormKind::Group, order: Some(Box::new(order)), ..plain }
    };
    SAMPLES.iter().map(of).collect()
}

/// Groups in images, with activations: of channels that come first, and of some that come last.
#[cfg(any(test, feature = "testing"))]
fn in_images(dtype: DType) -> Vec<Norm> {
    use Activation as A;
    use NormKind::{Group, Rms};
    /// Kind, images, channels, places, groups, activation, whether channels come last.
    type Sample = (NormKind, u64, u64, u64, u64, Activation, bool);
    const SAMPLES: &[Sample] = &[
        (Group, 2, 6, 36, 3, A::Silu, false),
        (Group, 1, 6, 1504, 2, A::Relu, false),
        (Group, 2, 6, 35, 2, A::Gelu, false),
        (Rms, 3, 40, 1, 1, A::Tanh, false),
        // Of two groups, of parts of them, of single channels.
        (Group, 2, 40, 36, 4, A::Silu, true),
        (Group, 1, 320, 300, 32, A::None, true),
        (Group, 2, 6, 35, 2, A::Relu, true),
        (Group, 2, 3, 49, 3, A::None, true),
        (Group, 1, 12, 900, 12, A::Relu6, true),
        (Group, 2, 64, 5003, 8, A::Silu, true),
        (Group, 2, 2036, 10, 1, A::Gelu, true),
        (Rms, 1, 8, 4000, 1, A::None, true),
        (Rms, 2, 30, 77, 3, A::Mish, true),
        (Group, 3, 16, 1, 2, A::HardSwish, true),
        (Group, 0, 8, 9, 2, A::None, true),
        (Group, 2, 1280, 64, 32, A::Silu, true),
        (Group, 1, 1100, 6, 1100, A::None, true),
    ];
    let of = |(index, sample): (usize, &Sample)| {
        let (kind, images, channels, places, groups, activation, channels_last) = *sample;
        let (scale, bias) = (index % 5 != 3, index % 4 != 2 && kind != Rms);
        let plain = Norm::of_lines(kind, images.into(), channels, epsilon(), dtype);
        Norm { spatial: places.into(), groups, scale, bias, activation, channels_last, ..plain }
    };
    SAMPLES.iter().enumerate().map(of).collect()
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Norm {
    fn samples() -> Vec<Norm> {
        use NormKind::{Batch, Group, Rms};
        let shapes = [
            (Group, 3, 40, 1, 1),
            (Group, 130, 7, 1, 1),
            (Rms, 2, 1001, 1, 1),
            (Rms, 3, 4096, 1, 1),
            (Group, 1, 20_000, 1, 1),
            (Rms, 1, 20_001, 1, 1),
            (Group, 2, 6, 35, 2),
            (Group, 2, 6, 36, 3),
            (Group, 1, 4, 20_000, 2),
            (Group, 2, 3, 49, 3),
            (Group, 0, 8, 1, 1),
            (Batch, 2, 5, 7, 1),
            (Batch, 2, 3, 64, 1),
            (Batch, 1, 100, 1, 1),
            (Batch, 0, 4, 4, 1),
            (Group, 1, 6, 1504, 2),
            (Rms, 1, 8, 4000, 1),
            (Group, 2, 6, 3004, 2),
        ];
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            for (index, (kind, batch, channels, spatial, groups)) in shapes.into_iter().enumerate() {
                let (scale, bias) = (index % 4 != 3, index % 3 != 1 && kind != Rms);
                let plain = Norm::of_lines(kind, batch.into(), channels, epsilon(), dtype);
                samples.push(Norm { spatial: spatial.into(), groups, scale, bias, ..plain });
            }
            samples.extend(ordered(dtype));
            samples.extend(in_images(dtype));
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        // Variances are positive.
        let positive = |_| self.dtype.round((50 + random() % 1000) as f64 / 1000.0);
        (self.kind == NormKind::Batch && index == 2)
            .then(|| Values::Float((0..self.channels).map(positive).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn norm(kind: NormKind, batch: u64, channels: u64, groups: u64) -> Norm {
        Norm { groups, ..Norm::of_lines(kind, batch.into(), channels, Exact(0.0), DType::F32) }
    }

    #[test]
    fn the_reference_normalizes() {
        let x = Values::Float(vec![1.0, 3.0, 10.0, 30.0]);
        let out = norm(NormKind::Group, 2, 2, 1).reference(std::slice::from_ref(&x));
        assert_eq!(out[0].floats(), [-1.0, 1.0, -1.0, 1.0]);
        let out = norm(NormKind::Group, 1, 4, 2).reference(std::slice::from_ref(&x));
        assert_eq!(out[0].floats(), [-1.0, 1.0, -1.0, 1.0]);
        let out = norm(NormKind::Rms, 1, 2, 1).reference(&[Values::Float(vec![3.0, -3.0])]);
        assert_eq!(out[0].floats(), [1.0, -1.0]);
    }

    #[test]
    fn channels_may_come_last_and_activations_follow() {
        // Two places of four channels, of which two are a group.
        let x = Values::Float(vec![1.0, 2.0, 10.0, 10.0, 3.0, 2.0, 30.0, 30.0]);
        let groups = Norm { spatial: 2.into(), channels_last: true, ..norm(NormKind::Group, 1, 4, 2) };
        let out = groups.reference(std::slice::from_ref(&x));
        let root = 2f64.sqrt();
        let expected = [-root, 0.0, -1.0, -1.0, root, 0.0, 1.0, 1.0];
        assert!(out[0].floats().iter().zip(expected).all(|(got, wanted)| (got - wanted).abs() < 1e-6));
        let op = Norm { scale: true, bias: true, activation: Activation::Relu, ..groups };
        let of = |v: [f64; 4]| Values::Float(v.to_vec());
        let out = op.reference(&[x, of([1.0, 1.0, 2.0, 3.0]), of([0.0, 5.0, 1.0, 4.0])]);
        let expected = [0.0, 5.0, 0.0, 1.0, root, 5.0, 3.0, 7.0];
        assert!(out[0].floats().iter().zip(expected).all(|(got, wanted)| (got - wanted).abs() < 1e-6));
        assert_eq!(op.inputs()[0].dims, [1, 2, 4]);
        assert_eq!(op.signature(), "last_f32");
    }

    #[test]
    fn what_kernels_do_not_know_is_refused() {
        let plain = norm(NormKind::Batch, 1, 4, 1);
        assert!(Norm { activation: Activation::Relu, ..plain.clone() }.check().is_err());
        assert!(Norm { channels_last: true, ..plain }.check().is_err());
    }

    #[test]
    fn batch_normalization_takes_what_is_given() {
        let op = Norm { scale: true, bias: true, ..norm(NormKind::Batch, 2, 2, 1) };
        let of = |v: [f64; 2]| Values::Float(v.to_vec());
        let x = Values::Float(vec![1.0, 2.0, 3.0, 4.0]);
        let inputs = [x, of([1.0, 0.0]), of([4.0, 1.0]), of([2.0, 1.0]), of([0.5, -1.0])];
        assert_eq!(op.reference(&inputs)[0].floats(), [0.5, 1.0, 2.5, 3.0]);
        let names: Vec<_> = op.inputs().iter().map(|t| t.name).collect();
        assert_eq!(names, ["in", "mean", "variance", "scale", "bias"]);
    }
}
