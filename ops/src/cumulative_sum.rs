//! Sums of all elements up to each one along an axis of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
};

/// Each element of a line of a tensor of outer x length x inner elements becomes the sum of those up to it. Sums of
/// floats are `f32`, those of `i32` wrap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CumulativeSum {
    /// Product of the axes before.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements of a line.
    pub length: Size,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// Whether the element itself is left out, so that the first sum is 0.
    #[serde(default)]
    pub exclusive: bool,
    /// Whether sums begin at the end of the line.
    #[serde(default)]
    pub reverse: bool,
    /// Type of elements and results: `f32`, `f16`, `bf16` or `i32`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
}

impl CumulativeSum {
    /// The lines that it works along.
    pub fn lines(&self) -> Lines {
        Lines { outer: self.outer, length: self.length, inner: self.inner }
    }
}

impl Op for CumulativeSum {
    fn check(&self) -> Result<(), String> {
        match self.dtype {
            DType::F32 | DType::F16 | DType::BF16 | DType::I32 => Ok(()),
            other => Err(format!("elements are f32, f16, bf16 or i32, not {other}")),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("in", self.dtype, [self.outer, self.length, self.inner])]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.outer, self.length, self.inner])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        self.lines().elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let count = self.lines().elements().exact_usize();
        let (mut floats, mut ints) = (vec![0.0; count], vec![0; count]);
        for mut line in self.lines().places() {
            if self.reverse {
                line.reverse();
            }
            let (mut sum, mut whole) = (0.0, 0i32);
            for at in line {
                let (sum_before, whole_before) = (sum, whole);
                sum += inputs[0].float(at);
                whole = whole.wrapping_add(inputs[0].int(at) as i32);
                floats[at] = self.dtype.round(if self.exclusive { sum_before } else { sum });
                ints[at] = i64::from(if self.exclusive { whole_before } else { whole });
            }
        }
        vec![if self.dtype.is_float() { Values::Float(floats) } else { Values::Int(ints) }]
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if !self.dtype.is_float() {
            return Tolerance::EXACT;
        }
        Tolerance::of_sum(self.length, magnitudes[0], DType::F32, self.dtype)
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for CumulativeSum {
    fn samples() -> Vec<CumulativeSum> {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32] {
            for (index, Lines { outer, length, inner }) in lines::shapes().enumerate() {
                let of =
                    |exclusive, reverse| CumulativeSum { outer, length, inner, exclusive, reverse, dtype };
                samples.push(of(index % 2 == 1, index % 3 == 2));
                if length > 500 {
                    samples.extend([of(true, true), of(false, true), of(true, false)]);
                }
            }
        }
        samples.dedup();
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_sums_up() {
        let text = "cumulative_sum:length=3,inner=2,dtype=i32";
        let Ok(crate::Operation::CumulativeSum(op)) = crate::Operation::parse(text) else { panic!("{text}") };
        let x = Values::Int(vec![1, 10, 2, 20, 3, 30]);
        let reference = |op: &CumulativeSum| op.reference(std::slice::from_ref(&x));
        assert_eq!(reference(&op), [Values::Int(vec![1, 10, 3, 30, 6, 60])]);
        let back = CumulativeSum { exclusive: true, reverse: true, ..op };
        assert_eq!(reference(&back), [Values::Int(vec![5, 50, 3, 30, 0, 0])]);
    }
}
