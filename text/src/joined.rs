//! Neighbours of a text that are joined, one pair after the other: what all kinds of byte-pair encoding have in common.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub start: usize,
    pub end: usize,
    /// What it is: a token, or a number that only the caller knows.
    pub id: Option<u32>,
}

/// A pair that may be joined: its place, its first part, where the second begins and ends, and what both become.
type Offer<K> = (K, Reverse<usize>, usize, usize, Option<u32>);

/// A text's parts, after neighbours were joined for as long as `order` gives a pair a place and says what it becomes. Of all
/// pairs that with the largest place goes first; of equal ones the first. Takes n log n steps for n parts.
pub(crate) fn joined<K: Ord + Copy>(
    parts: Vec<Part>,
    mut order: impl FnMut(Part, Part) -> Option<(K, Option<u32>)>,
) -> Vec<Part> {
    let count = parts.len();
    let mut parts = parts;
    // A list that is linked in both directions.
    let mut next: Vec<usize> = (1..=count).collect();
    let mut previous: Vec<Option<usize>> = (0..count).map(|i| i.checked_sub(1)).collect();
    let mut heap = BinaryHeap::<Offer<K>>::new();
    let mut offer = |heap: &mut BinaryHeap<_>, parts: &[Part], next: &[usize], left: usize| {
        if let Some(right) = parts.get(next[left])
            && let Some((key, id)) = order(parts[left], *right)
        {
            heap.push((key, Reverse(left), right.start, right.end, id));
        }
    };
    for left in 0..count {
        offer(&mut heap, &parts, &next, left);
    }
    let mut gone = vec![false; count];
    while let Some((_, Reverse(left), middle, end, id)) = heap.pop() {
        let right = next[left];
        // The pair is as it was when it was offered.
        let is_same = parts.get(right).is_some_and(|part| part.start == middle && part.end == end);
        if gone[left] || !is_same {
            continue;
        }
        gone[right] = true;
        parts[left].end = end;
        parts[left].id = id;
        next[left] = next[right];
        if let Some(behind) = previous.get_mut(next[left]) {
            *behind = Some(left);
        }
        offer(&mut heap, &parts, &next, left);
        if let Some(before) = previous[left] {
            offer(&mut heap, &parts, &next, before);
        }
    }
    let mut gone = gone.into_iter();
    parts.retain(|_| gone.next() == Some(false));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        (0..text.len()).map(|at| Part { start: at, end: at + 1, id: None }).collect()
    }

    #[test]
    fn pairs_are_joined_in_their_order() {
        let join = |text: &'static str| -> Vec<&str> {
            let order = |left: Part, right: Part| {
                let both = &text[left.start..right.end];
                let rank = ["bc", "ab", "abc", "dd"].iter().position(|own| *own == both);
                rank.map(|rank| (Reverse(rank), None))
            };
            joined(parts(text), order).iter().map(|part| &text[part.start..part.end]).collect()
        };
        assert_eq!(join("abcdddd"), ["abc", "dd", "dd"]);
        assert_eq!(join("ab"), ["ab"]);
        assert_eq!(join(""), [""; 0]);
        assert_eq!(join("ddd"), ["dd", "d"]);
    }
}
