//! Numbers with a fraction that become part of an address, such as where a resized image takes its pixels from: cutting
//! them out of the code, and their ranges in a launch.

use spirv::{GlslStd450Op, Op};

use super::{
    expr::{Expr, ExprId, Float},
    lower::Lowering,
    values::Values,
};
use crate::types::Type;

/// What rounding to 32 bits may add to a result, in parts of it.
const ROUNDING: f64 = 1.0 / (1 << 20) as f64;

/// Smallest and largest number; that it may be no number at all is left aside: what comes of one as an integer, Vulkan does
/// not say.
type Range = (f64, f64);

impl Lowering<'_, '_> {
    /// Whether a value has a fraction and 32 or 64 bits.
    pub fn is_float(&self, id: u32) -> bool {
        let ty = self.program.module.def(id).and_then(|def| self.program.types.get(def.ty));
        matches!(ty, Some(Type::Float { width: 32 | 64 }))
    }

    /// The expression of a value for which [`Lowering::is_float`] holds.
    pub fn float(&mut self, id: u32) -> Expr {
        Expr::Float(self.float_of(id).unwrap_or(Float::Unknown))
    }

    fn float_of(&mut self, id: u32) -> Option<Float> {
        let module = &self.program.module;
        let inst = module.def(id)?;
        let words = module.operands(inst);
        Some(match inst.op {
            Op::Constant => match *words {
                [bits] => Float::Constant(f64::from(f32::from_bits(bits)).to_bits()),
                [low, high] => Float::Constant(u64::from(low) | u64::from(high) << 32),
                _ => return None,
            },
            Op::ConstantNull => Float::Constant(0),
            Op::ConvertUToF | Op::ConvertSToF => {
                let width = self.width_of(words[0])?;
                Float::FromInt { of: self.value(words[0]), signed: inst.op == Op::ConvertSToF, width }
            }
            Op::FAdd => Float::Add(self.value(words[0]), self.value(words[1])),
            Op::FSub => Float::Sub(self.value(words[0]), self.value(words[1])),
            Op::FMul => Float::Mul(self.value(words[0]), self.value(words[1])),
            Op::FDiv => Float::Div(self.value(words[0]), self.value(words[1])),
            Op::FRem => Float::Rem(self.value(words[0]), self.value(words[1])),
            Op::FNegate => {
                let zero = self.add(Expr::Float(Float::Constant(0)));
                Float::Sub(zero, self.value(words[0]))
            }
            Op::Select => Float::OneOf {
                condition: self.value(words[0]),
                values: [self.value(words[1]), self.value(words[2])],
            },
            Op::ExtInst => self.float_extended(words)?,
            _ => return None,
        })
    }

    fn float_extended(&mut self, words: &[u32]) -> Option<Float> {
        let op = self.program.module.glsl_op(words[0], words[1])?;
        let args: Vec<ExprId> = words[2..].iter().map(|id| self.value(*id)).collect();
        Some(match (op, args.as_slice()) {
            (GlslStd450Op::Floor, [of]) => Float::Floor(*of),
            (GlslStd450Op::Ceil, [of]) => Float::Ceil(*of),
            (GlslStd450Op::Trunc, [of]) => Float::Trunc(*of),
            (GlslStd450Op::Round | GlslStd450Op::RoundEven, [of]) => Float::Round(*of),
            (GlslStd450Op::FMin | GlslStd450Op::NMin, [a, b]) => Float::Min(*a, *b),
            (GlslStd450Op::FMax | GlslStd450Op::NMax, [a, b]) => Float::Max(*a, *b),
            (GlslStd450Op::FClamp | GlslStd450Op::NClamp, [of, low, high]) => {
                let raised = self.add(Expr::Float(Float::Max(*of, *low)));
                Float::Min(raised, *high)
            }
            _ => return None,
        })
    }
}

