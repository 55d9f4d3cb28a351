//! Reductions: sums, products, extremes and norms along axes of a tensor.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    DType, Op, TensorDesc, Tolerance, Values, expression,
    lines::{self, Lines},
};

/// What is computed of the elements; ONNX calls it `Reduce…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReduceKind {
    /// Their sum; 0 of no elements. Integers wrap.
    Sum,
    /// Their mean; NaN of no elements. Floats only.
    Mean,
    /// The sum of their squares.
    SumSquare,
    /// The sum of their absolute values.
    L1,
    /// The root of the sum of their squares. Floats only.
    L2,
    /// The logarithm of their sum. Floats only.
    LogSum,
    /// Their product; 1 of no elements. Integers wrap.
    Prod,
    /// The largest, NaN if one is NaN (as in NumPy); the least value of the type of no elements.
    Max,
    /// The smallest, NaN if one is NaN (as in NumPy); the largest value of the type of no elements.
    Min,
    /// The logarithm of the sum of their exponentials, without overflow in between. Floats only.
    LogSumExp,
}

impl ReduceKind {
    /// All of them. The first ones are numbered as in `reduce.comp`.
    pub const ALL: [ReduceKind; 10] = [
        ReduceKind::Sum,
        ReduceKind::Mean,
        ReduceKind::SumSquare,
        ReduceKind::L1,
        ReduceKind::L2,
        ReduceKind::LogSum,
        ReduceKind::Prod,
        ReduceKind::Max,
        ReduceKind::Min,
        ReduceKind::LogSumExp,
    ];

    fn takes_integers(self) -> bool {
        use ReduceKind::{L1, Max, Min, Prod, Sum, SumSquare};
        matches!(self, Sum | SumSquare | L1 | Prod | Max | Min)
    }
}

/// Reduces a tensor of outer x length x inner elements to outer x inner. Axes that are not neighbours take one reduction
/// for each group of neighbours. Sums of floats are `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduce {
    /// What is computed.
    pub kind: ReduceKind,
    /// Product of the axes before the reduced ones.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Product of the reduced axes.
    pub length: Size,
    /// Product of the axes behind.
    #[serde(default = "lines::one")]
    pub inner: Size,
    /// Type of elements and results: `f32`, `f16`, `bf16`, or an integer type of 32 or 64 bits.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
}

impl Reduce {
    /// The lines that it works along.
    pub fn lines(&self) -> Lines {
        Lines { outer: self.outer, length: self.length, inner: self.inner }
    }

    fn float(&self, line: &[f64]) -> f64 {
        let sum = |f: &dyn Fn(f64) -> f64| line.iter().map(|v| f(*v)).sum::<f64>();
        let extreme = |start: f64, better: fn(f64, f64) -> f64| {
            line.iter().fold(start, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { better(a, *b) })
        };
        match self.kind {
            ReduceKind::Sum => sum(&|v| v),
            ReduceKind::Mean => sum(&|v| v) / line.len() as f64,
            ReduceKind::SumSquare => sum(&|v| v * v),
            ReduceKind::L1 => sum(&f64::abs),
            ReduceKind::L2 => sum(&|v| v * v).sqrt(),
            ReduceKind::LogSum => sum(&|v| v).ln(),
            ReduceKind::Prod => line.iter().product(),
            ReduceKind::Max => extreme(f64::NEG_INFINITY, f64::max),
            ReduceKind::Min => extreme(f64::INFINITY, f64::min),
            ReduceKind::LogSumExp => {
                let top = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let top = if top.is_finite() { top } else { 0.0 };
                sum(&|v| (v - top).exp()).ln() + top
            }
        }
    }

    /// In 128 bits, which wrap as fewer do.
    fn int(&self, line: &[i64]) -> i64 {
        let (least, most) = expression::range(self.dtype);
        let wide = |v: &i64| if self.dtype == DType::U64 { (*v as u64).into() } else { i128::from(*v) };
        let line = line.iter().map(wide);
        let result = match self.kind {
            ReduceKind::SumSquare => line.fold(0i128, |sum, v| sum.wrapping_add(v.wrapping_mul(v))),
            ReduceKind::L1 => line.fold(0i128, |sum, v| sum.wrapping_add(v.abs())),
            ReduceKind::Prod => line.fold(1i128, i128::wrapping_mul),
            ReduceKind::Max => line.max().unwrap_or(least),
            ReduceKind::Min => line.min().unwrap_or(most),
            _ => line.fold(0i128, i128::wrapping_add),
        };
        result as i64
    }
}

