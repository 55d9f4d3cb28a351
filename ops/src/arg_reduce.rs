//! The places of the largest and smallest elements along axes of a tensor.

use std::cmp::Ordering;

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
    order,
};

/// Where the largest (or smallest) element of each line of a tensor of outer x length x inner elements is. NaN is the
/// largest and the smallest of all, as in NumPy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgReduce {
    /// Product of the axes before.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements of a line; at least one.
    pub length: Size,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// Whether the smallest is wanted.
    #[serde(default)]
    pub smallest: bool,
    /// Whether the last of equal elements is wanted, not the first.
    #[serde(default)]
    pub last: bool,
    /// Type of the elements: any but `i64`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
    /// Type of the places: `i64` or `i32`.
    #[serde(default = "order::i64")]
    pub indices: DType,
}

impl ArgReduce {
    /// The lines that it works along.
    pub fn lines(&self) -> Lines {
        Lines { outer: self.outer, length: self.length, inner: self.inner }
    }

    /// Whether the element at `b` is better than that at `a`.
    fn compare(&self, values: &Values, a: usize, b: usize) -> Ordering {
        let ascending = order::order(values, b, a);
        let nan = |at: usize| matches!(values, Values::Float(v) if v[at].is_nan());
        if self.smallest && !nan(a) && !nan(b) { ascending.reverse() } else { ascending }
    }
}

impl Op for ArgReduce {
    fn check(&self) -> Result<(), String> {
        if self.length == 0 {
            return Err("no element is the largest of none".into());
        }
        order::check_types(self.dtype, self.indices)
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("in", self.dtype, [self.outer, self.length, self.inner])]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("indices", self.indices, [self.outer, self.inner])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype, &mut self.indices]
    }

    fn signature(&self) -> String {
        format!("{}_{}", self.dtype, self.indices)
    }

    fn flops(&self) -> f64 {
        self.lines().elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let best = |line: Vec<usize>| {
            let mut best = 0;
            for place in 1..line.len() {
                match self.compare(&inputs[0], line[best], line[place]) {
                    Ordering::Greater => best = place,
                    Ordering::Equal if self.last => best = place,
                    _ => {}
                }
            }
            best as i64
        };
        vec![Values::Int(self.lines().places().map(best).collect())]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for ArgReduce {
    fn samples() -> Vec<ArgReduce> {
        let mut samples = Vec::new();
        for (number, dtype) in order::ORDERED.into_iter().enumerate() {
            for (index, Lines { outer, length, inner }) in lines::shapes().enumerate() {
                let (smallest, last) = ((number + index) % 2 == 1, (number + index) % 3 == 1);
                let indices = if index % 3 == 1 { DType::I32 } else { DType::I64 };
                let of = |last| ArgReduce { outer, length, inner, smallest, last, dtype, indices };
                samples.push(of(last));
                if length > 500 {
                    samples.push(of(!last));
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
    fn ties_and_nan() {
        let text = "arg_reduce:length=4";
        let Ok(crate::Operation::ArgReduce(op)) = crate::Operation::parse(text) else { panic!("{text}") };
        let place = |op: &ArgReduce, v: [f64; 4]| op.reference(&[Values::Float(v.to_vec())])[0].int(0);
        let last = ArgReduce { last: true, ..op.clone() };
        let least = ArgReduce { smallest: true, ..op.clone() };
        assert_eq!((place(&op, [1.0, 3.0, 3.0, 0.0]), place(&last, [1.0, 3.0, 3.0, 0.0])), (1, 2));
        assert_eq!(place(&least, [1.0, 0.0, -0.0, 3.0]), 1);
        assert_eq!((place(&op, [1.0, 2.0, f64::NAN, 9.0]), place(&least, [1.0, 2.0, f64::NAN, 0.0])), (2, 2));
    }
}
