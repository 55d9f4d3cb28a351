//! Bytes that say again what stood far before them, shorter: variants of a kernel differ in a word here and there, and deflate looks back
//! no further than 32 KiB. `build.rs` uses this file, too.
#![allow(dead_code, reason = "build.rs folds, the library unfolds")]

use std::io::Read;

use crate::words::{put, take};

/// Repeats that are no shorter are looked for everywhere before; by their first bytes.
const FAR: usize = 8;
/// Repeats at one of the last two distances are taken if they are no shorter.
const NEAR: usize = 2;
/// How many places with the same first bytes are tried.
const TRIES: usize = 32;
/// The size of the table of places, as a power of two.
const TABLE: u32 = 16;
/// Bytes of a block: it is read as a whole, and those behind it need not be.
const BLOCK: usize = 16 << 10;
/// Counts and lengths from here on have a number of their own.
const LONG: usize = 7;

/// What a block is made of: first the sizes of these lists, two bytes each, then the lists.
#[derive(Default)]
struct Lists {
    /// One byte for each repeat: how many new bytes stand before it (3 bits), its distance (2 bits: the last, the one before, a new one),
    /// and how long it is (3 bits).
    tokens: Vec<u8>,
    /// What counts and lengths are beyond these bits.
    longer: Vec<u8>,
    /// New distances.
    distances: Vec<u8>,
    /// New bytes.
    fresh: Vec<u8>,
}

impl Lists {
    fn write(self, all: &mut Vec<u8>) {
        let lists = [self.tokens, self.longer, self.distances, self.fresh];
        lists.iter().for_each(|list| all.extend((list.len() as u16).to_le_bytes()));
        all.extend(lists.concat());
    }
}

/// Writes bytes as blocks of new bytes and repeats of earlier ones.
pub fn fold(bytes: &[u8]) -> Vec<u8> {
    let mut places = Places::new(bytes);
    let (mut all, mut last) = (Vec::new(), [0; 2]);
    for start in (0..bytes.len()).step_by(BLOCK) {
        let end = bytes.len().min(start + BLOCK);
        block(&mut places, start, end, &mut last).write(&mut all);
    }
    all
}

fn block(places: &mut Places<'_>, start: usize, end: usize, last: &mut [usize; 2]) -> Lists {
    let mut lists = Lists::default();
    let (mut begin, mut at) = (start, start);
    while at < end {
        let found = places.best(at, end, *last);
        places.insert(at);
        // A longer one that begins a byte later is worth a byte.
        let is_best =
            |one: &Repeat| places.best(at + 1, end, *last).is_none_or(|next| next.gain <= one.gain + 1);
        let Some(repeat) = found.filter(is_best) else {
            at += 1;
            continue;
        };
        let (count, length) = (at - begin, repeat.length - NEAR);
        let source = last.iter().position(|one| *one == repeat.distance).unwrap_or(2);
        lists.tokens.push((count.min(LONG) | source << 3 | length.min(LONG) << 5) as u8);
        let longer = [count, length].into_iter().filter_map(|number| number.checked_sub(LONG));
        longer.for_each(|more| put(&mut lists.longer, more as u64));
        if source == 2 {
            put(&mut lists.distances, repeat.distance as u64);
        }
        *last = after(*last, source, repeat.distance);
        lists.fresh.extend(&places.bytes[begin..at]);
        begin = at + repeat.length;
        (at + 1..begin).for_each(|place| places.insert(place));
        at = begin;
    }
    lists.fresh.extend(&places.bytes[begin..end]);
    lists
}

/// The first bytes, at least so many, of what [`fold`] wrote. `None` where it did not.
pub fn unfold(folded: &mut impl Read, wanted: usize) -> Option<Vec<u8>> {
    let (mut all, mut last, mut lists) = (Vec::with_capacity(wanted + BLOCK), [0; 2], Vec::new());
    while all.len() < wanted {
        let mut head = [0; 8];
        folded.read_exact(&mut head).ok()?;
        let size = |at: usize| usize::from(u16::from_le_bytes([head[2 * at], head[2 * at + 1]]));
        lists.resize((0..4).map(size).sum(), 0);
        folded.read_exact(&mut lists).ok()?;
        let (tokens, rest) = lists.split_at(size(0));
        let (longer, rest) = rest.split_at(size(1));
        let (distances, fresh) = rest.split_at(size(2));
        read_block(&mut all, &mut last, tokens, [longer, distances, fresh])?;
    }
    Some(all)
}

