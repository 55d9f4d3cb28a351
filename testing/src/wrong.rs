//! What is told of a wrong result: words for people, and the numbers for reports.

use halite_ops::DType;
use serde::{Deserialize, Serialize};

/// A result that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// For people; names the place.
    pub what: String,
    /// The same as data, where there is a first wrong element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
}

impl Wrong {
    /// Words alone.
    pub fn words(what: impl Into<String>) -> Box<Self> {
        Box::new(Wrong { what: what.into(), numbers: None })
    }
}

/// The first element of a result that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// Which result.
    pub output: String,
    /// Its shape and element type, such as `2x3xf32`; empty where it has none.
    pub shape: String,
    /// Index of the element: one number for each dimension, or the flat index alone.
    pub index: Vec<u64>,
    /// What it should be.
    pub expected: String,
    /// What it is.
    pub got: String,
    /// How far apart, in units in the last place of the expected value; nothing for what is no finite float.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ulp: Option<String>,
    /// How far it may be off, in words; empty where it must be equal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tolerance: String,
    /// Number of wrong elements.
    pub wrong: u64,
    /// Number of elements.
    pub of: u64,
}

/// The distance of two floats in units in the last place of `expected`, as text of two digits after the point. Below the
/// smallest normal value the unit is that of the smallest.
pub fn ulp(got: f64, expected: f64, dtype: DType) -> Option<String> {
    let epsilon = dtype.epsilon();
    if epsilon == 0.0 || !got.is_finite() || !expected.is_finite() {
        return None;
    }
    let magnitude = expected.abs().max(dtype.min_normal());
    let unit = epsilon * magnitude.log2().floor().exp2();
    let distance = (got - expected).abs() / unit;
    Some(if distance < 1e6 { format!("{distance:.2}") } else { format!("{distance:.2e}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_steps_between_neighbours() {
        for value in [1.0f32, 1.5, -3.7e-5, 1e30, 2.0] {
            let next = f32::from_bits(value.to_bits() + 1);
            assert_eq!(
                ulp(f64::from(next), f64::from(value), DType::F32).as_deref(),
                Some("1.00"),
                "{value}"
            );
        }
        assert_eq!(ulp(1.0, f64::NAN, DType::F32), None);
        assert_eq!(ulp(1.0, 2.0, DType::I32), None);
        assert_eq!(ulp(0.0, 0.0, DType::F16).as_deref(), Some("0.00"));
        assert!(ulp(1.0, 0.0, DType::F32).is_some_and(|text| text.contains('e')));
    }
}
