//! What finished batches took, as far as somebody looked: what estimates of later work are learnt from.

use std::{sync::Arc, time::Instant};

use super::{Batch, Queue, State, pace::Cut};

/// Batches that are looked at together where nobody saw the last one end: how far the device is in the next one matters less then.
const ENOUGH: usize = 4;
/// Most batches that are kept for that.
const MOST: usize = 64;

/// What finished and was not learnt from yet.
#[derive(Default)]
pub(super) struct Finished {
    /// When the last batch that was learnt from ended, if that is known and the device went on since.
    ended: Option<Instant>,
    /// When the first of these began.
    since: Option<Instant>,
    /// Whether that is so, and not only the time at which it could have begun.
    exact: bool,
    shares: Vec<(Arc<Cut>, usize)>,
    batches: usize,
}

impl Finished {
    /// Adds batches.
    fn add(&mut self, done: &[Batch]) {
        if self.batches == 0 {
            let first = done.first();
            let submitted = first.and_then(|first| first.submitted);
            // Behind others it began when they ended, if anybody saw that.
            self.since =
                submitted.map(|submitted| self.ended.map_or(submitted, |ended| ended.max(submitted)));
            self.exact = self.ended.is_some() || first.is_some_and(|first| first.alone);
        }
        self.batches += done.len();
        self.shares.extend(done.iter().flat_map(|batch| batch.shares.iter().cloned()));
    }

    /// Takes what was measured, as of now: what, how many nanoseconds it took, and whether it did not take less. Nothing while more should
    /// come. `seen`: the last ended just now. `next`: when the batch behind it was submitted.
    fn take(&mut self, now: Instant, seen: bool, next: Option<Instant>) -> Option<Measured> {
        let since = self.since?;
        let took = now.saturating_duration_since(since);
        // The device had something to do for at least the half of this time, and is at it still.
        let busy = next.is_some_and(|next| next <= since + took / 2);
        if !seen && next.is_some() && (self.batches < ENOUGH || !busy) && self.batches < MOST {
            return None;
        }
        let told = seen || busy;
        let exact = self.exact && told;
        let shares = std::mem::take(&mut self.shares);
        *self = Finished { ended: told.then_some(now), ..Finished::default() };
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        (!shares.is_empty()).then_some(Measured { shares, nanos, exact })
    }
}

struct Measured {
    shares: Vec<(Arc<Cut>, usize)>,
    nanos: u64,
    exact: bool,
}

impl Queue {
    /// Learns from batches that finished: just now, while somebody waited for them, if `seen`.
    pub(super) fn learn(&self, state: &mut State, done: &[Batch], seen: bool) {
        if done.is_empty() {
            return;
        }
        state.finished.add(done);
        let next = state.in_flight.front().and_then(|batch| batch.submitted);
        if let Some(measured) = state.finished.take(Instant::now(), seen, next) {
            self.pace.learn(&measured.shares, measured.nanos, measured.exact);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A batch that was submitted so many milliseconds behind `start`, with nothing to learn from.
    fn batch(start: Instant, ms: u64) -> Batch {
        let mut batch = Batch::new(1);
        batch.alone = ms == 0;
        batch.submitted = Some(start + Duration::from_millis(ms));
        batch.shares.push((Arc::default(), 0));
        batch
    }

    fn told(finished: &mut Finished, now: Instant, seen: bool, next: Option<Instant>) -> Option<(u64, bool)> {
        finished.take(now, seen, next).map(|measured| (measured.nanos / 1_000_000, measured.exact))
    }

    #[test]
    fn what_somebody_saw_end_took_the_time_since_what_came_before_it() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut finished = Finished::default();
        finished.add(&[batch(start, 0)]);
        assert_eq!(told(&mut finished, at(7), true, None), Some((7, true)), "nothing was before it");
        finished.add(&[batch(start, 5)]);
        assert_eq!(told(&mut finished, at(10), true, None), Some((3, true)), "it came behind the first");
        finished.add(&[batch(start, 20)]);
        assert_eq!(told(&mut finished, at(21), true, None), Some((1, true)));
        // Nobody knows when this one ended, nor when the next began.
        finished.add(&[batch(start, 30)]);
        assert_eq!(told(&mut finished, at(90), false, None), Some((60, false)));
        finished.add(&[batch(start, 40)]);
        assert_eq!(told(&mut finished, at(95), true, None), Some((55, false)));
    }

    #[test]
    fn a_device_that_goes_on_is_measured_though_nobody_waits() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut finished = Finished::default();
        for n in 0..3 {
            finished.add(&[batch(start, n)]);
            assert_eq!(told(&mut finished, at(10 * n + 10), false, Some(at(4))), None, "too few: {n}");
        }
        finished.add(&[batch(start, 3)]);
        assert_eq!(told(&mut finished, at(41), false, Some(at(4))), Some((41, true)));
        // The next four begin there, and the last of them ended while the host was slow: who knows when.
        for n in 1..5 {
            finished.add(&[batch(start, n)]);
        }
        assert_eq!(told(&mut finished, at(241), false, Some(at(240))), None);
        assert_eq!(told(&mut finished, at(241), false, None), Some((200, false)));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let start = Instant::now();
        let mut finished = Finished::default();
        let now = start + Duration::from_millis(100);
        let many: Vec<_> = (0..MOST as u64).map(|n| batch(start, n)).collect();
        finished.add(&many);
        assert_eq!(told(&mut finished, now, false, Some(now)), Some((100, false)));
    }
}
