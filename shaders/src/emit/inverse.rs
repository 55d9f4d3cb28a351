//! Inverse trigonometric functions, hyperbolic ones, and their inverses, as instructions.
//!
//! `GLSL.std.450` has all of them, but the Vulkan specification promises 4096 ULP or what follows from formulas that lose
//! all digits near 0.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::lanes::Lanes;

impl Lanes {
    /// Up to `tan(pi / 8)` it is `x + x^3 p(x^2)`, p being a minimax fit whose relative error is below `2^-28`; above
    /// that, `pi / 4 + atan((x - 1) / (x + 1))`; above `tan(3 pi / 8)`, `pi / 2 - atan(1 / x)`.
    pub(crate) fn atan(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let angle = self.atan_of_magnitude(magnitude);
        let angle = self.with_sign_of(angle, x);
        self.or_nan(x, angle)
    }

    fn atan_of_magnitude(&mut self, m: Id) -> Id {
        let [zero, one, minus_one] = [0.0, 1.0, -1.0].map(|n| self.f(n));
        let [eighth, three_eighths] = [0.414_213_57, 2.414_213_7].map(|n| self.f(n));
        let middle = self.bop(Op::FOrdGreaterThan, &[m, eighth]);
        let large = self.bop(Op::FOrdGreaterThan, &[m, three_eighths]);
        let [less, more] = [self.sub(m, one), self.add(m, one)];
        let above = self.fselect(large, minus_one, less);
        let below = self.fselect(large, m, more);
        let quotient = self.div(above, below);
        let t = self.fselect(middle, quotient, m);
        let square = self.mul(t, t);
        let series = self
            .polynomial(square, &[-0.333_333_16, 0.199_984_9, -0.142_438_49, 0.105_960_01, -0.060_834_53]);
        let cube = self.mul(t, square);
        let correction = self.mul(cube, series);
        let angle = self.add(t, correction);
        let [quarter, half] = [self.f(FRAC_PI_4), self.f(FRAC_PI_2)];
        let offset = self.fselect(large, half, quarter);
        let offset = self.fselect(middle, offset, zero);
        self.add(offset, angle)
    }

    /// `atan(x / sqrt((1 - x) (1 + x)))`.
    pub(crate) fn asin(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let one = self.f(1.0);
        let [less, more] = [self.sub(one, magnitude), self.add(one, magnitude)];
        let square = self.mul(less, more);
        let inverse = self.fext(GlslStd450Op::InverseSqrt, &[square]);
        let tangent = self.mul(magnitude, inverse);
        let angle = self.atan_of_magnitude(tangent);
        let whole = self.bop(Op::FOrdEqual, &[magnitude, one]);
        let right = self.f(FRAC_PI_2);
        let angle = self.fselect(whole, right, angle);
        let angle = self.with_sign_of(angle, x);
        self.within_one(x, magnitude, angle)
    }

    /// `2 atan(sqrt((1 - x) / (1 + x)))`, of a negative x pi less that of `-x`.
    pub(crate) fn acos(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let [zero, one, two, pi] = [0.0, 1.0, 2.0, PI].map(|n| self.f(n));
        let [less, more] = [self.sub(one, magnitude), self.add(one, magnitude)];
        let square = self.div(less, more);
        let tangent = self.fext(GlslStd450Op::Sqrt, &[square]);
        let half = self.atan_of_magnitude(tangent);
        let angle = self.mul(two, half);
        let whole = self.bop(Op::FOrdEqual, &[magnitude, one]);
        let angle = self.fselect(whole, zero, angle);
        let obtuse = self.sub(pi, angle);
        let negative = self.bop(Op::FOrdLessThan, &[x, zero]);
        let angle = self.fselect(negative, obtuse, angle);
        self.within_one(x, magnitude, angle)
    }

    /// `(exp(x) - exp(-x)) / 2`; below 1 its Taylor series, whose next term is below `2^-32`.
    pub(crate) fn sinh(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let (growing, falling) = self.half_powers(magnitude);
        let far = self.sub(growing, falling);
        let square = self.mul(magnitude, magnitude);
        let series = self
            .polynomial(square, &[1.0 / 6.0, 1.0 / 120.0, 1.0 / 5040.0, 1.0 / 362_880.0, 1.0 / 39_916_800.0]);
        let cube = self.mul(magnitude, square);
        let correction = self.mul(cube, series);
        let near = self.add(magnitude, correction);
        let one = self.f(1.0);
        let is_near = self.bop(Op::FOrdLessThan, &[magnitude, one]);
        let value = self.fselect(is_near, near, far);
        let value = self.with_sign_of(value, x);
        self.or_nan(x, value)
    }

    /// `(exp(x) + exp(-x)) / 2`.
    pub(crate) fn cosh(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let (growing, falling) = self.half_powers(magnitude);
        let value = self.add(growing, falling);
        self.or_nan(x, value)
    }

