//! How kernels divide by numbers that are known before: by a multiplication.

use halite_sizes::Size;

/// Numbers of less than this are divided.
pub(crate) const LIMIT: u64 = 1 << 31;

/// `n / d == (high word of n * factor) >> shift` for n below [`LIMIT`]. With `l = ceil(log2 d)` the factor is
/// `floor(2^(31+l) / d) + 1` and the shift `l - 1`; the error of the factor is at most `2^l / 2^(31+l)` of n (Granlund and
/// Montgomery, "Division by Invariant Integers using Multiplication", 1994, theorem 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divider {
    /// Never 0, but for the divisor 1, for which there is no factor of 32 bits.
    pub(crate) factor: Size,
    /// Less than 31.
    pub(crate) shift: Size,
}

impl Divider {
    /// For a divisor from 1 to [`LIMIT`].
    pub(crate) fn of(divisor: impl Into<Size>) -> Divider {
        let divisor = divisor.into();
        if divisor.is_data() {
            return Divider::of_data(divisor);
        }
        if divisor <= 1 {
            return Divider { factor: 0.into(), shift: 0.into() };
        }
        let log = divisor.ceil_log2();
        // Below 2^32: the quotient is at most 2^31 * 2^log / (2^(log - 1) + 1).
        Divider { factor: (log + 31).pow2() / divisor + 1, shift: log - 1 }
    }

    /// The same for a divisor that may be 1 or not: 1 and 0 have the factor 0.
    fn of_data(divisor: Size) -> Divider {
        let log = divisor.ceil_log2().max(1);
        let above_one = Size::min((divisor - 1).max(0), 1);
        Divider { factor: ((log + 31).pow2() / divisor.max(1) + 1) * above_one, shift: log - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact() {
        let large = [1000, 4095, 4096, 4097, 65535, 65537, 1 << 20, (1 << 30) + 1, (1 << 31) - 1, 1 << 31];
        for divisor in (2..300).chain(large) {
            let Divider { factor, shift } = Divider::of(divisor);
            let multiples = [0, 1, 2, 3, 1000, (1 << 31) / divisor - 1, (1 << 31) / divisor];
            let near = multiples.iter().flat_map(|q: &u32| {
                let n = q.wrapping_mul(divisor);
                [n.wrapping_sub(1), n, n.wrapping_add(1)]
            });
            for n in near.filter(|n| u64::from(*n) < LIMIT).chain([(1 << 31) - 1]) {
                let high = ((u64::from(n) * factor.exact()) >> 32) as u32;
                assert_eq!(high >> shift.exact(), n / divisor, "{n} / {divisor}");
            }
        }
        assert_eq!(Divider::of(1).factor, 0, "kernels take that for 1");
    }
}
