//! The 8-bit float formats: bits to value and back, rounding to nearest even.

use halite_abi::ElementKind;

/// One of the 8-bit float formats with a sign and a mantissa, or the exponent-only scale format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Float8 {
    /// Sign, exponent, mantissa.
    Signed {
        /// Mantissa bits.
        mantissa_bits: u32,
        /// Exponent bias.
        bias: i32,
        /// What the special codes mean.
        specials: Specials,
    },
    /// `2^(code - 127)`, 255 is NaN.
    Scale,
}

/// Which codes are not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Specials {
    /// Largest exponent: infinities and NaNs, as IEEE.
    Ieee,
    /// Only all ones is NaN; no infinities.
    AllOnesNan,
    /// Only the code of minus zero is NaN; no infinities, no minus zero.
    MinusZeroNan,
}

impl Float8 {
    /// The format of an element kind.
    pub(super) fn of(kind: ElementKind) -> Option<Self> {
        let signed = |mantissa_bits, bias, specials| Float8::Signed { mantissa_bits, bias, specials };
        Some(match kind {
            ElementKind::Float8E5M2 => signed(2, 15, Specials::Ieee),
            ElementKind::Float8E4M3FN => signed(3, 7, Specials::AllOnesNan),
            ElementKind::Float8E5M2FNUZ => signed(2, 16, Specials::MinusZeroNan),
            ElementKind::Float8E4M3FNUZ => signed(3, 8, Specials::MinusZeroNan),
            ElementKind::Float8E8M0FNU => Float8::Scale,
            _ => return None,
        })
    }

    /// Value of a code.
    pub(super) fn decode(self, code: u8) -> f64 {
        let Float8::Signed { mantissa_bits, bias, specials } = self else {
            return if code == 0xFF { f64::NAN } else { f64::powi(2.0, i32::from(code) - 127) };
        };
        let magnitude = code & 0x7F;
        let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
        let mantissa = f64::from(magnitude & ((1 << mantissa_bits) - 1));
        let exponent = i32::from(magnitude >> mantissa_bits);
        match specials {
            Specials::Ieee if exponent == 0x7F >> mantissa_bits => {
                return if mantissa == 0.0 { sign * f64::INFINITY } else { f64::NAN };
            }
            Specials::AllOnesNan if magnitude == 0x7F => return f64::NAN,
            Specials::MinusZeroNan if code == 0x80 => return f64::NAN,
            _ => {}
        }
        let scale = f64::powi(2.0, -(mantissa_bits.cast_signed()));
        if exponent == 0 {
            sign * mantissa * scale * f64::powi(2.0, 1 - bias)
        } else {
            sign * (1.0 + mantissa * scale) * f64::powi(2.0, exponent - bias)
        }
    }

    /// Nearest code; ties to even. Too large becomes infinity where the format has one, else NaN.
    pub(super) fn encode(self, value: f64) -> u8 {
        match self {
            Float8::Scale => encode_scale(value),
            Float8::Signed { mantissa_bits, bias, specials } => {
                let sign = u8::from(value.is_sign_negative()) << 7;
                let (infinity, nan) = match specials {
                    Specials::Ieee => (sign | 0x7F >> mantissa_bits << mantissa_bits, sign | 0x7F),
                    Specials::AllOnesNan => (sign | 0x7F, sign | 0x7F),
                    Specials::MinusZeroNan => (0x80, 0x80),
                };
                if value.is_nan() {
                    return nan;
                }
                let Some(magnitude) = round_magnitude(value.abs(), mantissa_bits, bias) else {
                    return infinity;
                };
                let largest = match specials {
                    Specials::Ieee => (0x7F >> mantissa_bits << mantissa_bits) - 1,
                    Specials::AllOnesNan => 0x7E,
                    Specials::MinusZeroNan => 0x7F,
                };
                if magnitude > largest {
                    infinity
                } else if specials == Specials::MinusZeroNan && magnitude == 0 {
                    0
                } else {
                    sign | magnitude
                }
            }
        }
    }
}

/// Code without sign, as if every code were finite; `None` when even that overflows.
fn round_magnitude(value: f64, mantissa_bits: u32, bias: i32) -> Option<u8> {
    if value.is_infinite() {
        return None;
    }
    let smallest = 1 - bias;
    let exponent = exponent_of(value).max(smallest);
    let quantum = f64::powi(2.0, exponent - mantissa_bits.cast_signed());
    // At most 2^(mantissa_bits + 1), so the cast is exact.
    let steps = (value / quantum).round_ties_even() as i64;
    // Denormals and the carry into the next exponent fall out of the same sum.
    let code = (i64::from(exponent - smallest) << mantissa_bits) + steps;
    u8::try_from(code).ok().filter(|c| *c < 0x80)
}

fn encode_scale(value: f64) -> u8 {
    if !value.is_finite() {
        return 0xFF;
    }
    let smallest = f64::powi(2.0, -127);
    if value <= smallest {
        return 0;
    }
    let exponent = exponent_of(value);
    let up = value / f64::powi(2.0, exponent) >= 1.5;
    u8::try_from(exponent + i32::from(up) + 127).unwrap_or(0xFF)
}

/// Floor of the binary logarithm; of a double's denormals and zero, something below every format here.
fn exponent_of(value: f64) -> i32 {
    i32::try_from(value.to_bits() >> 52 & 0x7FF).expect("eleven bits fit") - 1023
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ElementKind; 5] = [
        ElementKind::Float8E5M2,
        ElementKind::Float8E4M3FN,
        ElementKind::Float8E5M2FNUZ,
        ElementKind::Float8E4M3FNUZ,
        ElementKind::Float8E8M0FNU,
    ];

    #[test]
    fn every_finite_code_survives() {
        for kind in KINDS {
            let format = Float8::of(kind).unwrap();
            for code in 0..=255u8 {
                let value = format.decode(code);
                if value.is_nan() {
                    assert!(format.decode(format.encode(value)).is_nan(), "{kind:?} {code:#x}");
                } else {
                    assert_eq!(format.encode(value), code, "{kind:?} {code:#x} = {value}");
                }
            }
        }
    }

    #[test]
    fn extremes() {
        let max = |kind| {
            let format = Float8::of(kind).unwrap();
            (0..=255u8).map(|c| format.decode(c)).filter(|v| v.is_finite()).fold(0.0, f64::max)
        };
        assert_eq!(max(ElementKind::Float8E5M2), 57344.0);
        assert_eq!(max(ElementKind::Float8E4M3FN), 448.0);
        assert_eq!(max(ElementKind::Float8E5M2FNUZ), 57344.0);
        assert_eq!(max(ElementKind::Float8E4M3FNUZ), 240.0);
        let e4m3fn = Float8::of(ElementKind::Float8E4M3FN).unwrap();
        assert_eq!(e4m3fn.decode(e4m3fn.encode(464.0)), 448.0);
        assert!(e4m3fn.decode(e4m3fn.encode(465.0)).is_nan());
        assert!(e4m3fn.decode(e4m3fn.encode(1e300)).is_nan());
        let e5m2 = Float8::of(ElementKind::Float8E5M2).unwrap();
        assert_eq!(e5m2.decode(e5m2.encode(-61440.0)), f64::NEG_INFINITY);
        assert_eq!(e5m2.decode(e5m2.encode(1e-5)), 1.52587890625e-5);
    }
}
