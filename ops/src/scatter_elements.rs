//! Updates of single elements, each with an index along a dimension.

use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    gather::i32,
    gather_elements::check_shapes,
    moves::{coordinates, count, in_range, list},
    scatters::Reduction,
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, moves::sample_indices};

/// `out = data`, then `out[a, indices[a, b, …], …]` is combined with `updates[a, b, …]` for each update, with the index in
/// the place of dimension `axis`. Indices below 0 count from the end; updates whose index is out of range are left out.
///
/// Results are the same in every run, also when indices repeat: updates of an element come in the order in which they lie
/// along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScatterElements {
    /// Sizes of data and result, 6 at most.
    #[serde(deserialize_with = "list")]
    pub data: Vec<u64>,
    /// Sizes of indices and updates.
    #[serde(deserialize_with = "list")]
    pub indices: Vec<u64>,
    /// The dimension that is indexed.
    pub axis: usize,
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

impl Op for ScatterElements {
    fn check(&self) -> Result<(), String> {
        check_shapes(&self.data, &self.indices, self.axis, self.index)?;
        self.reduction.check(self.dtype)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("data", self.dtype, self.data.clone()),
            TensorDesc::new("indices", self.index, self.indices.clone()),
            TensorDesc::new("updates", self.dtype, self.indices.clone()),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, self.data.clone())]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype, &mut self.index]
    }

    fn signature(&self) -> String {
        self.reduction.signature(self.dtype, self.index)
    }

    fn flops(&self) -> f64 {
        if self.reduction == Reduction::None { 0.0 } else { count(&self.indices) as f64 }
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let mut out = inputs[0].clone();
        for update in 0..count(&self.indices) {
            let mut at = coordinates(update, &self.indices);
            let Some(place) = in_range(inputs[1].int(update as usize), self.data[self.axis]) else {
                continue;
            };
            at[self.axis] = place;
            let at = at.iter().zip(&self.data).fold(0, |place, (at, size)| place * size + at);
            self.reduction.apply(self.dtype, &mut out, at as usize, &inputs[2], update as usize);
        }
        vec![out]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        self.reduction.tolerance(self.dtype, self.indices[self.axis])
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for ScatterElements {
    fn samples() -> Vec<ScatterElements> {
        let op = |data: &[u64], indices: &[u64], axis| ScatterElements {
            data: data.to_vec(),
            indices: indices.to_vec(),
            axis,
            reduction: Reduction::None,
            dtype: DType::F32,
            index: DType::I32,
        };
        let shapes = [
            op(&[9], &[20], 0),
            op(&[7, 13], &[7, 5], 1),
            op(&[7, 13], &[30, 12], 0),
            op(&[3, 4, 5, 2, 3, 4], &[2, 4, 3, 6, 1, 3], 3),
            op(&[5, 6], &[0, 6], 0),
            op(&[0, 6], &[3, 6], 0),
            op(&[201, 3], &[200, 3], 0),
        ];
        let mut samples = Vec::new();
        for dtype in DType::ALL {
            for reduction in Reduction::ALL.into_iter().filter(|r| r.check(dtype).is_ok()) {
                let of = |shape: &ScatterElements| ScatterElements { reduction, dtype, ..shape.clone() };
                samples.extend(shapes.iter().map(of));
                samples.push(ScatterElements { index: DType::I64, ..of(&shapes[2]) });
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_indices(count(&self.indices), self.data[self.axis], self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_scatters() {
        // ONNX's example, with an index that repeats.
        let op = ScatterElements {
            data: vec![1, 5],
            indices: vec![1, 2],
            axis: 1,
            reduction: Reduction::Add,
            dtype: DType::F32,
            index: DType::I64,
        };
        let inputs = [
            Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0]),
            Values::Int(vec![1, -4]),
            Values::Float(vec![1.5, 2.5]),
        ];
        assert_eq!(op.reference(&inputs)[0].floats(), [1.0, 6.0, 3.0, 4.0, 5.0]);
        let last = ScatterElements { reduction: Reduction::None, ..op };
        assert_eq!(last.reference(&inputs)[0].floats(), [1.0, 2.5, 3.0, 4.0, 5.0]);
    }
}
