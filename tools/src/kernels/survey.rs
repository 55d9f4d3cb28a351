//! What is asked of the kernel library: the targets, and the variants of an operation on each.

use halite_ops::Operation;
use halite_shaders::{Candidate, Tuning, Verdict, rank};

use crate::place::RunTarget;

/// The variants of an operation on a target, in the order of choice.
#[derive(Debug)]
pub(super) struct Ranking<'a> {
    /// The target.
    pub place: &'a RunTarget,
    /// Those for the operation's types, or all.
    pub candidates: Vec<Candidate>,
}

impl<'a> Ranking<'a> {
    /// Asks the library. Variants for other types are left out unless `all` are wanted.
    pub fn new(operation: &Operation, place: &'a RunTarget, tuning: &Tuning, all: bool) -> Self {
        let signature = operation.signature();
        let mut candidates = rank(operation, &place.capabilities, tuning);
        candidates.retain(|c| all || c.variant.signatures.contains(&signature));
        Ranking { place, candidates }
    }

    /// The one that would run, and why it.
    pub fn choice(&self) -> Option<(&Candidate, &str)> {
        let first = self.candidates.first()?;
        match &first.verdict {
            Verdict::Runs { why, .. } => Some((first, why)),
            Verdict::RuledOut(_) => None,
        }
    }
}
