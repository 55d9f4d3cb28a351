//! Sizes as elements of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values,
    moves::{numbers_of, signed},
};

/// Most numbers of one operation.
pub const MOST: usize = 16;

/// A vector of numbers that are known when the operation is begun, each of 32 bits with a sign.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Numbers {
    /// The numbers; at most [`MOST`].
    #[serde(deserialize_with = "signed")]
    pub values: Vec<Size>,
}

impl Op for Numbers {
    fn check(&self) -> Result<(), String> {
        match self.values.len() {
            0..=MOST => Ok(()),
            count => Err(format!("{count} numbers are more than {MOST}")),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        Vec::new()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", DType::I64, [self.values.len()])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        Vec::new()
    }

    fn signature(&self) -> String {
        "i64".to_owned()
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, _inputs: &[Values]) -> Vec<Values> {
        vec![Values::Int(numbers_of(&self.values))]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Numbers {
    fn samples() -> Vec<Numbers> {
        let of = |values: &[i64]| Numbers { values: values.iter().map(|value| Size::from(*value)).collect() };
        vec![of(&[7]), of(&[1, -1, 0, i64::from(i32::MIN), i64::from(i32::MAX)]), of(&[3; MOST])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_elements() {
        let op = Numbers { values: vec![3.into(), Size::constant(-2)] };
        assert_eq!(op.reference(&[]), [Values::Int(vec![3, -2])]);
        assert!(Numbers { values: vec![0.into(); MOST + 1] }.check().is_err());
    }
}
