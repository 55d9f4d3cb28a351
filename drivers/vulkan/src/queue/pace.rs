//! How long recorded work takes, as far as it is known, and where long recordings are cut into several submissions. What was
//! submitted cannot be taken back: so only about two submissions' worth is with the device at a time, and work that nobody
//! wants any more ends soon.
//!
//! A dispatch is known by its kernel, its workgroups and its constants. What it took is learnt from submissions whose end was
//! seen (`seen.rs`); before that it is guessed from its workgroups, and few such dispatches are with the device at a time: a guess may be
//! wrong by any factor. Fills, updates and copies are taken for what their bytes say until something else is learnt.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use halite_facts::DeviceType;
use parking_lot::Mutex;
use smallvec::SmallVec;

/// How many times the limit may be with the device: one submission that runs, and one behind it, so that no gap is between.
const AHEAD: u64 = 2;
/// Dispatches that are remembered. Beyond this all are forgotten: programs with so many sizes learn again.
const MOST_KNOWN: usize = 1 << 15;
/// A measurement further than this from what was expected, up or down, is learnt from.
const SURPRISE: u64 = 2;
/// Longest that a dispatch is taken for, in nanoseconds.
const LONGEST: f64 = 1e13;

/// One dispatch or transfer of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    /// Its step.
    pub step: usize,
    key: u64,
    amount: Amount,
    /// Nanoseconds that it was taken for when the recording was cut.
    estimate: f64,
}

/// How much a command does.
#[derive(Clone, Copy, Debug)]
enum Amount {
    Groups(u64),
    Bytes(u64),
}

impl Weight {
    /// A dispatch of a kernel with this number; of how many workgroups is not known where the device decides it.
    pub fn new(step: usize, kernel: u64, groups: Option<[u32; 3]>, constants: &[u32]) -> Weight {
        let mut hasher = DefaultHasher::new();
        (kernel, groups, constants).hash(&mut hasher);
        let count = |groups: [u32; 3]| groups.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        let amount = Amount::Groups(groups.map_or(1, count));
        Weight { step, key: hasher.finish(), amount, estimate: 0.0 }
    }

    /// A fill, an update or a copy of so many bytes.
    pub fn transfer(step: usize, bytes: u64) -> Weight {
        let mut hasher = DefaultHasher::new();
        ("bytes", bytes).hash(&mut hasher);
        Weight { step, key: hasher.finish(), amount: Amount::Bytes(bytes), estimate: 0.0 }
    }

    fn is_dispatch(&self) -> bool {
        matches!(self.amount, Amount::Groups(_))
    }
}

/// What the device has to do, or would have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Nanoseconds that it may take.
    pub nanos: u64,
    /// Dispatches in it whose time is a guess.
    pub guesses: u64,
}

impl Load {
    /// Both together.
    pub fn and(self, other: Load) -> Load {
        Load {
            nanos: self.nanos.saturating_add(other.nanos),
            guesses: self.guesses.saturating_add(other.guesses),
        }
    }
}

/// A recording, cut where it is long.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    weights: Vec<Weight>,
    /// In order; at least one.
    parts: Vec<Part>,
}

/// What is submitted together.
#[derive(Debug)]
struct Part {
    steps: Range<usize>,
    weights: Range<usize>,
    dispatches: u32,
    /// Nanoseconds.
    estimate: AtomicU64,
    /// Dispatches whose time is a guess.
    guesses: AtomicU32,
}

impl Cut {
    /// Parts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Steps of a part.
    pub fn steps(&self, part: usize) -> Range<usize> {
        self.parts[part].steps.clone()
    }

    /// Dispatches of a part.
    pub fn dispatches(&self, part: usize) -> u32 {
        self.parts[part].dispatches
    }

    /// What a part is taken for.
    pub fn load(&self, part: usize) -> Load {
        let part = &self.parts[part];
        Load {
            nanos: part.estimate.load(Ordering::Relaxed),
            guesses: part.guesses.load(Ordering::Relaxed).into(),
        }
    }

    fn total(&self) -> u64 {
        self.parts.iter().map(|part| part.estimate.load(Ordering::Relaxed)).fold(0, u64::saturating_add)
    }

    fn is_guessed(&self) -> bool {
        self.parts.iter().any(Part::is_guessed)
    }
}

/// Parts of recordings that one submission runs.
pub(crate) type Shares = SmallVec<[(Arc<Cut>, usize); 2]>;

/// What a submission is taken for.
pub(crate) fn load(shares: &Shares) -> Load {
    shares.iter().map(|(cut, part)| cut.load(*part)).fold(Load::default(), Load::and)
}

