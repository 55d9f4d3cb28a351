//! Values as they are written: compared without a guard, and asked whether any size in them is open.

use std::{
    cell::Cell,
    hash::{Hash, Hasher},
};

thread_local! {
    /// Whether this thread compares sizes as they are written.
    static AS_WRITTEN: Cell<bool> = const { Cell::new(false) };
    /// Whether an open size was hashed since this was last set back.
    static SEEN: Cell<bool> = const { Cell::new(false) };
}

/// A value whose sizes are equal where they are the same number or the same expression. Comparing two notes nothing, so these
/// can be keys of tables; `==` of sizes that differ asks the symbols, and guards the answer.
#[derive(Clone, Debug)]
pub struct Written<T>(pub T);

impl<T: PartialEq> PartialEq for Written<T> {
    fn eq(&self, other: &Self) -> bool {
        let _before = Restored::set(&AS_WRITTEN, true);
        self.0 == other.0
    }
}

impl<T: Eq> Eq for Written<T> {}

impl<T: Hash> Hash for Written<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Whether any size in a value is open: all that its `Hash` covers.
pub fn is_open<T: Hash + ?Sized>(value: &T) -> bool {
    let _before = Restored::set(&SEEN, false);
    value.hash(&mut Nothing);
    SEEN.get()
}

/// Whether sizes are compared as they are written.
pub(crate) fn is_as_written() -> bool {
    AS_WRITTEN.get()
}

/// Notes that an open size was hashed.
pub(crate) fn saw_open() {
    SEEN.set(true);
}

/// What a flag was, and is again when this is dropped.
struct Restored {
    flag: &'static std::thread::LocalKey<Cell<bool>>,
    before: bool,
}

impl Restored {
    fn set(flag: &'static std::thread::LocalKey<Cell<bool>>, value: bool) -> Restored {
        Restored { flag, before: flag.replace(value) }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        self.flag.set(self.before);
    }
}

/// A hasher that makes nothing of what it is given.
struct Nothing;

impl Hasher for Nothing {
    fn finish(&self) -> u64 {
        0
    }

    fn write(&mut self, _bytes: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{Rule, Size, Trace};

    #[test]
    fn keys_note_no_guards() {
        let trace = Trace::new();
        let _entered = trace.enter();
        let (n, m) = (trace.symbol("n", 8, 1, 100), trace.symbol("m", 8, 1, 100));
        let (one, other) = (n + 1 + m, m + n + 1);
        // Sizes that are made may note that they stay small enough.
        let before = trace.guards();
        let mut known = HashMap::new();
        known.insert(Written(vec![n, Size::constant(3)]), 1);
        // As large for the example, and yet something else.
        assert_ne!(Written(vec![n]), Written(vec![m]));
        assert_ne!(Written(n), Written(Size::constant(8)));
        assert_eq!(Written(one), Written(other));
        assert_eq!(known.get(&Written(vec![n, Size::constant(3)])), Some(&1));
        assert_eq!(known.get(&Written(vec![m, Size::constant(3)])), None);
        assert_eq!(trace.guards(), before);
        // Behind it, comparisons are guarded again.
        assert!(n == m);
        assert!(trace.guards().iter().any(|guard| guard.rule == Rule::Zero));
    }

    #[test]
    fn open_sizes_are_seen() {
        let trace = Trace::new();
        let _entered = trace.enter();
        let n = trace.symbol("n", 8, 1, 100);
        assert!(is_open(&n));
        assert!(is_open(&(1, "a", Some(vec![Size::constant(2), n * 2]))));
        assert!(!is_open(&vec![Size::constant(8)]));
        // What stands in a text is no size.
        assert!(!is_open("8~1"));
        // What was seen before counts no more.
        assert!(!is_open(&(n - n)));
    }
}
