//! Conversions between types as instructions, and the bits of small floats.

use halite_ops::{DType, expression::Type};
use spirv::{GlslStd450Op, Op};

use halite_spirv::Id;

use super::lanes::{LANES, Lanes, Register};

impl Lanes {
    /// A value of type `from` as one of type `to`.
    pub(crate) fn convert(&mut self, value: Register, from: Type, to: Type) -> Register {
        match (value, to) {
            (Register::Bool(_), Type::Bool) => value,
            (_, Type::Bool) => Register::Bool(self.is_not_zero(value)),
            (_, Type::Of(dtype)) if dtype.is_float() => {
                let float = self.float_of(value, from);
                Register::Float(self.rounded(float, dtype))
            }
            (Register::Float(x), Type::Of(dtype)) => self.float_to_int(x, dtype),
            (Register::Bool(x), Type::Of(dtype)) => {
                let [one, zero] = [self.u(1), self.u(0)];
                let word = self.uselect(x, one, zero);
                if dtype.size() == 8 { Register::Pair(word, zero) } else { Register::Word(word) }
            }
            (Register::Pair(low, _), Type::Of(dtype)) if dtype.size() < 8 => {
                Register::Word(self.wrapped(low, dtype))
            }
            (Register::Pair(..), _) => value,
            (Register::Word(x), Type::Of(dtype)) if dtype.size() == 8 => {
                let high = if from.is_signed() { self.right_signed(x, 31) } else { self.u(0) };
                Register::Pair(x, high)
            }
            (Register::Word(x), Type::Of(dtype)) => Register::Word(self.wrapped(x, dtype)),
            // No cast is to a table.
            (_, Type::Table) => value,
        }
    }

    fn is_not_zero(&mut self, value: Register) -> Id {
        match value {
            Register::Bool(x) => x,
            Register::Float(x) => {
                let zero = self.f(0.0);
                self.bop(Op::FUnordNotEqual, &[x, zero])
            }
            Register::Word(x) => {
                let zero = self.u(0);
                self.bop(Op::INotEqual, &[x, zero])
            }
            Register::Pair(low, high) => {
                let both = self.or(low, high);
                self.is_not_zero(Register::Word(both))
            }
        }
    }

    /// A word within the range of a type of at most 32 bits, as that type wraps.
    pub(crate) fn wrapped(&mut self, x: Id, dtype: DType) -> Id {
        match dtype {
            DType::U8 => self.and(x, 0xFF),
            DType::U16 => self.and(x, 0xFFFF),
            DType::I8 | DType::I16 => {
                let above = if dtype == DType::I8 { 24 } else { 16 };
                let up = self.left(x, above);
                self.right_signed(up, above)
            }
            _ => x,
        }
    }

    fn signed_words(&mut self) -> Id {
        let scalar = self.asm.ty(Op::TypeInt, &[32, 1]);
        self.asm.ty(Op::TypeVector, &[scalar.0, LANES])
    }

    /// The floats that words with a sign are. Conversions go by the instruction and not by the sign of a type, but where an
    /// operand is constant, SPIRV-Tools' optimizer, which drivers use, goes by the type.
    pub(crate) fn float_of_signed(&mut self, words: Id) -> Id {
        let ty = self.signed_words();
        let signed = self.asm.pure(Op::Bitcast, ty, &[words.0]);
        self.fop(Op::ConvertSToF, &[signed])
    }

    /// Floats towards zero as words with a sign, in whose range they are.
    pub(crate) fn signed_of(&mut self, x: Id) -> Id {
        let ty = self.signed_words();
        let signed = self.asm.pure(Op::ConvertFToS, ty, &[x.0]);
        self.uop(Op::Bitcast, &[signed])
    }

    fn float_of(&mut self, value: Register, from: Type) -> Id {
        match value {
            Register::Float(x) => x,
            Register::Bool(x) => {
                let [one, zero] = [self.f(1.0), self.f(0.0)];
                self.fselect(x, one, zero)
            }
            Register::Word(x) if from.is_signed() => self.float_of_signed(x),
            Register::Word(x) => self.fop(Op::ConvertUToF, &[x]),
            Register::Pair(low, high) => {
                if !from.is_signed() {
                    return self.float_of_pair(low, high);
                }
                // Of the magnitude, lest two large parts cancel.
                let (low, high, negative) = self.magnitude(low, high);
                let sum = self.float_of_pair(low, high);
                let negated = self.negate(sum);
                self.fselect(negative, negated, sum)
            }
        }
    }

