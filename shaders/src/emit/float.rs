//! The functions of floats as instructions: arithmetic, rounding, activations.
//!
//! NaN is found by its bits, as a device need not know it.

use halite_ops::expression::Function;
use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::lanes::Lanes;

impl Lanes {
    /// A function of one float that gives a float.
    pub(crate) fn float1(&mut self, function: Function, x: Id) -> Id {
        match function {
            Function::Abs => self.fabs(x),
            Function::Acos => self.acos(x),
            Function::Acosh => self.acosh(x),
            Function::Asin => self.asin(x),
            Function::Asinh => self.asinh(x),
            Function::Atan => self.atan(x),
            Function::Atanh => self.atanh(x),
            Function::Ceil => self.fext(GlslStd450Op::Ceil, &[x]),
            Function::Cos => self.sine(x, 1),
            Function::Cosh => self.cosh(x),
            Function::Erf => self.erf(x),
            Function::Exp => self.exp(x),
            Function::Floor => self.fext(GlslStd450Op::Floor, &[x]),
            Function::Gelu => self.gelu(x),
            Function::GeluTanh => self.gelu_tanh(x),
            Function::HardSwish => self.hard_swish(x),
            Function::Log => self.log(x),
            Function::Mish => self.mish(x),
            Function::Neg => self.negate(x),
            Function::Reciprocal => {
                let one = self.f(1.0);
                self.div(one, x)
            }
            Function::Relu => {
                let zero = self.f(0.0);
                let negative = self.bop(Op::FOrdLessThan, &[x, zero]);
                let positive = self.fselect(negative, zero, x);
                // NVIDIA's compiler makes a maximum of this choice, which has no room for NaN.
                let nan = self.is_nan(x);
                self.fselect(nan, x, positive)
            }
            Function::Round => self.fext(GlslStd450Op::RoundEven, &[x]),
            Function::Rsqrt => self.fext(GlslStd450Op::InverseSqrt, &[x]),
            Function::Selu => {
                let [alpha, gamma] = [self.f(1.673_263_2), self.f(1.050_701)];
                let elu = self.elu(x, alpha);
                self.mul(gamma, elu)
            }
            Function::Sigmoid => {
                let one = self.f(1.0);
                self.over_one_plus_exp(one, x)
            }
            Function::Sign => {
                let sign = self.fext(GlslStd450Op::FSign, &[x]);
                let nan = self.is_nan(x);
                self.fselect(nan, x, sign)
            }
            Function::Silu => self.over_one_plus_exp(x, x),
            Function::Sin => self.sine(x, 0),
            Function::Sinh => self.sinh(x),
            Function::Softplus => self.softplus(x),
            Function::Sqrt => self.fext(GlslStd450Op::Sqrt, &[x]),
            Function::Tan => self.tan(x),
            _ => self.tanh(x),
        }
    }

    /// A function of two floats that gives a float.
    pub(crate) fn float2(&mut self, function: Function, a: Id, b: Id) -> Id {
        match function {
            Function::Add => self.add(a, b),
            Function::Sub => self.sub(a, b),
            Function::Mul => self.mul(a, b),
            Function::Div => self.quotient_to_nearest(a, b),
            Function::Elu => self.elu(a, b),
            Function::Max => self.extreme(Op::FOrdGreaterThan, a, b),
            Function::Min => self.extreme(Op::FOrdLessThan, a, b),
            Function::Pow => self.pow(a, b),
            Function::Prelu => {
                let zero = self.f(0.0);
                let negative = self.bop(Op::FOrdLessThan, &[a, zero]);
                let scaled = self.mul(a, b);
                self.fselect(negative, scaled, a)
            }
            Function::Fmod => self.fmod(a, b),
            _ => self.modulo(a, b),
        }
    }

    pub(crate) fn is_nan(&mut self, x: Id) -> Id {
        let bits = self.bits(x);
        let magnitude = self.and(bits, 0x7FFF_FFFF);
        let infinity = self.u(0x7F80_0000);
        self.bop(Op::UGreaterThan, &[magnitude, infinity])
    }

    pub(crate) fn is_inf(&mut self, x: Id) -> Id {
        let bits = self.bits(x);
        let magnitude = self.and(bits, 0x7FFF_FFFF);
        let infinity = self.u(0x7F80_0000);
        self.bop(Op::IEqual, &[magnitude, infinity])
    }

    /// `a` where it is before `b` or NaN, else `b`, which then is the extreme or NaN.
    pub(crate) fn extreme(&mut self, before: Op, a: Id, b: Id) -> Id {
        let first = self.bop(before, &[a, b]);
        let nan = self.is_nan(a);
        let take = self.bop(Op::LogicalOr, &[first, nan]);
        self.fselect(take, a, b)
    }

    fn hard_swish(&mut self, x: Id) -> Id {
        let [sixth, half] = [self.f(1.0 / 6.0), self.f(0.5)];
        let gate = self.hard_sigmoid(x, sixth, half);
        self.mul(x, gate)
    }

    fn tan(&mut self, x: Id) -> Id {
        let [sin, cos] = [self.sine(x, 0), self.sine(x, 1)];
        self.div(sin, cos)
    }

    pub(crate) fn hard_sigmoid(&mut self, x: Id, alpha: Id, beta: Id) -> Id {
        let product = self.mul(alpha, x);
        let line = self.add(product, beta);
        let [zero, one] = [self.f(0.0), self.f(1.0)];
        let low = self.extreme(Op::FOrdGreaterThan, line, zero);
        self.extreme(Op::FOrdLessThan, low, one)
    }

