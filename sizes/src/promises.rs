//! Conditions on what data decide, which are looked at once they have.

use std::collections::HashSet;

use crate::region::Guard;

/// A condition on what data decide.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) guard: Guard,
    /// Whether it only keeps sizes from becoming too large to count.
    pub(crate) is_limit: bool,
}

/// Promises in the order in which they were made, each once.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    list: Vec<Promise>,
    /// Their guards: a model may make tens of thousands.
    known: HashSet<Guard>,
}

impl Promises {
    /// Adds one that was not made before.
    pub(crate) fn add(&mut self, guard: Guard, is_limit: bool) {
        if self.known.insert(guard.clone()) {
            self.list.push(Promise { guard, is_limit });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Promise> {
        self.list.iter()
    }

    /// Forgets those from a number on.
    pub(crate) fn truncate(&mut self, count: usize) {
        for promise in self.list.drain(count.min(self.list.len())..) {
            self.known.remove(&promise.guard);
        }
    }
}
