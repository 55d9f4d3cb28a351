//! Pooling of images: the largest element, the mean, or a norm of each window.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, Operation, TensorDesc, Tolerance, Values,
    conv2d::ones,
    dtype::f32,
    runs::{self, Apart, Runs},
    window::{Layout, Window},
};

/// What is computed of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The largest element; NaN where there is one, negative infinity where there is no element.
    Max,
    /// The mean of the elements in the image.
    Average,
    /// The mean with the zeros of the padding, as far as the padding reaches (`count_include_pad`).
    AveragePadded,
    /// The sum of magnitudes (`LpPool` with p = 1).
    L1,
    /// The Euclidean norm (`LpPool` with p = 2).
    L2,
}

/// Pooling of images, channel by channel. Global pooling has a kernel of the image's size. Sums are `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool2d {
    /// Images, channels, rows, columns, in the order of `layout`.
    pub input: [Size; 4],
    /// Rows and columns of the window.
    pub kernel: [u64; 2],
    /// What is computed.
    pub kind: Pooling,
    /// Rows and columns from one place of the window to the next.
    #[serde(default = "ones")]
    pub strides: [u64; 2],
    /// Rows and columns from one tap to the next.
    #[serde(default = "ones")]
    pub dilations: [u64; 2],
    /// Around the image: top, left, bottom, right.
    #[serde(default)]
    pub pads: [u64; 4],
    /// Whether a last place counts that the image does not fill (`ceil_mode`).
    #[serde(default)]
    pub ceil: bool,
    /// Type of both tensors: `f32` or `f16`.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// How images lie.
    #[serde(default)]
    pub layout: Layout,
    /// How the images lie in a larger tensor, which is read instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Runs>,
    /// Where the result is written in a larger tensor, of which the rest stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Runs>,
}

impl Pool2d {
    /// Pooling with windows side by side, without padding.
    pub fn new(input: [impl Into<Size>; 4], kernel: [u64; 2], kind: Pooling, dtype: DType) -> Self {
        let (strides, dilations, pads) = (kernel, ones(), [0; 4]);
        let input = input.map(Into::into);
        Pool2d {
            input,
            kernel,
            kind,
            strides,
            dilations,
            pads,
            ceil: false,
            dtype,
            layout: Layout::Nchw,
            read: None,
            written: None,
        }
    }

    /// Images, channels and the window.
    pub fn shape(&self) -> (Size, Size, Window) {
        let [n, a, b, c] = self.input;
        let (channels, input) = if self.layout == Layout::Nchw { (a, [b, c]) } else { (c, [a, b]) };
        let (kernel, strides, dilations) = (self.kernel, self.strides, self.dilations);
        (n, channels, Window { input, kernel, strides, dilations, pads: self.pads, ceil: self.ceil })
    }

    /// The images by themselves.
    fn images(&self) -> TensorDesc {
        TensorDesc::new("input", self.dtype, self.input)
    }

    /// The result by itself.
    fn result(&self) -> TensorDesc {
        TensorDesc::new("out", self.dtype, self.output_dims())
    }

    fn output_dims(&self) -> [Size; 4] {
        let (images, channels, window) = self.shape();
        if window.check().is_err() {
            return [Size::constant(0); 4];
        }
        let [rows, columns] = window.output();
        match self.layout {
            Layout::Nchw => [images, channels, rows, columns],
            Layout::Nhwc => [images, rows, columns, channels],
        }
    }

    /// The elements of a window and how many there are with padding.
    fn window_of(&self, place: [u64; 4], input: &Values) -> (Vec<f64>, u64) {
        let (_, channels, window) = self.shape();
        let channels = channels.exact();
        let [image, channel, row, column] = place;
        let ([height, width], mut elements, mut padded) = (window.input.map(Size::exact), Vec::new(), 0);
        for (ky, kx) in (0..self.kernel[0]).flat_map(|ky| (0..self.kernel[1]).map(move |kx| (ky, kx))) {
            let inside = |d: usize, at| at < window.pads[d] + window.input[d].exact() + window.pads[d + 2];
            if inside(0, window.padded(0, row, ky)) && inside(1, window.padded(1, column, kx)) {
                padded += 1;
            }
            let Some((y, x)) = window.element(0, row, ky).zip(window.element(1, column, kx)) else {
                continue;
            };
            let at = match self.layout {
                Layout::Nchw => ((image * channels + channel) * height + y) * width + x,
                Layout::Nhwc => ((image * height + y) * width + x) * channels + channel,
            };
            elements.push(input.float(at as usize));
        }
        (elements, padded)
    }
}

