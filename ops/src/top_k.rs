//! The k largest or smallest elements along an axis of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
    order::{self, Sorting},
};

/// The `k` largest (or smallest) elements of each line of a tensor of outer x length x inner elements, sorted, and where
/// they were. Of equal elements, those in front come first; NaN counts as larger than all numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopK {
    /// Product of the axes before.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements of a line.
    pub length: Size,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// How many are wanted; at most `length`.
    pub k: Size,
    /// Whether the smallest are wanted.
    #[serde(default)]
    pub smallest: bool,
    /// Type of the elements: any but `i64`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
    /// Type of the places: `i64` or `i32`.
    #[serde(default = "order::i64")]
    pub indices: DType,
}

impl TopK {
    /// What is sorted, and what of it is kept.
    pub fn sorting(&self) -> Sorting {
        Sorting {
            lines: Lines { outer: self.outer, length: self.length, inner: self.inner },
            keep: self.k,
            descending: !self.smallest,
            dtype: self.dtype,
            indices: self.indices,
        }
    }
}

impl Op for TopK {
    fn check(&self) -> Result<(), String> {
        if !self.k.stays_within(self.length) {
            return Err(format!("k = {} of lines of {} elements", self.k, self.length));
        }
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
        self.sorting().lines.elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.sorting().reference(inputs)
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for TopK {
    fn samples() -> Vec<TopK> {
        let mut samples = Vec::new();
        for (number, dtype) in order::ORDERED.into_iter().enumerate() {
            for (index, Lines { outer, length, inner }) in lines::shapes().enumerate() {
                let smallest = (number + index) % 2 == 1;
                let indices = if index % 3 == 1 { DType::I32 } else { DType::I64 };
                let of = |k| TopK { outer, length, inner, k, smallest, dtype, indices };
                samples.extend([of(length.min(1)), of(length.min(37))]);
                if length > 5000 {
                    samples.push(of(5000.into()));
                }
            }
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_takes_the_first_of_equal_ones() {
        let text = "top_k:length=5,k=2,dtype=i32";
        let Ok(crate::Operation::TopK(op)) = crate::Operation::parse(text) else { panic!("{text}") };
        let x = Values::Int(vec![3, 7, -1, 7, 7]);
        assert_eq!(
            op.reference(std::slice::from_ref(&x)),
            [Values::Int(vec![7, 7]), Values::Int(vec![1, 3])]
        );
        let least = TopK { smallest: true, ..op };
        assert_eq!(least.reference(&[x]), [Values::Int(vec![-1, 3]), Values::Int(vec![2, 0])]);
    }
}