impl Op for Reduce {
    fn check(&self) -> Result<(), String> {
        match self.dtype {
            DType::F32 | DType::F16 | DType::BF16 => Ok(()),
            DType::I32 | DType::U32 | DType::I64 | DType::U64 if self.kind.takes_integers() => Ok(()),
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => {
                Err("this kind of reduction is for floats".into())
            }
            other => Err(format!(
                "elements are f32, f16, bf16, or integers of 32 or 64 bits, not {other}; cast them"
            )),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("in", self.dtype, [self.outer, self.length, self.inner])]
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        vec![TensorDesc::new("out", self.dtype, [self.outer, self.inner])]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        let exponents = if self.kind == ReduceKind::LogSumExp { "log_sum_exp_" } else { "" };
        format!("{exponents}{}", self.dtype)
    }

    fn flops(&self) -> f64 {
        self.lines().elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let lines = self.lines().places();
        if self.dtype.is_float() {
            let of = |line: Vec<usize>| line.into_iter().map(|i| inputs[0].float(i)).collect::<Vec<_>>();
            return vec![Values::Float(lines.map(|l| self.dtype.round(self.float(&of(l)))).collect())];
        }
        let of = |line: Vec<usize>| line.into_iter().map(|i| inputs[0].int(i)).collect::<Vec<_>>();
        let results = Values::Int(lines.map(|l| self.int(&of(l))).collect());
        vec![Values::from_bytes(self.dtype, &results.to_bytes(self.dtype))]
    }

