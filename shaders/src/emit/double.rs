//! The bits of `f64`, in the two words that they have in memory, as instructions on words: Vulkan promises no 64-bit floats.
//!
//! Layouts: IEEE 754-2019, section 3.4. The exponent of an `f64` has 11 bits and the bias 1023, that of an `f32` 8 and 127;
//! the fraction is 29 bits longer.

use spirv::Op;

use halite_spirv::Id;

use super::lanes::Lanes;

/// What the biases differ by, where the high word has the exponent.
const REBIAS: u32 = (1023 - 127) << 20;
const SIGN: u32 = 0x8000_0000;
const MAGNITUDE: u32 = 0x7FFF_FFFF;

impl Lanes {
    /// The nearest `f32`, ties to even. What is beyond becomes infinite; what is below the smallest normal value becomes 0,
    /// as devices may take such values for 0 anyway.
    pub(crate) fn of_f64_bits(&mut self, low: Id, high: Id) -> Id {
        let magnitude = self.and(high, MAGNITUDE);
        let rebias = self.u(REBIAS);
        let moved = self.usub(magnitude, rebias);
        let moved = self.left(moved, 3);
        let carried = self.right(low, 29);
        let kept = self.or(moved, carried);
        // Half of the last place less one, and one more where that place is odd, carry just when rounding is up; also into
        // the exponent, up to infinity.
        let odd = self.and(kept, 1);
        let lost = self.and(low, 0x1FFF_FFFF);
        let half = self.u(0x0FFF_FFFF);
        let sum = self.uadd(lost, half);
        let sum = self.uadd(sum, odd);
        let up = self.right(sum, 29);
        let normal = self.uadd(kept, up);
        let bits = self.f64_beyond_f32(low, magnitude, normal);
        let sign = self.and(high, SIGN);
        let bits = self.or(bits, sign);
        self.of_bits(bits)
    }

    /// The bits of an `f32` for the magnitude of an `f64`, `normal` being those where its exponent is one of an `f32`.
    fn f64_beyond_f32(&mut self, low: Id, magnitude: Id, normal: Id) -> Id {
        let [zero, one] = [self.u(0), self.u(1)];
        let [least, most, infinity] = [self.u(0x3810_0000), self.u(0x47F0_0000), self.u(0x7FF0_0000)];
        let small = self.bop(Op::ULessThan, &[magnitude, least]);
        let bits = self.uselect(small, zero, normal);
        let large = self.bop(Op::UGreaterThanEqual, &[magnitude, most]);
        let infinite = self.u(0x7F80_0000);
        let bits = self.uselect(large, infinite, bits);
        let some = self.bop(Op::INotEqual, &[low, zero]);
        let some = self.uselect(some, one, zero);
        let all = self.or(magnitude, some);
        let nan = self.bop(Op::UGreaterThan, &[all, infinity]);
        let quiet = self.u(0x7FC0_0000);
        self.uselect(nan, quiet, bits)
    }

    /// Low and high words of the `f64` with the value of an `f32`.
    pub(crate) fn f64_bits(&mut self, x: Id) -> (Id, Id) {
        let bits = self.bits(x);
        let magnitude = self.and(bits, MAGNITUDE);
        let [zero, least, infinity] = [self.u(0), self.u(0x0080_0000), self.u(0x7F80_0000)];
        // A denormal value is its bits times 2^-149.
        let small = self.bop(Op::ULessThan, &[magnitude, least]);
        let number = self.fop(Op::ConvertUToF, &[magnitude]);
        let number = self.bits(number);
        let normal = self.uselect(small, number, magnitude);
        let [rebias, denormal, special] = [REBIAS, REBIAS - (149 << 20), 2 * REBIAS].map(|n| self.u(n));
        let rebias = self.uselect(small, denormal, rebias);
        let is_special = self.bop(Op::UGreaterThanEqual, &[magnitude, infinity]);
        let rebias = self.uselect(is_special, special, rebias);
        let is_zero = self.bop(Op::IEqual, &[magnitude, zero]);
        let rebias = self.uselect(is_zero, zero, rebias);
        let upper = self.right(normal, 3);
        let upper = self.uadd(upper, rebias);
        let sign = self.and(bits, SIGN);
        (self.left(normal, 29), self.or(upper, sign))
    }
}
