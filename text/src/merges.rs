//! Byte-pair encoding: neighbours are joined in the order in which training found them. Texts are bytes, each written as a
//! character of its own (Radford et al., GPT-2).

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use halite_formats::gguf::Gguf;

use crate::{
    TextError,
    vocabulary::{Vocabulary, array},
};

const MERGES: &str = "tokenizer.ggml.merges";

/// Pairs of texts that are joined, by what they are, and the place of each in the order.
#[derive(Clone, Debug)]
pub(crate) struct Merges {
    ranks: HashMap<(Box<str>, Box<str>), u32>,
    /// Whether a word that is a token stays whole, whatever the merges say.
    whole_words: bool,
}

/// The character of each byte: printable ones are themselves, others follow behind U+0100.
pub(crate) fn characters() -> [char; 256] {
    let mut all = ['\0'; 256];
    let mut next = 0x100u32;
    for (byte, own) in (0u8..=255).zip(&mut all) {
        *own = match byte {
            b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap_or('\0')
            }
        };
    }
    all
}

impl Merges {
    pub fn read(file: &Gguf, whole_words: bool) -> Result<Merges, TextError> {
        let list = array(file, MERGES)?.ok_or_else(|| TextError::metadata(MERGES, "is missing"))?;
        let mut ranks = HashMap::with_capacity(usize::try_from(list.len()).unwrap_or(0).min(1 << 20));
        for (rank, pair) in (0u32..).zip(list.texts()) {
            // The first character of a pair is no space that parts it.
            let pair = std::str::from_utf8(pair).ok();
            let parted = pair.and_then(|pair| {
                let at = pair.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at)?;
                Some((&pair[..at], &pair[at + 1..]))
            });
            let Some((left, right)) = parted else {
                return Err(TextError::metadata(MERGES, format!("has no pair of texts at {rank}")));
            };
            ranks.entry((left.into(), right.into())).or_insert(rank);
        }
        Ok(Merges { ranks, whole_words })
    }

    fn rank(&self, left: &str, right: &str) -> Option<u32> {
        self.ranks.get(&(left.into(), right.into())).copied()
    }

    /// The tokens of a word, whose bytes are written as characters.
    pub fn encode(&self, word: &str, vocabulary: &Vocabulary, tokens: &mut Vec<u32>) {
        if self.whole_words
            && let Some(id) = vocabulary.find(word.as_bytes())
        {
            tokens.push(id);
            return;
        }
        for part in joined(word, |left, right| self.rank(left, right).map(Reverse)) {
            match vocabulary.find(part.as_bytes()) {
                Some(id) => tokens.push(id),
                // What is no token is written character by character; what is not even that is left out.
                None => tokens.extend(
                    part.chars().filter_map(|c| vocabulary.find(c.encode_utf8(&mut [0; 4]).as_bytes())),
                ),
            }
        }
    }
}

/// A text's parts, after neighbours were joined for as long as `order` gives a pair a place. Of all pairs that with the largest
/// goes first; of equal ones the first. Takes n log n steps for n characters.
pub(crate) fn joined<K: Ord + Copy>(text: &str, order: impl Fn(&str, &str) -> Option<K>) -> Vec<&str> {
    // The beginnings of parts, as a list that is linked in both directions; a part ends where the next begins.
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let count = starts.len();
    starts.push(text.len());
    let mut next: Vec<usize> = (1..=count).collect();
    let mut previous: Vec<Option<usize>> = (0..count).map(|i| i.checked_sub(1)).collect();
    let mut heap: BinaryHeap<(K, Reverse<usize>, usize, usize)> = BinaryHeap::new();
    let offer = |heap: &mut BinaryHeap<_>, next: &[usize], left: usize| {
        let right = next[left];
        if right >= count {
            return;
        }
        let (middle, end) = (starts[right], starts[next[right]]);
        if let Some(key) = order(&text[starts[left]..middle], &text[middle..end]) {
            heap.push((key, Reverse(left), middle, end));
        }
    };
    for left in 0..count {
        offer(&mut heap, &next, left);
    }
    let mut gone = vec![false; count];
    while let Some((_, Reverse(left), middle, end)) = heap.pop() {
        let right = next[left];
        // The pair is as it was when it was offered.
        if gone[left] || right >= count || starts[right] != middle || starts[next[right]] != end {
            continue;
        }
        gone[right] = true;
        next[left] = next[right];
        if let Some(behind) = previous.get_mut(next[left]) {
            *behind = Some(left);
        }
        offer(&mut heap, &next, left);
        if let Some(before) = previous[left] {
            offer(&mut heap, &next, before);
        }
    }
    (0..count).filter(|i| !gone[*i]).map(|i| &text[starts[i]..starts[next[i]]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let all = characters();
        let set: std::collections::HashSet<char> = all.into_iter().collect();
        assert_eq!(set.len(), 256);
        assert_eq!((all[b' ' as usize], all[b'\n' as usize], all[b'a' as usize]), ('Ġ', 'Ċ', 'a'));
    }

    #[test]
    fn pairs_are_joined_in_their_order() {
        let order = |left: &str, right: &str| {
            let rank = ["bc", "ab", "abc", "dd"].iter().position(|own| *own == format!("{left}{right}"));
            rank.map(Reverse)
        };
        assert_eq!(joined("abcdddd", order), ["abc", "dd", "dd"]);
        assert_eq!(joined("ab", order), ["ab"]);
        assert_eq!(joined("", order), [""; 0]);
        assert_eq!(joined("ddd", order), ["dd", "d"]);
    }
}
