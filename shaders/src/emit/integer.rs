//! The functions of integers and booleans of up to 32 bits as instructions.

use halite_ops::{DType, expression::Function};
use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::lanes::{LANES, Lanes, Register};

impl Lanes {
    /// A function of one word.
    pub(crate) fn word1(&mut self, function: Function, x: Id, dtype: DType) -> Id {
        let signed = dtype.is_signed();
        let value = match function {
            Function::Neg => self.uop(Op::SNegate, &[x]),
            Function::Not => self.uop(Op::Not, &[x]),
            Function::Abs if signed => self.uext(GlslStd450Op::SAbs, &[x]),
            Function::Relu if signed => {
                let zero = self.u(0);
                self.uext(GlslStd450Op::SMax, &[x, zero])
            }
            Function::Sign if signed => self.uext(GlslStd450Op::SSign, &[x]),
            Function::Sign => {
                let one = self.u(1);
                self.uext(GlslStd450Op::UMin, &[x, one])
            }
            _ => x,
        };
        self.wrapped(value, dtype)
    }

    /// A function of two words that gives a word.
    pub(crate) fn word2(&mut self, function: Function, a: Id, b: Id, dtype: DType) -> Id {
        let signed = dtype.is_signed();
        let value = match function {
            Function::Add => self.uadd(a, b),
            Function::Sub => self.usub(a, b),
            Function::Mul => self.uop(Op::IMul, &[a, b]),
            Function::And => self.uop(Op::BitwiseAnd, &[a, b]),
            Function::Or => self.or(a, b),
            Function::Xor => self.uop(Op::BitwiseXor, &[a, b]),
            Function::Max => self.uext(if signed { GlslStd450Op::SMax } else { GlslStd450Op::UMax }, &[a, b]),
            Function::Min => self.uext(if signed { GlslStd450Op::SMin } else { GlslStd450Op::UMin }, &[a, b]),
            Function::Shl => self.shift_left(a, b, dtype),
            Function::Shr => self.shift_right(a, b, dtype, signed),
            Function::Div => self.quotient(a, b, signed),
            Function::Pow => self.word_power(a, b, dtype),
            _ => self.rest(function, a, b, signed),
        };
        self.wrapped(value, dtype)
    }

    /// Amounts from the width on give 0; the instruction says nothing of them.
    fn shift_left(&mut self, x: Id, by: Id, dtype: DType) -> Id {
        let width = self.u(dtype.size() as u32 * 8);
        let inside = self.bop(Op::ULessThan, &[by, width]);
        let amount = self.and(by, 31);
        let [shifted, zero] = [self.uop(Op::ShiftLeftLogical, &[x, amount]), self.u(0)];
        self.uselect(inside, shifted, zero)
    }

