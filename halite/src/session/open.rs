//! Versions of a model's functions for many sizes each: which sizes were seen, and which version is for those at hand.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use halite_compiler::Coverage;
use parking_lot::Mutex;

use super::{ahead::after, refusals::Refused, versions::Version};
use crate::{Result, options::Limits};

/// The first sizes of each function get versions of their own, which are the fastest; others share open ones.
const OWN: usize = 1;

/// Sizes that share with no others, after which a function has versions for single sizes only, if no more versions are shared than
/// there are such sizes: guards may leave nothing but one size here and there.
const TRIES: usize = 4;

/// How many calls ahead sizes are looked at.
const MOST_STEPS: u64 = 1 << 16;

#[derive(Default)]
struct State {
    /// The functions and shapes that get versions of their own: the first, and those that share with no others.
    own: HashSet<(usize, Vec<Vec<u64>>)>,
    /// How many sizes of a function share with no others.
    alone: HashMap<usize, usize>,
    /// The sizes for which a version was made, of each function.
    asked: Vec<(usize, Vec<Vec<u64>>)>,
    /// Versions with open sizes; sizes that none of them is for get versions of their own once there are `most`.
    made: Vec<(usize, Coverage, Arc<Version>)>,
    /// The sizes of each function's last call, and which of them were others before.
    seen: HashMap<usize, Seen>,
}

/// Sizes of calls.
struct Seen {
    last: Vec<Vec<u64>>,
    varied: Vec<Vec<bool>>,
    /// The largest number that divides all sizes that a dimension had.
    units: Vec<Vec<u64>>,
}

impl State {
    fn note(&mut self, place: usize, shapes: &[Vec<u64>]) {
        let new = || {
            let varied = shapes.iter().map(|dims| vec![false; dims.len()]).collect();
            Seen { last: shapes.to_vec(), varied, units: shapes.to_vec() }
        };
        let Seen { last, varied, units } = self.seen.entry(place).or_insert_with(new);
        if last == shapes {
            return;
        }
        for (((last, varied), units), dims) in last.iter_mut().zip(varied).zip(units).zip(shapes) {
            for (axis, size) in dims.iter().enumerate().take(last.len()) {
                varied[axis] |= last[axis] != *size;
                units[axis] = divisor(units[axis], *size);
                last[axis] = *size;
            }
        }
    }
}

/// The largest number that divides both; the other where one is 0.
fn divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The versions with open sizes. Threads may share it; one makes a version at a time.
pub(super) struct OpenVersions {
    state: Mutex<State>,
    making: Mutex<()>,
    most: usize,
    /// Tries that failed.
    pub refused: Arc<Refused>,
}

impl OpenVersions {
    /// Room for so many.
    pub fn new(most: usize) -> Self {
        OpenVersions { state: Mutex::default(), making: Mutex::default(), most, refused: Arc::default() }
    }

    /// The version of a function for inputs of these shapes, made by `make` if there is none; `None` where they get a version of
    /// their own: the first ones do, those for which `make` gives none, and all of a function of which that is true of most.
    pub fn get(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        limits: &Limits,
        make: impl FnOnce() -> Result<Option<(Version, Coverage)>>,
    ) -> Result<Option<Arc<Version>>> {
        self.state.lock().note(place, shapes);
        if self.has_own(place, shapes) {
            return Ok(None);
        }
        if let Some(version) = self.find(place, shapes) {
            return Ok(Some(version));
        }
        let _making = loop {
            match self.making.try_lock_for(std::time::Duration::from_millis(20)) {
                Some(guard) => break guard,
                None => limits.check("waiting for another call's compilation")?,
            }
        };
        if let Some(version) = self.find(place, shapes) {
            return Ok(Some(version));
        }
        self.tell(place, shapes);
        match make()? {
            Some((version, coverage)) if coverage.has(shapes.iter().map(Vec::as_slice)) => {
                let version = Arc::new(version);
                let mut state = self.state.lock();
                state.made.push((place, coverage, version.clone()));
                state.asked.push((place, shapes.to_vec()));
                Ok(Some(version))
            }
            _ => {
                let mut state = self.state.lock();
                state.own.insert((place, shapes.to_vec()));
                *state.alone.entry(place).or_default() += 1;
                Ok(None)
            }
        }
    }

