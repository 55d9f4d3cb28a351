//! The strided copy: transposing, cutting, expanding, reversing and splitting tensors are cases of it.

use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    conv2d::f32,
    moves::{MOST_DIMS, coordinates, dense_strides, list, pick, product, size_name},
};

/// A dense result, `out[i, j, …] = source[offset + i * strides[0] + j * strides[1] + …]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StridedCopy {
    /// Elements of the source.
    pub source: u64,
    /// Sizes of the result, 6 at most, the innermost last.
    #[serde(deserialize_with = "list")]
    pub shape: Vec<u64>,
    /// Elements in the source from a place to the next in each dimension; 0 repeats, a negative one walks backwards.
    #[serde(deserialize_with = "list")]
    pub strides: Vec<i64>,
    /// The first element in the source.
    #[serde(default)]
    pub offset: u64,
    /// Type of both tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
}

impl StridedCopy {
    /// Dimension `d` of the result is dimension `order[d]` of the source, which has the sizes `dims`.
    pub fn transpose(dims: &[u64], order: &[usize], dtype: DType) -> Self {
        let strides = dense_strides(dims);
        let (shape, strides) = order.iter().map(|d| (dims[*d], strides[*d])).unzip();
        StridedCopy { source: product(dims), shape, strides, offset: 0, dtype }
    }

    /// The part of a tensor of `dims` that begins at `first` and has the sizes `shape`, of which every `steps`-th place is
    /// taken; negative steps walk backwards.
    pub fn slice(dims: &[u64], first: &[u64], shape: &[u64], steps: &[i64], dtype: DType) -> Self {
        let places = dense_strides(dims);
        let offset = first.iter().zip(&places).map(|(at, stride)| at * stride.unsigned_abs()).sum();
        let strides = places.iter().zip(steps).map(|(stride, step)| stride * step).collect();
        StridedCopy { source: product(dims), shape: shape.to_vec(), strides, offset, dtype }
    }

    /// A tensor of `dims` repeated along dimensions where it has 1 or none, as NumPy broadcasts.
    pub fn expand(dims: &[u64], shape: &[u64], dtype: DType) -> Self {
        let missing = shape.len().saturating_sub(dims.len());
        let places = dims.iter().zip(dense_strides(dims));
        let repeated = places.map(|(dim, stride)| if *dim == 1 { 0 } else { stride });
        let strides = std::iter::repeat_n(0, missing).chain(repeated).collect();
        StridedCopy { source: product(dims), shape: shape.to_vec(), strides, offset: 0, dtype }
    }
}

#[cfg(any(test, feature = "testing"))]
impl StridedCopy {
    fn samples_of(dtype: DType) -> Vec<StridedCopy> {
        let transpose = |dims: &[u64], order: &[usize]| Self::transpose(dims, order, dtype);
        let slice = |dims: &[u64], first: &[u64], shape: &[u64], steps: &[i64]| {
            Self::slice(dims, first, shape, steps, dtype)
        };
        vec![
            transpose(&[1], &[0]),
            transpose(&[1003], &[0]),
            transpose(&[64, 96], &[1, 0]),
            transpose(&[100, 68], &[1, 0]),
            transpose(&[37, 53], &[1, 0]),
            transpose(&[3, 40, 132], &[0, 2, 1]),
            transpose(&[2, 36, 5, 44], &[0, 3, 2, 1]),
            transpose(&[2, 3, 4, 5, 6, 7], &[5, 3, 1, 0, 2, 4]),
            transpose(&[2, 16, 3, 32], &[0, 2, 1, 3]),
            transpose(&[8, 4, 12, 8, 20], &[4, 2, 0, 3, 1]),
            slice(&[9, 11], &[2, 3], &[5, 7], &[1, 1]),
            slice(&[9, 16], &[1, 4], &[4, 8], &[2, 1]),
            slice(&[9, 11], &[8, 10], &[9, 6], &[-1, -2]),
            slice(&[300], &[299], &[300], &[-1]),
            slice(&[5, 6], &[0, 0], &[0, 6], &[1, 1]),
            Self::expand(&[33, 1], &[2, 33, 17], dtype),
            Self::expand(&[16], &[9, 16], dtype),
            Self::expand(&[], &[70], dtype),
        ]
    }
}

impl Op for StridedCopy {
    fn check(&self) -> Result<(), String> {
        let (dims, strides) = (self.shape.len(), self.strides.len());
        if dims != strides || dims > MOST_DIMS {
            return Err(format!(
                "it has {dims} sizes and {strides} strides; there are as many, {MOST_DIMS} at most"
            ));
        }
        if self.shape.contains(&0) {
            return Ok(());
        }
        let reach = self.shape.iter().zip(&self.strides);
        let reach = reach.map(|(size, stride)| i128::from(size - 1).saturating_mul(i128::from(*stride)));
        let (mut least, mut most) = (i128::from(self.offset), i128::from(self.offset));
        for step in reach {
            if step < 0 {
                least = least.saturating_add(step);
            } else {
                most = most.saturating_add(step);
            }
        }
        if least < 0 || most >= i128::from(self.source) {
            return Err(format!("it reads elements {least} to {most} of {}", self.source));
        }
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("source", self.dtype, [self.source])]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.shape.clone())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        size_name(self.dtype)
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let place = |index| {
            let at = coordinates(index, &self.shape);
            let moved: i64 = at.iter().zip(&self.strides).map(|(at, stride)| *at as i64 * stride).sum();
            self.offset.checked_add_signed(moved)
        };
        vec![pick(&inputs[0], (0..product(&self.shape)).map(place), 0.0)]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for StridedCopy {
    fn samples() -> Vec<StridedCopy> {
        [DType::F32, DType::F16, DType::U8, DType::I64, DType::F64, DType::I16]
            .into_iter()
            .flat_map(Self::samples_of)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(op: &StridedCopy) -> Vec<f64> {
        op.reference(&[Values::Float((0..op.source).map(|i| i as f64).collect())])[0].floats()
    }

    #[test]
    fn the_reference_copies() {
        let turned = StridedCopy::transpose(&[2, 3], &[1, 0], DType::F32);
        assert_eq!(counted(&turned), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let back = StridedCopy::slice(&[2, 3], &[1, 2], &[2, 2], &[-1, -2], DType::F32);
        assert_eq!(counted(&back), [5.0, 3.0, 2.0, 0.0]);
        let wide = StridedCopy::expand(&[2, 1], &[2, 2, 2], DType::F32);
        assert_eq!(counted(&wide), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn places_outside_of_the_source_are_refused() {
        let op = StridedCopy { source: 10, shape: vec![3], strides: vec![-2], offset: 4, dtype: DType::F32 };
        assert_eq!(op.check(), Ok(()));
        assert!(StridedCopy { offset: 3, ..op.clone() }.check().unwrap_err().contains("-1 to 3"));
        assert!(StridedCopy { strides: vec![4], ..op }.check().unwrap_err().contains("4 to 12"));
    }
}
