//! How often tensors are read.

use std::cell::Cell;

use crate::graph::{ById, Node, Region, TensorId, each_region};

/// Most elements that a pass computes of constants, in all regions together: two tenths of a second.
const MOST_COMPUTED: u64 = 1 << 21;

/// How often each tensor is read, by nodes of any region and as a result of one; and what a pass may still compute of constants.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    counts: ById<TensorId, usize>,
    computed: Cell<u64>,
}

impl Uses {
    /// The uses in a region and those inside of it.
    pub fn of(body: &Region) -> Self {
        let mut uses = Uses::default();
        each_region(body, &mut |region| {
            region.results.iter().for_each(|id| uses.add(*id));
            region.nodes.iter().for_each(|node| node.inputs.iter().for_each(|id| uses.add(*id)));
        });
        uses
    }

    /// How often a tensor is read.
    pub fn count(&self, id: TensorId) -> usize {
        self.counts.get(&id).copied().unwrap_or(0)
    }

    /// One more use.
    pub fn add(&mut self, id: TensorId) {
        *self.counts.entry(id).or_default() += 1;
    }

    /// One use less.
    pub fn remove(&mut self, id: TensorId) {
        if let Some(count) = self.counts.get_mut(&id) {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether the pass may compute so many more elements of constants. They count as computed then.
    pub fn may_compute(&self, elements: u64) -> bool {
        let all = self.computed.get().saturating_add(elements);
        let may = all <= MOST_COMPUTED;
        if may {
            self.computed.set(all);
        }
        may
    }

    /// A node takes the place of another one.
    pub fn replace(&mut self, old: &Node, new: &Node) {
        new.inputs.iter().for_each(|id| self.add(*id));
        old.inputs.iter().for_each(|id| self.remove(*id));
    }
}

impl Uses {
    /// The uses in a region that is put in.
    pub fn extend(&mut self, more: &Uses) {
        for (id, count) in &more.counts {
            *self.counts.entry(*id).or_default() += count;
        }
    }

    /// The uses in a region that is left out.
    pub fn subtract(&mut self, gone: &Uses) {
        for (id, count) in &gone.counts {
            if let Some(own) = self.counts.get_mut(id) {
                *own = own.saturating_sub(*count);
            }
        }
    }
}
