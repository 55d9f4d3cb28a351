//! The functions of 64-bit integers as instructions on pairs of words, low and high, for all devices: Vulkan promises no 64-bit
//! integers. `signed` tells whether the high word has a sign.

use halite_ops::expression::Function;
use spirv::Op;

use halite_spirv::{Counter, Id, Repeat};

use super::lanes::{Lanes, Register};

impl Lanes {
    fn pair_add(&mut self, a: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let (low, carry) = self.two_words(Op::IAddCarry, a.0, b.0);
        let high = self.uadd(a.1, b.1);
        (low, self.uadd(high, carry))
    }

    fn pair_sub(&mut self, a: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let (low, borrow) = self.two_words(Op::ISubBorrow, a.0, b.0);
        let high = self.usub(a.1, b.1);
        (low, self.usub(high, borrow))
    }

    pub(crate) fn pair_negated(&mut self, low: Id, high: Id) -> (Id, Id) {
        let zero = self.u(0);
        self.pair_sub((zero, zero), (low, high))
    }

    /// The magnitude of a pair, and whether it is negative.
    pub(crate) fn magnitude(&mut self, low: Id, high: Id) -> (Id, Id, Id) {
        let zero = self.u(0);
        let negative = self.bop(Op::SLessThan, &[high, zero]);
        let negated = self.pair_negated(low, high);
        let low = self.uselect(negative, negated.0, low);
        (low, self.uselect(negative, negated.1, high), negative)
    }

    /// A function of one pair.
    pub(crate) fn pair1(&mut self, function: Function, low: Id, high: Id, signed: bool) -> Register {
        let [zero, one] = [self.u(0), self.u(1)];
        let (low, high) = match function {
            Function::Neg => self.pair_negated(low, high),
            Function::Not => (self.uop(Op::Not, &[low]), self.uop(Op::Not, &[high])),
            Function::Abs | Function::Relu if !signed => (low, high),
            Function::Abs => {
                let (low, high, _) = self.magnitude(low, high);
                (low, high)
            }
            Function::Relu => {
                let negative = self.bop(Op::SLessThan, &[high, zero]);
                (self.uselect(negative, zero, low), self.uselect(negative, zero, high))
            }
            _ => {
                let sign = if signed { self.right_signed(high, 31) } else { zero };
                let both = self.or(low, high);
                let some = self.bop(Op::INotEqual, &[both, zero]);
                let unit = self.uselect(some, one, zero);
                (self.or(sign, unit), sign)
            }
        };
        Register::Pair(low, high)
    }

    /// A function of two pairs that gives a pair.
    pub(crate) fn pair2(&mut self, function: Function, a: (Id, Id), b: (Id, Id), signed: bool) -> Register {
        let each = |lanes: &mut Self, op| (lanes.uop(op, &[a.0, b.0]), lanes.uop(op, &[a.1, b.1]));
        let (low, high) = match function {
            Function::Add => self.pair_add(a, b),
            Function::Sub => self.pair_sub(a, b),
            Function::And => each(self, Op::BitwiseAnd),
            Function::Or => each(self, Op::BitwiseOr),
            Function::Xor => each(self, Op::BitwiseXor),
            Function::Max | Function::Min => {
                let compare = if function == Function::Max { Function::Gt } else { Function::Lt };
                let take = self.pair_compare(compare, a, b, signed);
                (self.uselect(take, a.0, b.0), self.uselect(take, a.1, b.1))
            }
            Function::Shl => self.pair_left(a, b),
            Function::Shr => self.pair_right(a, b, signed),
            Function::Div | Function::Fmod | Function::Mod => self.pair_divided(function, a, b, signed),
            Function::Pow => self.pair_power(a, b, signed),
            _ => self.pair_product(a, b),
        };
        Register::Pair(low, high)
    }

    fn pair_product(&mut self, a: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let (low, high) = self.product(a.0, b.0);
        let [left, right] = [self.uop(Op::IMul, &[a.0, b.1]), self.uop(Op::IMul, &[a.1, b.0])];
        let cross = self.uadd(left, right);
        (low, self.uadd(high, cross))
    }

