//! Joining tensors along a dimension.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, Operation, TensorDesc, Tolerance, Values,
    dtype::f32,
    moves::{list, size_name},
    runs::{self, Apart, Runs},
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
    /// Where the result is written in a larger tensor, of which the rest stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Runs>,
}

fn one() -> Size {
    Size::constant(1)
}

impl Concat {
    /// Inputs of a type, joined.
    pub fn new(outer: impl Into<Size>, sizes: &[u64], inner: impl Into<Size>, dtype: DType) -> Self {
        let sizes = sizes.iter().map(Size::from).collect();
        Concat { outer: outer.into(), sizes, inner: inner.into(), dtype, written: None }
    }

    /// Size of the result in the dimension that is joined.
    pub fn total(&self) -> Size {
        self.sizes.iter().sum()
    }

    /// The result by itself.
    fn result(&self) -> TensorDesc {
        TensorDesc::new("out", self.dtype, [self.outer, self.total(), self.inner])
    }

    /// What is joined.
    fn joined(&self, inputs: &[Values]) -> Values {
        let each = || {
            (0..self.outer.exact()).flat_map(move |outer| {
                self.sizes.iter().zip(inputs).flat_map(move |(size, values)| {
                    let block = (*size * self.inner).exact();
                    (outer * block..(outer + 1) * block).map(move |at| (values, at as usize))
                })
            })
        };
        if self.dtype.is_float() {
            Values::Float(each().map(|(values, at)| values.float(at)).collect())
        } else {
            Values::Int(each().map(|(values, at)| values.int(at)).collect())
        }
    }
}

impl Op for Concat {
    fn check(&self) -> Result<(), String> {
        if self.sizes.is_empty() {
            return Err("there are no inputs".into());
        }
        match self.written {
            Some(runs) if !(self.total() * self.inner).is(runs.length.into()) => {
                Err(format!("rows are no runs of {}", runs.length))
            }
            Some(runs) => runs.check(&self.result()),
            None => Ok(()),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let tensor = |size: &Size| TensorDesc::new("input", self.dtype, [self.outer, *size, self.inner]);
        self.sizes.iter().map(tensor).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![self.written.map_or(self.result(), |runs| runs.whole(self.result()))]
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
        self.reference_over(inputs, &runs::zeros(&self.outputs()))
    }

    fn updates(&self, _output: usize) -> bool {
        self.written.is_some()
    }

    fn apart(&self) -> Option<Apart> {
        Apart::of(Operation::Concat(Concat { written: None, ..self.clone() }), None, self.written)
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        runs::first_put(self.written, vec![self.joined(inputs)], before)
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
                Concat {
                    written: Some(Runs { length: 12, pitch: 20, offset: 4 }),
                    ..Concat::new(7, &[12], 1, dtype)
                },
                Concat {
                    written: Some(Runs { length: 5, pitch: 11, offset: 3 }),
                    ..Concat::new(4, &[2, 3], 1, dtype)
                },
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
