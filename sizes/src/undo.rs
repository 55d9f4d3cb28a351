//! How to take back what was learned of guards that do not count.

use crate::{
    poly::{AtomId, Poly, Term},
    range::Range,
};

/// How to take back what was learned of a guard.
#[derive(Debug)]
pub(crate) enum Undo {
    /// What was known of terms.
    Bound(Vec<Term>, Option<Range>),
    /// What was known of an atom.
    Range(AtomId, Range),
    /// A polynomial was not known not to be 0.
    NotZero(Poly),
}
