//! Who takes a step of several sequences, and what becomes of it.

use std::ops::Range;

use halite_text::Sampler;

use super::{Sequence, Stop};
use crate::{Result, RunOptions};

/// What a sequence writes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// This token, which the sequence has now.
    Token(u32),
    /// Nothing: the sequence is as it was.
    Stop(Stop),
}

/// A token on its way into a sequence.
pub(super) struct Added<'a> {
    pub sequence: &'a mut Sequence,
    pub token: u32,
    /// Whether somebody looks at the logits behind it, and not at the most likely token alone.
    pub reads: bool,
    /// What chooses the token behind it, where that is the next thing to be done.
    pub sampler: Option<&'a Sampler>,
}

/// A sequence that takes a step.
pub(super) struct Member<'a> {
    pub sequence: &'a mut Sequence,
    pub sampler: &'a mut Sampler,
    pub next: Option<Next>,
    /// Whether the step is taken, and not only its token chosen.
    pub is_done: bool,
}

impl Added<'_> {
    /// Its row in calls for these seats.
    pub fn row(&self, window: &Range<usize>) -> usize {
        self.sequence.seat.as_ref().map_or(0, |seat| seat.place().1 - window.start)
    }
}

impl Member<'_> {
    /// Chooses the next token, which is added later.
    pub fn choose(&mut self, options: &RunOptions) -> Result<()> {
        let token = self.sequence.chosen(self.sampler, options)?;
        self.next = Some(self.sequence.next_is(token));
        Ok(())
    }

    /// Whether it has a token that is not added yet.
    pub fn is_to_add(&self) -> bool {
        !self.is_done && matches!(self.next, Some(Next::Token(_)))
    }
}
