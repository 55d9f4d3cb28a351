//! Resizing of images whose channels come last: the channels are one more dimension, which stays as it is.

use halite_ops::resize::{Interpolation, Resize};
use halite_sizes::Size;

use crate::graph::{Graph, Node};

/// The same with the channels last, if the node resizes planes of images with the channels first. Cubic interpolation would read four times
/// as much.
pub(in crate::passes) fn channels_last(graph: &Graph, op: &Resize, node: &Node) -> Option<Resize> {
    let sizes = <[Size; 4]>::try_from(graph.tensor(*node.inputs.first()?).sizes()).ok()?;
    let [images, channels, rows, columns] = sizes;
    let is_planes = op.input == [rows, columns] && op.images.is(images * channels) && op.output.len() == 2;
    if !is_planes || op.interpolation == Interpolation::Cubic {
        return None;
    }
    let with = |sizes: &[Size]| [sizes, &[channels]].concat();
    let mut changed = Resize { images, input: with(&op.input), output: with(&op.output), ..op.clone() };
    if !op.step.is_empty() {
        changed.step.push(Size::constant(1));
        changed.step_of.push(Size::constant(1));
    }
    let line = *changed.lines().last()?;
    let stays = line.start == 0 && line.factor.is(line.divisor);
    stays.then_some(changed)
}
