//! What operations that scatter share: how an update is combined with what is there, on the host, and the sharing of
//! work. `include/scatters.glsl` is the other half.

use serde::{Deserialize, Serialize};

use crate::{DType, Tolerance, Values, moves::size_name};

/// What becomes of an element and an update. Names are those of ONNX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The update; of several the last.
    #[default]
    None,
    /// Their sum, in the order of the updates. Integers wrap.
    Add,
    /// Their product, in the order of the updates. Integers wrap.
    Mul,
    /// The smaller; NaN when one is.
    Min,
    /// The larger; NaN when one is.
    Max,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Reduction; 5] =
        [Reduction::None, Reduction::Add, Reduction::Mul, Reduction::Min, Reduction::Max];

    /// The reason when elements of a type are not reduced so.
    pub fn check(self, dtype: DType) -> Result<(), String> {
        let reduced = dtype.size() <= 4 && !matches!(dtype, DType::I16 | DType::U16);
        if self == Reduction::None || reduced {
            return Ok(());
        }
        Err(format!("elements of {dtype} are replaced only, without a reduction"))
    }

    /// What is replaced moves by size, what is reduced has a type.
    pub fn signature(self, dtype: DType, index: DType) -> String {
        let element = if self == Reduction::None { size_name(dtype) } else { dtype.to_string() };
        format!("{element}_{index}")
    }

    /// Combines element `at` with an update.
    pub fn apply(self, dtype: DType, values: &mut Values, at: usize, updates: &Values, update: usize) {
        match values {
            Values::Float(v) => {
                let (was, value) = (v[at], updates.float(update));
                v[at] = match self {
                    Reduction::None => value,
                    Reduction::Add => dtype.round(was + value),
                    Reduction::Mul => dtype.round(was * value),
                    Reduction::Min => {
                        if value.is_nan() || value < was {
                            value
                        } else {
                            was
                        }
                    }
                    Reduction::Max => {
                        if value.is_nan() || value > was {
                            value
                        } else {
                            was
                        }
                    }
                };
            }
            Values::Int(v) => {
                let (was, value) = (v[at], updates.int(update));
                let now = match self {
                    Reduction::None => value,
                    Reduction::Add => was.wrapping_add(value),
                    Reduction::Mul => was.wrapping_mul(value),
                    Reduction::Min => was.min(value),
                    Reduction::Max => was.max(value),
                };
                v[at] = Values::from_bytes(dtype, &Values::Int(vec![now]).to_bytes(dtype)).int(0);
            }
        }
    }

    /// Updates come in the reference's order and are rounded like its, so that only denormal values can differ: each update may
    /// lose one. Sums and products of two f16 or bf16 values that are rounded to f32 first are rounded alike (Figueroa, When
    /// is double rounding innocuous?).
    pub fn tolerance(self, dtype: DType, updates: u64) -> Tolerance {
        if self == Reduction::None || !dtype.is_float() {
            return Tolerance::EXACT;
        }
        Tolerance { absolute: (updates + 1) as f64 * dtype.min_normal(), relative: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_nan_stays() {
        let mut values = Values::Int(vec![100]);
        Reduction::Add.apply(DType::I8, &mut values, 0, &Values::Int(vec![100]), 0);
        assert_eq!(values, Values::Int(vec![-56]));
        let mut values = Values::Float(vec![f64::NAN]);
        Reduction::Max.apply(DType::F32, &mut values, 0, &Values::Float(vec![1.0]), 0);
        assert!(values.float(0).is_nan());
    }
}