    /// `a^b` as `word_power` has it.
    fn pair_power(&mut self, a: (Id, Id), b: (Id, Id), signed: bool) -> (Id, Id) {
        let [zero, one, ty] = [self.u(0), self.u(1), self.words()];
        let repeat = self.begin_repeat(64, ty, [one, zero, a.0, a.1, b.0, b.1]);
        let [low, high, base_low, base_high, rest_low, rest_high] = repeat.values;
        let odd = self.and(rest_low, 1);
        let odd = self.bop(Op::INotEqual, &[odd, zero]);
        let base = (base_low, base_high);
        let product = self.pair_product((low, high), base);
        let (low, high) = self.pair_select(odd, product, (low, high));
        let square = self.pair_product(base, base);
        let carried = self.left(rest_high, 31);
        let rest_low = self.right(rest_low, 1);
        let next = [low, high, square.0, square.1, self.or(rest_low, carried), self.right(rest_high, 1)];
        let [low, high, ..] = self.asm.end_repeat(repeat, next);
        if !signed {
            return (low, high);
        }
        let negative = self.bop(Op::SLessThan, &[b.1, zero]);
        let magnitude = self.magnitude(a.0, a.1);
        let unit = self.pair_compare(Function::Eq, (magnitude.0, magnitude.1), (one, zero), signed);
        let kept = self.bop(Op::LogicalNot, &[negative]);
        let kept = self.bop(Op::LogicalOr, &[kept, unit]);
        self.pair_select(kept, (low, high), (zero, zero))
    }

    /// A comparison of pairs.
    pub(crate) fn pair_compare(&mut self, function: Function, a: (Id, Id), b: (Id, Id), signed: bool) -> Id {
        match function {
            Function::Eq | Function::Ne => {
                let [low, high] =
                    [self.uop(Op::BitwiseXor, &[a.0, b.0]), self.uop(Op::BitwiseXor, &[a.1, b.1])];
                let [both, zero] = [self.or(low, high), self.u(0)];
                self.bop(if function == Function::Eq { Op::IEqual } else { Op::INotEqual }, &[both, zero])
            }
            Function::Gt => self.pair_compare(Function::Lt, b, a, signed),
            Function::Le => {
                let greater = self.pair_compare(Function::Lt, b, a, signed);
                self.bop(Op::LogicalNot, &[greater])
            }
            Function::Ge => {
                let less = self.pair_compare(Function::Lt, a, b, signed);
                self.bop(Op::LogicalNot, &[less])
            }
            _ => self.pair_less(if signed { Op::SLessThan } else { Op::ULessThan }, a, b),
        }
    }

    /// A pair by condition.
    fn pair_select(&mut self, condition: Id, yes: (Id, Id), no: (Id, Id)) -> (Id, Id) {
        (self.uselect(condition, yes.0, no.0), self.uselect(condition, yes.1, no.1))
    }

    /// What shifting by a pair needs: whether it is below 64, whether below 32, and its last five bits with 31 less them.
    fn amount(&mut self, by: (Id, Id)) -> (Id, Id, Id, Id) {
        let [zero, thirty_one, thirty_two, most] = [0, 31, 32, 64].map(|n| self.u(n));
        let small = self.bop(Op::IEqual, &[by.1, zero]);
        let below = self.bop(Op::ULessThan, &[by.0, most]);
        let inside = self.bop(Op::LogicalAnd, &[small, below]);
        let within = self.bop(Op::ULessThan, &[by.0, thirty_two]);
        let bits = self.and(by.0, 31);
        (inside, within, bits, self.usub(thirty_one, bits))
    }

    fn pair_left(&mut self, (low, high): (Id, Id), by: (Id, Id)) -> (Id, Id) {
        let (inside, within, bits, rest) = self.amount(by);
        let moved = self.uop(Op::ShiftLeftLogical, &[low, bits]);
        let high = self.uop(Op::ShiftLeftLogical, &[high, bits]);
        let carried = self.right(low, 1);
        let carried = self.uop(Op::ShiftRightLogical, &[carried, rest]);
        let high = self.or(high, carried);
        let zero = self.u(0);
        let value = self.pair_select(within, (moved, high), (zero, moved));
        self.pair_select(inside, value, (zero, zero))
    }

    fn pair_right(&mut self, (low, high): (Id, Id), by: (Id, Id), signed: bool) -> (Id, Id) {
        let (inside, within, bits, rest) = self.amount(by);
        let op = if signed { Op::ShiftRightArithmetic } else { Op::ShiftRightLogical };
        let moved = self.uop(op, &[high, bits]);
        let low = self.uop(Op::ShiftRightLogical, &[low, bits]);
        let carried = self.left(high, 1);
        let carried = self.uop(Op::ShiftLeftLogical, &[carried, rest]);
        let low = self.or(low, carried);
        let sign = if signed { self.right_signed(high, 31) } else { self.u(0) };
        let value = self.pair_select(within, (low, moved), (moved, sign));
        self.pair_select(inside, value, (sign, sign))
    }

