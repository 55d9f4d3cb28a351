//! What a change of the order of images is: which nodes it knows, and what becomes of them.

use super::{order::Order, state::Images};
use crate::graph::{Graph, Node, TensorId};

/// A change of the order.
pub(in crate::passes) trait Change {
    /// The name of its pass.
    const NAME: &'static str;
    /// The order that images get.
    const ORDER: Order;

    /// The images that a node reads and writes which only this change knows; `None` for others.
    fn members(graph: &Graph, node: &Node) -> Option<Members>;

    /// What a copy of an image to the other order costs.
    fn cost(graph: &Graph, id: TensorId) -> u64;

    /// Whether what the operations of a group gain is worth what the copies around it cost.
    fn is_worth(gains: u64, costs: u64) -> bool;

    /// What such a node becomes: its nodes are pushed. Nothing where it cannot be changed after all.
    fn changed(images: &mut Images<'_>, node: &Node) -> Option<()>;
}

/// The images of a node that change their order together.
#[derive(Clone, Debug, Default)]
pub(in crate::passes) struct Members {
    /// Those that it reads.
    pub read: Vec<TensorId>,
    /// Those that it writes.
    pub written: Vec<TensorId>,
    /// What it gains by the new order, as [`Change::cost`] counts copies. Where it is nothing, the node changes only beside others that
    /// make its images, or read them.
    pub gains: u64,
}
