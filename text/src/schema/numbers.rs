//! Numbers as text, byte by byte: any, and those within bounds.

use std::cmp::Ordering;

/// Bytes of a number without bounds, at most, of which two digits are its power of ten: others read all such numbers.
const MOST_BYTES: u8 = 48;
/// Digits of a whole number with bounds: it is one of 64 bits.
const WHOLE_DIGITS: u8 = 18;
/// Digits of another number with bounds: two that differ are different for programs that read them as floats of 64 bits.
const OTHER_DIGITS: u8 = 15;

/// Where a number without bounds is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
    Powers,
}

/// The beginning of a number without bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Number {
    part: Part,
    length: u8,
}

impl Number {
    /// The number that begins with this byte.
    pub fn begin(byte: u8) -> Option<Number> {
        let part = match byte {
            b'-' => Part::Minus,
            b'0' => Part::Zero,
            b'1'..=b'9' => Part::Whole,
            _ => return None,
        };
        Some(Number { part, length: 1 })
    }

    /// With another byte; `None` where that is no part of it.
    pub fn with(self, byte: u8) -> Option<Number> {
        use Part::{Exponent, Fraction, Minus, Point, Power, Powers, Sign, Whole, Zero};
        let part = match (self.part, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => Sign,
            (Exponent | Sign, b'0'..=b'9') => Power,
            (Power, b'0'..=b'9') => Powers,
            _ => return None,
        };
        // What began has room for its end: a digit of the fraction, or a sign and digits of the power.
        let needed = match part {
            Point | Sign => 1,
            Exponent => 3,
            _ => 0,
        };
        let length = self.length + 1;
        (length + needed <= MOST_BYTES).then_some(Number { part, length })
    }

    /// Whether it may end here.
    pub fn may_end(self) -> bool {
        matches!(self.part, Part::Zero | Part::Whole | Part::Fraction | Part::Power | Part::Powers)
    }
}

/// Digits behind the point that bounds are kept for, and one more than that.
const PLACES: usize = OTHER_DIGITS as usize + 1;

/// Bounds of a number, both included, for each number of digits behind the point: in units of the last of these digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Range {
    low: [i128; PLACES],
    high: [i128; PLACES],
    whole: bool,
}

/// The beginning of a number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Within {
    minus: bool,
    /// All digits so far, as one number.
    value: u64,
    /// Digits in front of the point, and behind it.
    whole: u8,
    behind: u8,
    point: bool,
}

/// 10 to the power of a number of digits.
fn power(digits: usize) -> i128 {
    10i128.pow(digits as u32)
}

/// A number in decimal digits, as it is written without a power of ten.
struct Decimal<'a> {
    minus: bool,
    whole: &'a str,
    behind: &'a str,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a str) -> Decimal<'a> {
        let (minus, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, behind) = digits.split_once('.').unwrap_or((digits, ""));
        Decimal { minus, whole, behind }
    }

    /// In units of so many digits behind the point, rounded down, and whether it was exact. What is too large stays too large.
    fn units(&self, places: usize) -> (i128, bool) {
        let whole = match self.whole.len() {
            0..20 => self.whole.parse::<i128>().unwrap_or(0),
            _ => power(20),
        };
        let kept = &self.behind[..places.min(self.behind.len())];
        let rest = &self.behind[kept.len()..];
        let fraction = kept.parse::<i128>().unwrap_or(0) * power(places - kept.len());
        let (value, exact) = (whole * power(places) + fraction, rest.bytes().all(|digit| digit == b'0'));
        match self.minus {
            true if exact => (-value, true),
            true => (-value - 1, false),
            false => (value, exact),
        }
    }
}

/// A bound: the number as [`std::fmt::Display`] writes it, and whether it is itself outside.
pub(super) struct Bound {
    pub text: String,
    pub is_outside: bool,
}

impl Bound {
    /// The least number that is not below it, in units of so many digits behind the point.
    fn low(&self, places: usize) -> i128 {
        let (units, exact) = Decimal::read(&self.text).units(places);
        if exact && !self.is_outside { units } else { units + 1 }
    }

