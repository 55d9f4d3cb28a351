//! Which members of groups are better left as they are, because of the copies around them.

use std::collections::HashMap;

use super::change::{Change, Members};
use crate::{
    graph::{Graph, Region, TensorId},
    passes::Uses,
};

/// Most rounds over all members: one that leaves may let its neighbours leave.
const ROUNDS: usize = 8;

/// Takes out members of which each gains no more than it costs that it stays, by places in the region, in order.
pub(super) fn prune<C: Change>(
    graph: &Graph,
    region: &Region,
    uses: &Uses,
    moves: &dyn Fn(TensorId) -> bool,
    members: &mut Vec<(usize, Members)>,
) {
    let mut cut =
        Cut { graph, region, uses, moves, cost: C::cost, made: HashMap::new(), reads: HashMap::new() };
    members.iter().for_each(|(place, images)| cut.add(*place, images));
    for round in 0..ROUNDS {
        let count = members.len();
        let mut order: Vec<usize> = (0..count).collect();
        if round % 2 == 0 {
            order.reverse();
        }
        let mut leaves = vec![false; count];
        for at in order {
            let (place, images) = &members[at];
            let before = cut.around(images);
            cut.remove(*place, images);
            // One that costs as much as it gains leaves, so that those behind it may.
            leaves[at] = cut.around(images).saturating_add(images.gains) <= before;
            if !leaves[at] {
                cut.add(*place, images);
            }
        }
        let mut stays = leaves.iter().map(|leaves| !leaves);
        members.retain(|_| stays.next().unwrap_or(true));
        if members.len() == count {
            return;
        }
    }
}

/// Members and what they read and write.
struct Cut<'a> {
    graph: &'a Graph,
    region: &'a Region,
    uses: &'a Uses,
    moves: &'a dyn Fn(TensorId) -> bool,
    cost: fn(&Graph, TensorId) -> u64,
    /// How many members make a tensor: one or none.
    made: HashMap<TensorId, usize>,
    /// How often members read a tensor.
    reads: HashMap<TensorId, usize>,
}

impl Cut<'_> {
    fn add(&mut self, place: usize, images: &Members) {
        images.written.iter().for_each(|id| *self.made.entry(*id).or_default() += 1);
        for id in &images.read {
            *self.reads.entry(*id).or_default() += times(self.region, place, *id);
        }
    }

    fn remove(&mut self, place: usize, images: &Members) {
        let take = |counts: &mut HashMap<TensorId, usize>, id: &TensorId, count: usize| {
            if let Some(all) = counts.get_mut(id) {
                *all = all.saturating_sub(count);
            }
        };
        images.written.iter().for_each(|id| take(&mut self.made, id, 1));
        for id in &images.read {
            take(&mut self.reads, id, times(self.region, place, *id));
        }
    }

    /// What copies of the images of a node cost.
    fn around(&self, images: &Members) -> u64 {
        let mut all: Vec<TensorId> = images.read.iter().chain(&images.written).copied().collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(|id| self.copied(id)).sum()
    }

    /// What the copy of an image costs that has to be there in both orders.
    fn copied(&self, id: TensorId) -> u64 {
        let of = |counts: &HashMap<TensorId, usize>| counts.get(&id).copied().unwrap_or(0);
        let reads = of(&self.reads);
        let is_in_both = if of(&self.made) > 0 { self.uses.count(id) > reads } else { reads > 0 };
        let is_copied = is_in_both && self.graph.tensor(id).constant.is_none() && (self.moves)(id);
        if is_copied { (self.cost)(self.graph, id) } else { 0 }
    }
}

/// How often a node reads a tensor: twice for a product that is added to what it reads.
pub(super) fn times(region: &Region, place: usize, id: TensorId) -> usize {
    region.nodes[place].inputs.iter().filter(|input| **input == id).count()
}