/// What is known about the time of dispatches on a device.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Nanoseconds; `None` leaves all recordings whole.
    limit: Option<u64>,
    /// Nanoseconds that a workgroup is taken for while nothing is known.
    guess: f64,
    /// Nanoseconds that a byte of a transfer is taken for.
    byte: f64,
    /// Dispatches that nothing is known of, that go together.
    unknown: usize,
    known: Mutex<HashMap<u64, f64>>,
}

impl Pace {
    /// For a device of this kind; no submission should take longer than the limit.
    pub fn new(limit: Option<Duration>, kind: DeviceType) -> Pace {
        let (guess, byte, unknown) = match kind {
            DeviceType::Cpu => (20_000.0, 0.25, 8),
            DeviceType::Discrete => (20.0, 0.01, 128),
            _ => (200.0, 0.1, 64),
        };
        let limit = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Pace { limit, guess, byte, unknown, known: Mutex::default() }
    }

    /// Whether more work should wait while the device has this much to do.
    pub fn is_enough(&self, under_way: Load, more: Load) -> bool {
        let Some(limit) = self.limit else { return false };
        let sum = under_way.and(more);
        // Guesses wait for guesses only: what is known may go behind a few of them.
        let guesses = if more.guesses > 0 { sum.guesses } else { 0 };
        sum.nanos > limit.saturating_mul(AHEAD) || guesses > (self.unknown as u64).saturating_mul(AHEAD)
    }

    /// Whether a submission should take nothing more.
    pub fn is_full(&self, load: Load) -> bool {
        self.limit.is_some_and(|limit| load.nanos >= limit || load.guesses >= self.unknown as u64)
    }

    /// Cuts a recording of so many steps. A `whole` one stays in one part.
    pub fn cut(&self, steps: usize, mut weights: Vec<Weight>, whole: bool) -> Cut {
        let limit = self.limit.filter(|_| !whole).map_or(f64::INFINITY, |limit| limit as f64);
        let mut parts = Vec::new();
        let (mut from, mut sum, mut unknown) = ((0, 0), 0.0, 0);
        {
            let known = self.known.lock();
            for (index, weight) in weights.iter_mut().enumerate() {
                let time = known.get(&weight.key).copied();
                let estimate = time.unwrap_or_else(|| self.guess(weight.amount));
                let is_guess = time.is_none() && weight.is_dispatch();
                let full =
                    sum + estimate > limit || (is_guess && unknown >= self.unknown && limit.is_finite());
                if full && index > from.1 {
                    parts.push((from.0..weight.step, from.1..index, sum, unknown));
                    (from, sum, unknown) = ((weight.step, index), 0.0, 0);
                }
                weight.estimate = estimate;
                sum += estimate;
                unknown += usize::from(is_guess);
            }
        }
        parts.push((from.0..steps, from.1..weights.len(), sum, unknown));
        let part = |(steps, range, sum, unknown): (_, Range<usize>, _, _)| {
            let dispatches = weights[range.clone()].iter().filter(|weight| weight.is_dispatch()).count();
            Part::new(steps, range, dispatches, sum, unknown)
        };
        let parts = parts.into_iter().map(part).collect();
        Cut { weights, parts }
    }

    /// Nanoseconds that something is taken for of which nothing is known.
    fn guess(&self, amount: Amount) -> f64 {
        match amount {
            Amount::Groups(groups) => self.guess * groups as f64,
            Amount::Bytes(bytes) => self.byte * bytes as f64,
        }
    }

    /// Whether a recording would be cut otherwise by what is known now.
    pub fn is_misfit(&self, cut: &Cut) -> bool {
        let Some(limit) = self.limit else { return false };
        if cut.is_guessed() {
            return false;
        }
        let long = |part: &Part| {
            part.weights.len() > 1 && part.estimate.load(Ordering::Relaxed) > limit.saturating_mul(3) / 2
        };
        let wanted = cut.total().div_ceil(limit).max(1);
        cut.parts.iter().any(long) || cut.len() as u64 > wanted.saturating_mul(2)
    }