    fn shift_right(&mut self, x: Id, by: Id, dtype: DType, signed: bool) -> Id {
        let width = self.u(dtype.size() as u32 * 8);
        let inside = self.bop(Op::ULessThan, &[by, width]);
        let amount = self.and(by, 31);
        let op = if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical };
        let shifted = self.uop(op, &[x, amount]);
        let rest = if signed { self.right_signed(x, 31) } else { self.u(0) };
        self.uselect(inside, shifted, rest)
    }

    /// Towards zero; by zero gives 0, and the least value by -1 itself. Neither reaches the instruction, which may trap on
    /// devices that are processors.
    fn quotient(&mut self, a: Id, b: Id, signed: bool) -> Id {
        let [zero, one] = [self.u(0), self.u(1)];
        let by_zero = self.bop(Op::IEqual, &[b, zero]);
        let divisor = self.uselect(by_zero, one, b);
        if !signed {
            let quotient = self.uop(Op::UDiv, &[a, divisor]);
            return self.uselect(by_zero, zero, quotient);
        }
        let minus_one = self.u(u32::MAX);
        let by_minus_one = self.bop(Op::IEqual, &[b, minus_one]);
        let divisor = self.uselect(by_minus_one, one, divisor);
        let quotient = self.uop(Op::SDiv, &[a, divisor]);
        let negated = self.uop(Op::SNegate, &[a]);
        let quotient = self.uselect(by_minus_one, negated, quotient);
        self.uselect(by_zero, zero, quotient)
    }

    /// `a^b` by squaring, bit by bit of the exponent. Where that is negative, what comes out is right for 1 and -1, as both
    /// only tell odd exponents from even ones; of others it is 0.
    fn word_power(&mut self, a: Id, b: Id, dtype: DType) -> Id {
        let [zero, one, ty] = [self.u(0), self.u(1), self.words()];
        let repeat = self.begin_repeat(dtype.size() as u32 * 8, ty, [one, a, b]);
        let [power, base, rest] = repeat.values;
        let odd = self.and(rest, 1);
        let odd = self.bop(Op::INotEqual, &[odd, zero]);
        let product = self.uop(Op::IMul, &[power, base]);
        let power = self.uselect(odd, product, power);
        let next = [power, self.uop(Op::IMul, &[base, base]), self.right(rest, 1)];
        let [power, _, _] = self.asm.end_repeat(repeat, next);
        if !dtype.is_signed() {
            return power;
        }
        let negative = self.bop(Op::SLessThan, &[b, zero]);
        let magnitude = self.uext(GlslStd450Op::SAbs, &[a]);
        let unit = self.bop(Op::IEqual, &[magnitude, one]);
        let kept = self.bop(Op::LogicalNot, &[negative]);
        let kept = self.bop(Op::LogicalOr, &[kept, unit]);
        self.uselect(kept, power, zero)
    }

    /// The remainder, by `fmod` or `mod`; by zero gives 0.
    fn rest(&mut self, function: Function, a: Id, b: Id, signed: bool) -> Id {
        let quotient = self.quotient(a, b, signed);
        let product = self.uop(Op::IMul, &[quotient, b]);
        let rest = self.usub(a, product);
        let zero = self.u(0);
        let by_zero = self.bop(Op::IEqual, &[b, zero]);
        let rest = self.uselect(by_zero, zero, rest);
        if function == Function::Fmod || !signed {
            return rest;
        }
        let signs = self.uop(Op::BitwiseXor, &[rest, b]);
        let differ = self.bop(Op::SLessThan, &[signs, zero]);
        let is_rest = self.bop(Op::INotEqual, &[rest, zero]);
        let adjust = self.bop(Op::LogicalAnd, &[differ, is_rest]);
        let adjusted = self.uadd(rest, b);
        self.uselect(adjust, adjusted, rest)
    }

    /// A comparison of words.
    pub(crate) fn word_compare(&mut self, function: Function, a: Id, b: Id, dtype: DType) -> Id {
        let signed = dtype.is_signed();
        let op = match (function, signed) {
            (Function::Eq, _) => Op::IEqual,
            (Function::Ne, _) => Op::INotEqual,
            (Function::Lt, true) => Op::SLessThan,
            (Function::Lt, false) => Op::ULessThan,
            (Function::Le, true) => Op::SLessThanEqual,
            (Function::Le, false) => Op::ULessThanEqual,
            (Function::Gt, true) => Op::SGreaterThan,
            (Function::Gt, false) => Op::UGreaterThan,
            (_, true) => Op::SGreaterThanEqual,
            (_, false) => Op::UGreaterThanEqual,
        };
        self.bop(op, &[a, b])
    }

    /// A function of booleans.
    pub(crate) fn bool2(&mut self, function: Function, a: Id, b: Id) -> Id {
        let op = match function {
            Function::And => Op::LogicalAnd,
            Function::Or => Op::LogicalOr,
            Function::Eq => Op::LogicalEqual,
            _ => Op::LogicalNotEqual,
        };
        self.bop(op, &[a, b])
    }

    /// Words by an instruction that gives two, such as `OpIAddCarry`.
    pub(crate) fn two_words(&mut self, op: Op, a: Id, b: Id) -> (Id, Id) {
        let words = self.words();
        let both = self.asm.ty(Op::TypeStruct, &[words.0, words.0]);
        let result = self.asm.pure(op, both, &[a.0, b.0]);
        (
            self.asm.pure(Op::CompositeExtract, words, &[result.0, 0]),
            self.asm.pure(Op::CompositeExtract, words, &[result.0, 1]),
        )
    }

    /// Low and high words of products.
    pub(crate) fn product(&mut self, a: Id, b: Id) -> (Id, Id) {
        self.two_words(Op::UMulExtended, a, b)
    }

    /// A value by condition.
    pub(crate) fn select(&mut self, condition: Id, yes: Register, no: Register) -> Register {
        match (yes, no) {
            (Register::Float(a), Register::Float(b)) => Register::Float(self.fselect(condition, a, b)),
            (Register::Word(a), Register::Word(b)) => Register::Word(self.uselect(condition, a, b)),
            (Register::Bool(a), Register::Bool(b)) => {
                Register::Bool(self.bop(Op::Select, &[condition, a, b]))
            }
            (Register::Pair(a, c), Register::Pair(b, d)) => {
                Register::Pair(self.uselect(condition, a, b), self.uselect(condition, c, d))
            }
            _ => yes,
        }
    }

    /// The four words of a vector, one by one.
    pub(crate) fn each_word(&mut self, words: Id) -> Vec<Id> {
        (0..LANES).map(|lane| self.extract(words, lane)).collect()
    }
}