    /// How many calls whose sizes grow by a step it takes to sizes that no version is for, nor anything that is `ready`. `None` where
    /// there is no room for another version, and where that is too far away.
    pub fn steps_without(
        &self,
        place: usize,
        shapes: &[Vec<u64>],
        step: &[Vec<u64>],
        ready: &dyn Fn(&[Vec<u64>]) -> bool,
    ) -> Option<u64> {
        let state = self.state.lock();
        if state.made.len() >= self.most {
            return None;
        }
        let is_covered = |count: u64| {
            let later = after(shapes, step, count);
            let has = |(own, coverage, _): &(usize, Coverage, Arc<Version>)| {
                *own == place && coverage.has(later.iter().map(Vec::as_slice))
            };
            state.made.iter().any(has) || ready(&later)
        };
        let (mut covered, mut open) = (0, 1);
        while is_covered(open) {
            (covered, open) = (open, open * 2);
            if open > MOST_STEPS {
                return None;
            }
        }
        while open - covered > 1 {
            let middle = covered.midpoint(open);
            *(if is_covered(middle) { &mut covered } else { &mut open }) = middle;
        }
        Some(open)
    }

    /// Whether a dimension of an input had several sizes in the calls of a function so far.
    pub fn has_varied(&self, place: usize, input: usize, axis: usize) -> bool {
        let state = self.state.lock();
        let varied = state.seen.get(&place).and_then(|seen| seen.varied.get(input)?.get(axis).copied());
        varied.unwrap_or(false)
    }

    /// For each dimension of inputs of a function the largest number that divides all sizes that it had in calls so far: its own, before the
    /// first call. What comes is likely to be a multiple of it, and of no more.
    pub fn units(&self, place: usize, shapes: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let state = self.state.lock();
        let seen = state.seen.get(&place);
        let unit = |input: usize, axis: usize, size: u64| {
            let known = seen.and_then(|seen| seen.units.get(input)?.get(axis).copied());
            divisor(known.unwrap_or(size), size)
        };
        let of = |(input, dims): (usize, &Vec<u64>)| {
            dims.iter().enumerate().map(|(axis, size)| unit(input, axis, *size)).collect()
        };
        shapes.iter().enumerate().map(of).collect()
    }

    /// The sizes for which versions of a function were made so far.
    pub fn asked(&self, place: usize) -> Vec<Vec<Vec<u64>>> {
        let state = self.state.lock();
        state.asked.iter().filter(|(own, _)| *own == place).map(|(_, shapes)| shapes.clone()).collect()
    }

    /// How many are loaded.
    pub fn count(&self) -> usize {
        self.state.lock().made.len()
    }

    /// Whether sizes get a version of their own.
    fn has_own(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        let mut state = self.state.lock();
        let alone = state.alone.get(&place).copied().unwrap_or(0);
        let shared = state.made.iter().filter(|(own, ..)| *own == place).count();
        if state.made.len() >= self.most || (alone >= TRIES && alone > shared) {
            return true;
        }
        let key = (place, shapes.to_vec());
        if state.own.contains(&key) {
            return true;
        }
        let first = state.own.iter().filter(|(own, _)| *own == place).count() < OWN;
        if first {
            state.own.insert(key);
        }
        first
    }

    /// Says why another version is made.
    fn tell(&self, place: usize, shapes: &[Vec<u64>]) {
        if !log::log_enabled!(log::Level::Info) {
            return;
        }
        let state = self.state.lock();
        let own = state.made.iter().filter(|(own, ..)| *own == place);
        let why = |(_, coverage, _): &(usize, Coverage, Arc<Version>)| {
            coverage
                .why_not(shapes.iter().map(Vec::as_slice))
                .unwrap_or_else(|| "others are the same".to_owned())
        };
        let reasons: Vec<String> = own.map(why).collect();
        log::info!("a version for inputs of {shapes:?}; not those that are there: [{}]", reasons.join("; "));
    }

    /// Whether a version that is loaded is for inputs of these shapes.
    pub fn has(&self, place: usize, shapes: &[Vec<u64>]) -> bool {
        self.find(place, shapes).is_some()
    }

    fn find(&self, place: usize, shapes: &[Vec<u64>]) -> Option<Arc<Version>> {
        let state = self.state.lock();
        let fits = |(own, coverage, _): &&(usize, Coverage, Arc<Version>)| {
            *own == place && coverage.has(shapes.iter().map(Vec::as_slice))
        };
        state.made.iter().find(fits).map(|(.., version)| version.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_were_others_before_are_known() {
        let mut state = State::default();
        for rows in [8, 1, 1] {
            state.note(0, &[vec![1, rows], vec![1, 9, 4]]);
        }
        // Of another rank: what both have is compared.
        state.note(0, &[vec![1], vec![2, 9, 4, 4]]);
        assert_eq!(state.seen[&0].varied, [vec![false, true], vec![true, false, false]]);
        assert_eq!(state.seen[&0].units, [vec![1, 1], vec![1, 9, 4]]);
        assert_eq!([divisor(36, 56), divisor(0, 5), divisor(5, 0), divisor(64, 64)], [4, 5, 5, 64]);
    }
}