    /// Learns from submissions that took so many nanoseconds together, or at most so many.
    pub fn learn(&self, shares: &[(Arc<Cut>, usize)], measured: u64, exact: bool) {
        let parts = || shares.iter().map(|(cut, part)| (cut, &cut.parts[*part]));
        let expected = parts().map(|(_, part)| part.estimate.load(Ordering::Relaxed)).sum::<u64>().max(1);
        let guessed = parts().any(|(_, part)| part.is_guessed());
        let far =
            measured > expected.saturating_mul(SURPRISE) || expected > measured.saturating_mul(SURPRISE);
        // What is far below the limit need not be known any better; that it took at most so long is enough then.
        let is_short = |nanos: u64| self.limit.is_none_or(|limit| nanos < limit / 8);
        let short = is_short(measured.max(expected));
        let told = exact || measured < expected || is_short(measured);
        if self.limit.is_none() || !told || !(guessed || (far && !short)) {
            return;
        }
        let ratio = measured as f64 / expected as f64;
        let mut known = self.known.lock();
        if known.len() > MOST_KNOWN {
            known.clear();
        }
        // Shares of the time, as they were when the recording was cut: one dispatch may be there many times, and in many parts.
        let weights = || parts().flat_map(|(cut, part)| &cut.weights[part.weights.clone()]);
        let each = measured as f64 / weights().map(|weight| weight.estimate).sum::<f64>().max(1.0);
        known.extend(weights().map(|weight| (weight.key, (weight.estimate * each).clamp(1.0, LONGEST))));
        for (_, part) in parts() {
            let estimate = part.estimate.load(Ordering::Relaxed) as f64 * ratio;
            part.estimate.store(estimate.min(LONGEST) as u64, Ordering::Relaxed);
            part.guesses.store(0, Ordering::Relaxed);
        }
    }
}

impl Part {
    fn new(
        steps: Range<usize>,
        weights: Range<usize>,
        dispatches: usize,
        estimate: f64,
        guesses: usize,
    ) -> Part {
        Part {
            steps,
            weights,
            dispatches: u32::try_from(dispatches).unwrap_or(u32::MAX),
            estimate: AtomicU64::new(estimate.min(LONGEST) as u64),
            guesses: AtomicU32::new(u32::try_from(guesses).unwrap_or(u32::MAX)),
        }
    }

