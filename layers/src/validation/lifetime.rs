//! The record of queue-ordered allocations, so that each is given back at most once.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use halite_hal::{Buffer, Result, bail};

/// Fewer entries than this are never searched for dead ones.
const FIRST_SWEEP: usize = 64;

/// Buffers from `queue_alloca` that still have handles, by address. An entry's weak handle keeps the address from
/// being given to another buffer.
#[derive(Debug, Default)]
pub(super) struct QueueAllocations {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<usize, Entry>,
    sweep_at: usize,
}

#[derive(Debug)]
struct Entry {
    buffer: Weak<dyn Buffer>,
    live: bool,
}

impl QueueAllocations {
    /// Records a buffer whose memory is to be given back later. Amortised constant time.
    pub(super) fn insert(&self, buffer: &Arc<dyn Buffer>) {
        let mut table = self.table.lock();
        if table.entries.len() >= table.sweep_at.max(FIRST_SWEEP) {
            table.entries.retain(|_, entry| entry.buffer.strong_count() > 0);
            table.sweep_at = table.entries.len() * 2;
        }
        table.entries.insert(address(buffer), Entry { buffer: Arc::downgrade(buffer), live: true });
    }

    /// Marks a buffer's memory as given back. `false` for a buffer that is not from `queue_alloca`, such as an
    /// input of a program: its memory goes back when its last handle is dropped.
    pub(super) fn give_back(&self, buffer: &Arc<dyn Buffer>) -> Result<bool> {
        match self.table.lock().entries.get_mut(&address(buffer)) {
            Some(entry) if entry.live => entry.live = false,
            Some(_) => bail!(
                FailedPrecondition,
                "the memory of this buffer of {} bytes was given back already",
                buffer.byte_length()
            ),
            None => return Ok(false),
        }
        Ok(true)
    }
}

fn address(buffer: &Arc<dyn Buffer>) -> usize {
    Arc::as_ptr(buffer).cast::<()>().addr()
}
