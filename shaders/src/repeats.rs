//! Bytes that say again what stood far before them, shorter: variants of a kernel differ in a word here and there, and deflate looks back
//! no further than 32 KiB. `build.rs` uses this file, too.
#![allow(dead_code, reason = "build.rs folds, the library unfolds")]

use crate::words::{put, take};

/// Repeats that are no shorter are looked for everywhere before; by their first bytes.
const FAR: usize = 8;
/// Repeats at one of the last two distances are taken if they are no shorter.
const NEAR: usize = 2;
/// How many places with the same first bytes are tried.
const TRIES: usize = 32;
/// The sizes of the table of places, as a power of two.
const TABLE: u32 = 16;

/// Writes bytes as pieces, each of bytes as they are and a repeat of earlier ones: the sizes of three lists and these (how many bytes are
/// new, how many repeated, and from where: 0 or 1 for the distances used last, or the distance and one), then the new bytes.
pub fn fold(bytes: &[u8]) -> Vec<u8> {
    let mut places = Places::new(bytes);
    let mut lists = [const { Vec::new() }; 3];
    let (mut fresh, mut begin, mut at) = (Vec::new(), 0, 0);
    let mut last = [0; 2];
    while at < bytes.len() {
        let found = places.best(at, last);
        places.insert(at);
        // A longer one that begins a byte later is worth a byte.
        let is_best = |one: &Repeat| places.best(at + 1, last).is_none_or(|next| next.gain <= one.gain + 1);
        let Some(repeat) = found.filter(is_best) else {
            at += 1;
            continue;
        };
        put(&mut lists[0], (at - begin) as u64);
        put(&mut lists[1], (repeat.length - NEAR) as u64);
        put(&mut lists[2], repeat.source(last) as u64);
        last = after(last, repeat.distance);
        fresh.extend(&bytes[begin..at]);
        let end = at + repeat.length;
        (at + 1..end).for_each(|place| places.insert(place));
        (begin, at) = (end, end);
    }
    fresh.extend(&bytes[begin..]);
    let mut all = Vec::new();
    lists.iter().for_each(|list| put(&mut all, list.len() as u64));
    lists.iter().chain([&fresh]).for_each(|list| all.extend(list));
    all
}

/// The first bytes, at least so many where there are, of what [`fold`] wrote. `None` where it did not.
pub fn unfold(folded: &[u8], wanted: usize) -> Option<Vec<u8>> {
    let mut rest = folded;
    let sizes = [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?];
    let [mut counts, mut lengths, mut sources] = [&[][..]; 3];
    for (list, size) in [&mut counts, &mut lengths, &mut sources].into_iter().zip(sizes) {
        (*list, rest) = rest.split_at_checked(usize::try_from(size).ok()?)?;
    }
    let (mut all, mut last) = (Vec::with_capacity(wanted), [0; 2]);
    while all.len() < wanted && !counts.is_empty() {
        let (fresh, behind) = rest.split_at_checked(usize::try_from(take(&mut counts)?).ok()?)?;
        rest = behind;
        all.extend(fresh);
        let length = usize::try_from(take(&mut lengths)?).ok()?.checked_add(NEAR)?;
        let distance = match usize::try_from(take(&mut sources)?).ok()? {
            near @ 0..=1 => last[near],
            far => far - 1,
        };
        last = after(last, distance);
        repeat(&mut all, distance, length)?;
    }
    if counts.is_empty() {
        all.extend(rest);
    }
    (all.len() >= wanted).then_some(all)
}

/// Writes bytes again that stand so far before the end. They may overlap what is written.
fn repeat(all: &mut Vec<u8>, distance: usize, length: usize) -> Option<()> {
    let from = all.len().checked_sub(distance).filter(|_| distance > 0)?;
    if length <= distance {
        all.extend_from_within(from..from + length);
    } else {
        (from..from.checked_add(length)?).for_each(|place| all.push(all[place]));
    }
    Some(())
}

/// The last two distances behind one that was used.
fn after(last: [usize; 2], used: usize) -> [usize; 2] {
    if used == last[0] { last } else { [used, last[0]] }
}

/// Bytes that stand earlier, too.
struct Repeat {
    distance: usize,
    length: usize,
    /// How many bytes it saves, nearly.
    gain: usize,
}

impl Repeat {
    fn source(&self, last: [usize; 2]) -> usize {
        last.iter().position(|one| *one == self.distance).unwrap_or(self.distance + 1)
    }
}

/// Where bytes stood, found by eight of them.
struct Places<'a> {
    bytes: &'a [u8],
    /// The last place of each hash, and for each place the one before with the same.
    newest: Vec<Option<usize>>,
    before: Vec<Option<usize>>,
}

impl Places<'_> {
    fn new(bytes: &[u8]) -> Places<'_> {
        Places { bytes, newest: vec![None; 1 << TABLE], before: vec![None; bytes.len()] }
    }

    fn hash(&self, at: usize) -> Option<usize> {
        let first = self.bytes.get(at..)?.first_chunk()?;
        Some((u64::from_le_bytes(*first).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - TABLE)) as usize)
    }

    fn insert(&mut self, at: usize) {
        if let Some(hash) = self.hash(at) {
            self.before[at] = self.newest[hash].replace(at);
        }
    }

    /// The repeat that saves most, of those that begin at a place.
    fn best(&self, at: usize, last: [usize; 2]) -> Option<Repeat> {
        let here = self.bytes.get(at..)?;
        let repeat = |distance: usize, least: usize| {
            let there = self.bytes.get(at.checked_sub(distance)?..)?;
            let length = here.iter().zip(there).take_while(|(one, other)| one == other).count();
            (distance > 0 && length >= least).then(|| Repeat { distance, length, gain: length - least + 1 })
        };
        let mut best = None;
        let mut take = |one: Option<Repeat>| {
            if one.as_ref().map(|one| one.gain) > best.as_ref().map(|best: &Repeat| best.gain) {
                best = one;
            }
        };
        last.iter().for_each(|distance| take(repeat(*distance, NEAR)));
        let newest = self.hash(at).and_then(|hash| self.newest[hash]);
        let places = std::iter::successors(newest, |place| self.before[*place]).take(TRIES);
        places.for_each(|place| take(repeat(at - place, FAR)));
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_folded_comes_back() {
        let far: Vec<u8> = (0..50_000_u32).map(|place| (place * place / 7) as u8).collect();
        let changed: Vec<u8> =
            far.iter().enumerate().map(|(place, byte)| byte ^ u8::from(place % 97 == 3)).collect();
        let both = [&far[..], &changed, &[5; 300]].concat();
        for bytes in [&[][..], &[1], &[7; 9], b"abcabcabcabcabcabcd", &both] {
            let folded = fold(bytes);
            assert_eq!(unfold(&folded, bytes.len()).as_deref(), Some(bytes));
            let half = unfold(&folded, bytes.len() / 2).unwrap();
            assert_eq!(half[..bytes.len() / 2], bytes[..bytes.len() / 2]);
        }
        assert!(fold(&both).len() < far.len() + 5_000);
    }

    #[test]
    fn what_was_not_folded_is_refused() {
        let folded = fold(b"abcdefghijklmabcdefghijklm");
        for end in 0..folded.len().min(6) {
            assert_eq!(unfold(&folded[..end], 26), None, "{end}");
        }
        // Counts: 0 new bytes, a repeat of 2 from a distance of 3 before the beginning.
        assert_eq!(unfold(&[1, 1, 1, 0, 0, 4], 9), None);
        // A distance that was never used.
        assert_eq!(unfold(&[1, 1, 1, 1, 0, 0, 7], 9), None);
    }
}
