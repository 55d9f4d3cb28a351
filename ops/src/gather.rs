//! Picking rows by index along a dimension; the look-up of embeddings is a case of it.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    dtype::f32,
    moves::{check_index_type, in_range, pick, size_name},
};
#[cfg(any(test, feature = "testing"))]
use crate::{Samples, moves::sample_indices};

/// `out[o, j, i] = data[o, indices[j], i]`. Indices below 0 count from the end; what an index out of range asks for is
/// zeros.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gather {
    /// Product of the dimensions before the one that is indexed.
    #[serde(default = "one")]
    pub outer: Size,
    /// Size of the dimension that is indexed.
    pub axis: Size,
    /// Product of the dimensions behind it.
    #[serde(default = "one")]
    pub inner: Size,
    /// Number of indices.
    pub indices: Size,
    /// Type of the data.
    #[serde(default = "f32")]
    pub dtype: DType,
    /// Type of the indices: `i32` or `i64`.
    #[serde(default = "i32")]
    pub index: DType,
}

fn one() -> Size {
    Size::constant(1)
}

/// The default type of indices.
pub(super) fn i32() -> DType {
    DType::I32
}

impl Gather {
    /// Rows of data of outer x axis x inner.
    pub fn new(
        outer: impl Into<Size>,
        axis: impl Into<Size>,
        inner: impl Into<Size>,
        indices: impl Into<Size>,
        dtype: DType,
        index: DType,
    ) -> Self {
        let (outer, axis, inner, indices) = (outer.into(), axis.into(), inner.into(), indices.into());
        Gather { outer, axis, inner, indices, dtype, index }
    }

    /// Rows of a table, as of embeddings: `rows` of `width` elements each.
    pub fn rows(rows: u64, width: u64, indices: u64, dtype: DType, index: DType) -> Self {
        Gather::new(1, rows, width, indices, dtype, index)
    }
}

impl Op for Gather {
    fn check(&self) -> Result<(), String> {
        check_index_type(self.index)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("data", self.dtype, [self.outer, self.axis, self.inner]),
            TensorDesc::new("indices", self.index, [self.indices]),
        ]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.outer, self.indices, self.inner])]
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
        let [count, axis, inner, indices] =
            [self.outer, self.axis, self.inner, self.indices].map(Size::exact);
        let rows = (0..count).flat_map(|outer| (0..indices).map(move |j| (outer, j)));
        let places = rows.flat_map(|(outer, j)| {
            let row = in_range(inputs[1].int(j as usize), axis);
            (0..inner).map(move |i| row.map(|row| (outer * axis + row) * inner + i))
        });
        vec![pick(&inputs[0], places, 0.0)]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Gather {
    fn samples() -> Vec<Gather> {
        let types = [DType::F32, DType::F16, DType::BF16, DType::I8, DType::I64, DType::F64, DType::U16];
        let of = |(dtype, index)| {
            [
                Gather::new(1, 10, 1, 7, dtype, index),
                Gather::new(3, 5, 7, 11, dtype, index),
                Gather::rows(100, 64, 33, dtype, index),
                Gather::rows(50, 6, 200, dtype, index),
                Gather::new(2, 4, 12, 9, dtype, index),
                Gather::new(2, 4, 12, 0, dtype, index),
                Gather::new(2, 1, 3, 5, dtype, index),
            ]
        };
        types.into_iter().flat_map(|t| [(t, DType::I32), (t, DType::I64)]).flat_map(of).collect()
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        (index == 1).then(|| sample_indices(self.indices.exact(), self.axis.exact(), self.index, random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_gathers() {
        let op = Gather::new(2, 3, 1, 3, DType::I32, DType::I64);
        let inputs = [Values::Int(vec![1, 2, 3, 4, 5, 6]), Values::Int(vec![2, -3, 3])];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![3, 1, 0, 6, 4, 0])]);
    }
}
