//! Work whose guards count only if its result is used.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{arena::Arena, current, region::Guard, undo::Undo};

/// The guards of work that was done aside.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    guards: Vec<Guard>,
    lost: usize,
}

impl Aside {
    /// How much is lost of what [`crate::Trace::hold`] names, if the guards are kept: 0 if the result holds for all of that.
    pub fn lost(&self) -> usize {
        self.lost
    }

    /// Whether the result holds for all sizes for which what came before does.
    pub fn is_free(&self) -> bool {
        self.guards.is_empty()
    }

    /// Notes the guards: the result is used.
    pub fn keep(&self) {
        if self.guards.is_empty() {
            return;
        }
        current::with(|arena| {
            for guard in &self.guards {
                arena.decide(&guard.poly, guard.rule);
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
}

impl Taking {
    fn end(&mut self) -> Aside {
        let mut arena = self.arena.lock();
        let notes = std::mem::replace(&mut arena.undo, self.before.take()).unwrap_or_default();
        let guards = arena.guards.get(self.guards..).unwrap_or_default().to_vec();
        arena.take_back(notes, self.guards);
        let lost = arena.count_lost(&guards);
        Aside { guards, lost }
    }
}

/// Does work and takes back the guards that it noted: of several results one may be chosen, and only its guards be kept.
pub fn aside<T>(work: impl FnOnce() -> T) -> (T, Aside) {
    let Some(arena) = current::entered() else { return (work(), Aside::default()) };
    let mut taking = {
        let mut open = arena.lock();
        Taking { before: open.undo.replace(Vec::new()), guards: open.guards.len(), arena: arena.clone() }
    };
    let made = work();
    (made, taking.end())
}
