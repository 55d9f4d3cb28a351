//! Reductions over all places of images, whose channels may come last.

use halite_ops::{Operation, reduce::Reduce};
use halite_sizes::Size;

use super::{convolutions::like, kind::known};
use crate::{
    graph::{Graph, Node, NodeOp},
    passes::images::Images,
};

/// Sizes of the image that a reduction over all its places reads.
pub(super) fn of_image(graph: &Graph, op: &Reduce, node: &Node) -> Option<[u64; 4]> {
    let sizes = <[Size; 4]>::try_from(graph.tensor(*node.inputs.first()?).sizes()).ok()?;
    let [images, channels, rows, columns] =
        [known(sizes[0])?, known(sizes[1])?, known(sizes[2])?, known(sizes[3])?];
    let [outer, length, inner] = [known(op.outer)?, known(op.length)?, known(op.inner)?];
    let whole = outer == images * channels && length == rows * columns && inner == 1;
    whole.then_some([images, channels, rows, columns])
}

/// A reduction over all places: its results lie as before, channels of an image side by side.
pub(super) fn changed(images: &mut Images<'_>, op: &Reduce, node: &Node) -> Option<()> {
    let [count, channels, rows, columns] = of_image(images.graph, op, node)?.map(Size::from);
    let here = &node.location;
    let changed = Reduce { outer: count, length: rows * columns, inner: channels, ..op.clone() };
    let image = images.in_new_order(node.inputs[0], here);
    let made = like(images.graph, node.outputs[0], &[count, channels]);
    let operation = NodeOp::Operation(Operation::Reduce(changed));
    images.push_node(Node {
        op: operation,
        inputs: vec![image],
        outputs: vec![made],
        location: here.clone(),
    });
    images.push_node(Node {
        op: NodeOp::View,
        inputs: vec![made],
        outputs: node.outputs.clone(),
        location: here.clone(),
    });
    Some(())
}
