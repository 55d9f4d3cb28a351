//! The accounting of memory that modules allocate at run time.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use halite_abi::{Result, bail};
use parking_lot::Mutex;

use crate::{Object, Ref, cycles};

/// A byte budget, shared by the objects that were allocated from it.
#[derive(Debug)]
pub(crate) struct Memory {
    used: AtomicU64,
    limit: u64,
    /// Lists that modules made: the only objects that can hold each other in a circle.
    lists: Mutex<Vec<Weak<dyn Object>>>,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Arc<Memory> {
        Arc::new(Memory { used: AtomicU64::new(0), limit, lists: Mutex::default() })
    }

    /// Remembers a new list for [`Memory::free_cycles`].
    pub(crate) fn note_list(&self, list: &Ref) {
        let Some(list) = list.object() else { return };
        let mut lists = self.lists.lock();
        if lists.len() == lists.capacity() {
            lists.retain(|list| list.strong_count() > 0);
            // Room for as many again: the next look at all of them is as far away as there are lists.
            let more = lists.len().max(16);
            lists.reserve(more);
        }
        lists.push(Arc::downgrade(list));
    }

    /// Empties the lists that nothing but themselves holds. Lists that a caller got as a result stay as they are.
    pub(crate) fn free_cycles(&self) {
        let lists = std::mem::take(&mut *self.lists.lock());
        cycles::free(lists.iter().filter_map(Weak::upgrade).map(Ref::from_arc).collect());
    }

    #[cfg(test)]
    pub(crate) fn noted(&self) -> usize {
        self.lists.lock().len()
    }

    /// Takes bytes out of the budget until the reservation is dropped. RESOURCE_EXHAUSTED when it is spent.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64, what: &str) -> Result<Reservation> {
        let mut reservation = Reservation { memory: Some(self.clone()), bytes: 0 };
        reservation.resize(bytes, what)?;
        Ok(reservation)
    }
}

/// Bytes taken out of a budget; none for objects that the host made.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    memory: Option<Arc<Memory>>,
    bytes: u64,
}

impl Reservation {
    /// Changes its size.
    pub(crate) fn resize(&mut self, bytes: u64, what: &str) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        if let Some(more) = bytes.checked_sub(self.bytes) {
            let grown = memory.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|sum| *sum <= memory.limit)
            });
            if let Err(used) = grown {
                bail!(
                    ResourceExhausted,
                    "{what} needs {more} more bytes, but {used} of the {} bytes that modules of this context may \
                     allocate are in use",
                    memory.limit
                );
            }
        } else {
            memory.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_given_back() {
        let memory = Memory::new(100);
        let mut a = memory.reserve(60, "a").unwrap();
        assert!(memory.reserve(41, "b").is_err());
        assert!(a.resize(u64::MAX, "a").is_err());
        a.resize(10, "a").unwrap();
        let b = memory.reserve(90, "b").unwrap();
        drop((a, b));
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
