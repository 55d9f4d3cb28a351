//! The places at which a condition holds, side by side.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{DType, Op, TensorDesc, Tolerance, Values};

/// Of running counts of how often a condition held, up to each place and with it: the places where they grow, in order, zeros
/// behind them; and the last count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compact {
    /// Number of places.
    pub length: Size,
}

impl Op for Compact {
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("counts", DType::I32, [self.length])]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![
            TensorDesc::new("places", DType::I32, [self.length]),
            TensorDesc::new("count", DType::I64, [Size::constant(1)]),
        ]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        Vec::new()
    }

    fn signature(&self) -> String {
        "i32".to_owned()
    }

    fn flops(&self) -> f64 {
        0.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let length = self.length.exact_usize();
        let counts = (0..length).map(|place| inputs[0].int(place));
        let mut places = Vec::new();
        let mut before = 0;
        for (place, count) in (0..).zip(counts) {
            if count != before {
                places.push(place);
            }
            before = count;
        }
        let found = places.len() as i64;
        places.resize(length, 0);
        vec![Values::Int(places), Values::Int(vec![found])]
    }

    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        Tolerance::EXACT
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Compact {
    fn samples() -> Vec<Compact> {
        [0u64, 1, 2, 127, 128, 1000, 70_000].map(|length| Compact { length: length.into() }).into()
    }

    fn sample_input(&self, _index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let mut count = 0;
        // Some are dense, some sparse.
        let one_of = 1 + random() % 20;
        let counts = (0..self.length.exact()).map(|_| {
            count += i64::from(random() % one_of == 0);
            count
        });
        Some(Values::Int(counts.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_side_by_side() {
        let made = Compact { length: 6.into() }.reference(&[Values::Int(vec![0, 1, 1, 2, 3, 3])]);
        assert_eq!(made, [Values::Int(vec![1, 3, 4, 0, 0, 0]), Values::Int(vec![3])]);
    }
}
