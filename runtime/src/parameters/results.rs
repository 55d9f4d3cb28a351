//! What programs of one model computed of parameters when they were loaded: each result is in the device's memory once, as long as any
//! of them uses it.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use halite_hal::{Buffer, BufferSpan, Fence};
use parking_lot::Mutex;

/// Most results whose sources are compared for one that is asked for, so that files cannot make loading slow.
const MOST_COMPARED: usize = 64;

/// What results are computed of: how, and of which bytes.
#[derive(Debug)]
pub(super) struct Recipe {
    /// The same bytes for the same computation.
    pub how: Bytes,
    /// What it reads, in its order.
    pub sources: Vec<Bytes>,
}

impl Recipe {
    /// Whether all sources lie at the same places in memory.
    fn is_at(&self, other: &Recipe) -> bool {
        let at = |one: &Bytes, other: &Bytes| one.as_ptr() == other.as_ptr() && one.len() == other.len();
        self.sources.len() == other.sources.len()
            && self.sources.iter().zip(&other.sources).all(|(one, other)| at(one, other))
    }
}

/// Results that were computed.
#[derive(Debug)]
struct Computed {
    of: Recipe,
    buffers: Vec<Weak<dyn Buffer>>,
    /// When the results are in them.
    filled: Fence,
}

impl Computed {
    /// The buffers, if they are there. What is not computed yet, or failed, is computed once more: nobody waits for another's fault.
    fn buffers(&self) -> Option<Vec<Arc<dyn Buffer>>> {
        let buffers: Option<Vec<_>> = self.buffers.iter().map(Weak::upgrade).collect();
        buffers.filter(|_| self.filled.query().unwrap_or(false))
    }
}

/// The results that programs on one device have, and that they do not write to.
#[derive(Debug, Default)]
pub(super) struct SharedResults {
    /// By how they are computed.
    computed: Mutex<HashMap<Bytes, Vec<Computed>>>,
}

impl SharedResults {
    /// The buffers that another has of the same results.
    pub(super) fn find(&self, recipe: &Recipe) -> Option<Vec<Arc<dyn Buffer>>> {
        let computed = self.computed.lock();
        let computed = computed.get(&recipe.how)?;
        let at = computed.iter().filter(|one| one.of.is_at(recipe)).find_map(Computed::buffers);
        at.or_else(|| {
            let alike = computed.iter().take(MOST_COMPARED);
            alike.filter(|one| one.of.sources == recipe.sources).find_map(Computed::buffers)
        })
    }

    /// Notes results, which are there when `filled` is reached. Parts of buffers are not shared.
    pub(super) fn keep(&self, recipe: Recipe, results: &[BufferSpan], filled: &Fence) {
        if results.iter().any(|span| span.offset != 0 || span.length != span.buffer.byte_length()) {
            return;
        }
        let buffers = results.iter().map(|span| Arc::downgrade(&span.buffer)).collect();
        let mut all = self.computed.lock();
        let computed = all.entry(recipe.how.clone()).or_default();
        computed.retain(|one| one.buffers.iter().all(|buffer| buffer.strong_count() > 0));
        computed.push(Computed { of: recipe, buffers, filled: filled.clone() });
    }
}
