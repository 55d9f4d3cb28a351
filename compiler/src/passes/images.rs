//! Images of which the channels come first or last instead: where that is worth the copies around a group of operations, and what the
//! operations of the group become. What is computed element by element, concatenations and slices of channels, borders and look-ups take any order.

mod change;
mod groups;
mod order;
mod padded;
mod prune;
pub(super) mod resized;
mod slice;
mod state;

pub(super) use self::{
    change::{Change, Members},
    order::{FIRST, LAST, Order},
    state::Images,
};
use super::{Result, Uses};
use crate::{
    SourceLocation,
    control::Watch,
    graph::{Graph, Region},
};

/// Changes the order of images where that saves more than it costs.
pub(super) fn run<C: Change>(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
) -> Result {
    let chosen = groups::worth::<C>(graph, region, uses);
    if chosen.is_empty() {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let nodes = std::mem::take(&mut region.nodes);
    let mut images = Images::new(graph, C::ORDER);
    for (place, node) in nodes.into_iter().enumerate() {
        watch.check()?;
        let changed =
            chosen.contains(&place).then(|| images.known(&node).or_else(|| C::changed(&mut images, &node)));
        if changed.flatten().is_none() {
            images.keep(node);
        }
    }
    for id in &region.results {
        images.in_old_order(*id, &SourceLocation::new(C::NAME));
    }
    region.nodes = images.into_nodes();
    uses.extend(&Uses::of(region));
    Ok(())
}
