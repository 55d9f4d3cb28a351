//! Numbers as C's `printf` and `strtol`/`strtod` write them.

use std::fmt::Write as _;

/// `value` with six significant digits as C's `%g` prints it; `%G` when `upper`.
pub fn format_g(value: f64, upper: bool) -> String {
    let mut text = String::new();
    push_g(value, upper, &mut text);
    text
}

/// Appends what [`format_g`] returns.
pub(super) fn push_g(value: f64, upper: bool, out: &mut String) {
    let start = out.len();
    if !value.is_finite() || value == 0.0 {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let name = if value.is_nan() {
            "nan"
        } else if value == 0.0 {
            "0"
        } else {
            "inf"
        };
        out.push_str(sign);
        out.push_str(name);
    } else {
        push_finite(value, out);
    }
    if upper {
        out[start..].make_ascii_uppercase();
    }
}

fn push_finite(value: f64, out: &mut String) {
    // Rounding to six digits may carry into the next power of ten, so the exponent is read from the rounded text.
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("LowerExp always writes an exponent");
    let exponent: i32 = exponent.parse().expect("LowerExp writes a decimal exponent");
    if (-4..6).contains(&exponent) {
        let digits = usize::try_from(5 - exponent).expect("the exponent is below 6");
        let fixed = format!("{value:.digits$}");
        out.push_str(trim_zeros(&fixed));
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(out, "{}e{sign}{:02}", trim_zeros(mantissa), exponent.unsigned_abs())
            .expect("writing to a string cannot fail");
    }
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// An integer in decimal, `0x` hexadecimal or `0` octal, with an optional sign; the whole text must be one.
pub(super) fn parse_i128(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // A second sign would be taken by the parser.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

/// An i32, or the u32 with the same bits.
pub fn parse_i32(text: &str) -> Option<i32> {
    let value = parse_i128(text)?;
    i32::try_from(value).ok().or_else(|| u32::try_from(value).ok().map(u32::cast_signed))
}

/// An i64.
pub fn parse_i64(text: &str) -> Option<i64> {
    parse_i128(text)?.try_into().ok()
}

/// A float as C's `strtof` reads it: decimal, hexadecimal, `inf`, `nan`, with a sign. Too large becomes infinity.
pub fn parse_f32(text: &str) -> Option<f32> {
    match special(text)? {
        Special::Decimal => text.parse().ok(),
        Special::Value(value) => Some(value as f32),
    }
}

/// A float as C's `strtod` reads it.
pub fn parse_f64(text: &str) -> Option<f64> {
    match special(text)? {
        Special::Decimal => text.parse().ok(),
        Special::Value(value) => Some(value),
    }
}

enum Special {
    /// Rust's own parser reads it.
    Decimal,
    Value(f64),
}

fn special(text: &str) -> Option<Special> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0f64, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let lower = digits.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        return Some(Special::Value(parse_hex_float(hex)? * sign));
    }
    if lower.starts_with("nan(") && lower.ends_with(')') {
        return Some(Special::Value(f64::NAN.copysign(sign)));
    }
    Some(Special::Decimal)
}

/// `1.8p3` after the `0x`. Digits beyond 60 bits are cut: far below the last bit of a double.
fn parse_hex_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let mut exponent: i32 = exponent.parse().ok()?;
    let (mut mantissa, mut seen, mut fraction) = (0u64, false, false);
    for c in digits.chars() {
        if c == '.' && !fraction {
            fraction = true;
            continue;
        }
        let digit = c.to_digit(16)?;
        seen = true;
        let room = mantissa >> 56 == 0;
        if room {
            mantissa = mantissa << 4 | u64::from(digit);
        }
        exponent = exponent.checked_add(4 * (i32::from(!room) - i32::from(fraction)))?;
    }
    if !seen {
        return None;
    }
    // Two steps, because 2^exponent alone may be out of range where the product is not.
    let half = exponent.clamp(-2200, 2200) / 2;
    let rest = exponent.clamp(-2200, 2200) - half;
    Some(mantissa as f64 * f64::powi(2.0, half) * f64::powi(2.0, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_printf_does() {
        for (value, text) in [
            (0.1, "0.1"),
            (1_234_567.0, "1.23457E+06"),
            (1e-7, "1E-07"),
            (0.000123457, "0.000123457"),
            (999_999.5, "1E+06"),
            (f64::from(99_999.95f32), "100000"),
            (-0.0, "-0"),
            (f64::NAN, "NAN"),
            (f64::NEG_INFINITY, "-INF"),
            (1e300, "1E+300"),
            (2.5, "2.5"),
            (100.0, "100"),
        ] {
            assert_eq!(format_g(value, true), text);
        }
        assert_eq!(format_g(f64::NAN, false), "nan");
        assert_eq!(format_g(1_234_567.0, false), "1.23457e+06");
    }

    #[test]
    fn integers() {
        for (text, value) in
            [("5", 5), ("-5", -5), ("0x1F", 31), ("-0x10", -16), ("010", 8), ("0", 0), ("+7", 7), ("-0", 0)]
        {
            assert_eq!(parse_i32(text), Some(value), "{text}");
        }
        assert_eq!(parse_i32("4294967295"), Some(-1));
        for bad in ["", "-", "0x", "1.5", "1x", "--1", "0x-1", "4294967296", "-2147483649", "09", "é"] {
            assert_eq!(parse_i32(bad), None, "{bad}");
        }
        assert_eq!(parse_i64("18446744073709551615"), None);
        assert_eq!(parse_i64("-9223372036854775808"), Some(i64::MIN));
    }

    #[test]
    fn floats() {
        assert_eq!(parse_f32("0x1p3"), Some(8.0));
        assert_eq!(parse_f32("-0x.8"), Some(-0.5));
        assert_eq!(parse_f32("0x10"), Some(16.0));
        assert_eq!(parse_f32("1e400"), Some(f32::INFINITY));
        assert_eq!(parse_f32("infinity"), Some(f32::INFINITY));
        assert!(parse_f32("nan(abc)").is_some_and(f32::is_nan));
        assert_eq!(parse_f64("0x1p-1074"), Some(5e-324));
        assert_eq!(parse_f64("0x1p99999999999"), None);
        assert_eq!(parse_f64("0x1p2147483647"), Some(f64::INFINITY));
        for bad in ["", "abc", "1.5x", "0x", "0xp1", "1 2"] {
            assert_eq!(parse_f32(bad), None, "{bad}");
        }
    }
}