    /// Of a pair without a sign.
    fn float_of_pair(&mut self, low: Id, high: Id) -> Id {
        let [low, high] = [self.fop(Op::ConvertUToF, &[low]), self.fop(Op::ConvertUToF, &[high])];
        let unit = self.f(4_294_967_296.0);
        let scaled = self.mul(high, unit);
        self.add(scaled, low)
    }

    /// Towards zero, saturating, NaN to 0. `OpConvertFToS` and its like say nothing of values out of range.
    fn float_to_int(&mut self, x: Id, dtype: DType) -> Register {
        let zero = self.f(0.0);
        let nan = self.is_nan(x);
        let x = self.fselect(nan, zero, x);
        // The largest float below the limit, and the value from there on.
        let (least, most, limit, largest) = match dtype {
            DType::I8 => (-128.0, 127.0, 127.0, 127),
            DType::U8 => (0.0, 255.0, 255.0, 255),
            DType::I16 => (-32_768.0, 32_767.0, 32_767.0, 32_767),
            DType::U16 => (0.0, 65_535.0, 65_535.0, 65_535),
            DType::U32 => (0.0, 4_294_967_040.0, 4_294_967_296.0, u32::MAX),
            DType::I64 => return self.float_to_pair(x),
            DType::U64 => return self.float_to_unsigned_pair(x),
            _ => (-2_147_483_648.0, 2_147_483_520.0, 2_147_483_648.0, 0x7FFF_FFFF),
        };
        let clamped = self.clamped(x, least, most);
        let signed = least < 0.0;
        let word = if signed { self.signed_of(clamped) } else { self.uop(Op::ConvertFToU, &[clamped]) };
        let [limit, largest] = [self.f(limit), self.u(largest)];
        let beyond = self.bop(Op::FOrdGreaterThanEqual, &[x, limit]);
        Register::Word(self.uselect(beyond, largest, word))
    }

    fn clamped(&mut self, x: Id, least: f32, most: f32) -> Id {
        let [least, most] = [self.f(least), self.f(most)];
        self.fext(GlslStd450Op::FClamp, &[x, least, most])
    }

    /// To 64 bits; x is no NaN.
    fn float_to_pair(&mut self, x: Id) -> Register {
        let magnitude = self.fabs(x);
        let (low, high) = self.words_of_float(magnitude, 9_223_371_487_098_961_920.0);
        let (negative_low, negative_high) = self.pair_negated(low, high);
        let zero = self.f(0.0);
        let negative = self.bop(Op::FOrdLessThan, &[x, zero]);
        let low = self.uselect(negative, negative_low, low);
        let high = self.uselect(negative, negative_high, high);
        let limit = self.f(9_223_372_036_854_775_808.0);
        let beyond = self.bop(Op::FOrdGreaterThanEqual, &[magnitude, limit]);
        let ([low_most, high_most], [low_least, high_least]) =
            ([self.u(u32::MAX), self.u(0x7FFF_FFFF)], [self.u(0), self.u(0x8000_0000)]);
        let low_limit = self.uselect(negative, low_least, low_most);
        let high_limit = self.uselect(negative, high_least, high_most);
        Register::Pair(self.uselect(beyond, low_limit, low), self.uselect(beyond, high_limit, high))
    }

    /// The same without a sign.
    fn float_to_unsigned_pair(&mut self, x: Id) -> Register {
        let (low, high) = self.words_of_float(x, 18_446_742_974_197_923_840.0);
        let limit = self.f(18_446_744_073_709_551_616.0);
        let beyond = self.bop(Op::FOrdGreaterThanEqual, &[x, limit]);
        let most = self.u(u32::MAX);
        Register::Pair(self.uselect(beyond, most, low), self.uselect(beyond, most, high))
    }

    /// The integer part between 0 and `most`, a float, as low and high word: the high one is what `2^32` goes into it.
    fn words_of_float(&mut self, x: Id, most: f32) -> (Id, Id) {
        let clamped = self.clamped(x, 0.0, most);
        let whole = self.fext(GlslStd450Op::Trunc, &[clamped]);
        let [unit, part] = [self.f(4_294_967_296.0), self.f(1.0 / 4_294_967_296.0)];
        let quotient = self.mul(whole, part);
        let high = self.fext(GlslStd450Op::Trunc, &[quotient]);
        let product = self.mul(high, unit);
        let low = self.sub(whole, product);
        (self.uop(Op::ConvertFToU, &[low]), self.uop(Op::ConvertFToU, &[high]))
    }