    fn is_guessed(&self) -> bool {
        self.guesses.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pace(kind: DeviceType) -> Pace {
        Pace::new(Some(Duration::from_millis(50)), kind)
    }

    /// Dispatches of one kernel each, at every other step.
    fn dispatches(count: usize, groups: u32) -> Vec<Weight> {
        (0..count).map(|n| Weight::new(2 * n, n as u64, Some([groups, 1, 1]), &[7])).collect()
    }

    fn known(ms: u64) -> Load {
        Load { nanos: ms * MS, guesses: 0 }
    }

    fn learn_all(pace: &Pace, cut: Cut, each: u64) -> Cut {
        let cut = Arc::new(cut);
        for part in 0..cut.len() {
            pace.learn(&[(cut.clone(), part)], each * u64::from(cut.dispatches(part)), true);
        }
        Arc::into_inner(cut).unwrap()
    }

    #[test]
    fn what_is_unknown_goes_in_small_parts_and_what_is_known_by_its_time() {
        let pace = pace(DeviceType::Cpu);
        let cut = pace.cut(760, dispatches(380, 4), false);
        assert_eq!(cut.len(), 380_usize.div_ceil(8));
        assert_eq!((cut.steps(0), cut.steps(1)), (0..16, 16..32));
        assert_eq!(cut.steps(cut.len() - 1).end, 760);
        assert!(!pace.is_misfit(&cut), "it waits until all of it was measured");
        // 380 dispatches of 25 ms: two fit.
        let cut = learn_all(&pace, cut, 25 * MS);
        assert!(pace.is_misfit(&cut));
        let cut = pace.cut(760, dispatches(380, 4), false);
        assert!(cut.len() >= 190 && (0..cut.len()).all(|part| cut.load(part).nanos <= 50 * MS));
        assert!(!pace.is_misfit(&cut));
    }

    #[test]
    fn short_recordings_stay_whole() {
        for kind in [DeviceType::Discrete, DeviceType::Integrated] {
            let pace = pace(kind);
            assert_eq!(pace.cut(120, dispatches(60, 300), false).len(), 1, "{kind:?}");
        }
        // On a processor they are cut once, until they were measured.
        let pace = pace(DeviceType::Cpu);
        let cut = learn_all(&pace, pace.cut(120, dispatches(60, 4), false), MS / 100);
        assert!(pace.is_misfit(&cut));
        assert_eq!(pace.cut(120, dispatches(60, 4), false).len(), 1);
    }

    #[test]
    fn a_dispatch_that_comes_again_is_learnt_once() {
        let pace = pace(DeviceType::Cpu);
        let same = || (0..8).map(|n| Weight::new(n, 1, Some([4, 1, 1]), &[])).collect::<Vec<_>>();
        let cut = learn_all(&pace, pace.cut(8, same(), false), 3 * MS);
        assert_eq!((cut.len(), cut.load(0)), (1, known(24)));
        assert_eq!(pace.cut(8, same(), false).load(0), known(24));
        // The second part was cut by the guess as well.
        let again = || (0..16).map(|n| Weight::new(n, 2, Some([4, 1, 1]), &[])).collect::<Vec<_>>();
        assert_eq!(learn_all(&pace, pace.cut(16, again(), false), MS).len(), 2);
        assert_eq!(pace.cut(16, again(), false).load(0), known(16));
    }

    #[test]
    fn what_took_at_most_a_short_time_is_learnt_as_well() {
        let pace = pace(DeviceType::Cpu);
        let short = || (0..32).map(|n| Weight::new(n, 1, Some([1, 1, 1]), &[])).collect::<Vec<_>>();
        let cut = Arc::new(pace.cut(32, short(), false));
        for part in 0..cut.len() {
            pace.learn(&[(cut.clone(), part)], MS, false);
        }
        assert!(cut.len() == 4 && pace.is_misfit(&cut));
        assert_eq!(pace.cut(32, short(), false).len(), 1);
        // Of what may have been long, only more exact news count.
        let cut = Arc::new(pace.cut(8, dispatches(4, 9), false));
        pace.learn(&[(cut.clone(), 0)], 40 * MS, false);
        assert!(cut.is_guessed());
    }

    #[test]
    fn one_dispatch_and_recordings_without_any_are_one_part() {
        let pace = pace(DeviceType::Cpu);
        assert_eq!(pace.cut(1, dispatches(1, u32::MAX), false).len(), 1);
        assert_eq!(pace.cut(5, Vec::new(), false).steps(0), 0..5);
        assert_eq!(pace.cut(760, dispatches(380, 4), true).len(), 1);
        let off = Pace::new(None, DeviceType::Cpu);
        assert_eq!(off.cut(760, dispatches(380, u32::MAX), false).len(), 1);
        let all = Load { nanos: u64::MAX, guesses: u64::MAX };
        assert!(!off.is_enough(all, all) && !off.is_full(all));
        let all = [u32::MAX; 3];
        assert!(
            pace.cut(2, vec![Weight::new(0, 1, Some(all), &[]), Weight::new(1, 2, None, &[])], false).len()
                == 2
        );
    }

    #[test]
    fn the_device_has_two_parts_at_a_time() {
        let pace = pace(DeviceType::Discrete);
        assert!(!pace.is_enough(known(50), known(50)) && pace.is_enough(known(60), known(50)));
    }

    #[test]
    fn few_guesses_are_with_the_device_at_a_time() {
        let guesses = |guesses| Load { nanos: 1, guesses };
        let pace = pace(DeviceType::Cpu);
        assert!(!pace.is_enough(guesses(8), guesses(8)) && pace.is_enough(guesses(9), guesses(8)));
        assert!(!pace.is_enough(guesses(16), known(1)), "what is known does not wait for guesses");
        assert!(!pace.is_full(guesses(7)) && pace.is_full(guesses(8)));
        // A guess is one until it was measured, however often it is there.
        let cut = Arc::new(pace.cut(6, dispatches(3, 1), false));
        assert_eq!(cut.load(0), Load { nanos: 60_000, guesses: 3 });
        pace.learn(&[(cut.clone(), 0), (cut.clone(), 0)], 12 * MS, true);
        assert_eq!((cut.load(0).guesses, pace.cut(6, dispatches(3, 1), false).load(0)), (0, known(6)));
    }

    #[test]
    fn transfers_count_by_their_bytes() {
        let pace = pace(DeviceType::Cpu);
        let moved = |bytes| (0..4).map(|n| Weight::transfer(n, bytes)).collect::<Vec<_>>();
        let cut = pace.cut(4, moved(90 << 20), false);
        assert_eq!((cut.len(), cut.dispatches(0)), (2, 0), "24 ms each");
        assert!(cut.load(0).guesses == 0 && !pace.is_misfit(&cut));
        // They are learnt as well.
        let cut = learn_all(&pace, pace.cut(4, moved(4 << 20), false), 0);
        assert_eq!(cut.len(), 1);
        pace.learn(&[(Arc::new(cut), 0)], 80 * MS, true);
        assert_eq!(pace.cut(4, moved(4 << 20), false).len(), 2);
    }
}