    /// Sums as [`Tolerance::of_sum`] says. Each factor of a product adds one rounding (Higham, section 3.1). Roots,
    /// logarithms, exponentials and divisions are as far off as Vulkan allows (its specification, "Precision of
    /// individual instructions"): `exp` 3 + 2|x| units, `log` 3 units or 2^-21, `sqrt` and divisions about 5.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        if !self.dtype.is_float() {
            return Tolerance::EXACT;
        }
        let (f32, out, magnitude) = (DType::F32, self.dtype, magnitudes[0]);
        let length = self.length.value().max(1);
        let sum = |magnitude| Tolerance::of_sum(length, magnitude, f32, out);
        let log = 2f64.powi(-21) + 8.0 * (length as f64).sqrt().recip() * 10.0 * f32.epsilon();
        let few = out.epsilon() + 5.0 * f32.epsilon();
        match self.kind {
            ReduceKind::Sum => sum(magnitude),
            // All terms are positive: partial sums grow with their number, and so do errors, with its root.
            ReduceKind::L1 | ReduceKind::SumSquare => {
                let largest = if self.kind == ReduceKind::L1 { magnitude } else { magnitude * magnitude };
                let relative = few + 2.0 * (length as f64).sqrt() * f32.epsilon();
                Tolerance { relative, ..sum(largest) }
            }
            ReduceKind::Mean => {
                Tolerance { absolute: sum(magnitude / length as f64).absolute, relative: few }
            }
            // All terms of the sum are positive, so its error is a part of itself; squares may vanish.
            ReduceKind::L2 => Tolerance {
                absolute: out.min_normal() + (length as f64 * f32.min_normal()).sqrt(),
                relative: few + 8.0 * (length as f64).sqrt() * f32.epsilon(),
            },
            ReduceKind::LogSum => Tolerance { absolute: log, relative: few },
            ReduceKind::Prod => Tolerance {
                absolute: out.min_normal(),
                relative: out.epsilon() + length as f64 * f32.epsilon(),
            },
            ReduceKind::Max | ReduceKind::Min => Tolerance { absolute: out.min_normal(), relative: 0.0 },
            ReduceKind::LogSumExp => {
                let terms = (3.0 + 4.0 * magnitude + 8.0 * (length as f64).sqrt()) * f32.epsilon();
                Tolerance { absolute: log + terms, relative: few }
            }
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Samples for Reduce {
    fn samples() -> Vec<Reduce> {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I64, DType::U64] {
            let of = |kind: ReduceKind, l: Lines| Reduce {
                kind,
                outer: l.outer,
                length: l.length,
                inner: l.inner,
                dtype,
            };
            let shapes = lines::shapes();
            samples.extend(shapes.map(|l| of(ReduceKind::Sum, l)));
            // Products of many floats have no digits left.
            let product = Lines { outer: 3.into(), length: 28.into(), inner: 1.into() };
            let some = [
                (3, 260, 1),
                (2, 33, 9),
                (1, 8192, 1),
                (3, 0, 2),
                (2, 49, 1),
                (3, 300, 8),
                (1, 2000, 68),
                (2, 5, 132),
            ];
            let some = some.map(|(outer, length, inner)| Lines {
                outer: outer.into(),
                length: length.into(),
                inner: inner.into(),
            });
            for kind in ReduceKind::ALL.into_iter().filter(|k| dtype.is_float() || k.takes_integers()) {
                let long = |l: &Lines| kind != ReduceKind::Prod || !dtype.is_float() || l.length < 100;
                samples.extend(some.into_iter().filter(long).map(|l| of(kind, l)));
                samples.push(of(kind, product));
            }
        }
        samples
    }

    fn sample_input(&self, _index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        if !self.dtype.is_float() {
            // Of all magnitudes.
            let one = |_| (random() as i64) >> (random() % 64);
            let all = Values::Int((0..self.lines().elements().exact()).map(one).collect());
            return Some(Values::from_bytes(self.dtype, &all.to_bytes(self.dtype)));
        }
        // Logarithms of sums near zero, or below, tell nothing.
        let positive = |_| self.dtype.round((1 + random() % 1000) as f64 / 1000.0);
        (self.kind == ReduceKind::LogSum)
            .then(|| Values::Float((0..self.lines().elements().exact()).map(positive).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(kind: ReduceKind, values: &[f64]) -> f64 {
        let op =
            Reduce { kind, outer: 1.into(), length: values.len().into(), inner: 1.into(), dtype: DType::F32 };
        op.reference(&[Values::Float(values.to_vec())])[0].float(0)
    }

    #[test]
    fn the_reference_reduces() {
        let op = Reduce {
            kind: ReduceKind::Sum,
            outer: 1.into(),
            length: 2.into(),
            inner: 2.into(),
            dtype: DType::F32,
        };
        let reference = op.reference(&[Values::Float(vec![1.0, 2.0, 3.0, 4.0])]);
        assert_eq!(reference, [Values::Float(vec![4.0, 6.0])]);
        assert_eq!(reduced(ReduceKind::L2, &[3.0, -4.0]), 5.0);
        assert_eq!(reduced(ReduceKind::Prod, &[3.0, -4.0]), -12.0);
        assert_eq!(reduced(ReduceKind::LogSumExp, &[1000.0, f64::NEG_INFINITY]), 1000.0);
        let large = |kind, dtype| Reduce { kind, outer: 1.into(), length: 2.into(), inner: 1.into(), dtype };
        let values = [Values::Int(vec![-1, 1])];
        assert_eq!(large(ReduceKind::Max, DType::U64).reference(&values), [Values::Int(vec![-1])]);
        assert_eq!(large(ReduceKind::Max, DType::I64).reference(&values), [Values::Int(vec![1])]);
        assert_eq!(large(ReduceKind::L1, DType::I64).reference(&values), [Values::Int(vec![2])]);
        assert_eq!(reduced(ReduceKind::LogSumExp, &[f64::INFINITY, 0.0]), f64::INFINITY);
    }

    #[test]
    fn extremes_pass_nan_on_and_nothing_has_the_least() {
        assert!(reduced(ReduceKind::Max, &[1.0, f64::NAN, 2.0]).is_nan());
        assert!(reduced(ReduceKind::Min, &[f64::NAN, 1.0]).is_nan());
        assert_eq!(reduced(ReduceKind::Max, &[]), f64::NEG_INFINITY);
        assert_eq!(reduced(ReduceKind::Prod, &[]), 1.0);
        assert!(reduced(ReduceKind::Mean, &[]).is_nan());
    }
}
