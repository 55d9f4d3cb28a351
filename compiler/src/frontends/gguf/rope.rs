//! Tables of cosines and sines for rotary embedding, in the variants of GGUF models.

use std::f64::consts::PI;

use halite_ops::DType;

use super::{Result, file::unsupported};
use crate::{build::Builder, graph::TensorId};

/// Most tokens of a sequence.
const MOST_CONTEXT: u64 = 1 << 22;

/// How angles differ from those of the model's base.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scaling {
    /// Not at all.
    None,
    /// Positions are divided.
    Linear(f64),
    /// Positions are divided for pairs that turn slowly (Peng et al., YaRN, section 3).
    Yarn {
        factor: f64,
        /// How much of their own angles pairs that turn fast keep, of 1.
        kept: f64,
        trained: u64,
        fast: f64,
        slow: f64,
        /// Factor of cosines and sines.
        size: f64,
    },
}

/// How much YaRN makes states larger: a number that grows with the logarithm of the factor (Peng et al., section 3.4).
pub(super) fn yarn_size(factor: f64, multiplier: f64) -> f64 {
    1.0 + 0.1 * multiplier * factor.max(1.0).ln()
}

/// Sections of pairs, of which those that follow places of pictures stay as they are in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Still {
    /// Pairs of each; the last is that of pictures.
    pub sections: [u64; 4],
    /// Whether the first three share pairs in turn, and not as neighbours.
    pub in_turn: bool,
}

impl Still {
    /// Whether a pair is one of these.
    fn has(&self, pair: u64) -> bool {
        let place = pair % self.sections.iter().sum::<u64>().max(1);
        match self.in_turn {
            true => place >= 3 * self.sections[(place % 3) as usize],
            false => place >= self.sections[..3].iter().sum::<u64>(),
        }
    }
}

/// Rotary embedding.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rope {
    /// Elements of a head that are turned, the first.
    pub turned: u64,
    pub base: f64,
    pub scaling: Scaling,
    /// Factor of cosines and sines.
    pub magnitude: f64,
    /// Tokens that the model was trained for before its context was made longer.
    pub trained: Option<u64>,
    /// Pairs that are not turned.
    pub still: Option<Still>,
}

impl Rope {
    /// The angle of a pair at position 1, and the factor of its cosine and sine.
    fn turn(&self, pair: u64, divisor: f64) -> (f64, f64) {
        let plain = self.base.powf(-2.0 * pair as f64 / self.turned as f64) / divisor;
        match self.scaling {
            Scaling::None => (plain, self.magnitude),
            Scaling::Linear(factor) => (plain / factor, self.magnitude),
            Scaling::Yarn { factor, kept, trained, fast, slow, size } => {
                // The pair that turns so often within the context of the training.
                let pair_of = |turns: f64| {
                    let length = trained as f64 / (turns * 2.0 * PI);
                    self.turned as f64 * length.ln() / (2.0 * self.base.ln())
                };
                let first = pair_of(fast).floor().max(0.0);
                let last = pair_of(slow).ceil().min(self.turned as f64 - 1.0);
                let ramp = (pair as f64 - first) / (last - first).max(0.001);
                let kept = kept * (1.0 - ramp.clamp(0.0, 1.0));
                let angle = plain / factor * (1.0 - kept) + plain * kept;
                (angle, self.magnitude * size)
            }
        }
    }

    /// Tables of cosines and sines, `f32[context, turned / 2]`. `divisors` divide the angles of pairs.
    pub fn tables(&self, b: &mut Builder, context: u64, divisors: Option<&[f32]>) -> Result<[TensorId; 2]> {
        let pairs = self.turned / 2;
        if context > MOST_CONTEXT {
            return Err(unsupported(format!(
                "a context of {context} tokens; there are at most {MOST_CONTEXT}"
            )));
        }
        if divisors.is_some_and(|divisors| divisors.len() as u64 != pairs) {
            return Err(unsupported(format!("factors of rotary embedding that are not {pairs}")));
        }
        let divisor = |pair: u64| divisors.map_or(1.0, |all| f64::from(all[pair as usize]));
        let turn = |pair: u64| match (self.turn(pair, divisor(pair)), self.still) {
            ((_, size), Some(still)) if still.has(pair) => (0.0, size),
            (turn, _) => turn,
        };
        let turns: Vec<(f64, f64)> = (0..pairs).map(turn).collect();
        let table = |function: fn(f64) -> f64| -> Vec<u8> {
            let rows = (0..context).flat_map(|place| turns.iter().map(move |turn| (place, turn)));
            let value =
                |(place, (angle, size)): (u64, &(f64, f64))| (function(place as f64 * angle) * size) as f32;
            rows.flat_map(|at| value(at).to_le_bytes()).collect()
        };
        let mut made =
            |name: &str, bytes: Vec<u8>| b.constant(name, DType::F32.into(), &[context, pairs], bytes.into());
        Ok([made("cosines", table(f64::cos))?, made("sines", table(f64::sin))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: Scaling) -> Rope {
        Rope { turned: 8, base: 10_000.0, scaling, magnitude: 1.0, trained: None, still: None }
    }

    #[test]
    fn pairs_of_the_last_section_stay() {
        let still = |sections, in_turn| {
            let own = Still { sections, in_turn };
            (0..8).filter(|pair| own.has(*pair)).collect::<Vec<u64>>()
        };
        assert_eq!(still([2, 1, 1, 2], false), [4, 5]);
        assert_eq!(still([4, 2, 2, 0], false), [0; 0]);
        // The second and the third section have no pair left where it would be their turn.
        assert_eq!(still([4, 2, 2, 0], true), [7]);
    }

    #[test]
    fn angles_shrink_with_the_pair_and_the_factor() {
        assert_eq!(rope(Scaling::None).turn(0, 1.0), (1.0, 1.0));
        assert!((rope(Scaling::None).turn(2, 1.0).0 - 0.01).abs() < 1e-12);
        assert_eq!(rope(Scaling::Linear(4.0)).turn(0, 2.0).0, 0.125);
    }

    #[test]
    fn yarn_keeps_fast_pairs_and_divides_slow_ones() {
        let size = yarn_size(4.0, 1.0);
        let rope = rope(Scaling::Yarn { factor: 4.0, kept: 1.0, trained: 4096, fast: 32.0, slow: 1.0, size });
        let (fast, size) = rope.turn(0, 1.0);
        assert_eq!(fast, 1.0);
        assert!((size - (1.0 + 0.1 * 4f64.ln())).abs() < 1e-12);
        assert!((rope.turn(3, 1.0).0 - 0.001 / 4.0).abs() < 1e-12);
    }
}
