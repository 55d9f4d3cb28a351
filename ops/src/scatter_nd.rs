//! Updates of slices, each with several indices.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    gather::i32,
    gather_nd::{check_depth, slice_of},
    moves::{list, numbers},
    scatters::Reduction,
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, gather_nd::sample_slices};

/// `out = data`, then `out[indices[j, 0], indices[j, 1], …, i]` is combined with `updates[j, i]` for each j. Indices below 0
/// count from the end; updates of which an index is out of range are left out.
///
/// Results are the same in every run, also when indices repeat: updates of an element come in the order of j.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScatterNd {
    /// Sizes of the dimensions that are indexed, 6 at most.
    #[serde(deserialize_with = "list")]
    pub extents: Vec<Size>,
    /// Elements of a slice.
    #[serde(default = "one")]
    pub inner: Size,
    /// Number of slices that are updated.
    pub slices: Size,
    /// What becomes of an element and an update.
    #[serde(default)]
    pub reduction: Reduction,
    /// Type of data, updates and result.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

fn one() -> Size {
    Size::constant(1)
}

impl ScatterNd {
    fn data_dims(&self) -> Vec<Size> {
        self.extents.iter().copied().chain([self.inner]).collect()
    }
}

impl Op for ScatterNd {
    fn check(&self) -> Result<(), String> {
        check_depth(self.extents.len(), self.index)?;
        self.reduction.check(self.dtype)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("data", self.dtype, self.data_dims()),
            TensorDesc::new("indices", self.index, [self.slices, self.extents.len().into()]),
            TensorDesc::new("updates", self.dtype, [self.slices, self.inner]),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.data_dims())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype, &mut self.index]
    }

    fn signature(&self) -> String {
        self.reduction.signature(self.dtype, self.index)
    }

    fn flops(&self) -> f64 {
        if self.reduction == Reduction::None { 0.0 } else { self.slices.as_f64() * self.inner.as_f64() }
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (extents, inner) = (numbers(&self.extents), self.inner.exact_usize());
        let depth = extents.len();
        let mut out = inputs[0].clone();
        for j in 0..self.slices.exact_usize() {
            let Some(slice) = slice_of(&inputs[1], j * depth, &extents) else { continue };
            for i in 0..inner {
                self.reduction.apply(
                    self.dtype,
                    &mut out,
                    slice as usize * inner + i,
                    &inputs[2],
                    j * inner + i,
                );
            }
        }
        vec![out]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        self.reduction.tolerance(self.dtype, self.slices.value())
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for ScatterNd {
    fn samples() -> Vec<ScatterNd> {
        let op = |extents: &[u64], inner: u64, slices: u64| ScatterNd {
            extents: extents.iter().map(Size::from).collect(),
            inner: inner.into(),
            slices: slices.into(),
            reduction: Reduction::None,
            dtype: DType::F32,
            index: DType::I32,
        };
        let shapes = [
            op(&[10], 1, 23),
            op(&[4, 5], 3, 17),
            op(&[6], 16, 5),
            op(&[50], 40, 33),
            op(&[3, 2, 2, 3, 2, 2], 1, 90),
            op(&[3, 4], 8, 0),
            op(&[0], 8, 2),
        ];
        // More workgroups than a row of the grid has.
        let wide = op(&[2], 65536 * 64 + 5, 1);
        let mut samples = vec![ScatterNd { reduction: Reduction::Max, dtype: DType::U8, ..wide }];
        for dtype in DType::ALL {
            for reduction in Reduction::ALL.into_iter().filter(|r| r.check(dtype).is_ok()) {
                let of = |shape: &ScatterNd| ScatterNd { reduction, dtype, ..shape.clone() };
                samples.extend(shapes.iter().map(of));
                samples.push(ScatterNd { index: DType::I64, ..of(&shapes[1]) });
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_slices(self.slices.exact(), &numbers(&self.extents), self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_scatters() {
        let op = ScatterNd {
            extents: vec![4.into()],
            inner: 2.into(),
            slices: 3.into(),
            reduction: Reduction::Add,
            dtype: DType::I32,
            index: DType::I64,
        };
        let inputs =
            [Values::Int((0..8).collect()), Values::Int(vec![1, 4, -3]), Values::Int((10..16).collect())];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![0, 1, 26, 29, 4, 5, 6, 7])]);
    }
}