    /// A float rounded to a float type; to `f64` it need not be.
    fn rounded(&mut self, x: Id, dtype: DType) -> Id {
        match dtype {
            DType::F16 => {
                let bits = self.f16_bits(x);
                self.of_f16_bits(bits)
            }
            DType::BF16 => {
                let bits = self.bf16_bits(x);
                let up = self.left(bits, 16);
                self.of_bits(up)
            }
            _ => x,
        }
    }

    /// The floats that the 16 low bits of each word are as `f16`; the others are 0.
    pub(crate) fn of_f16_bits(&mut self, words: Id) -> Id {
        let scalar = self.f32_scalar();
        let two = self.asm.ty(Op::TypeVector, &[scalar.0, 2]);
        let parts: Vec<u32> = self
            .each_word(words)
            .into_iter()
            .map(|word| {
                let both = self.asm.ext(GlslStd450Op::UnpackHalf2x16, two, &[word]);
                self.asm.pure(Op::CompositeExtract, scalar, &[both.0, 0]).0
            })
            .collect();
        let ty = self.floats();
        self.asm.pure(Op::CompositeConstruct, ty, &parts)
    }

    /// Two words of two `f16` each, rounded by the device: to the nearest on all that are known, though the specification
    /// allows towards zero.
    pub(crate) fn halves_of(&mut self, x: Id) -> Id {
        let scalar = self.asm.ty(Op::TypeFloat, &[16]);
        let ty = self.asm.ty(Op::TypeVector, &[scalar.0, LANES]);
        let small = self.asm.pure(Op::FConvert, ty, &[x.0]);
        let words = self.words_type(2);
        self.asm.pure(Op::Bitcast, words, &[small.0])
    }

    /// The nearest `f16`, ties to even, in 16 bits. `PackHalf2x16` rounds as the device likes.
    pub(crate) fn f16_bits(&mut self, x: Id) -> Id {
        let bits = self.bits(x);
        let upper = self.right(bits, 16);
        let sign = self.and(upper, 0x8000);
        let magnitude = self.and(bits, 0x7FFF_FFFF);
        // Normal: the exponent moved, and half of the last place added, less for even.
        let last = self.right(magnitude, 13);
        let last = self.and(last, 1);
        let half = self.u(0xFFF_u32.wrapping_sub((127 - 15) << 23));
        let moved = self.uadd(magnitude, half);
        let moved = self.uadd(moved, last);
        let normal = self.right(moved, 13);
        // Below the smallest normal value, steps are 2^-24.
        let positive = self.of_bits(magnitude);
        let steps = self.f(16_777_216.0);
        let small_magnitude = {
            let [least, zero] = [self.u(0x3880_0000), self.f(0.0)];
            let is_small = self.bop(Op::ULessThan, &[magnitude, least]);
            self.fselect(is_small, positive, zero)
        };
        let scaled = self.mul(small_magnitude, steps);
        let rounded = self.fext(GlslStd450Op::RoundEven, &[scaled]);
        let small = self.uop(Op::ConvertFToU, &[rounded]);
        let [least, overflow, infinity] = [self.u(0x3880_0000), self.u(0x477F_F000), self.u(0x7F80_0000)];
        let is_small = self.bop(Op::ULessThan, &[magnitude, least]);
        let value = self.uselect(is_small, small, normal);
        let is_infinite = self.bop(Op::UGreaterThanEqual, &[magnitude, overflow]);
        let infinite = self.u(0x7C00);
        let value = self.uselect(is_infinite, infinite, value);
        let is_nan = self.bop(Op::UGreaterThan, &[magnitude, infinity]);
        let nan = self.u(0x7E00);
        let value = self.uselect(is_nan, nan, value);
        self.or(value, sign)
    }

    /// The nearest `bf16`, ties to even, in 16 bits.
    pub(crate) fn bf16_bits(&mut self, x: Id) -> Id {
        let bits = self.bits(x);
        let upper = self.right(bits, 16);
        let odd = self.and(upper, 1);
        let half = self.u(0x7FFF);
        let sum = self.uadd(bits, half);
        let sum = self.uadd(sum, odd);
        let rounded = self.right(sum, 16);
        let quiet = self.u(0x40);
        let nan = self.or(upper, quiet);
        let is_nan = self.is_nan(x);
        self.uselect(is_nan, nan, rounded)
    }
}