    /// Quotient or remainder; by zero gives 0.
    fn pair_divided(&mut self, function: Function, a: (Id, Id), b: (Id, Id), signed: bool) -> (Id, Id) {
        let [zero, both] = [self.u(0), self.or(b.0, b.1)];
        let by_zero = self.bop(Op::IEqual, &[both, zero]);
        let value = if signed {
            self.pair_divided_signed(function, a, b)
        } else {
            let (quotient, rest) = self.pair_long_division(a, b);
            if function == Function::Div { quotient } else { rest }
        };
        self.pair_select(by_zero, (zero, zero), value)
    }

    fn pair_divided_signed(&mut self, function: Function, a: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let (a_low, a_high, a_negative) = self.magnitude(a.0, a.1);
        let (b_low, b_high, b_negative) = self.magnitude(b.0, b.1);
        let (quotient, rest) = self.pair_long_division((a_low, a_high), (b_low, b_high));
        if function == Function::Div {
            let negative = self.bop(Op::LogicalNotEqual, &[a_negative, b_negative]);
            let negated = self.pair_negated(quotient.0, quotient.1);
            return self.pair_select(negative, negated, quotient);
        }
        let negated = self.pair_negated(rest.0, rest.1);
        let rest = self.pair_select(a_negative, negated, rest);
        if function == Function::Mod { self.pair_modulo(rest, b) } else { rest }
    }

    /// Quotient and rest without signs; each step moves the next bit of the dividend into the rest and, where the divisor
    /// goes into that, a bit into the quotient, which takes the dividend's place.
    fn pair_long_division(&mut self, a: (Id, Id), b: (Id, Id)) -> ((Id, Id), (Id, Id)) {
        let [zero, ty] = [self.u(0), self.words()];
        let repeat = self.begin_repeat(64, ty, [zero, zero, a.0, a.1]);
        let [rest_low, rest_high, low, high] = repeat.values;
        let top = self.right(high, 31);
        let rest = self.doubled(rest_low, rest_high, top);
        // A divisor from 2^63 on leaves rests whose double has a bit too many.
        let lost = self.right(rest_high, 31);
        let lost = self.bop(Op::INotEqual, &[lost, zero]);
        let less = self.pair_less(Op::ULessThan, rest, b);
        let whole = self.bop(Op::LogicalNot, &[lost]);
        let less = self.bop(Op::LogicalAnd, &[less, whole]);
        let reduced = self.pair_sub(rest, b);
        let rest = self.pair_select(less, rest, reduced);
        let one = self.u(1);
        let bit = self.uselect(less, zero, one);
        let (low, high) = self.doubled(low, high, bit);
        let [rest_low, rest_high, low, high] = self.asm.end_repeat(repeat, [rest.0, rest.1, low, high]);
        ((low, high), (rest_low, rest_high))
    }

    /// Twice a pair, plus a bit.
    fn doubled(&mut self, low: Id, high: Id, bit: Id) -> (Id, Id) {
        let [twice, carry, upper] = [self.left(low, 1), self.right(low, 31), self.left(high, 1)];
        (self.or(twice, bit), self.or(upper, carry))
    }

    /// Whether a pair is less than another; `compare` is the instruction for the high words, with or without sign.
    fn pair_less(&mut self, compare: Op, a: (Id, Id), b: (Id, Id)) -> Id {
        let less = self.bop(compare, &[a.1, b.1]);
        let same = self.bop(Op::IEqual, &[a.1, b.1]);
        let below = self.bop(Op::ULessThan, &[a.0, b.0]);
        let tie = self.bop(Op::LogicalAnd, &[same, below]);
        self.bop(Op::LogicalOr, &[less, tie])
    }

    /// A remainder with the sign of the divisor.
    fn pair_modulo(&mut self, rest: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let zero = self.u(0);
        let signs = self.uop(Op::BitwiseXor, &[rest.1, b.1]);
        let differ = self.bop(Op::SLessThan, &[signs, zero]);
        let both = self.or(rest.0, rest.1);
        let is_rest = self.bop(Op::INotEqual, &[both, zero]);
        let adjust = self.bop(Op::LogicalAnd, &[differ, is_rest]);
        let adjusted = self.pair_add(rest, b);
        self.pair_select(adjust, adjusted, rest)
    }

    /// A loop of `count` rounds over values of type `ty`.
    pub(crate) fn begin_repeat<const N: usize>(&mut self, count: u32, ty: Id, initial: [Id; N]) -> Repeat<N> {
        let [word, boolean] = [self.u32_scalar(), self.bool_scalar()];
        let [zero, one, count] = [0, 1, count].map(|n| self.word(n));
        self.asm.begin_repeat(Counter { word, boolean, zero, one, count }, ty, initial)
    }
}
