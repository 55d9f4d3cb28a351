//! Dynamic quantization: a scale and a zero point for each line that its range gives, and 8-bit codes of the elements.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "testing"))]
use crate::Samples;
use crate::{
    Activation, DType, Exact, Op, TensorDesc, Tolerance, Values,
    lines::{self, Lines},
};

/// How the range of a line, which always has 0 in it, becomes a scale and a zero point. `least` and `most` are codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeRule {
    /// The whole range has all codes; the zero point is `least - round(low / scale)`.
    Whole,
    /// The same, with the zero point of that end of the range that is rounded less.
    Nearer,
    /// The larger of both sides decides for both; zero is the middle of the codes.
    Symmetric,
    /// The same, where each side has as many codes as there are.
    Unclipped,
    /// XNNPACK's: codes a unit are computed, and scales as their inverse; the zero point is that of the nearer end.
    Steps,
}

impl CodeRule {
    /// All of them, as `line_codes.comp` numbers them.
    pub const ALL: [CodeRule; 5] =
        [CodeRule::Whole, CodeRule::Nearer, CodeRule::Symmetric, CodeRule::Unclipped, CodeRule::Steps];
}

/// Scales and zero points of lines of outer x length elements, and codes if they are wanted: `round(x / scale) + zero`, ties
/// to even, between `least` and `most`. All is computed in `f32`. A line whose range no float holds has the scale infinity,
/// or NaN if NaN is in it, and the codes of its zero point, which is 0 or the code next to it.
///
/// A line may be made first, of what is read: gated, or divided by the root of the mean of its squares, rounded to the type of
/// elements as if an operation before had done it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineCodes {
    /// Number of lines.
    #[serde(default = "lines::one")]
    pub outer: Size,
    /// Elements of a line.
    pub length: Size,
    /// How scales and zero points are chosen.
    pub rule: CodeRule,
    /// The least code.
    pub least: i32,
    /// The largest code.
    pub most: i32,
    /// Scales are at least this; of [`CodeRule::Steps`] it is not used.
    #[serde(default = "zero")]
    pub smallest: Exact<f32>,
    /// Whether elements are divided by scales. Otherwise they are multiplied by inverses of them.
    #[serde(default)]
    pub divide: bool,
    /// Whether zero points are added before codes are rounded, which decides about ties.
    #[serde(default)]
    pub zero_first: bool,
    /// Type of elements: `f32` or `f16`.
    #[serde(default = "lines::f32")]
    pub dtype: DType,
    /// Type of the codes, `i8` or `u8`, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<DType>,
    /// What is added to the mean of a line's squares, if it is divided by its root and multiplied with a factor for each of
    /// its elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<Exact<f32>>,
    /// The function of the first half of what is read for a line, with which the second half is multiplied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Activation>,
}

fn zero() -> Exact<f32> {
    Exact(0.0)
}

/// What is chosen for a line.
struct Chosen {
    scale: f32,
    /// What elements are multiplied by. Nothing where they have no codes.
    factor: Option<f32>,
    zero: f32,
}

impl LineCodes {
    /// Scales and zero points of one line of one element, by a rule, for codes between two bounds.
    pub fn new(rule: CodeRule, least: i32, most: i32) -> Self {
        LineCodes {
            outer: lines::one(),
            length: lines::one(),
            rule,
            least,
            most,
            smallest: zero(),
            divide: false,
            zero_first: false,
            dtype: DType::F32,
            codes: None,
            norm: None,
            gate: None,
        }
    }

    /// The lines.
    pub fn lines(&self) -> Lines {
        Lines { outer: self.outer, length: self.length, inner: 1.into() }
    }

    /// A line of what is read, as it is coded.
    fn made(&self, inputs: &[Values], line: &[usize]) -> Vec<f32> {
        let read = |at: usize| inputs[0].float(at);
        let rounded = |x: f64| self.dtype.round(f64::from(x as f32)) as f32;
        if let Some(function) = self.gate {
            // Lines of what is read are twice as long.
            let length = line.len();
            let first = line.first().copied().unwrap_or(0) * 2;
            let gated = |at: usize| rounded(function.apply(read(first + at)) * read(first + length + at));
            return (0..length).map(gated).collect();
        }
        let Some(epsilon) = self.norm else { return line.iter().map(|at| read(*at) as f32).collect() };
        let squares = line.iter().map(|at| read(*at) * read(*at)).sum::<f64>() / line.len() as f64;
        let factor = (squares + f64::from(epsilon.0)).sqrt().recip();
        line.iter()
            .enumerate()
            .map(|(place, at)| rounded(read(*at) * factor * inputs[1].float(place)))
            .collect()
    }