    /// `numerator / (1 + exp(-x))`.
    fn over_one_plus_exp(&mut self, numerator: Id, x: Id) -> Id {
        let negated = self.negate(x);
        let power = self.exp(negated);
        let one = self.f(1.0);
        let sum = self.add(one, power);
        self.div(numerator, sum)
    }

    fn elu(&mut self, x: Id, alpha: Id) -> Id {
        let zero = self.f(0.0);
        let positive = self.bop(Op::FOrdGreaterThan, &[x, zero]);
        let power = self.expm1(x);
        let curve = self.mul(alpha, power);
        self.fselect(positive, x, curve)
    }

    fn gelu(&mut self, x: Id) -> Id {
        let root = self.f(std::f32::consts::FRAC_1_SQRT_2);
        let scaled = self.mul(x, root);
        let inner = self.erf(scaled);
        self.half_of(x, inner)
    }

    fn gelu_tanh(&mut self, x: Id) -> Id {
        let square = self.mul(x, x);
        let factor = self.polynomial(square, &[0.797_884_6, 0.035_677_41]);
        let argument = self.mul(x, factor);
        let inner = self.tanh(argument);
        self.half_of(x, inner)
    }

    /// `x / 2 * (1 + inner)`.
    fn half_of(&mut self, x: Id, inner: Id) -> Id {
        let [half, one] = [self.f(0.5), self.f(1.0)];
        let [halved, sum] = [self.mul(x, half), self.add(one, inner)];
        self.mul(halved, sum)
    }

    /// With `e = exp(x)`, `tanh(log(1 + e))` is `n / (n + 2)` where `n = e (e + 2)`; beyond 20 it is 1.
    fn mish(&mut self, x: Id) -> Id {
        let power = self.exp(x);
        let [two, limit] = [self.f(2.0), self.f(20.0)];
        let sum = self.add(power, two);
        let n = self.mul(power, sum);
        let below = self.add(n, two);
        let gate = self.div(n, below);
        let product = self.mul(x, gate);
        let large = self.bop(Op::FOrdGreaterThan, &[x, limit]);
        self.fselect(large, x, product)
    }

    /// `max(x, 0) + log(1 + exp(-|x|))`.
    fn softplus(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let negated = self.negate(magnitude);
        let e = self.exp(negated);
        let log1p = self.log1p(e);
        let positive = self.float1(Function::Relu, x);
        self.add(positive, log1p)
    }

    /// `a - trunc(a / b) b`, the product as the exact sum of two floats (Dekker), so that what is left is exact; a quotient
    /// that is off by one is corrected.
    fn fmod(&mut self, a: Id, b: Id) -> Id {
        let [x, y] = [self.fabs(a), self.fabs(b)];
        let quotient = self.div(x, y);
        let q = self.fext(GlslStd450Op::Trunc, &[quotient]);
        let rest = self.remainder(x, y, q);
        let zero = self.f(0.0);
        let below = self.bop(Op::FOrdLessThan, &[rest, zero]);
        let up = self.add(rest, y);
        let rest = self.fselect(below, up, rest);
        let above = self.bop(Op::FOrdGreaterThanEqual, &[rest, y]);
        let down = self.sub(rest, y);
        let rest = self.fselect(above, down, rest);
        let nan = self.is_nan(rest);
        let signed = self.with_sign_of(rest, a);
        let rest = self.fselect(nan, rest, signed);
        // What is smaller than b is left as it is; also when b is infinite.
        let smaller = self.bop(Op::FOrdLessThan, &[x, y]);
        self.fselect(smaller, a, rest)
    }

    /// `a / b`, rounded once: devices may be off by 2.5 units in the last place, which quantization, and what else decides by
    /// quotients, would show. What is lost is divided once more. Below normal values, and where it is infinite or NaN, it is
    /// as the device has it.
    pub(crate) fn quotient_to_nearest(&mut self, a: Id, b: Id) -> Id {
        let quotient = self.div(a, b);
        let rest = self.remainder(a, b, quotient);
        let more = self.div(rest, b);
        let better = self.add(quotient, more);
        let magnitude = self.fabs(better);
        let infinity = self.f(f32::INFINITY);
        let finite = self.bop(Op::FOrdLessThan, &[magnitude, infinity]);
        self.fselect(finite, better, quotient)
    }

    /// `x - q y`, exact when it fits.
    fn remainder(&mut self, x: Id, y: Id, q: Id) -> Id {
        let (q_high, q_low) = self.halves(q);
        let (y_high, y_low) = self.halves(y);
        let mut rest = x;
        // The four products are exact, and are taken off from the largest on.
        for (a, b) in [(q_high, y_high), (q_high, y_low), (q_low, y_high), (q_low, y_low)] {
            let product = self.mul(a, b);
            rest = self.sub(rest, product);
        }
        rest
    }

    /// A float as the sum of two with half the digits each.
    fn halves(&mut self, x: Id) -> (Id, Id) {
        let bits = self.bits(x);
        let high = self.and(bits, 0xFFFF_F000);
        let high = self.of_bits(high);
        (high, self.sub(x, high))
    }

    fn modulo(&mut self, a: Id, b: Id) -> Id {
        let rest = self.fmod(a, b);
        let zero = self.f(0.0);
        let is_rest = self.bop(Op::FOrdNotEqual, &[rest, zero]);
        let [left, right] =
            [self.bop(Op::FOrdLessThan, &[rest, zero]), self.bop(Op::FOrdLessThan, &[b, zero])];
        let differ = self.bop(Op::LogicalNotEqual, &[left, right]);
        let adjust = self.bop(Op::LogicalAnd, &[is_rest, differ]);
        let adjusted = self.add(rest, b);
        self.fselect(adjust, adjusted, rest)
    }
}