impl Op for Pool2d {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.dtype, DType::F32 | DType::F16) {
            return Err(format!("tensors are f32 or f16, not {}", self.dtype));
        }
        self.shape().2.check()?;
        self.read.map_or(Ok(()), |runs| runs.check(&self.images()))?;
        self.written.map_or(Ok(()), |runs| runs.check(&self.result()))
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![self.read.map_or(self.images(), |runs| runs.whole(self.images()))]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![self.written.map_or(self.result(), |runs| runs.whole(self.result()))]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        let results: f64 = self.output_dims().iter().map(|d| d.as_f64()).product();
        results * self.kernel[0] as f64 * self.kernel[1] as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &runs::zeros(&self.outputs()))
    }

    fn updates(&self, _output: usize) -> bool {
        self.written.is_some()
    }

    fn apart(&self) -> Option<Apart> {
        let operation = Pool2d { read: None, written: None, ..self.clone() };
        Apart::of(Operation::Pool2d(operation), self.read, self.written)
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let inputs = &runs::first_taken(self.read, inputs);
        let [images, b, c, d] = self.output_dims().map(Size::exact);
        let each = (0..images).flat_map(|n| {
            (0..b).flat_map(move |y| (0..c).flat_map(move |z| (0..d).map(move |w| [n, y, z, w])))
        });
        let result = |at: [u64; 4]| {
            let place = if self.layout == Layout::Nchw { at } else { [at[0], at[3], at[1], at[2]] };
            let (elements, padded) = self.window_of(place, &inputs[0]);
            let sum = |f: fn(f64) -> f64| elements.iter().map(|x| f(*x)).sum::<f64>();
            self.dtype.round(match self.kind {
                Pooling::Max => elements
                    .iter()
                    .fold(f64::NEG_INFINITY, |most, x| if x.is_nan() || *x > most { *x } else { most }),
                Pooling::Average => sum(|x| x) / elements.len() as f64,
                Pooling::AveragePadded => sum(|x| x) / padded as f64,
                Pooling::L1 => sum(f64::abs),
                Pooling::L2 => sum(|x| x * x).sqrt(),
            })
        };
        let results = vec![Values::Float(each.map(result).collect())];
        runs::first_put(self.written, results, before)
    }

    /// A mean has the error of its sum over its length, but edges have short sums: the sum's is taken. Norms have terms of
    /// one sign, so that their partial sums grow, and with them what is lost: (n-1) * u * sum at most (Higham, Accuracy
    /// and Stability of Numerical Algorithms, section 4.2). A square root halves relative errors; near 0 it makes
    /// `sqrt(e)` of an error `e`, which only lost squares of tiny elements cause.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if self.kind == Pooling::Max {
            return Tolerance { absolute: self.dtype.min_normal(), relative: 0.0 };
        }
        let length = (self.kernel[0] * self.kernel[1]) as f64;
        let sum = Tolerance::of_sum(length as u64, magnitudes[0], DType::F32, self.dtype);
        let lost = sum.relative + (length / 2.0 + 4.0) * DType::F32.epsilon();
        match self.kind {
            Pooling::L1 => Tolerance { absolute: length * self.dtype.min_normal(), relative: lost },
            Pooling::L2 => Tolerance {
                absolute: (length * DType::F32.min_normal()).sqrt() + self.dtype.min_normal(),
                relative: lost,
            },
            _ => sum,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Pool2d {
    fn samples() -> Vec<Pool2d> {
        let kinds = [Pooling::Max, Pooling::Average, Pooling::AveragePadded, Pooling::L1, Pooling::L2];
        let mut samples = Vec::new();
        for (dtype, kind) in [DType::F32, DType::F16].into_iter().flat_map(|t| kinds.map(|k| (t, k))) {
            let pool = |input: [u64; 4], kernel| Pool2d::new(input, kernel, kind, dtype);
            let padded = Pool2d { strides: [2, 2], pads: [1, 1, 1, 1], ..pool([2, 3, 11, 14], [3, 3]) };
            samples.extend([
                pool([2, 5, 8, 6], [2, 2]),
                pool([2, 33, 7, 7], [7, 7]),
                padded.clone(),
                Pool2d { ceil: true, ..padded.clone() },
                Pool2d { dilations: [2, 1], pads: [1, 0, 2, 1], strides: [1, 3], ..padded },
                Pool2d { layout: Layout::Nhwc, strides: [1, 1], ..pool([1, 5, 6, 7], [3, 2]) },
                Pool2d { strides: [1, 1], ..pool([1, 1, 40, 40], [37, 39]) },
                Pool2d { strides: [3, 2], pads: [2, 5, 0, 3], ceil: true, ..pool([2, 3, 9, 70], [3, 67]) },
                Pool2d { layout: Layout::Nhwc, ..pool([2, 4, 18, 5], [4, 17]) },
                // Channels last, in fours.
                Pool2d {
                    layout: Layout::Nhwc,
                    strides: [2, 1],
                    pads: [1, 0, 2, 1],
                    dilations: [1, 2],
                    ceil: true,
                    ..pool([2, 11, 9, 12], [3, 3])
                },
                Pool2d { layout: Layout::Nhwc, ..pool([1, 9, 14, 8], [5, 7]) },
                pool([0, 2, 3, 3], [2, 2]),
                pool([1, 2, 3, 3], [4, 2]),
            ]);
        }
        // So many results that invocations have several.
        let many = Pool2d::new([1u64, 1, 1026, 1026], [2, 2], Pooling::Average, DType::F32);
        samples.push(Pool2d { strides: [1, 1], ..many });
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_pools() {
        let pool = |kind| {
            let op = Pool2d::new([1u64, 1, 2, 3], [2, 2], kind, DType::F32);
            let op = Pool2d { pads: [0, 1, 0, 0], ..op };
            op.reference(&[Values::Float(vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0])])[0].floats()
        };
        assert_eq!(pool(Pooling::Max), [4.0, 5.0]);
        assert_eq!(pool(Pooling::Average), [2.5, 0.0]);
        assert_eq!(pool(Pooling::AveragePadded), [1.25, 0.0]);
        assert_eq!(pool(Pooling::L1), [5.0, 16.0]);
        assert_eq!(pool(Pooling::L2)[1], f64::from(74f32.sqrt()));
    }
}
