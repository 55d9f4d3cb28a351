//! What a thread computes with: the arenas of the traces that it has entered.

use std::{cell::RefCell, sync::Arc};

use parking_lot::Mutex;

use crate::arena::Arena;

type Shared = Arc<Mutex<Arena>>;

thread_local! {
    /// The innermost last.
    static OPEN: RefCell<Vec<Shared>> = const { RefCell::new(Vec::new()) };
}

/// Makes an arena the one that this thread works with.
pub(crate) fn enter(arena: Shared) {
    OPEN.with(|open| open.borrow_mut().push(arena));
}

/// Goes back to the one before.
pub(crate) fn leave() {
    OPEN.with(|open| open.borrow_mut().pop());
}

/// Works with the arena of the trace that is entered.
pub(crate) fn with<T>(work: impl FnOnce(&mut Arena) -> T) -> T {
    let arena = OPEN.with(|open| open.borrow().last().cloned());
    let arena = arena.expect("open sizes are used where their trace is entered");
    let mut arena = arena.lock();
    work(&mut arena)
}
