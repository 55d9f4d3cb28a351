//! Picking slices by several indices each.

use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    gather::i32,
    moves::{MOST_DIMS, check_index_type, count, in_range, list, pick, size_name},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, moves::sample_indices};

/// `out[b, j, i] = data[b, indices[b, j, 0], indices[b, j, 1], …, i]`. Indices below 0 count from the end; what one out of
/// range asks for is zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherNd {
    /// Product of the dimensions that data and indices share (`batch_dims`).
    #[serde(default = "one")]
    pub batch: u64,
    /// Sizes of the dimensions that are indexed, 6 at most.
    #[serde(deserialize_with = "list")]
    pub extents: Vec<u64>,
    /// Elements of a slice.
    #[serde(default = "one")]
    pub inner: u64,
    /// Slices in each batch.
    pub slices: u64,
    /// Type of the data.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

fn one() -> u64 {
    1
}

/// The reason when so many dimensions cannot be indexed.
pub(super) fn check_depth(depth: usize, index: DType) -> Result<(), String> {
    check_index_type(index)?;
    if !(1..=MOST_DIMS).contains(&depth) {
        return Err(format!("{depth} dimensions are indexed; 1 to {MOST_DIMS} can be"));
    }
    Ok(())
}

/// Number of the slice that `indices[first..]` name in dimensions of `extents`, if they are in range.
pub(super) fn slice_of(indices: &Values, first: usize, extents: &[u64]) -> Option<u64> {
    extents
        .iter()
        .enumerate()
        .try_fold(0, |slice, (k, extent)| Some(slice * extent + in_range(indices.int(first + k), *extent)?))
}

#[cfg(any(test, feature = "testing"))]
/// Random indices of slices.
pub(super) fn sample_slices(
    slices: u64,
    extents: &[u64],
    dtype: DType,
    random: &mut dyn FnMut() -> u64,
) -> Values {
    let one = |extent: &u64| sample_indices(1, *extent, dtype, random).int(0);
    let mut one = one;
    Values::Int((0..slices).flat_map(|_| extents.iter().map(&mut one).collect::<Vec<_>>()).collect())
}

impl Op for GatherNd {
    fn check(&self) -> Result<(), String> {
        check_depth(self.extents.len(), self.index)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let mut data = vec![self.batch];
        data.extend(&self.extents);
        data.push(self.inner);
        let indices = [self.batch, self.slices, self.extents.len() as u64];
        vec![TensorDesc::new("data", self.dtype, data), TensorDesc::new("indices", self.index, indices)]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.batch, self.slices, self.inner])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype, &mut self.index]
    }

    fn signature(&self) -> String {
        format!("{}_{}", size_name(self.dtype), self.index)
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (depth, batch_slices) = (self.extents.len(), count(&self.extents));
        let places = (0..self.batch * self.slices).flat_map(|j| {
            let slice = slice_of(&inputs[1], j as usize * depth, &self.extents);
            let row = slice.map(|slice| j / self.slices * batch_slices + slice);
            (0..self.inner).map(move |i| row.map(|row| row * self.inner + i))
        });
        vec![pick(&inputs[0], places, 0.0)]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for GatherNd {
    fn samples() -> Vec<GatherNd> {
        let types = [DType::F32, DType::F16, DType::U8, DType::I64, DType::F64];
        let of = |(dtype, index)| {
            let op = |batch, extents: &[u64], inner, slices| GatherNd {
                batch,
                extents: extents.to_vec(),
                inner,
                slices,
                dtype,
                index,
            };
            [
                op(1, &[10], 1, 23),
                op(1, &[4, 5], 3, 17),
                op(3, &[2, 3], 16, 5),
                op(2, &[3, 2, 2, 3, 2, 2], 1, 40),
                op(2, &[3, 4], 8, 0),
                op(5, &[9], 4, 7),
            ]
        };
        types.into_iter().flat_map(|t| [(t, DType::I32), (t, DType::I64)]).flat_map(of).collect()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_slices(self.batch * self.slices, &self.extents, self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_gathers() {
        let (dtype, index) = (DType::I32, DType::I64);
        let op = GatherNd { batch: 1, extents: vec![2, 2], inner: 1, slices: 2, dtype, index };
        let inputs = [Values::Int(vec![0, 1, 2, 3]), Values::Int(vec![0, 0, -1, 1])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![0, 3])]);
        // ONNX's example of `batch_dims` = 1.
        let op = GatherNd { batch: 2, extents: vec![2], inner: 2, slices: 1, dtype, index };
        let inputs = [Values::Int((0..8).collect()), Values::Int(vec![1, 0])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![2, 3, 4, 5])]);
    }
}
