//! How numbers with units are written for people.

/// A number with a decimal prefix: `1.5 TOP/s`.
pub fn si(value: f64, unit: &str) -> String {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (factor, prefix) = prefixes.into_iter().find(|(f, _)| value.abs() >= *f).unwrap_or((1.0, ""));
    format!("{:.1} {prefix}{unit}", value / factor)
}

/// Bytes as they are counted, with a binary prefix where that is exact.
pub fn bytes(value: u64) -> String {
    let prefixes = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match prefixes.into_iter().find(|(factor, _)| value >= *factor && value.is_multiple_of(*factor)) {
        Some((factor, prefix)) => format!("{} {prefix}", value / factor),
        None => format!("{value} B"),
    }
}

/// Seconds in the unit that suits.
pub fn seconds(value: f64) -> String {
    match value {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_that_suit() {
        assert_eq!(seconds(0.001_234), "1.234 ms");
        assert_eq!(seconds(0.000_001_5), "1.50 µs");
        assert_eq!(si(1.5e12, "OP/s"), "1.5 TOP/s");
        assert_eq!(si(10.0, "B"), "10.0 B");
        assert_eq!(
            (bytes(1000), bytes(4096), bytes(3 << 20)),
            ("1000 B".into(), "4 KiB".into(), "3 MiB".into())
        );
    }
}