    /// `exp(x) / 2` and `exp(-x) / 2`, the first as a product, lest it overflow before it is halved.
    fn half_powers(&mut self, x: Id) -> (Id, Id) {
        let half = self.f(0.5);
        let halved = self.mul(x, half);
        let root = self.exp(halved);
        let part = self.mul(half, root);
        let square = self.mul(root, root);
        (self.mul(part, root), self.div(half, square))
    }

    /// `log(|x| + sqrt(x^2 + 1))` by `log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1)))`; where 1 makes no difference, `log(2 |x|)`.
    pub(crate) fn asinh(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let one = self.f(1.0);
        let square = self.mul(magnitude, magnitude);
        let sum = self.add(square, one);
        let root = self.fext(GlslStd450Op::Sqrt, &[sum]);
        let below = self.add(one, root);
        let quotient = self.div(square, below);
        let argument = self.add(magnitude, quotient);
        let value = self.log1p(argument);
        let value = self.or_log_of_twice(magnitude, value);
        let value = self.with_sign_of(value, x);
        self.or_nan(x, value)
    }

    /// `log(x + sqrt(x^2 - 1))` by `log(1 + t + sqrt(t (t + 2)))` with `t = x - 1`; where 1 makes no difference, `log(2 x)`.
    pub(crate) fn acosh(&mut self, x: Id) -> Id {
        let [one, two] = [self.f(1.0), self.f(2.0)];
        let t = self.sub(x, one);
        let sum = self.add(t, two);
        let product = self.mul(t, sum);
        let root = self.fext(GlslStd450Op::Sqrt, &[product]);
        let argument = self.add(t, root);
        let value = self.log1p(argument);
        let whole = self.bop(Op::FOrdEqual, &[x, one]);
        let zero = self.f(0.0);
        let value = self.fselect(whole, zero, value);
        let value = self.or_log_of_twice(x, value);
        let inside = self.bop(Op::FOrdGreaterThanEqual, &[x, one]);
        self.or_not_a_number(inside, value)
    }

    /// `log((1 + |x|) / (1 - |x|)) / 2` by `log(1 + 2 |x| / (1 - |x|))`.
    pub(crate) fn atanh(&mut self, x: Id) -> Id {
        let magnitude = self.fabs(x);
        let [half, one, two] = [0.5, 1.0, 2.0].map(|n| self.f(n));
        let [twice, rest] = [self.mul(two, magnitude), self.sub(one, magnitude)];
        let quotient = self.div(twice, rest);
        let log = self.log1p(quotient);
        let value = self.mul(half, log);
        let whole = self.bop(Op::FOrdEqual, &[magnitude, one]);
        let infinity = self.f(f32::INFINITY);
        let value = self.fselect(whole, infinity, value);
        let value = self.with_sign_of(value, x);
        self.within_one(x, magnitude, value)
    }

    /// `log(2 m)` where m is so large that 1 is lost beside it, which also is the way for infinity; else `value`.
    fn or_log_of_twice(&mut self, m: Id, value: Id) -> Id {
        let [limit, log_of_two] = [self.f(16_777_216.0), self.f(LN_2)];
        let log = self.log(m);
        let far = self.add(log, log_of_two);
        let is_far = self.bop(Op::FOrdGreaterThan, &[m, limit]);
        self.fselect(is_far, far, value)
    }

    /// `log(1 + x)` without loss for small x, which is not negative and not infinite: `log(u) * x / (u - 1)` with
    /// `u = 1 + x` (Kahan).
    pub(crate) fn log1p(&mut self, x: Id) -> Id {
        let one = self.f(1.0);
        let u = self.add(one, x);
        let log = self.log(u);
        let rounded = self.sub(u, one);
        let ratio = self.div(x, rounded);
        let corrected = self.mul(log, ratio);
        let tiny = self.bop(Op::FOrdEqual, &[u, one]);
        self.fselect(tiny, x, corrected)
    }

    /// `value` where `|x|` is at most 1, NaN beyond and of NaN.
    fn within_one(&mut self, x: Id, magnitude: Id, value: Id) -> Id {
        let one = self.f(1.0);
        let inside = self.bop(Op::FOrdLessThanEqual, &[magnitude, one]);
        let value = self.or_not_a_number(inside, value);
        self.or_nan(x, value)
    }

    fn or_not_a_number(&mut self, inside: Id, value: Id) -> Id {
        let nan = self.u(0x7FC0_0000);
        let nan = self.of_bits(nan);
        self.fselect(inside, value, nan)
    }

    /// `value`, or `x` where that is NaN.
    fn or_nan(&mut self, x: Id, value: Id) -> Id {
        let nan = self.is_nan(x);
        self.fselect(nan, x, value)
    }
}
