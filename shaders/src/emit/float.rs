//! Owns the functions of floats as instructions. Does not own: the bounds of their errors (`bound`), which state the
//! precision of each.
//!
//! `GLSL.std.450` is used where the table "Precision of GLSL.std.450 Instructions" of the Vulkan specification promises
//! enough: `Exp` (3 + 2|x| ULP), `Exp2`, `InverseSqrt` (2 ULP), `Sqrt`. Not where it does not: `Sin` and `Cos` may be off by
//! `2^-11`, `Log` by `2^-21` near 1 however small the result, `Pow` follows from it, and `Tanh` overflows. NaN is found by
//! its bits, as a device need not know it.

use spirv::{GlslStd450Op, Op};

use super::{assembler::Id, function::Function, lanes::Lanes};

impl Lanes {
    /// A function of one float that gives a float.
    pub(crate) fn float1(&mut self, function: Function, x: Id) -> Id {
        match function {
            Function::Abs => self.fabs(x),
            Function::Ceil => self.fext(GlslStd450Op::Ceil, &[x]),
            Function::Cos => self.sine(x, 1),
            Function::Erf => self.erf(x),
            Function::Exp => self.exp(x),
            Function::Floor => self.fext(GlslStd450Op::Floor, &[x]),
            Function::Gelu => self.gelu(x),
            Function::GeluTanh => self.gelu_tanh(x),
            Function::HardSwish => {
                let [sixth, half] = [self.f(1.0 / 6.0), self.f(0.5)];
                let gate = self.hard_sigmoid(x, sixth, half);
                self.mul(x, gate)
            }
            Function::Log => self.log(x),
            Function::Mish => self.mish(x),
            Function::Neg => self.fop(Op::FNegate, &[x]),
            Function::Reciprocal => {
                let one = self.f(1.0);
                self.div(one, x)
            }
            Function::Relu => {
                let zero = self.f(0.0);
                let negative = self.bop(Op::FOrdLessThan, &[x, zero]);
                self.fselect(negative, zero, x)
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
            Function::Softplus => self.softplus(x),
            Function::Sqrt => self.fext(GlslStd450Op::Sqrt, &[x]),
            Function::Tan => {
                let [sin, cos] = [self.sine(x, 0), self.sine(x, 1)];
                self.div(sin, cos)
            }
            _ => self.tanh(x),
        }
    }

    /// A function of two floats that gives a float.
    pub(crate) fn float2(&mut self, function: Function, a: Id, b: Id) -> Id {
        match function {
            Function::Add => self.add(a, b),
            Function::Sub => self.sub(a, b),
            Function::Mul => self.mul(a, b),
            Function::Div => self.div(a, b),
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

    pub(crate) fn hard_sigmoid(&mut self, x: Id, alpha: Id, beta: Id) -> Id {
        let product = self.mul(alpha, x);
        let line = self.add(product, beta);
        let [zero, one] = [self.f(0.0), self.f(1.0)];
        let low = self.extreme(Op::FOrdGreaterThan, line, zero);
        self.extreme(Op::FOrdLessThan, low, one)
    }

    fn exp(&mut self, x: Id) -> Id {
        self.fext(GlslStd450Op::Exp, &[x])
    }

    /// `numerator / (1 + exp(-x))`.
    fn over_one_plus_exp(&mut self, numerator: Id, x: Id) -> Id {
        let negated = self.fop(Op::FNegate, &[x]);
        let power = self.exp(negated);
        let one = self.f(1.0);
        let sum = self.add(one, power);
        self.div(numerator, sum)
    }

    /// `exp(x) - 1` without loss near 0, by `2 t / (1 - t)` with `t = tanh(x / 2)`.
    fn expm1(&mut self, x: Id) -> Id {
        let half = self.f(0.5);
        let halved = self.mul(x, half);
        let t = self.tanh(halved);
        let [one, two] = [self.f(1.0), self.f(2.0)];
        let [twice, rest] = [self.mul(two, t), self.sub(one, t)];
        self.div(twice, rest)
    }

    fn elu(&mut self, x: Id, alpha: Id) -> Id {
        let zero = self.f(0.0);
        let positive = self.bop(Op::FOrdGreaterThan, &[x, zero]);
        let power = self.expm1(x);
        let curve = self.mul(alpha, power);
        self.fselect(positive, x, curve)
    }

    /// Near 0 a polynomial in `x^2`, fitted with Remez's algorithm to `2^-27` relative error for `|x| <= 5/8`; else
    /// `1 - 2 / (exp(2 |x|) + 1)` with the sign of x.
    fn tanh(&mut self, x: Id) -> Id {
        let square = self.mul(x, x);
        let inner = self.polynomial(
            square,
            &[-0.333_332_85, 0.133_315_15, -0.053_745_147, 0.020_655_227, -0.005_721_638],
        );
        let scaled = self.mul(square, inner);
        let correction = self.mul(x, scaled);
        let near = self.add(x, correction);
        let magnitude = self.fabs(x);
        let [one, two, limit] = [self.f(1.0), self.f(2.0), self.f(0.625)];
        let twice = self.mul(two, magnitude);
        let power = self.exp(twice);
        let sum = self.add(power, one);
        let rest = self.div(two, sum);
        let far = self.sub(one, rest);
        let far = self.with_sign_of(far, x);
        let is_near = self.bop(Op::FOrdLessThan, &[magnitude, limit]);
        self.fselect(is_near, near, far)
    }

    /// A value that is not negative with the sign of another.
    fn with_sign_of(&mut self, magnitude: Id, x: Id) -> Id {
        let bits = self.bits(x);
        let sign = self.and(bits, 0x8000_0000);
        let bits = self.bits(magnitude);
        let both = self.or(bits, sign);
        self.of_bits(both)
    }

    /// For `|x| < 1` a polynomial in `x^2` times x; else `1 - exp(-p(|x|))`, p being fitted to `-log(erfc)` up to 4, where
    /// the result is 1. Both fitted with Remez's algorithm, to `2^-29`.
    fn erf(&mut self, x: Id) -> Id {
        let square = self.mul(x, x);
        let inner = self.polynomial(
            square,
            &[
                1.128_379_2,
                -0.376_126_28,
                0.112_836,
                -0.026_854_444,
                0.005_189_535_5,
                -0.000_802_084_3,
                0.000_078_891_244,
            ],
        );
        let near = self.mul(x, inner);
        let magnitude = self.fabs(x);
        let [one, four] = [self.f(1.0), self.f(4.0)];
        let clipped = self.extreme(Op::FOrdLessThan, magnitude, four);
        let exponent = self.polynomial(
            clipped,
            &[
                0.000_353_740_74,
                1.127_04,
                0.638_225_8,
                0.103_037_25,
                -0.021_805_262,
                0.002_939_593_8,
                -0.000_185_572_66,
            ],
        );
        let negated = self.fop(Op::FNegate, &[exponent]);
        let rest = self.exp(negated);
        let far = self.sub(one, rest);
        let far = self.with_sign_of(far, x);
        let is_near = self.bop(Op::FOrdLessThan, &[magnitude, one]);
        self.fselect(is_near, near, far)
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

    /// `max(x, 0) + log(1 + e)` with `e = exp(-|x|)`, the logarithm without loss for small e:
    /// `log(u) * e / (u - 1)` with `u = 1 + e` (Kahan).
    fn softplus(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let negated = self.fop(Op::FNegate, &[magnitude]);
        let e = self.exp(negated);
        let one = self.f(1.0);
        let u = self.add(one, e);
        let log = self.log(u);
        let rounded = self.sub(u, one);
        let ratio = self.div(e, rounded);
        let corrected = self.mul(log, ratio);
        let tiny = self.bop(Op::FOrdEqual, &[u, one]);
        let log1p = self.fselect(tiny, e, corrected);
        let positive = self.float1(Function::Relu, x);
        self.add(positive, log1p)
    }

    /// `x = 2^k m` with m in `[sqrt(1/2), sqrt(2))`; with `f = m - 1` and `s = f / (2 + f)`,
    /// `log(1 + f) = 2 atanh(s) = f - s (f - r)`, r being `atanh`'s series from the second term (its fifth is below
    /// `2^-28`). Denormal values are taken as integers, so that they need not be flushed.
    fn log(&mut self, x: Id) -> Id {
        let bits = self.bits(x);
        let least = self.u(0x0080_0000);
        let small = self.bop(Op::ULessThan, &[bits, least]);
        let as_float = self.fop(Op::ConvertUToF, &[bits]);
        let as_float = self.bits(as_float);
        let bits = self.uselect(small, as_float, bits);
        let offset = self.u(0x3F80_0000 - 0x3F35_04F3);
        let moved = self.uadd(bits, offset);
        let exponent = self.right_signed(moved, 23);
        let [bias, denormal] = [self.u(127), self.u(127 + 149)];
        let bias = self.uselect(small, denormal, bias);
        let exponent = self.usub(exponent, bias);
        let k = self.fop(Op::ConvertSToF, &[exponent]);
        let fraction = self.and(moved, 0x007F_FFFF);
        let base = self.u(0x3F35_04F3);
        let mantissa = self.uadd(fraction, base);
        let mantissa = self.of_bits(mantissa);
        let log = self.log_near_one(mantissa, k);
        self.log_of_special(x, log)
    }

    /// `log(m) + k log(2)`.
    fn log_near_one(&mut self, m: Id, k: Id) -> Id {
        let [one, two] = [self.f(1.0), self.f(2.0)];
        let f = self.sub(m, one);
        let sum = self.add(two, f);
        let s = self.div(f, sum);
        let z = self.mul(s, s);
        let series = self.polynomial(z, &[2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0]);
        let r = self.mul(z, series);
        let rest = self.sub(f, r);
        let product = self.mul(s, rest);
        // log(2) in two parts, of which the first has 8 zero bits: k times it is exact.
        let [high, low] = [self.f(0.693_138_1), self.f(9.058_001e-6)];
        let low = self.mul(k, low);
        let tail = self.sub(product, low);
        let near = self.sub(f, tail);
        let high = self.mul(k, high);
        self.add(high, near)
    }

    /// Infinity and NaN of themselves, minus infinity of 0, NaN of what is negative.
    fn log_of_special(&mut self, x: Id, log: Id) -> Id {
        let bits = self.bits(x);
        let magnitude = self.and(bits, 0x7FFF_FFFF);
        let [zero, infinity] = [self.u(0), self.u(0x7F80_0000)];
        let finite = self.bop(Op::ULessThan, &[magnitude, infinity]);
        let value = self.fselect(finite, log, x);
        let negative = self.bop(Op::SLessThan, &[bits, zero]);
        let nan = self.is_nan(x);
        let valid = self.bop(Op::LogicalNot, &[negative]);
        let valid = self.bop(Op::LogicalOr, &[valid, nan]);
        let not_a_number = self.u(0x7FC0_0000);
        let not_a_number = self.of_bits(not_a_number);
        let value = self.fselect(valid, value, not_a_number);
        let is_zero = self.bop(Op::IEqual, &[magnitude, zero]);
        let lowest = self.u(0xFF80_0000);
        let lowest = self.of_bits(lowest);
        self.fselect(is_zero, lowest, value)
    }

    /// `exp(b log|a|)` with C's rules for signs, zeros and ones.
    fn pow(&mut self, a: Id, b: Id) -> Id {
        let magnitude = self.fabs(a);
        let log = self.log(magnitude);
        let exponent = self.mul(b, log);
        let power = self.exp(exponent);
        let [zero, one, half] = [self.f(0.0), self.f(1.0), self.f(0.5)];
        // Halves of odd integers are no integers; all floats from 2^24 are even.
        let integral = self.fext(GlslStd450Op::Trunc, &[b]);
        let integral = self.bop(Op::FOrdEqual, &[integral, b]);
        let halved = self.mul(b, half);
        let even = self.fext(GlslStd450Op::Trunc, &[halved]);
        let odd = self.bop(Op::FOrdNotEqual, &[even, halved]);
        let odd = self.bop(Op::LogicalAnd, &[integral, odd]);
        let negated = self.fop(Op::FNegate, &[power]);
        let signed = self.fselect(odd, negated, power);
        let negative = self.bop(Op::FOrdLessThan, &[a, zero]);
        let value = self.fselect(negative, signed, power);
        let infinite = self.is_inf(a);
        let allowed = self.bop(Op::LogicalOr, &[integral, infinite]);
        let not_negative = self.bop(Op::LogicalNot, &[negative]);
        let allowed = self.bop(Op::LogicalOr, &[allowed, not_negative]);
        let not_a_number = self.u(0x7FC0_0000);
        let not_a_number = self.of_bits(not_a_number);
        let value = self.fselect(allowed, value, not_a_number);
        // Of -1 and an infinite exponent: log is 0, and 0 times infinity no number, but the result is 1.
        let unit = self.bop(Op::FOrdEqual, &[magnitude, one]);
        let far = self.is_inf(b);
        let unit_far = self.bop(Op::LogicalAnd, &[unit, far]);
        let is_one = self.bop(Op::FOrdEqual, &[a, one]);
        let no_power = self.bop(Op::FOrdEqual, &[b, zero]);
        let is_one = self.bop(Op::LogicalOr, &[is_one, no_power]);
        let is_one = self.bop(Op::LogicalOr, &[is_one, unit_far]);
        self.fselect(is_one, one, value)
    }

    /// `sin(x + quarters * pi / 2)`: x less the nearest multiple k of pi / 2, in three parts (Cody and Waite), then Taylor's
    /// series, whose next term is below `2^-28`.
    fn sine(&mut self, x: Id, quarters: u32) -> Id {
        let two_over_pi = self.f(std::f32::consts::FRAC_2_PI);
        let scaled = self.mul(x, two_over_pi);
        let k = self.fext(GlslStd450Op::RoundEven, &[scaled]);
        let mut r = x;
        for part in [1.570_312_5, 4.837_513e-4, 7.549_79e-8] {
            let part = self.f(part);
            let product = self.mul(k, part);
            r = self.sub(r, product);
        }
        let square = self.mul(r, r);
        let series = self.polynomial(square, &[-1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0]);
        let series = self.mul(square, series);
        let correction = self.mul(r, series);
        let sin = self.add(r, correction);
        let cos = self
            .polynomial(square, &[1.0, -0.5, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40_320.0, -1.0 / 3_628_800.0]);
        // Out of the range of integers any quadrant will do: there is no precision left.
        let limit = self.f(1e9);
        let magnitude = self.fabs(k);
        let inside = self.bop(Op::FOrdLessThan, &[magnitude, limit]);
        let zero = self.f(0.0);
        let k = self.fselect(inside, k, zero);
        let quadrant = self.uop(Op::ConvertFToS, &[k]);
        let quarters = self.u(quarters);
        let quadrant = self.uadd(quadrant, quarters);
        let odd = self.and(quadrant, 1);
        let none = self.u(0);
        let odd = self.bop(Op::INotEqual, &[odd, none]);
        let value = self.fselect(odd, cos, sin);
        let second = self.and(quadrant, 2);
        let flip = self.left(second, 30);
        let bits = self.bits(value);
        let flipped = self.uop(Op::BitwiseXor, &[bits, flip]);
        self.of_bits(flipped)
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
