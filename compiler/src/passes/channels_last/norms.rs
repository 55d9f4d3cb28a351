//! Normalizations of groups of channels, which are computed as well with the channels last.

use halite_ops::{
    Operation,
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use crate::{
    graph::{Graph, Node, TensorId},
    passes::images::Images,
};

/// Whether groups of channels of an image are normalized, which may come last.
pub(super) fn is_of_image(graph: &Graph, op: &Norm, node: &Node) -> bool {
    let of = |id: Option<&TensorId>| <[Size; 4]>::try_from(graph.tensor(*id?).sizes()).ok();
    let Some([images, channels, rows, columns]) = of(node.inputs.first()) else { return false };
    let is_plain = op.kind != NormKind::Batch && op.order.is_none() && !op.channels_last;
    let same = op.batch.is(images) && channels.is(op.channels.into()) && op.spatial.is(rows * columns);
    let is_written = of(node.outputs.first()) == Some([images, channels, rows, columns]);
    is_plain && same && is_written && op.channels != 1
}

/// The same of an image whose channels come last.
pub(super) fn changed(images: &mut Images<'_>, op: &Norm, node: &Node) -> Option<()> {
    if !is_of_image(images.graph, op, node) {
        return None;
    }
    let mut inputs = vec![images.in_new_order(node.inputs[0], &node.location)];
    for id in &node.inputs[1..] {
        images.in_old_order(*id, &node.location);
        inputs.push(*id);
    }
    images.push(Operation::Norm(Norm { channels_last: true, ..op.clone() }), inputs, node);
    Some(())
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function};

    use super::*;
    use crate::{
        build::{Builder, Normalization, Sliding},
        passes::tests::{constant, kernels, optimized},
    };

    /// What is left of convolutions with normalizations of groups and activations before them, as generators of images have them: by
    /// instance normalization under other dimensions.
    fn blocks(groups: u64, matrix_units: bool) -> Vec<Operation> {
        let (channels, side) = (16, 12);
        let mut b = Builder::new();
        let half = |b: &mut Builder, dims: &[u64], seed: u64| {
            let made = constant(b, dims, seed);
            b.cast(made, DType::F16).unwrap()
        };
        let x = b.input("x", DType::F16.into(), &[2, side, side, channels]).unwrap();
        let mut y = b.transpose(x, &[0, 3, 1, 2]).unwrap();
        for seed in 0..3 {
            let taps = half(&mut b, &[channels, channels, 3, 3], seed);
            let sliding = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(1, 1); 2] };
            y = b.conv(y, taps, None, &sliding, 1).unwrap();
            let lines = b.reshape(y, &[2, groups, channels / groups * side * side]).unwrap();
            let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon: 1e-5 };
            let lines = b.normalize(lines, None, None, norm).unwrap();
            y = b.reshape(lines, &[2, channels, side, side]).unwrap();
            let (scale, bias) =
                (half(&mut b, &[channels, 1, 1], seed), half(&mut b, &[channels, 1, 1], seed + 9));
            y = b.binary(Function::Mul, y, scale).unwrap();
            y = b.binary(Function::Add, y, bias).unwrap();
            y = b.unary(Function::Silu, y).unwrap();
        }
        let y = b.transpose(y, &[0, 2, 3, 1]).unwrap();
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = matrix_units;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    #[test]
    fn groups_of_images_stay_where_they_are_between_convolutions() {
        for groups in [1, 4, 16] {
            let all = blocks(groups, true);
            let count = |name: &str| all.iter().filter(|operation| operation.name() == name).count();
            assert_eq!([count("norm"), count("conv2d"), count("copy")], [3, 3, 0], "{all:?}");
            let is_last = |op: &Operation| matches!(op, Operation::Norm(norm) if norm.channels_last);
            assert_eq!(all.iter().filter(|op| is_last(op)).count(), 3, "{all:?}");
            let others = blocks(groups, false);
            assert!(!others.iter().any(is_last), "{others:?}");
        }
    }
}