fn read_block(all: &mut Vec<u8>, last: &mut [usize; 2], tokens: &[u8], lists: [&[u8]; 3]) -> Option<()> {
    let [mut longer, mut distances, mut fresh] = lists;
    let mut number = |short: usize| {
        let more = if short == LONG { usize::try_from(take(&mut longer)?).ok()? } else { 0 };
        short.checked_add(more)
    };
    for token in tokens {
        let token = usize::from(*token);
        let (new, behind) = fresh.split_at_checked(number(token & 7)?)?;
        fresh = behind;
        all.extend_from_slice(new);
        let length = number(token >> 5)?.checked_add(NEAR).filter(|length| *length <= BLOCK)?;
        let distance = match token >> 3 & 3 {
            source @ 0..=1 => last[source],
            _ => usize::try_from(take(&mut distances)?).ok()?,
        };
        *last = after(*last, token >> 3 & 3, distance);
        repeat(all, distance, length)?;
    }
    all.extend_from_slice(fresh);
    Some(())
}

/// Writes bytes again that stand so far before the end. They may overlap what is written.
fn repeat(all: &mut Vec<u8>, distance: usize, length: usize) -> Option<()> {
    let from = all.len().checked_sub(distance).filter(|_| distance > 0)?;
    if length <= distance {
        all.extend_from_within(from..from + length);
    } else {
        (from..from + length).for_each(|place| all.push(all[place]));
    }
    Some(())
}

/// The last two distances behind one that was used.
fn after(last: [usize; 2], source: usize, used: usize) -> [usize; 2] {
    if source == 0 { last } else { [used, last[0]] }
}

/// Bytes that stand earlier, too.
struct Repeat {
    distance: usize,
    length: usize,
    /// How many bytes it saves, nearly.
    gain: usize,
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

    /// The repeat that saves most, of those that begin at a place and end no later than at another.
    fn best(&self, at: usize, end: usize, last: [usize; 2]) -> Option<Repeat> {
        let here = self.bytes.get(at..end)?;
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
            for wanted in [bytes.len(), bytes.len() / 2] {
                let unfolded = unfold(&mut &folded[..], wanted).unwrap();
                assert!(bytes.starts_with(&unfolded) && unfolded.len() >= wanted);
            }
            assert_eq!(unfold(&mut &folded[..], bytes.len() + 1), None);
        }
        assert!(fold(&both).len() < far.len() + 5_000);
    }

    #[test]
    fn what_was_not_folded_is_refused() {
        let folded = fold(b"abcdefghijklmabcdefghijklm");
        for end in 0..folded.len() {
            assert_eq!(unfold(&mut &folded[..end], 26), None, "{end}");
        }
        let block = |lists: [&[u8]; 4]| {
            let sizes = lists.map(|list| (list.len() as u16).to_le_bytes()).concat();
            unfold(&mut &[sizes, lists.concat()].concat()[..], 5)
        };
        assert_eq!(block([&[0x2B], &[], &[], b"abcde"]), None, "a distance that was never used");
        assert_eq!(block([&[0x13], &[], &[], b"abc"]), None, "no distance");
        assert_eq!(block([&[0x13], &[], &[4], b"abc"]), None, "before the beginning");
        assert_eq!(block([&[0xF3], &[], &[1], b"abc"]), None, "no length");
        assert_eq!(block([&[0x17], &[0], &[1], b"abc"]), None, "too few new bytes");
        assert_eq!(block([&[0x13], &[], &[2], b"abc"]).as_deref(), Some(&b"abcbc"[..]));
    }
}
