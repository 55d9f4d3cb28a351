//! The strided copy: transposing, cutting, expanding, reversing and splitting tensors are cases of it.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    moves::{MOST_DIMS, coordinates, dense_strides, list, numbers, pick, product, signed, size_name},
    strides::inside,
};

/// A dense result, `out[i, j, …] = source[offset + i * strides[0] + j * strides[1] + …]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StridedCopy {
    /// Elements of the source.
    pub source: Size,
    /// Sizes of the result, 6 at most, the innermost last.
    #[serde(deserialize_with = "list")]
    pub shape: Vec<Size>,
    /// Elements in the source from a place to the next in each dimension; 0 repeats, a negative one walks backwards.
    #[serde(deserialize_with = "signed")]
    pub strides: Vec<Size>,
    /// The first element in the source.
    #[serde(default)]
    pub offset: Size,
    /// Type of both tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
}

impl StridedCopy {
    /// Dimension `d` of the result is dimension `order[d]` of the source, which has the sizes `dims`.
    pub fn transpose(dims: &[Size], order: &[usize], dtype: DType) -> Self {
        let strides = dense_strides(dims);
        let (shape, strides) = order.iter().map(|d| (dims[*d], strides[*d])).unzip();
        StridedCopy { source: product(dims), shape, strides, offset: 0.into(), dtype }
    }

    /// The part of a tensor of `dims` that begins at `first` and has the sizes `shape`, of which every `steps`-th place is
    /// taken; negative steps walk backwards.
    pub fn slice(dims: &[Size], first: &[Size], shape: &[Size], steps: &[i64], dtype: DType) -> Self {
        let places = dense_strides(dims);
        let offset = first.iter().zip(&places).map(|(at, stride)| at * stride).sum();
        let strides = places.iter().zip(steps).map(|(stride, step)| *stride * Size::from(*step)).collect();
        StridedCopy { source: product(dims), shape: shape.to_vec(), strides, offset, dtype }
    }

    /// A tensor of `dims` repeated along dimensions where it has 1 or none, as NumPy broadcasts.
    pub fn expand(dims: &[Size], shape: &[Size], dtype: DType) -> Self {
        let missing = shape.len().saturating_sub(dims.len());
        let places = dims.iter().zip(dense_strides(dims));
        let repeated = places.map(|(dim, stride)| if *dim == 1 { Size::constant(0) } else { stride });
        let strides = std::iter::repeat_n(Size::constant(0), missing).chain(repeated).collect();
        StridedCopy { source: product(dims), shape: shape.to_vec(), strides, offset: 0.into(), dtype }
    }
}

#[cfg(any(test, feature = "testing"))]
impl StridedCopy {
    fn samples_of(dtype: DType) -> Vec<StridedCopy> {
        let sizes = |dims: &[u64]| -> Vec<Size> { dims.iter().map(Size::from).collect() };
        let transpose = |dims: &[u64], order: &[usize]| Self::transpose(&sizes(dims), order, dtype);
        let slice = |dims: &[u64], first: &[u64], shape: &[u64], steps: &[i64]| {
            Self::slice(&sizes(dims), &sizes(first), &sizes(shape), steps, dtype)
        };
        let expand = |dims: &[u64], shape: &[u64]| Self::expand(&sizes(dims), &sizes(shape), dtype);
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
            expand(&[33, 1], &[2, 33, 17]),
            expand(&[16], &[9, 16]),
            expand(&[], &[70]),
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
        inside(self.source, self.offset, &self.shape, &self.strides)
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
        let (shape, offset) = (numbers(&self.shape), self.offset.exact());
        let strides: Vec<i64> = self.strides.iter().map(|stride| stride.exact_signed()).collect();
        let place = |index| {
            let at = coordinates(index, &shape);
            let moved: i64 = at.iter().zip(&strides).map(|(at, stride)| *at as i64 * stride).sum();
            offset.checked_add_signed(moved)
        };
        vec![pick(&inputs[0], (0..product(&self.shape).exact()).map(place), 0.0)]
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
        op.reference(&[Values::Float((0..op.source.exact()).map(|i| i as f64).collect())])[0].floats()
    }

    #[test]
    fn the_reference_copies() {
        let turned = StridedCopy::transpose(&[2, 3].map(Size::constant), &[1, 0], DType::F32);
        assert_eq!(counted(&turned), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let back = StridedCopy::slice(
            &[2, 3].map(Size::constant),
            &[1, 2].map(Size::constant),
            &[2, 2].map(Size::constant),
            &[-1, -2],
            DType::F32,
        );
        assert_eq!(counted(&back), [5.0, 3.0, 2.0, 0.0]);
        let wide =
            StridedCopy::expand(&[2, 1].map(Size::constant), &[2, 2, 2].map(Size::constant), DType::F32);
        assert_eq!(counted(&wide), [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn places_outside_of_the_source_are_refused() {
        let op = StridedCopy {
            source: 10.into(),
            shape: vec![3.into()],
            strides: vec![(-2).into()],
            offset: 4.into(),
            dtype: DType::F32,
        };
        assert_eq!(op.check(), Ok(()));
        assert!(StridedCopy { offset: 3.into(), ..op.clone() }.check().unwrap_err().contains("-1 to 3"));
        assert!(StridedCopy { strides: vec![4.into()], ..op }.check().unwrap_err().contains("4 to 12"));
    }
}
