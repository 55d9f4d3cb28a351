//! Joining tensors along a dimension.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    conv2d::f32,
    moves::{list, size_name},
};

/// Inputs of outer x `sizes[i]` x inner, one behind the other along the middle dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concat {
    /// Product of the dimensions before the one that is joined.
    #[serde(default = "one")]
    pub outer: Size,
    /// Size of each input in the dimension that is joined.
    #[serde(deserialize_with = "list")]
    pub sizes: Vec<Size>,
    /// Product of the dimensions behind it.
    #[serde(default = "one")]
    pub inner: Size,
    /// Type of all tensors.
    #[serde(default = "f32")]
    pub dtype: DType,
}

fn one() -> Size {
    Size::constant(1)
}

impl Concat {
    /// Inputs of a type, joined.
    pub fn new(outer: impl Into<Size>, sizes: &[u64], inner: impl Into<Size>, dtype: DType) -> Self {
        let sizes = sizes.iter().map(Size::from).collect();
        Concat { outer: outer.into(), sizes, inner: inner.into(), dtype }
    }

    /// Size of the result in the dimension that is joined.
    pub fn total(&self) -> Size {
        self.sizes.iter().sum()
    }
}

impl Op for Concat {
    fn check(&self) -> Result<(), String> {
        if self.sizes.is_empty() { Err("there are no inputs".into()) } else { Ok(()) }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let tensor = |size: &Size| TensorDesc::new("input", self.dtype, [self.outer, *size, self.inner]);
        self.sizes.iter().map(tensor).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.outer, self.total(), self.inner])]
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
        let each = || {
            (0..self.outer.exact()).flat_map(move |outer| {
                self.sizes.iter().zip(inputs).flat_map(move |(size, values)| {
                    let block = (*size * self.inner).exact();
                    (outer * block..(outer + 1) * block).map(move |at| (values, at as usize))
                })
            })
        };
        if self.dtype.is_float() {
            vec![Values::Float(each().map(|(values, at)| values.float(at)).collect())]
        } else {
            vec![Values::Int(each().map(|(values, at)| values.int(at)).collect())]
        }
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Concat {
    fn samples() -> Vec<Concat> {
        let of = |dtype| {
            [
                Concat::new(1, &[5], 1, dtype),
                Concat::new(1, &[7, 0, 300], 1, dtype),
                Concat::new(3, &[1, 2, 3, 4, 5, 6, 7, 8], 5, dtype),
                Concat::new(4, &[16, 32], 16, dtype),
                Concat::new(9, &[4, 12, 8], 6, dtype),
                Concat::new(0, &[4, 2], 3, dtype),
                Concat::new(257, &[3, 2], 1, dtype),
            ]
        };
        [DType::F32, DType::BF16, DType::I8, DType::I64, DType::F64, DType::U16]
            .into_iter()
            .flat_map(of)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_joins() {
        let op = Concat::new(2, &[1, 2], 2, DType::I32);
        let inputs = [Values::Int(vec![1, 2, 3, 4]), Values::Int((10..18).collect())];
        assert_eq!(op.reference(&inputs), [Values::Int(vec![1, 2, 10, 11, 12, 13, 3, 4, 14, 15, 16, 17])]);
    }
}