    /// The largest that is not above it.
    fn high(&self, places: usize) -> i128 {
        let (units, exact) = Decimal::read(&self.text).units(places);
        if exact && self.is_outside { units - 1 } else { units }
    }

    /// Which of two bounds allows less, where that is not the same: compared by their numbers.
    pub fn compare(&self, other: &Bound) -> Ordering {
        let number = |bound: &Bound| bound.text.parse::<f64>().unwrap_or(0.0);
        number(self).total_cmp(&number(other))
    }
}

impl Range {
    /// Numbers from one bound to another; `None` where there are none that have few enough digits.
    pub fn new(low: Option<&Bound>, high: Option<&Bound>, whole: bool) -> Option<Range> {
        let digits = if whole { WHOLE_DIGITS } else { OTHER_DIGITS };
        let (mut lows, mut highs) = ([0; PLACES], [0; PLACES]);
        for places in 0..PLACES {
            // A number has so many digits at most, those behind the point included.
            let most = power(usize::from(digits)) - 1;
            lows[places] = low.map_or(-most, |bound| bound.low(places)).max(-most);
            highs[places] = high.map_or(most, |bound| bound.high(places)).min(most);
        }
        let range = Range { low: lows, high: highs, whole };
        let first = b"-0123456789".iter();
        first.into_iter().any(|byte| range.begin(*byte).is_some()).then_some(range)
    }

    fn digits(&self) -> u8 {
        if self.whole { WHOLE_DIGITS } else { OTHER_DIGITS }
    }

    /// The number that begins with this byte.
    pub fn begin(&self, byte: u8) -> Option<Within> {
        let none = Within { minus: false, value: 0, whole: 0, behind: 0, point: false };
        match byte {
            b'-' => {
                let minus = Within { minus: true, ..none };
                (b'0'..=b'9').any(|digit| self.with(minus, digit).is_some()).then_some(minus)
            }
            _ => self.with(none, byte),
        }
    }

    /// With another byte; `None` where no number within bounds begins so.
    pub fn with(&self, number: Within, byte: u8) -> Option<Within> {
        let mut next = number;
        match byte {
            b'.' if !number.point && number.whole > 0 && !self.whole => next.point = true,
            // Nothing but a point follows a zero.
            b'0'..=b'9' if !number.point && number.whole > 0 && number.value == 0 => return None,
            b'0'..=b'9' if number.whole + number.behind < self.digits() => {
                next.value = number.value * 10 + u64::from(byte - b'0');
                if number.point { next.behind += 1 } else { next.whole += 1 }
            }
            _ => return None,
        }
        self.is_alive(next).then_some(next)
    }

    /// Bounds of what is behind the sign, with so many digits behind the point.
    fn bounds(&self, minus: bool, places: usize) -> (i128, i128) {
        match minus {
            true => ((-self.high[places]).max(0), -self.low[places]),
            false => (self.low[places].max(0), self.high[places]),
        }
    }

    /// Whether a number within bounds begins so.
    fn is_alive(&self, number: Within) -> bool {
        let left = usize::from(self.digits() - number.whole - number.behind);
        let value = i128::from(number.value);
        // So many digits more in front of the point, and the rest behind it.
        let reaches = |before: usize, behind: usize| {
            let places = usize::from(number.behind) + behind;
            let (low, high) = self.bounds(number.minus, places);
            let unit = power(before + behind);
            low < (value + 1) * unit && value * unit <= high && low <= high
        };
        if number.point {
            return (number.behind > 0 || left > 0) && reaches(0, left);
        }
        let most = if value == 0 { 0 } else { left };
        (0..=most).any(|before| reaches(before, if self.whole { 0 } else { left - before }))
    }

