//! Sorting along an axis of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
    order::{self, Sorting},
};

/// Sorts the lines of a tensor of outer x length x inner elements, and tells where each element was. Equal elements stay
/// in order; NaN counts as larger than all numbers, so it comes last, or first when the largest come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    /// Product of the axes before.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements of a line.
    pub length: Size,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// Whether the largest come first.
    #[serde(default)]
    pub descending: bool,
    /// Type of the elements: any but `i64`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
    /// Type of the places: `i64` or `i32`.
    #[serde(default = "order::i64")]
    pub indices: DType,
}

impl Sort {
    /// What is sorted, and what of it is kept.
    pub fn sorting(&self) -> Sorting {
        Sorting {
            lines: Lines { outer: self.outer, length: self.length, inner: self.inner },
            keep: self.length,
            descending: self.descending,
            dtype: self.dtype,
            indices: self.indices,
        }
    }
}

impl Op for Sort {
    fn check(&self) -> Result<(), String> {
        order::check_types(self.dtype, self.indices)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        self.sorting().inputs()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        self.sorting().outputs()
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype, &mut self.indices]
    }

    fn signature(&self) -> String {
        format!("{}_{}", self.dtype, self.indices)
    }

    fn flops(&self) -> f64 {
        let length = self.length.as_f64().max(1.0);
        self.sorting().lines.elements().as_f64() * length.log2().max(1.0)
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.sorting().reference(inputs)
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Sort {
    fn samples() -> Vec<Sort> {
        let mut samples = Vec::new();
        for (number, dtype) in order::ORDERED.into_iter().enumerate() {
            let shapes =
                lines::shapes().chain([Lines { outer: 2.into(), length: 2048.into(), inner: 1.into() }]);
            for (index, Lines { outer, length, inner }) in shapes.enumerate() {
                let descending = (number + index) % 2 == 1;
                let indices = if index % 3 == 1 { DType::I32 } else { DType::I64 };
                samples.push(Sort { outer, length, inner, descending, dtype, indices });
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_sorts_and_nan_is_the_largest() {
        let text = "sort:length=5,descending=no";
        let Ok(crate::Operation::Sort(op)) = crate::Operation::parse(text) else { panic!("{text}") };
        let x = Values::Float(vec![2.0, f64::NAN, -0.0, 0.0, f64::INFINITY]);
        assert_eq!(op.reference(std::slice::from_ref(&x))[1], Values::Int(vec![2, 3, 0, 4, 1]));
        let down = Sort { descending: true, ..op };
        assert_eq!(down.reference(&[x])[1], Values::Int(vec![1, 4, 0, 2, 3]));
    }
}
