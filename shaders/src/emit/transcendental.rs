//! Exponential, logarithmic and trigonometric functions and the error function as instructions.
//!
//! `GLSL.std.450` is used where the table "Precision of GLSL.std.450 Instructions" of the Vulkan specification promises
//! enough: `Exp` (3 + 2|x| ULP). Not where it does not: `Sin` and `Cos` may be off by `2^-11`, `Log` by `2^-21` near 1
//! however small the result, `Pow` follows from it, and `Tanh` overflows.

use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::lanes::Lanes;

impl Lanes {
    /// NaN of NaN, of which SwiftShader's `Exp` makes infinity.
    pub(crate) fn exp(&mut self, x: Id) -> Id {
        let power = self.fext(GlslStd450Op::Exp, &[x]);
        let nan = self.is_nan(x);
        self.fselect(nan, x, power)
    }

    /// `exp(x) - 1` without loss near 0, by `2 t / (1 - t)` with `t = tanh(x / 2)`.
    pub(crate) fn expm1(&mut self, x: Id) -> Id {
        let half = self.f(0.5);
        let halved = self.mul(x, half);
        let t = self.tanh(halved);
        let [one, two] = [self.f(1.0), self.f(2.0)];
        let [twice, rest] = [self.mul(two, t), self.sub(one, t)];
        self.div(twice, rest)
    }

    /// Near 0 a polynomial in `x^2`, fitted with Remez's algorithm to `2^-27` relative error for `|x| <= 5/8`; else
    /// `1 - 2 / (exp(2 |x|) + 1)` with the sign of x.
    pub(crate) fn tanh(&mut self, x: Id) -> Id {
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
    pub(crate) fn with_sign_of(&mut self, magnitude: Id, x: Id) -> Id {
        let bits = self.bits(x);
        let sign = self.and(bits, 0x8000_0000);
        let bits = self.bits(magnitude);
        let both = self.or(bits, sign);
        self.of_bits(both)
    }

    /// For `|x| < 1` a polynomial in `x^2` times x; else `1 - exp(-p(|x|))`, p being fitted to `-log(erfc)` up to 4, where
    /// the result is 1. Both fitted with Remez's algorithm, to `2^-29`.
    pub(crate) fn erf(&mut self, x: Id) -> Id {
        let square = self.mul(x, x);
        let inner = self.polynomial(
            square,
            &[
                std::f32::consts::FRAC_2_SQRT_PI,
                -0.376_126_3,
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
        let negated = self.negate(exponent);
        let rest = self.exp(negated);
        let far = self.sub(one, rest);
        let far = self.with_sign_of(far, x);
        let is_near = self.bop(Op::FOrdLessThan, &[magnitude, one]);
        self.fselect(is_near, near, far)
    }

    /// `x = 2^k m` with m in `[sqrt(1/2), sqrt(2))`; with `f = m - 1` and `s = f / (2 + f)`,
    /// `log(1 + f) = 2 atanh(s) = f - s (f - r)`, r being `atanh`'s series from the second term (its fifth is below
    /// `2^-28`). Denormal values are taken as integers, so that they need not be flushed.
    pub(crate) fn log(&mut self, x: Id) -> Id {
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
        let k = self.float_of_signed(exponent);
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

    /// `a^b` for the exponents that models write, without a logarithm; `None` of others.
    pub(crate) fn power_by(&mut self, a: Id, exponent: f64) -> Option<Id> {
        Some(match exponent {
            1.0 => a,
            2.0 => self.mul(a, a),
            3.0 => {
                let square = self.mul(a, a);
                self.mul(square, a)
            }
            4.0 => {
                let square = self.mul(a, a);
                self.mul(square, square)
            }
            -1.0 => {
                let one = self.f(1.0);
                self.div(one, a)
            }
            0.5 => {
                // As C has it, of minus infinity too.
                let infinite = self.is_inf(a);
                let magnitude = self.fabs(a);
                let a = self.fselect(infinite, magnitude, a);
                self.fext(GlslStd450Op::Sqrt, &[a])
            }
            _ => return None,
        })
    }

    /// `exp(b log|a|)` with C's rules for signs, zeros and ones.
    pub(crate) fn pow(&mut self, a: Id, b: Id) -> Id {
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
        let negated = self.negate(power);
        let signed = self.fselect(odd, negated, power);
        // Of -0 too.
        let [bits, none] = [self.bits(a), self.u(0)];
        let has_sign = self.bop(Op::SLessThan, &[bits, none]);
        let value = self.fselect(has_sign, signed, power);
        let negative = self.bop(Op::FOrdLessThan, &[a, zero]);
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

    /// `sin(x + quarters * pi / 2)`: x less the nearest multiple k of pi / 2, then Taylor's series, whose next term is below
    /// `2^-25`. Where k has too many digits for that (from about 3,000,000 on), the rest of x is lost: some value from -1 to 1
    /// results.
    pub(crate) fn sine(&mut self, x: Id, quarters: u32) -> Id {
        let two_over_pi = self.f(std::f32::consts::FRAC_2_PI);
        let scaled = self.mul(x, two_over_pi);
        let k = self.fext(GlslStd450Op::RoundEven, &[scaled]);
        let r = self.less_quarters(x, k);
        let [zero, most] = [self.f(0.0), self.f(1.0)];
        let size = self.fabs(r);
        // Not of NaN, which an infinite x makes.
        let lost = self.bop(Op::FOrdGreaterThan, &[size, most]);
        let r = self.fselect(lost, zero, r);
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
        let k = self.fselect(inside, k, zero);
        let quadrant = self.signed_of(k);
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

    /// `x - k pi / 2`, pi / 2 being in three parts (Cody and Waite). The first two have 8 and 11 digits and are taken of k's lower
    /// 12 digits and of the others by themselves, so that these products are exact, as phases that add up to a hundred thousand need it.
    fn less_quarters(&mut self, x: Id, k: Id) -> Id {
        let [down, up] = [self.f(1.0 / 4096.0), self.f(4096.0)];
        let high = self.mul(k, down);
        let high = self.fext(GlslStd450Op::RoundEven, &[high]);
        let high = self.mul(high, up);
        let low = self.sub(k, high);
        let mut r = x;
        for (part, of) in [
            (1.570_312_5, high),
            (1.570_312_5, low),
            (4.837_513e-4, high),
            (4.837_513e-4, low),
            (7.549_79e-8, k),
        ] {
            let part = self.f(part);
            let product = self.mul(of, part);
            r = self.sub(r, product);
        }
        r
    }
}