impl Values<'_> {
    /// The range of a number with a fraction.
    pub fn float_range(&mut self, id: ExprId) -> Option<Range> {
        if let Some(known) = self.floats.get(&id) {
            return *known;
        }
        self.budget = self.budget.checked_sub(1)?;
        let range = self.compute_float(id).filter(|(low, high)| low <= high);
        self.floats.insert(id, range);
        range
    }

    fn compute_float(&mut self, id: ExprId) -> Option<Range> {
        let exprs = self.exprs;
        let Expr::Float(float) = &exprs[id] else { return None };
        Some(match float {
            Float::Unknown => return None,
            Float::Constant(bits) => (f64::from_bits(*bits), f64::from_bits(*bits)),
            Float::FromInt { of, signed, width } => {
                let (_, (low, high)) =
                    if *signed { self.signed(*of, *width)? } else { self.unsigned(*of, *width)? };
                rounded([low as f64, high as f64])
            }
            Float::Add(a, b)
            | Float::Sub(a, b)
            | Float::Mul(a, b)
            | Float::Div(a, b)
            | Float::Rem(a, b)
            | Float::Min(a, b)
            | Float::Max(a, b) => combined(float, self.float_range(*a)?, self.float_range(*b)?)?,
            Float::Floor(of) => self.float_range(*of).map(|(low, high)| (low.floor(), high.floor()))?,
            Float::Ceil(of) => self.float_range(*of).map(|(low, high)| (low.ceil(), high.ceil()))?,
            Float::Trunc(of) => self.float_range(*of).map(|(low, high)| (low.trunc(), high.trunc()))?,
            Float::Round(of) => self.float_range(*of).map(|(low, high)| (low.floor(), high.ceil()))?,
            Float::OneOf { values, condition } => match self.truth(*condition) {
                Some(truth) => self.float_range(values[usize::from(!truth)])?,
                None => {
                    let (a, b) = (self.float_range(values[0])?, self.float_range(values[1])?);
                    (a.0.min(b.0), a.1.max(b.1))
                }
            },
        })
    }

    /// Whether one is less than another, where that can be told.
    pub fn float_less(&mut self, a: ExprId, b: ExprId) -> Option<bool> {
        let (a, b) = (self.float_range(a)?, self.float_range(b)?);
        match () {
            () if a.1 < b.0 => Some(true),
            () if a.0 >= b.1 => Some(false),
            () => None,
        }
    }

    /// The range of a number's whole part.
    pub fn whole_part(&mut self, of: ExprId) -> Option<(i64, i64)> {
        let (low, high) = self.float_range(of)?;
        let most = f64::from(i32::MAX);
        (low >= -most && high <= most).then_some((low.trunc() as i64, high.trunc() as i64))
    }
}

/// The range of what an operation makes of two numbers with these ranges.
fn combined(float: &Float, a: Range, b: Range) -> Option<Range> {
    Some(match float {
        Float::Add(..) => rounded([a.0 + b.0, a.1 + b.1]),
        Float::Sub(..) => rounded([a.0 - b.1, a.1 - b.0]),
        Float::Mul(..) => rounded([a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1]),
        Float::Div(..) => {
            (b.0 > 0.0 || b.1 < 0.0).then_some(())?;
            rounded([a.0 / b.0, a.0 / b.1, a.1 / b.0, a.1 / b.1])
        }
        Float::Rem(..) => {
            (a.0 >= 0.0 && b.0 > 0.0).then_some(())?;
            if a.1 < b.0 { a } else { (0.0, b.1) }
        }
        Float::Min(..) => (a.0.min(b.0), a.1.min(b.1)),
        Float::Max(..) => (a.0.max(b.0), a.1.max(b.1)),
        _ => return None,
    })
}

/// What lies between the smallest and the largest of these, rounded to 32 bits somewhere on the way.
fn rounded<const N: usize>(ends: [f64; N]) -> Range {
    let low = ends.into_iter().fold(f64::INFINITY, f64::min);
    let high = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
    // Small whole numbers and halves are exact.
    let exact = |x: f64| (x * 2.0).fract() == 0.0 && x.abs() < f64::from(1 << 22);
    let slack = |x: f64| if exact(x) { 0.0 } else { x.abs() * ROUNDING };
    (low - slack(low), high + slack(high))
}