    /// The bounds of codes as floats.
    fn ends(&self) -> (f32, f32) {
        (self.least as f32, self.most as f32)
    }

    /// For a range.
    fn choose(&self, low: f32, high: f32) -> Chosen {
        let (least, most) = self.ends();
        let size = high - low;
        if !size.is_finite() {
            let scale = if size.is_nan() { f32::NAN } else { f32::INFINITY };
            return Chosen { scale, factor: None, zero: 0f32.clamp(least, most) };
        }
        if self.rule == CodeRule::Steps {
            let steps = (most - least) / size;
            let steps = if steps.is_finite() { steps } else { 1.0 };
            let zero = self.nearer(low * steps, high * steps);
            return Chosen { scale: 1.0 / steps, factor: Some(steps), zero };
        }
        let scale = match self.rule {
            CodeRule::Symmetric => high.max(-low) / ((most - least) / 2.0),
            CodeRule::Unclipped => (low / least).max(high / most),
            _ => size / (most - least),
        };
        let scale = scale.max(self.smallest.0);
        // Nothing but zeros.
        if scale < f32::MIN_POSITIVE {
            return Chosen { scale, factor: None, zero: self.middle_or(least) };
        }
        let zero = match self.rule {
            CodeRule::Whole => (least - (low / scale).round_ties_even()).clamp(least, most),
            CodeRule::Nearer => self.nearer(low / scale, high / scale),
            _ => self.middle_or(least),
        };
        Chosen { scale, factor: Some(1.0 / scale), zero }
    }

    /// The zero point of rules that are symmetric.
    fn middle_or(&self, other: f32) -> f32 {
        let (least, most) = self.ends();
        match self.rule {
            CodeRule::Symmetric | CodeRule::Unclipped => ((least + most + 1.0) / 2.0).trunc(),
            _ => other,
        }
    }

    /// The zero point by the ends of a range in units of codes.
    fn nearer(&self, low: f32, high: f32) -> f32 {
        let (least, most) = self.ends();
        let lower = low + high > -(least + most);
        let zero = if lower { least - low } else { most - high };
        zero.clamp(least, most).round_ties_even()
    }

    fn code(&self, x: f32, chosen: &Chosen) -> f32 {
        let (least, most) = self.ends();
        let Some(factor) = chosen.factor else { return chosen.zero };
        let part = if self.divide { x / chosen.scale } else { x * factor };
        let whole = match self.zero_first {
            true => (part + chosen.zero).round_ties_even(),
            false => part.round_ties_even() + chosen.zero,
        };
        whole.clamp(least, most)
    }
}

impl Op for LineCodes {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.dtype, DType::F32 | DType::F16) {
            return Err("elements are f32 or f16".into());
        }
        // Whole in floats, and a side for either sign where there is no zero point.
        if self.least >= self.most || self.least < -(1 << 23) || self.most > 1 << 23 {
            return Err("the least code is below the largest, and both have at most 24 bits".into());
        }
        if self.rule == CodeRule::Unclipped && (self.least >= 0 || self.most <= 0) {
            return Err("codes without a zero point have two sides".into());
        }
        let within = match self.codes {
            None => true,
            Some(DType::I8) => self.least >= -128 && self.most <= 127,
            Some(DType::U8) => self.least >= 0 && self.most <= 255,
            Some(_) => false,
        };
        if !within {
            return Err("codes are i8 or u8, with bounds of that type".into());
        }
        if self.norm.is_some() && self.gate.is_some() {
            return Err("lines are normalized or gated, not both".into());
        }
        let smallest = self.smallest.0;
        (smallest >= 0.0 && smallest.is_finite()).then_some(()).ok_or("scales are at least 0".into())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let read = if self.gate.is_some() { self.length * 2u64 } else { self.length };
        let mut inputs = vec![TensorDesc::new("in", self.dtype, [self.outer, read])];
        inputs.extend(self.norm.map(|_| TensorDesc::new("scale", self.dtype, [self.length])));
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let mut outputs = vec![
            TensorDesc::new("scales", DType::F32, [self.outer]),
            TensorDesc::new("zeros", DType::I32, [self.outer]),
        ];
        outputs.extend(self.codes.map(|dtype| TensorDesc::new("codes", dtype, [self.outer, self.length])));
        outputs
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        8.0 * self.lines().elements().as_f64()
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (mut scales, mut zeros, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        for line in self.lines().places() {
            let line = self.made(inputs, &line);
            let nan = line.iter().any(|x| x.is_nan());
            let (low, high) = line.iter().fold((0f32, 0f32), |(low, high), x| (low.min(*x), high.max(*x)));
            let chosen = self.choose(if nan { f32::NAN } else { low }, high);
            scales.push(f64::from(chosen.scale));
            zeros.push(chosen.zero as i64);
            codes.extend(line.iter().map(|x| self.code(*x, &chosen) as i64));
        }
        let mut made = vec![Values::Float(scales), Values::Int(zeros)];
        made.extend(self.codes.map(|_| Values::Int(codes)));
        made
    }

    /// Of scales, which are one or two divisions. Codes and zero points are exact but for ties, which samples do not have.
    /// The root of a mean is off by half of what a chain of additions is, whose errors are random; what is rounded to halves in
    /// between may be the next one.
    fn tolerance(&self, _magnitudes: &[f64]) -> Tolerance {
        let mut own = Tolerance::of_value(6.0, DType::F32, DType::F32);
        if self.norm.is_some() {
            own.relative += self.length.as_f64().sqrt() * DType::F32.epsilon();
            own.relative += if self.dtype == DType::F16 { 2.0 * DType::F16.epsilon() } else { 0.0 };
        }
        if self.gate.is_some() {
            own.relative += 16.0 * DType::F32.epsilon();
        }
        own
    }
}

