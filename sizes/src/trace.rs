//! Traces: where the expressions of sizes and the guards of a run are noted.

use std::{marker::PhantomData, sync::Arc};

use parking_lot::Mutex;

use crate::{
    arena::Arena,
    atom::Atom,
    current,
    poly::{AtomId, Poly},
    region::{Guard, Region},
    size::Size,
};

/// The symbols, expressions and guards of one run. A handle: clones are the same trace. Any thread may enter it; one at a time
/// computes with it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    arena: Arc<Mutex<Arena>>,
}

/// While it lives, sizes of a trace can be computed with on this thread.
#[derive(Debug)]
pub struct Entered {
    /// Leaving happens on the thread that entered.
    _thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        current::leave();
    }
}

impl Trace {
    /// Without symbols.
    pub fn new() -> Trace {
        Trace::default()
    }

    /// Makes it the one that sizes of this thread belong to, until what comes back is dropped.
    pub fn enter(&self) -> Entered {
        current::enter(self.arena.clone());
        Entered { _thread: PhantomData }
    }

    /// A new symbol, `value` in the example, that is from `least` to `most` wherever the trace's results are used: whoever uses
    /// them checks that, as it does the guards.
    pub fn symbol(&self, name: &str, value: u64, least: u64, most: u64) -> Size {
        let mut arena = self.arena.lock();
        let number = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        let poly = arena.symbol(name, number(value), number(least), number(most));
        Size::of_poly(&mut arena, poly)
    }

    /// A new symbol that data decide while the results are used: from `least` to `most`, which whoever uses them checks.
    /// Nothing is fixed to it: what asks for its number is noted ([`crate::take_pinned`]). No guard is noted of it; comparisons that
    /// cannot be answered for all of its values at once are promises ([`Trace::promises`]).
    pub fn data_symbol(&self, name: &str, value: i64, least: i64, most: i64) -> Size {
        let mut arena = self.arena.lock();
        let poly = arena.data_symbol(name, value, least, most);
        Size::of_poly(&mut arena, poly)
    }

    /// What has to hold of sizes that data decide, checked once they have.
    pub fn promises(&self) -> Vec<Guard> {
        self.arena.lock().promises.iter().map(|promise| promise.guard.clone()).collect()
    }

    /// How many promises there are.
    pub fn count_promises(&self) -> usize {
        self.arena.lock().promises.len()
    }

    /// Forgets the promises from a number on: of what is not used any more.
    pub fn forget_promises(&self, count: usize) {
        self.arena.lock().promises.truncate(count);
    }

    /// Numbers of the symbols that a polynomial is computed of, in order.
    pub fn symbols_of(&self, poly: &Poly) -> Vec<u32> {
        self.arena.lock().symbols_of(poly)
    }

    /// Names of the symbols, in the order in which they came about.
    pub fn symbols(&self) -> Vec<String> {
        self.arena.lock().symbols.clone()
    }

    /// How many symbols there are so far.
    pub fn symbol_count(&self) -> usize {
        self.arena.lock().symbols.len()
    }

    /// The guards so far.
    pub fn guards(&self) -> Vec<Guard> {
        self.arena.lock().guards.clone()
    }

    /// A condition for messages.
    pub fn text(&self, guard: &Guard) -> String {
        let arena = self.arena.lock();
        guard.text(&arena.symbols, &|id| arena.atoms().nth(id.0 as usize))
    }

    /// How a size is computed.
    pub fn poly(&self, size: Size) -> Poly {
        size.poly(&self.arena.lock())
    }

    /// What an atom is.
    pub fn atom(&self, id: AtomId) -> Atom {
        self.arena.lock().atom(id).clone()
    }

    /// All atoms, each behind those that it is made of.
    pub fn atoms(&self) -> Vec<Atom> {
        self.arena.lock().atoms().cloned().collect()
    }

    /// Names other values of the symbols: the results have to hold for the first, and should for the others. A guard that the first do
    /// not keep is told by [`crate::noted_at`]; of what is done aside, [`crate::Aside::lost`] tells it.
    pub fn hold(&self, others: &[Vec<u64>]) {
        let number = |size: &u64| i64::try_from(*size).unwrap_or(i64::MAX);
        self.arena.lock().hold(others.iter().map(|values| values.iter().map(number).collect()).collect());
    }

    /// The sizes that the results are for, as data that needs no trace.
    pub fn region(&self) -> Region {
        self.arena.lock().region()
    }
}
