//! Time limits: deadlines here, relative nanoseconds there, because clocks have no common zero.

use std::time::Duration;

use super::abi::HALITE_FOREVER;
use halite_hal::Deadline;

/// The nanoseconds that are left.
pub(super) fn timeout(deadline: Deadline) -> u64 {
    match deadline.remaining() {
        None => HALITE_FOREVER,
        Some(left) => u64::try_from(left.as_nanos()).unwrap_or(HALITE_FOREVER - 1).min(HALITE_FOREVER - 1),
    }
}

/// The deadline that is so many nanoseconds away.
pub(super) fn deadline(timeout_ns: u64) -> Deadline {
    match timeout_ns {
        0 => Deadline::Now,
        HALITE_FOREVER => Deadline::Never,
        ns => Deadline::after(Duration::from_nanos(ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_survive() {
        assert_eq!(deadline(timeout(Deadline::Never)), Deadline::Never);
        assert_eq!(deadline(timeout(Deadline::Now)), Deadline::Now);
        let hour = Duration::from_secs(3600);
        let left = deadline(timeout(Deadline::after(hour))).remaining().unwrap();
        assert!(left <= hour && left > hour / 2);
        assert!(timeout(Deadline::after(Duration::from_secs(1 << 40))) < HALITE_FOREVER);
    }
}
