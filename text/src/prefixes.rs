//! Texts that another text may begin with.

use std::ops::Range;

/// Bytes that a text may have, so that the search for all of them stays linear.
pub(crate) const LONGEST: usize = 1024;

/// Texts with a number each, sorted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes {
    all: Vec<(Box<[u8]>, u32)>,
}

impl Prefixes {
    /// These texts. Empty ones are never found, and of equal ones the first.
    pub fn new(texts: impl Iterator<Item = (Box<[u8]>, u32)>) -> Prefixes {
        let mut all: Vec<_> = texts.filter(|(text, _)| !text.is_empty()).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all.dedup_by(|later, own| later.0 == own.0);
        Prefixes { all }
    }

    /// All that a text begins with, the shortest first: length and number.
    pub fn of(&self, text: &[u8]) -> impl Iterator<Item = (usize, u32)> {
        let mut range = 0..self.all.len();
        let mut length = 0;
        std::iter::from_fn(move || {
            while !range.is_empty() {
                range = self.narrow(range.clone(), length, *text.get(length)?);
                length += 1;
                // The text that is no longer than this comes before all that begin with it.
                if let Some((own, number)) = self.all.get(range.start).filter(|_| !range.is_empty())
                    && own.len() == length
                {
                    range.start += 1;
                    return Some((length, *number));
                }
            }
            None
        })
    }

    /// The longest that a text begins with.
    pub fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        if self.all.is_empty() { None } else { self.of(text).last() }
    }

    /// Those of a range of texts longer than `at` that have this byte there.
    fn narrow(&self, range: Range<usize>, at: usize, byte: u8) -> Range<usize> {
        let texts = &self.all[range.clone()];
        let byte_at = |(text, _): &(Box<[u8]>, u32)| text.get(at).copied();
        let start = texts.partition_point(|text| byte_at(text) < Some(byte));
        let end = texts.partition_point(|text| byte_at(text) <= Some(byte));
        range.start + start..range.start + end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_found_from_the_shortest_on() {
        let texts = ["b", "ab", "abcd", "", "a", "abd", "ab"];
        let all = Prefixes::new(texts.iter().zip(0..).map(|(text, number)| (text.as_bytes().into(), number)));
        assert_eq!(all.of(b"abcdef").collect::<Vec<_>>(), [(1, 4), (2, 1), (4, 2)]);
        assert_eq!(all.of(b"xab").count(), 0);
        assert_eq!(
            (all.longest(b"abd"), all.longest(b"ac"), all.longest(b"")),
            (Some((3, 5)), Some((1, 4)), None)
        );
    }
}
