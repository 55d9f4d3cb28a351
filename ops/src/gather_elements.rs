//! Picking each element by an index of its own along a dimension.

use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    gather::i32,
    moves::{MOST_DIMS, check_index_type, coordinates, count, in_range, list, pick, size_name},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, moves::sample_indices};

/// `out[a, b, …] = data[a, indices[a, b, …], …]`, with the index in the place of dimension `axis`. Indices have the shape
/// of the result, which may be smaller than the data in the other dimensions. Indices below 0 count from the end; what
/// one out of range asks for is 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherElements {
    /// Sizes of the data, 6 at most.
    #[serde(deserialize_with = "list")]
    pub data: Vec<u64>,
    /// Sizes of the indices and the result.
    #[serde(deserialize_with = "list")]
    pub indices: Vec<u64>,
    /// The dimension that is indexed.
    pub axis: usize,
    /// Type of the data.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

/// The reason why indices of `indices` do not pick, or scatter, elements of `data` along a dimension.
pub(super) fn check_shapes(data: &[u64], indices: &[u64], axis: usize, index: DType) -> Result<(), String> {
    check_index_type(index)?;
    let rank = data.len();
    if rank != indices.len() || rank > MOST_DIMS || axis >= rank {
        return Err(format!(
            "data have {rank} dimensions and indices {}, dimension {axis} is indexed; both have as many, {MOST_DIMS} at \
             most",
            indices.len()
        ));
    }
    match (0..rank).find(|d| *d != axis && indices[*d] > data[*d]) {
        Some(d) => Err(format!("indices have {} places in dimension {d}, data {}", indices[d], data[d])),
        None => Ok(()),
    }
}

impl Op for GatherElements {
    fn check(&self) -> Result<(), String> {
        check_shapes(&self.data, &self.indices, self.axis, self.index)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("data", self.dtype, self.data.clone()),
            TensorDesc::new("indices", self.index, self.indices.clone()),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.indices.clone())]
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
        let place = |element: u64| {
            let mut at = coordinates(element, &self.indices);
            at[self.axis] = in_range(inputs[1].int(element as usize), self.data[self.axis])?;
            Some(at.iter().zip(&self.data).fold(0, |place, (at, size)| place * size + at))
        };
        vec![pick(&inputs[0], (0..count(&self.indices)).map(place), 0.0)]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for GatherElements {
    fn samples() -> Vec<GatherElements> {
        let types = [DType::F32, DType::F16, DType::U8, DType::I64, DType::F64];
        let of = |(dtype, index)| {
            let op = |data: &[u64], indices: &[u64], axis| GatherElements {
                data: data.to_vec(),
                indices: indices.to_vec(),
                axis,
                dtype,
                index,
            };
            [
                op(&[9], &[20], 0),
                op(&[7, 13], &[7, 5], 1),
                op(&[7, 13], &[30, 12], 0),
                op(&[3, 4, 5, 2, 3, 4], &[2, 4, 3, 6, 1, 3], 3),
                op(&[5, 6], &[0, 6], 0),
                op(&[200, 3], &[200, 3], 0),
            ]
        };
        types.into_iter().flat_map(|t| [(t, DType::I32), (t, DType::I64)]).flat_map(of).collect()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_indices(count(&self.indices), self.data[self.axis], self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_gathers() {
        // The examples of ONNX's operator.
        let (dtype, index) = (DType::I32, DType::I64);
        let op = GatherElements { data: vec![2, 2], indices: vec![2, 2], axis: 1, dtype, index };
        let inputs = [Values::Int(vec![1, 2, 3, 4]), Values::Int(vec![0, 0, 1, 0])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![1, 1, 4, 3])]);
        let op = GatherElements { data: vec![3, 3], indices: vec![2, 3], axis: 0, dtype, index };
        let inputs = [Values::Int((1..10).collect()), Values::Int(vec![-1, -2, 0, -2, 0, 0])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![7, 5, 3, 4, 2, 3])]);
    }
}