/// Functions that give back what is large and above 0.
#[cfg(any(test, feature = "testing"))]
const SAMPLE_GATES: [Activation; 4] =
    [Activation::Silu, Activation::Relu, Activation::Gelu, Activation::GeluTanh];

#[cfg(any(test, feature = "testing"))]
impl Samples for LineCodes {
    fn samples() -> Vec<LineCodes> {
        let mut samples = Vec::new();
        let shapes = [
            (1, 1),
            (3, 17),
            (12, 64),
            (13, 1000),
            (130, 3),
            (2, 20_000),
            (1, 40_000),
            (1, 33_001),
            (4, 0),
            (0, 8),
        ];
        for dtype in [DType::F32, DType::F16] {
            for (number, (outer, length)) in shapes.into_iter().enumerate() {
                for (kind, rule) in CodeRule::ALL.into_iter().enumerate() {
                    let codes = [Some(DType::I8), Some(DType::U8), None][(number + kind) % 3];
                    // Sums of both ends that are near the middle of unsigned codes have ties.
                    let signed = codes != Some(DType::U8)
                        || matches!(rule, CodeRule::Unclipped | CodeRule::Nearer | CodeRule::Steps);
                    samples.push(LineCodes {
                        outer: outer.into(),
                        length: length.into(),
                        rule,
                        least: if signed { -128 } else { 0 },
                        most: if signed { 127 } else { 255 },
                        smallest: Exact([0.0, f32::EPSILON][number % 2]),
                        divide: number % 3 == 1,
                        zero_first: (number + kind) % 4 == 3,
                        dtype,
                        codes: codes.map(|own| if signed { DType::I8 } else { own }),
                        norm: None,
                        gate: None,
                    });
                }
            }
        }
        let plain = samples.clone();
        let made = plain.into_iter().enumerate().map(|(number, op)| match number % 2 {
            0 => LineCodes { norm: Some(Exact([1e-5, 0.25][number / 2 % 2])), ..op },
            _ => LineCodes { gate: Some(SAMPLE_GATES[number / 2 % SAMPLE_GATES.len()]), ..op },
        });
        samples.extend(made);
        samples
    }

