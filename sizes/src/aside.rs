//! Work whose guards count only if its result is used.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{arena::Arena, current, promises::Promise, region::Guard, undo::Undo};

/// The guards and promises of work that was done aside.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    guards: Vec<Guard>,
    promises: Vec<Promise>,
    lost: usize,
}

impl Aside {
    /// How much is lost if the result is used: sizes that [`crate::Trace::hold`] names, and answers that are promised of data. 0 if the
    /// result holds for all of them. That sizes are not too large to count is no such answer.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// Whether the result holds for all sizes for which what came before does.
    pub fn is_free(&self) -> bool {
        self.guards.is_empty() && self.promises.is_empty()
    }

    /// Notes the guards and promises: the result is used.
    pub fn keep(&self) {
        if self.is_free() {
            return;
        }
        current::with(|arena| {
            for guard in &self.guards {
                arena.decide(&guard.poly, guard.rule);
            }
            for Promise { guard, is_limit } in &self.promises {
                arena.promise_all(guard.poly.clone(), guard.rule, *is_limit);
            }
        });
    }
}

/// Whether something is so that makes a faster way right, where another way is always right: yes if it is so for the example and for all
/// that [`crate::Trace::hold`] names; else the other way is taken, and nothing is noted.
pub fn is_worth(is_so: impl FnOnce() -> bool) -> bool {
    let (is_so, aside) = aside(is_so);
    let is_worth = is_so && aside.lost() == 0;
    if is_worth {
        aside.keep();
    }
    is_worth
}

/// Work whose notes are taken back.
struct Taking {
    arena: Arc<Mutex<Arena>>,
    before: Option<Vec<Undo>>,
    guards: usize,
    promises: usize,
}

impl Taking {
    fn end(&mut self) -> Aside {
        let mut arena = self.arena.lock();
        let notes = std::mem::replace(&mut arena.undo, self.before.take()).unwrap_or_default();
        let guards = arena.guards.get(self.guards..).unwrap_or_default().to_vec();
        arena.take_back(notes, self.guards);
        let promises: Vec<Promise> = arena.promises.iter().skip(self.promises).cloned().collect();
        arena.promises.truncate(self.promises);
        let answers = promises.iter().filter(|promise| !promise.is_limit).count();
        let lost = arena.count_lost(&guards) + answers;
        Aside { guards, promises, lost }
    }
}

/// Does work and takes back the guards and promises that it noted: of several results one may be chosen, and only its guards be kept.
pub fn aside<T>(work: impl FnOnce() -> T) -> (T, Aside) {
    let Some(arena) = current::entered() else { return (work(), Aside::default()) };
    let mut taking = {
        let mut open = arena.lock();
        Taking {
            before: open.undo.replace(Vec::new()),
            guards: open.guards.len(),
            promises: open.promises.len(),
            arena: arena.clone(),
        }
    };
    let made = work();
    (made, taking.end())
}
