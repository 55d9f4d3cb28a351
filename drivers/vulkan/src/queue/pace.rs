//! How long recorded work takes, as far as it is known, and where long recordings are cut into several submissions. What was
//! submitted cannot be taken back: so only about two submissions' worth is with the device at a time, and work that nobody
//! wants any more ends soon.
//!
//! A dispatch is known by its kernel, its workgroups and its constants. What it took is learnt from submissions whose end was
//! seen (`seen.rs`); before that it is guessed from its workgroups, and few such dispatches are with the device at a time: a guess may be
//! wrong by any factor. One that is long is divided (`lower/divide.rs`); its pieces are known by its time and their share of it. Fills, updates and copies are taken for what their bytes say until something else is learnt.

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
/// Nanoseconds that a workgroup may well take on a processor.
const SLOW_GROUP: f64 = 2.5e5;
/// Most pieces of a dispatch of which nothing is known.
const GUESSED_PIECES: f64 = 512.0;
/// Longest that a dispatch is taken for, in nanoseconds.
const LONGEST: f64 = 1e13;

/// One dispatch or transfer of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    /// Its step.
    pub step: usize,
    key: u64,
    amount: Amount,
    /// Of the whole dispatch, how much this is.
    share: f64,
    /// How many pieces it can be divided into at most; one where it is whole in any case.
    divisible: u64,
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
        Weight { step, key: hasher.finish(), amount, share: 1.0, divisible: 1, estimate: 0.0 }
    }

    /// The same, which can be divided into as many pieces as it has workgroups.
    pub fn divisible(self) -> Weight {
        let Amount::Groups(groups) = self.amount else { return self };
        Weight { divisible: groups, ..self }
    }

    /// The same, which stays whole.
    pub fn indivisible(self) -> Weight {
        Weight { divisible: 1, ..self }
    }

    /// A piece of it, of so many of all `whole` workgroups.
    pub fn piece(&self, step: usize, groups: u64, whole: u64) -> Weight {
        Weight { step, divisible: groups, share: groups as f64 / whole as f64, ..*self }
    }

    /// A fill, an update or a copy of so many bytes.
    pub fn transfer(step: usize, bytes: u64) -> Weight {
        let mut hasher = DefaultHasher::new();
        ("bytes", bytes).hash(&mut hasher);
        let amount = Amount::Bytes(bytes);
        Weight { step, key: hasher.finish(), amount, share: 1.0, divisible: 1, estimate: 0.0 }
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
                let estimate = time.map_or_else(|| self.guess(weight), |time| time * weight.share);
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

    /// How many pieces a dispatch is best divided into.
    pub fn pieces(&self, weight: &Weight) -> u64 {
        let (Some(limit), true) = (self.limit, weight.divisible > 1) else { return 1 };
        let limit = limit as f64;
        let known = self.known.lock().get(&weight.key).copied();
        let pieces = match known.map(|time| time * weight.share) {
            Some(time) if time <= limit * 1.5 => 1.0,
            Some(time) => time / limit,
            None => (weight.divisible as f64 * SLOW_GROUP / limit).min(GUESSED_PIECES),
        };
        (pieces.ceil() as u64).clamp(1, weight.divisible)
    }

    /// Whether something is known of the time of a dispatch.
    pub fn knows(&self, weight: &Weight) -> bool {
        self.known.lock().contains_key(&weight.key)
    }

    /// Nanoseconds that something is taken for of which nothing is known.
    fn guess(&self, weight: &Weight) -> f64 {
        match weight.amount {
            // It was divided for fear that it is slow.
            Amount::Groups(groups) if weight.share < 1.0 => SLOW_GROUP * groups as f64 * weight.share,
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
            let weights = &cut.weights[part.weights.clone()];
            let divisible = weights.len() > 1 || weights.iter().any(|weight| self.pieces(weight) > 1);
            divisible && part.estimate.load(Ordering::Relaxed) > limit.saturating_mul(3) / 2
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
        let time = |weight: &Weight| (weight.estimate * each / weight.share).clamp(1.0, LONGEST);
        known.extend(weights().map(|weight| (weight.key, time(weight))));
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
mod tests;
