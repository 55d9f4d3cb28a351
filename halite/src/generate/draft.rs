//! A second, smaller model that writes ahead of the first: whether the two fit each other, and how many tokens are drafted.

use halite_text::Vocabulary;

use super::{Calls, Generator, Inner, seats::MOST_TOGETHER};
use crate::{Error, ErrorKind, Result};

/// Most tokens that may be drafted: with the one before them they are as many as a call looks at.
pub(super) const MOST_DRAFTED: usize = MOST_TOGETHER - 1;
/// How many are, unless the caller says otherwise.
pub(super) const DRAFTED: usize = 7;
/// Most tokens that are written without a draft, where drafts are wrong again and again.
const LONGEST_REST: usize = 32;

/// How many tokens a call looks at, where so many are drafted at most: the one that is known, and the drafted ones.
pub(super) fn sizes(drafted: usize) -> Vec<usize> {
    let most = (drafted + 1).next_power_of_two().min(MOST_TOGETHER);
    [2, 4, 8, MOST_TOGETHER].into_iter().filter(|size| *size <= most).collect()
}

/// Whether a generator can draft so many tokens at a time for a model with these tokens.
pub(super) fn check(writer: &Generator, most: usize, own: &Vocabulary) -> Result<()> {
    if !(1..=MOST_DRAFTED).contains(&most) {
        return Err(Error::invalid(format!(
            "{most} tokens are to be drafted; there may be 1 to {MOST_DRAFTED}"
        )));
    }
    let inner: &Inner = &writer.inner;
    if matches!(inner.calls, Calls::Decoder(_)) {
        return Err(Error::new(ErrorKind::Unsupported, "the model that drafts is no GGUF file".to_owned()));
    }
    if matches!(&inner.calls, Calls::Pieces(pieces) if pieces.recurrent) {
        let text = "the model that drafts has states that cannot be cut back to what is taken of a draft";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if matches!(&inner.calls, Calls::Pieces(pieces) if pieces.encoder.is_some()) {
        let text = "the model that drafts has an encoder in front, which reads prompts for it alone";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    if inner.draft.is_some() {
        return Err(Error::invalid("the model that drafts has a draft of its own; give it none"));
    }
    check_vocabularies(own, inner.tokenizer.vocabulary())
}

/// Whether one model's tokens are those of another. Models of one family differ in how many unused ones fill their tables up.
fn check_vocabularies(own: &Vocabulary, draft: &Vocabulary) -> Result<()> {
    match own.first_difference(draft) {
        None => Ok(()),
        Some(token) => {
            let [one, other] = [own, draft].map(|all| match all.text(token) {
                Some(text) => format!("'{text}'"),
                None => "missing".to_owned(),
            });
            Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the model that drafts has other tokens than the one that it drafts for: token {token} is {other} there and \
                     {one} here; take one of the same family"
                ),
            ))
        }
    }
}

/// How many tokens are drafted next: more where drafts were right, fewer where they were wrong, and none for a while where even one was.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// Which of the sizes of calls.
    level: usize,
    /// Tokens that are written without a draft before the next one.
    resting: usize,
    /// How many those were the last time.
    rest: usize,
}

impl Pace {
    /// The size of the next call, of those within a bound; `None` where nothing is to be drafted.
    pub fn next(&mut self, sizes: &[usize], bound: usize) -> Option<usize> {
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        sizes.iter().take(self.level + 1).copied().rfind(|size| *size <= bound)
    }

    /// After a call that looked at `drafted` tokens and took `taken` of them.
    pub fn learn(&mut self, drafted: usize, taken: usize, levels: usize) {
        match taken {
            0 if self.level == 0 => {
                self.rest = (2 * self.rest).clamp(1, LONGEST_REST);
                self.resting = self.rest;
                return;
            }
            all if all == drafted => self.level = (self.level + 1).min(levels.saturating_sub(1)),
            few if 2 * few < drafted => self.level = self.level.saturating_sub(1),
            _ => {}
        }
        self.rest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_look_at_one_token_more_than_are_drafted() {
        assert_eq!(sizes(1), [2]);
        assert_eq!(sizes(3), [2, 4]);
        assert_eq!(sizes(4), [2, 4, 8], "five are filled up to eight");
        assert_eq!(sizes(7), [2, 4, 8]);
        assert_eq!(sizes(15), [2, 4, 8, 16]);
    }

    #[test]
    fn good_drafts_grow_and_bad_ones_pause() {
        let sizes = [2, 4, 8];
        let mut pace = Pace::default();
        for wanted in [2, 4, 8, 8] {
            assert_eq!(pace.next(&sizes, 100), Some(wanted));
            pace.learn(wanted - 1, wanted - 1, sizes.len());
        }
        assert_eq!(pace.next(&sizes, 5), Some(4), "no more than there is room for");
        assert_eq!(pace.next(&sizes, 1), None);
        pace.learn(7, 4, sizes.len());
        assert_eq!(pace.next(&sizes, 100), Some(8), "more than half is good enough");
        for wanted in [4, 2] {
            pace.learn(7, 1, sizes.len());
            assert_eq!(pace.next(&sizes, 100), Some(wanted));
        }
        for rest in [1, 2, 4, 8, 16, 32, 32] {
            pace.learn(1, 0, sizes.len());
            for _ in 0..rest {
                assert_eq!(pace.next(&sizes, 100), None);
            }
            assert_eq!(pace.next(&sizes, 100), Some(2));
        }
        pace.learn(1, 1, sizes.len());
        pace.learn(3, 0, sizes.len());
        pace.learn(1, 0, sizes.len());
        assert_eq!((pace.next(&sizes, 100), pace.next(&sizes, 100)), (None, Some(2)), "it begins anew");
    }
}
