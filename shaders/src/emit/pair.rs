//! Owns the functions of 64-bit integers as instructions on pairs of words, low and high, for all devices: Vulkan promises
//! no 64-bit integers. Does not own: conversions.

use spirv::Op;

use super::{
    assembler::{Counter, Id, Repeat},
    function::Function,
    lanes::{Lanes, Register},
};

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
    pub(crate) fn pair1(&mut self, function: Function, low: Id, high: Id) -> Register {
        let [zero, one] = [self.u(0), self.u(1)];
        let (low, high) = match function {
            Function::Neg => self.pair_negated(low, high),
            Function::Not => (self.uop(Op::Not, &[low]), self.uop(Op::Not, &[high])),
            Function::Abs => {
                let (low, high, _) = self.magnitude(low, high);
                (low, high)
            }
            Function::Relu => {
                let negative = self.bop(Op::SLessThan, &[high, zero]);
                (self.uselect(negative, zero, low), self.uselect(negative, zero, high))
            }
            _ => {
                let sign = self.right_signed(high, 31);
                let both = self.or(low, high);
                let some = self.bop(Op::INotEqual, &[both, zero]);
                let unit = self.uselect(some, one, zero);
                (self.or(sign, unit), sign)
            }
        };
        Register::Pair(low, high)
    }

    /// A function of two pairs that gives a pair.
    pub(crate) fn pair2(&mut self, function: Function, a: (Id, Id), b: (Id, Id)) -> Register {
        let each = |lanes: &mut Self, op| (lanes.uop(op, &[a.0, b.0]), lanes.uop(op, &[a.1, b.1]));
        let (low, high) = match function {
            Function::Add => self.pair_add(a, b),
            Function::Sub => self.pair_sub(a, b),
            Function::And => each(self, Op::BitwiseAnd),
            Function::Or => each(self, Op::BitwiseOr),
            Function::Xor => each(self, Op::BitwiseXor),
            Function::Max | Function::Min => {
                let compare = if function == Function::Max { Function::Gt } else { Function::Lt };
                let take = self.pair_compare(compare, a, b);
                (self.uselect(take, a.0, b.0), self.uselect(take, a.1, b.1))
            }
            Function::Shl => self.pair_left(a, b),
            Function::Shr => self.pair_right(a, b),
            Function::Div | Function::Fmod | Function::Mod => self.pair_divided(function, a, b),
            _ => {
                let (low, high) = self.product(a.0, b.0);
                let [left, right] = [self.uop(Op::IMul, &[a.0, b.1]), self.uop(Op::IMul, &[a.1, b.0])];
                let cross = self.uadd(left, right);
                (low, self.uadd(high, cross))
            }
        };
        Register::Pair(low, high)
    }

    /// A comparison of pairs.
    pub(crate) fn pair_compare(&mut self, function: Function, a: (Id, Id), b: (Id, Id)) -> Id {
        match function {
            Function::Eq | Function::Ne => {
                let [low, high] =
                    [self.uop(Op::BitwiseXor, &[a.0, b.0]), self.uop(Op::BitwiseXor, &[a.1, b.1])];
                let [both, zero] = [self.or(low, high), self.u(0)];
                self.bop(if function == Function::Eq { Op::IEqual } else { Op::INotEqual }, &[both, zero])
            }
            Function::Gt => self.pair_compare(Function::Lt, b, a),
            Function::Le => {
                let greater = self.pair_compare(Function::Lt, b, a);
                self.bop(Op::LogicalNot, &[greater])
            }
            Function::Ge => {
                let less = self.pair_compare(Function::Lt, a, b);
                self.bop(Op::LogicalNot, &[less])
            }
            _ => self.pair_less(Op::SLessThan, a, b),
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

    fn pair_right(&mut self, (low, high): (Id, Id), by: (Id, Id)) -> (Id, Id) {
        let (inside, within, bits, rest) = self.amount(by);
        let moved = self.uop(Op::ShiftRightArithmetic, &[high, bits]);
        let low = self.uop(Op::ShiftRightLogical, &[low, bits]);
        let carried = self.left(high, 1);
        let carried = self.uop(Op::ShiftLeftLogical, &[carried, rest]);
        let low = self.or(low, carried);
        let sign = self.right_signed(high, 31);
        let value = self.pair_select(within, (low, moved), (moved, sign));
        self.pair_select(inside, value, (sign, sign))
    }

    /// Quotient or remainder, bit by bit of the magnitudes: each step moves the next bit of the dividend into the rest and,
    /// where the divisor goes into that, a bit into the quotient, which takes the dividend's place. By zero gives 0.
    fn pair_divided(&mut self, function: Function, a: (Id, Id), b: (Id, Id)) -> (Id, Id) {
        let (a_low, a_high, a_negative) = self.magnitude(a.0, a.1);
        let (b_low, b_high, b_negative) = self.magnitude(b.0, b.1);
        let zero = self.u(0);
        let ty = self.words();
        let repeat = self.begin_repeat(64, ty, [zero, zero, a_low, a_high]);
        let [rest_low, rest_high, low, high] = repeat.values;
        let top = self.right(high, 31);
        let rest = self.doubled(rest_low, rest_high, top);
        let less = self.pair_less(Op::ULessThan, rest, (b_low, b_high));
        let reduced = self.pair_sub(rest, (b_low, b_high));
        let rest = self.pair_select(less, rest, reduced);
        let one = self.u(1);
        let bit = self.uselect(less, zero, one);
        let (low, high) = self.doubled(low, high, bit);
        let [rest_low, rest_high, low, high] = self.asm.end_repeat(repeat, [rest.0, rest.1, low, high]);
        let both = self.or(b.0, b.1);
        let by_zero = self.bop(Op::IEqual, &[both, zero]);
        let value = if function == Function::Div {
            let negative = self.bop(Op::LogicalNotEqual, &[a_negative, b_negative]);
            let negated = self.pair_negated(low, high);
            self.pair_select(negative, negated, (low, high))
        } else {
            let negated = self.pair_negated(rest_low, rest_high);
            let rest = self.pair_select(a_negative, negated, (rest_low, rest_high));
            if function == Function::Mod { self.pair_modulo(rest, b) } else { rest }
        };
        self.pair_select(by_zero, (zero, zero), value)
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
    fn begin_repeat<const N: usize>(&mut self, count: u32, ty: Id, initial: [Id; N]) -> Repeat<N> {
        let [word, boolean] = [self.u32_scalar(), self.bool_scalar()];
        let [zero, one, count] = [0, 1, count].map(|n| self.word(n));
        self.asm.begin_repeat(Counter { word, boolean, zero, one, count }, ty, initial)
    }
}
