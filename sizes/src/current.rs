//! What a thread computes with: the arenas of the traces that it has entered.

use std::{cell::RefCell, sync::Arc};

use parking_lot::Mutex;

use crate::{Region, arena::Arena};

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

/// The arena of the trace that is entered.
pub(crate) fn entered() -> Option<Shared> {
    OPEN.with(|open| open.borrow().last().cloned())
}

/// Works with the arena of the trace that is entered.
pub(crate) fn with<T>(work: impl FnOnce(&mut Arena) -> T) -> T {
    let arena = entered();
    let arena = arena.expect("open sizes are used where their trace is entered");
    let mut arena = arena.lock();
    work(&mut arena)
}

/// Does work, and tells whether what came of it is right whatever data decide: nothing was fixed to that, and nothing was promised
/// but that sizes stay small enough to count. Else what was noted is forgotten.
pub fn for_all_data<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let arena = entered();
    let Some(arena) = arena else { return (work(), true) };
    let (before, pinned) = {
        let mut arena = arena.lock();
        (arena.promises.len(), arena.pinned.take())
    };
    let made = work();
    let mut arena = arena.lock();
    let is_general =
        arena.pinned.is_none() && arena.promises.iter().skip(before).all(|promise| promise.is_limit);
    if !is_general {
        arena.promises.truncate(before);
    }
    arena.pinned = pinned;
    (made, is_general)
}

/// Does work that fixes no size that callers decide, and tells whether it would have: then what came of it is for the example alone,
/// and nobody may use it.
pub fn without_fixing<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let arena = entered();
    let Some(arena) = arena else { return (work(), false) };
    let before = {
        let mut arena = arena.lock();
        (std::mem::replace(&mut arena.stays_open, true), std::mem::take(&mut arena.would_fix))
    };
    let made = work();
    let mut arena = arena.lock();
    let fixes = arena.would_fix;
    (arena.stays_open, arena.would_fix) = (before.0, before.1 || before.0 && fixes);
    (made, fixes)
}

/// Says where in a model the guards come from that were noted since this was last said; gives the first guard of the trace that is
/// entered that the sizes do not keep for which it has to hold ([`crate::Trace::hold`]), as text, and what is known of sizes by then.
pub fn noted_at(place: &dyn std::fmt::Display) -> Option<(String, Region)> {
    let arena = entered()?;
    let mut arena = arena.lock();
    let (count, said) = (arena.guards.len(), arena.places.last().map_or(0, |(count, _)| *count));
    if count > said {
        arena.places.push((count, place.to_string()));
    }
    let guard = arena.failed.as_ref()?;
    Some((guard.text(&arena.symbols, &|id| arena.atoms().nth(id.0 as usize)), arena.region()))
}

/// The name of a symbol of data, of the trace that is entered, that had to be a number since this was last asked.
pub fn take_pinned() -> Option<String> {
    let arena = entered();
    arena.and_then(|arena| arena.lock().pinned.take())
}
