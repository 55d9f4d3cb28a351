//! How often tensors are read.

use crate::graph::{ById, Node, Region, TensorId, each_region};

/// How often each tensor is read, by nodes of any region and as a result of one.
#[derive(Debug, Default)]
pub(crate) struct Uses(ById<TensorId, usize>);

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
        self.0.get(&id).copied().unwrap_or(0)
    }

    /// One more use.
    pub fn add(&mut self, id: TensorId) {
        *self.0.entry(id).or_default() += 1;
    }

    /// One use less.
    pub fn remove(&mut self, id: TensorId) {
        if let Some(count) = self.0.get_mut(&id) {
            *count = count.saturating_sub(1);
        }
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
        for (id, count) in &more.0 {
            *self.0.entry(*id).or_default() += count;
        }
    }

    /// The uses in a region that is left out.
    pub fn subtract(&mut self, gone: &Uses) {
        for (id, count) in &gone.0 {
            if let Some(own) = self.0.get_mut(id) {
                *own = own.saturating_sub(*count);
            }
        }
    }
}
