//! Sets of bytes: runs of equal length at regular distances.

use std::collections::BTreeMap;

use super::{
    affine::{Affine, Ranges},
    plan::Resource,
};

/// More runs of one binding than this become one that covers them all.
const MOST_RUNS: usize = 64;

/// Bytes of a binding: runs of `width` bytes that begin at `start` plus any of `count` multiples of each stride.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes {
    /// First byte of the first run, counted from the binding. Negative where the kernel would leave its binding.
    pub start: i64,
    /// Bytes of a run.
    pub width: u64,
    /// Distance and number of runs, smallest distance first.
    pub strides: Vec<(u64, u64)>,
}

/// What a kernel does to one binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The binding.
    pub resource: Resource,
    /// Whether it writes; it reads otherwise.
    pub write: bool,
    /// The bytes; `None` for any of the binding.
    pub bytes: Option<Bytes>,
}

impl Bytes {
    /// The bytes at an address that takes every value of a sum.
    pub(super) fn of(at: &Affine, width: u32, ranges: &Ranges) -> Option<Self> {
        let (start, _) = at.range(ranges)?;
        let mut strides = Vec::new();
        for (var, times) in &at.terms {
            let (low, high) = ranges.get(var)?;
            let count = high.checked_sub(*low)?.checked_add(1)?;
            strides.push((times.unsigned_abs(), u64::try_from(count).ok()?));
        }
        Bytes { start, width: width.into(), strides }.normal()
    }

    /// Puts runs that touch each other together.
    fn normal(mut self) -> Option<Self> {
        self.strides.retain(|(_, count)| *count > 1);
        self.strides.sort_unstable();
        let mut strides: Vec<(u64, u64)> = Vec::new();
        for (stride, count) in self.strides {
            let more = stride.checked_mul(count - 1)?;
            match strides.last_mut() {
                None if stride <= self.width => self.width = self.width.checked_add(more)?,
                // So many of the last distance that the next goes on where they end.
                Some((last, number)) if last.checked_mul(*number)? == stride => {
                    *number = number.checked_mul(count)?;
                }
                _ => strides.push((stride, count)),
            }
        }
        self.strides = strides;
        self.end().map(|_| self)
    }

    /// The byte behind the last run.
    fn end(&self) -> Option<i64> {
        let more = self
            .strides
            .iter()
            .try_fold(self.width, |sum, (stride, count)| sum.checked_add(stride.checked_mul(count - 1)?))?;
        self.start.checked_add(i64::try_from(more).ok()?)
    }

    /// Takes runs up that lie at the same distances and touch these.
    fn take(&mut self, other: &Bytes) -> bool {
        let (from, to) = (self.start, self.start + self.width as i64);
        let other_to = other.start + other.width as i64;
        if self.strides != other.strides || other.start > to || other_to < from {
            return false;
        }
        self.start = from.min(other.start);
        self.width = (to.max(other_to) - self.start) as u64;
        true
    }
}

/// Accesses by binding and direction; `None` for all of the binding.
#[derive(Default)]
pub(super) struct Gathered {
    by_key: BTreeMap<(Resource, bool), Option<Vec<Bytes>>>,
}

impl Gathered {
    pub fn add_all(&mut self, key: (Resource, bool)) {
        self.by_key.insert(key, None);
    }

    pub fn add(&mut self, key: (Resource, bool), bytes: Bytes) {
        let Some(list) = self.by_key.entry(key).or_insert_with(|| Some(Vec::new())) else { return };
        if !list.iter_mut().any(|known| known.take(&bytes)) {
            list.push(bytes);
        }
        if list.len() > MOST_RUNS {
            let start = list.iter().map(|b| b.start).min();
            let end = list.iter().filter_map(Bytes::end).max();
            let hull = start.zip(end).and_then(|(start, end)| {
                Some(Bytes {
                    start,
                    width: u64::try_from(end.checked_sub(start)?).ok()?,
                    strides: Vec::new(),
                })
            });
            *list = hull.into_iter().collect();
        }
    }

    pub fn finish(self) -> Vec<Access> {
        let mut accesses = Vec::new();
        for ((resource, write), list) in self.by_key {
            let Some(mut list) = list else {
                accesses.push(Access { resource, write, bytes: None });
                continue;
            };
            list.sort();
            let mut runs: Vec<Bytes> = Vec::new();
            for bytes in list {
                if !runs.last_mut().is_some_and(|last| last.take(&bytes)) {
                    runs.push(bytes);
                }
            }
            // What was put together may go on at its distance.
            let runs = runs.into_iter().map(|b| b.clone().normal().unwrap_or(b));
            accesses.extend(runs.map(|bytes| Access { resource, write, bytes: Some(bytes) }));
        }
        accesses
    }
}
