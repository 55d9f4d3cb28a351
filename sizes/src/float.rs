//! Floats that are computed of sizes, in single precision: models scale images by a computed factor, and round what comes of it to a size.

use serde::{Deserialize, Serialize};

use crate::{poly::Poly, range::Range};

/// A float that is computed of sizes: each step is rounded as a device or ONNX Runtime round it. Plain data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Float {
    /// A whole number.
    Of(Poly),
    /// A number, by its bits.
    Number(u32),
    /// What a function gives for one or two.
    Call(FloatFunction, Vec<Float>),
}

/// What floats of sizes are computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FloatFunction {
    /// The sum of two.
    Add,
    /// The difference of two.
    Sub,
    /// The product of two.
    Mul,
    /// The quotient of two.
    Div,
    /// The smaller of two.
    Min,
    /// The larger of two.
    Max,
    /// The next whole number below it.
    Floor,
    /// The next whole number above it.
    Ceil,
    /// The nearest whole number, the even one of two.
    Round,
    /// The square root.
    Sqrt,
}

impl FloatFunction {
    pub(crate) fn of(self, x: &[f32]) -> f32 {
        match (self, x) {
            (FloatFunction::Add, [a, b]) => a + b,
            (FloatFunction::Sub, [a, b]) => a - b,
            (FloatFunction::Mul, [a, b]) => a * b,
            (FloatFunction::Div, [a, b]) => a / b,
            (FloatFunction::Min, [a, b]) => a.min(*b),
            (FloatFunction::Max, [a, b]) => a.max(*b),
            (FloatFunction::Floor, [a]) => a.floor(),
            (FloatFunction::Ceil, [a]) => a.ceil(),
            (FloatFunction::Round, [a]) => a.round_ties_even(),
            (FloatFunction::Sqrt, [a]) => a.sqrt(),
            // What is damaged has other numbers of operands.
            _ => f32::NAN,
        }
    }

    /// The least and the largest result for operands from the first to the second of each: rounding keeps their order.
    fn range(self, x: &[(f32, f32)]) -> Option<(f32, f32)> {
        let ends = match (self, x) {
            (FloatFunction::Sub, [a, b]) => (a.0 - b.1, a.1 - b.0),
            (FloatFunction::Mul | FloatFunction::Div, [a, b]) => {
                if self == FloatFunction::Div && b.0 <= 0.0 && b.1 >= 0.0 {
                    return None;
                }
                let ends = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| self.of(&[a, b]));
                (ends.into_iter().fold(ends[0], f32::min), ends.into_iter().fold(ends[0], f32::max))
            }
            (FloatFunction::Sqrt, [a]) if a.0 < 0.0 => return None,
            _ => {
                let end = |of: fn(&(f32, f32)) -> f32| self.of(&x.iter().map(of).collect::<Vec<_>>());
                (end(|x| x.0), end(|x| x.1))
            }
        };
        (ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
    }
}

impl Float {
    /// A number.
    pub fn number(value: f32) -> Float {
        Float::Number(value.to_bits())
    }

    /// The number, if it is finite and the same for all sizes.
    pub(crate) fn as_number(&self) -> Option<f32> {
        match self {
            Float::Number(bits) => Some(f32::from_bits(*bits)).filter(|number| number.is_finite()),
            _ => None,
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Float::Call(_, operands) => 1 + operands.iter().map(Float::count).sum::<usize>(),
            _ => 1,
        }
    }

    /// The polynomials that it is computed of.
    pub(crate) fn parts(&self) -> Vec<&Poly> {
        match self {
            Float::Of(poly) => vec![poly],
            Float::Number(_) => Vec::new(),
            Float::Call(_, operands) => operands.iter().flat_map(Float::parts).collect(),
        }
    }

    /// Its value, from those of polynomials.
    pub(crate) fn evaluate(&self, poly: &dyn Fn(&Poly) -> i64) -> f32 {
        match self {
            Float::Of(whole) => poly(whole) as f32,
            Float::Number(bits) => f32::from_bits(*bits),
            Float::Call(function, operands) => {
                let values: Vec<f32> = operands.iter().map(|operand| operand.evaluate(poly)).collect();
                function.of(&values)
            }
        }
    }

    /// It as text; `part` writes polynomials.
    pub(crate) fn text(&self, part: &dyn Fn(&Poly) -> String) -> String {
        match self {
            Float::Of(poly) => format!("({})", part(poly)),
            Float::Number(bits) => f32::from_bits(*bits).to_string(),
            Float::Call(function, operands) => {
                let operands: Vec<String> = operands.iter().map(|operand| operand.text(part)).collect();
                format!("{function:?}({})", operands.join(", "))
            }
        }
    }

    /// The least and the largest number that it can be; none where it may be none.
    pub(crate) fn range(&self, of: &dyn Fn(&Poly) -> Range) -> Option<(f32, f32)> {
        match self {
            Float::Of(poly) => {
                let range = of(poly);
                Some((range.low as f32, range.high as f32))
            }
            Float::Number(bits) => Some((f32::from_bits(*bits), f32::from_bits(*bits))),
            Float::Call(function, operands) => {
                let ranges: Option<Vec<_>> = operands.iter().map(|operand| operand.range(of)).collect();
                function.range(&ranges?)
            }
        }
    }

    /// What its truncation can be.
    pub(crate) fn whole_range(&self, of: &dyn Fn(&Poly) -> Range) -> Range {
        let end = |end: f32| i128::from(end as i64);
        self.range(of).map_or(Range::ALL, |(low, high)| Range { low: end(low), high: end(high) })
    }
}
