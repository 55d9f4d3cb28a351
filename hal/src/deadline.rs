//! When waits end.

use std::time::{Duration, Instant};

/// When a wait gives up. No wait in Halite is infinite unless [`Deadline::Never`] is passed on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Do not wait, only look.
    Now,
    /// Wait until this instant.
    At(Instant),
    /// Wait for ever.
    Never,
}

impl Deadline {
    /// A deadline this far in the future; [`Deadline::Never`] if the clock cannot express it.
    pub fn after(duration: Duration) -> Self {
        Instant::now().checked_add(duration).map_or(Deadline::Never, Deadline::At)
    }

    /// The HAL ABI's millisecond timeout: negative means for ever, zero means look once.
    pub fn from_millis(timeout_ms: i32) -> Self {
        match timeout_ms {
            ..0 => Deadline::Never,
            0 => Deadline::Now,
            ms => Deadline::after(Duration::from_millis(ms.unsigned_abs().into())),
        }
    }

    /// Time left: `None` for ever, zero when the deadline has passed.
    pub fn remaining(self) -> Option<Duration> {
        match self {
            Deadline::Now => Some(Duration::ZERO),
            Deadline::At(t) => Some(t.saturating_duration_since(Instant::now())),
            Deadline::Never => None,
        }
    }

    /// The earlier of two deadlines.
    pub fn min(self, other: Deadline) -> Deadline {
        match (self, other) {
            (Deadline::Now, _) | (_, Deadline::Now) => Deadline::Now,
            (Deadline::Never, d) | (d, Deadline::Never) => d,
            (Deadline::At(a), Deadline::At(b)) => Deadline::At(a.min(b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_order_and_run_out() {
        let soon = Deadline::after(Duration::from_secs(1));
        let later = Deadline::after(Duration::from_secs(1000));
        assert_eq!(soon.min(later), soon);
        assert_eq!(Deadline::Never.min(later), later);
        assert_eq!(later.min(Deadline::Now), Deadline::Now);
        assert_eq!(Deadline::from_millis(-1), Deadline::Never);
        assert_eq!(Deadline::from_millis(0).remaining(), Some(Duration::ZERO));
        assert_eq!(Deadline::after(Duration::MAX), Deadline::Never);
    }
}