    /// Whether it may end here.
    pub fn may_end(&self, number: Within) -> bool {
        let is_written = number.whole > 0 && (!number.point || number.behind > 0);
        let (low, high) = self.bounds(number.minus, usize::from(number.behind));
        is_written && (low..=high).contains(&i128::from(number.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(text: &str) -> Option<Bound> {
        (!text.is_empty())
            .then(|| Bound { text: text.trim_end_matches('x').into(), is_outside: text.ends_with('x') })
    }

    fn range(low: &str, high: &str, whole: bool) -> Option<Range> {
        Range::new(bound(low).as_ref(), bound(high).as_ref(), whole)
    }

    /// Whether the text is a number of the range.
    fn takes(range: &Range, text: &str) -> bool {
        let (first, rest) = text.as_bytes().split_first().unwrap();
        let made =
            rest.iter().try_fold(range.begin(*first), |number, byte| Some(Some(range.with(number?, *byte)?)));
        made.flatten().is_some_and(|number| range.may_end(number))
    }

    #[test]
    fn whole_numbers_within_bounds_are_taken_and_no_others() {
        for (low, high) in [(0, 9), (-5, 12), (7, 7), (95, 1203), (-1203, -95), (0, 0), (-1, 100)] {
            let own = range(&low.to_string(), &high.to_string(), true).unwrap();
            for number in -2000..2000 {
                assert_eq!(takes(&own, &number.to_string()), (low..=high).contains(&number), "{number}");
            }
        }
        let own = range("", "", true).unwrap();
        assert!(takes(&own, "-123456789012345678") && takes(&own, "0") && takes(&own, "-0"));
        assert!(!takes(&own, "01") && !takes(&own, "1.0") && !takes(&own, "1234567890123456789"));
        assert!(range("3", "2", true).is_none() && range("0.2", "0.8", true).is_none());
        assert!(range("1000000000000000000000", "", true).is_none());
        assert!(takes(&range("0x", "2x", true).unwrap(), "1"));
        assert!(range("0x", "1x", true).is_none());
    }

    #[test]
    fn other_numbers_within_bounds_are_taken_and_no_others() {
        let own = range("-0.25", "1.5", false).unwrap();
        for text in ["-0.25", "0", "-0.0", "1.5", "1.49999", "0.000001", "-0.2", "1.50000"] {
            assert!(takes(&own, text), "{text}");
        }
        for text in ["-0.26", "2", "1.6", "1.500001", "-1", "-0.2500001", "1.", "1e0"] {
            assert!(!takes(&own, text), "{text}");
        }
        let own = range("0x", "1x", false).unwrap();
        assert!(takes(&own, "0.5") && !takes(&own, "0.0") && !takes(&own, "1.0") && !takes(&own, "0"));
        assert!(takes(&range("0.1", "0.1", false).unwrap(), "0.1"));
        assert!(takes(&range("", "-3.5", false).unwrap(), "-700.25"));
    }

    /// Whatever began so can end, by bytes that are taken.
    #[test]
    fn numbers_that_begin_can_end() {
        for (low, high, whole) in [
            ("100", "105", true),
            ("-7", "3", true),
            ("0.001", "0.0011", false),
            ("99.5", "100.5", false),
            ("-0.5x", "", false),
        ] {
            let own = range(low, high, whole).unwrap();
            let mut open: Vec<Within> = b"-0123456789".iter().filter_map(|byte| own.begin(*byte)).collect();
            for _ in 0..5 {
                for number in &open {
                    let more = b".0123456789".iter().any(|byte| own.with(*number, *byte).is_some());
                    assert!(more || own.may_end(*number), "{low} {high} {number:?}");
                }
                let next = |number: &Within| {
                    b".0123456789".iter().filter_map(|byte| own.with(*number, *byte)).collect::<Vec<_>>()
                };
                open = open.iter().flat_map(next).take(5000).collect();
            }
        }
        let mut number = Number::begin(b'1').unwrap();
        for _ in 0..43 {
            number = number.with(b'0').unwrap();
        }
        assert!(
            number.with(b'e').is_some_and(|own| own.with(b'-').is_some_and(|own| own.with(b'1').is_some()))
        );
        number = number.with(b'0').unwrap();
        assert!(number.with(b'e').is_none() && number.with(b'.').is_some());
    }
}