    /// Lines that have 255 steps from end to end, and elements between the steps, so that nothing is near a tie. Some lines
    /// have nothing but zeros, an infinity or NaN. Factors of channels and gates are powers of two that are taken out of elements
    /// before; the functions of gates are 1 times what they are applied to there.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let [outer, length] = [self.outer, self.length].map(Size::exact_usize);
        let factor = |at: usize| 0.5f64.powi((at % 3) as i32 - 1);
        if index == 1 {
            return Some(Values::Float((0..length).map(factor).collect()));
        }
        let mut all = Vec::with_capacity(outer * length * 2);
        for line in 0..outer {
            let step = 0.5f64.powi((line % 7) as i32);
            let turn = (line % 20) as f64;
            let mut one = || match (random() % 250) as f64 {
                k if line % 11 == 9 => k * 0.0,
                k => (k - 99.75 - turn).min(154.25 - turn) * step,
            };
            let mut own: Vec<f64> = (0..length).map(|_| one()).collect();
            if line % 11 != 9 && length > 0 {
                let first = random() as usize % length;
                own[first] = (155.0 - turn) * step;
                if length > 1 {
                    own[(first + 1 + random() as usize % (length - 1)) % length] = -(100.0 + turn) * step;
                }
                let last = random() as usize % length;
                match line % 11 {
                    5 => own[last] = f64::NAN,
                    7 if self.norm.is_none() => own[last] = f64::NEG_INFINITY,
                    _ => {}
                }
            }
            if self.norm.is_some() {
                own.iter_mut().enumerate().for_each(|(at, x)| *x /= factor(at));
            }
            if self.gate.is_some() {
                let gate = |at: usize| f64::from(32 << (at % 2));
                own.iter_mut().enumerate().for_each(|(at, x)| *x /= gate(at));
                all.extend((0..length).map(gate));
            }
            all.append(&mut own);
        }
        Some(Values::Float(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(rule: CodeRule, divide: bool, (least, most): (i32, i32), line: &[f64]) -> (f64, i64, Vec<i64>) {
        let codes = Some(if least < 0 { DType::I8 } else { DType::U8 });
        let (outer, length) = (1.into(), line.len().into());
        let op = LineCodes { outer, length, divide, codes, ..LineCodes::new(rule, least, most) };
        op.check().unwrap();
        let made = op.reference(&[Values::Float(line.to_vec())]);
        (made[0].float(0), made[1].int(0), (0..line.len()).map(|at| made[2].int(at)).collect())
    }

    #[test]
    fn rules_are_those_of_the_formats() {
        // The example of ONNX's DynamicQuantizeLinear.
        let (scale, zero, codes) = made(CodeRule::Whole, true, (0, 255), &[0.0, 2.0, -3.0, -2.5, 1.34, 0.5]);
        assert_eq!((scale as f32, zero), (5.0 / 255.0, 153));
        assert_eq!(codes, [153, 255, 0, 26, 221, 179]);
        // What torch.ops.quantized_decomposed makes of -1 … 2.
        let (_, zero, codes) = made(CodeRule::Nearer, false, (-128, 127), &[-1.0, 2.0]);
        assert_eq!((zero, codes), (-43, vec![-128, 127]));
        let (scale, zero, codes) = made(CodeRule::Symmetric, false, (-128, 127), &[-1.0, 2.0]);
        assert_eq!((scale as f32, zero, codes), (2.0 / 127.5, 0, vec![-64, 127]));
        let (scale, _, codes) = made(CodeRule::Unclipped, false, (-127, 127), &[-1.0, 2.0]);
        assert_eq!((scale as f32, codes), (2.0 / 127.0, vec![-64, 127]));
        let (scale, zero, _) = made(CodeRule::Steps, false, (-128, 127), &[-1.0, 4.0]);
        assert_eq!((scale as f32, zero), (1.0 / 51.0, -77));
    }

    #[test]
    fn lines_without_a_range_have_no_codes() {
        for rule in CodeRule::ALL {
            let (scale, zero, codes) = made(rule, false, (-128, 127), &[1.0, f64::NAN]);
            assert!(scale.is_nan() && zero == 0 && codes == [0, 0]);
            let (scale, _, codes) = made(rule, false, (-128, 127), &[1.0, f64::INFINITY]);
            assert!(scale == f64::INFINITY && codes == [0, 0]);
            let (_, zero, codes) = made(rule, false, (-128, 127), &[0.0, 0.0]);
            assert_eq!(codes, [zero, zero]);
        }
    }

    #[test]
    fn lines_are_made_before_they_are_coded() {
        let plain = LineCodes {
            length: 2.into(),
            codes: Some(DType::I8),
            ..LineCodes::new(CodeRule::Symmetric, -128, 127)
        };
        let normed = LineCodes { norm: Some(Exact(0.0)), ..plain.clone() };
        // The root of the mean of 9 and 1 is that of 5.
        let made = normed.reference(&[Values::Float(vec![3.0, -1.0]), Values::Float(vec![1.0, 0.5])]);
        assert!((made[0].float(0) - 3.0 / 5f64.sqrt() / 127.5).abs() < 1e-8);
        assert_eq!((made[2].int(0), made[2].int(1)), (127, -21));
        let gated = LineCodes { gate: Some(Activation::Relu), ..plain };
        let made = gated.reference(&[Values::Float(vec![2.0, -1.0, 3.0, 4.0])]);
        assert_eq!((made[2].int(0), made[2].int(1)), (127, 0));
        assert!(LineCodes { norm: Some(Exact(0.0)), ..gated }.check().is_err());
    }

    #[test]
    fn codes_are_bytes() {
        let op = LineCodes::samples().remove(0);
        assert!(LineCodes { codes: Some(DType::I32), ..op.clone() }.check().is_err());
        assert!(LineCodes { codes: Some(DType::U8), least: -1, ..op.clone() }.check().is_err());
        assert!(LineCodes { least: 5, most: 5, ..op.clone() }.check().is_err());
        assert!(LineCodes { smallest: Exact(f32::NAN), ..op }.check().is_err());
    }
}
