//! Copies between images with their channels first and what has its channels last, such as the tokens of a normalization of channels.
//! Where the images get their channels last, nothing is left to copy.

use std::collections::{HashMap, HashSet};

use halite_ops::{DType, Operation, copy::StridedCopy};
use halite_sizes::Size;

use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
    passes::{
        Result, Uses,
        images::{Images, Members},
        tokens::merged,
    },
};

/// What such a copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It reads an image, and writes its channels last.
    FromImage,
    /// It writes an image, whose channels lay last.
    ToImage,
}

impl Turn {
    /// The one that a copy is.
    pub(super) fn of(graph: &Graph, copy: &StridedCopy, node: &Node) -> Option<Turn> {
        let (read, written) = (*node.inputs.first()?, *node.outputs.first()?);
        if copy.dtype != DType::F16 || copy.offset != 0 {
            return None;
        }
        let lies = merged(copy);
        let is_it = |id, there: fn([Size; 3]) -> [(Size, Size); 3]| {
            image(graph, id).is_some_and(|sizes| {
                let [images, channels, places] = sizes;
                let expected = there(sizes).into_iter().filter(|(size, _)| *size != 1);
                channels != 1
                    && places != 1
                    && images * channels * places == copy.source
                    && lies.iter().copied().eq(expected)
            })
        };
        let from_image = |[images, channels, places]: [Size; 3]| {
            [(images, channels * places), (places, 1.into()), (channels, places)]
        };
        let to_image = |[images, channels, places]: [Size; 3]| {
            [(images, channels * places), (channels, 1.into()), (places, channels)]
        };
        if is_it(read, from_image) {
            return Some(Turn::FromImage);
        }
        is_it(written, to_image).then_some(Turn::ToImage)
    }

    /// The image.
    pub(super) fn image(self, node: &Node) -> Option<TensorId> {
        match self {
            Turn::FromImage => node.inputs.first().copied(),
            Turn::ToImage => node.outputs.first().copied(),
        }
    }

    /// The copy as a member, which gains what it costs.
    pub(super) fn members(self, node: &Node, cost: impl Fn(TensorId) -> u64) -> Option<Members> {
        let image = self.image(node)?;
        let (read, written) = match self {
            Turn::FromImage => (vec![image], Vec::new()),
            Turn::ToImage => (Vec::new(), vec![image]),
        };
        Some(Members { read, written, gains: cost(image) })
    }

    /// A view in its place.
    pub(super) fn changed(self, images: &mut Images<'_>, node: &Node) -> Option<()> {
        let ([read], [written], here) = (&node.inputs[..], &node.outputs[..], &node.location) else {
            return None;
        };
        let (source, made) = match self {
            Turn::FromImage => (images.in_new_order(*read, here), *written),
            Turn::ToImage => {
                images.in_old_order(*read, here);
                (*read, images.result(*written))
            }
        };
        let (inputs, outputs) = (vec![source], vec![made]);
        images.push_node(Node { op: NodeOp::View, inputs, outputs, location: here.clone() });
        Some(())
    }
}

/// Images, channels and places of a tensor with four dimensions.
fn image(graph: &Graph, id: TensorId) -> Option<[Size; 3]> {
    let [images, channels, rows, columns] = <[Size; 4]>::try_from(graph.tensor(id).sizes()).ok()?;
    Some([images, channels, rows * columns])
}

/// Copies of images, or to images, under other dimensions read and write the images themselves, so that they are known as such.
pub(super) fn name_images(graph: &Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    // What views show, and where copies are, by what they make.
    let (mut shown, mut copies) = (HashMap::new(), HashMap::new());
    let mut gone = HashSet::new();
    for place in 0..region.nodes.len() {
        watch.check()?;
        let node = &region.nodes[place];
        let ([from], [to]) = (&node.inputs[..], &node.outputs[..]) else { continue };
        match &node.op {
            NodeOp::View => {
                shown.insert(*to, *from);
                let copy: Option<usize> = copies.get(from).copied().filter(|_| uses.count(*from) == 1);
                let Some(copy) = copy else { continue };
                let made = Node { outputs: vec![*to], ..region.nodes[copy].clone() };
                if turn(graph, &region.nodes[copy]).is_none() && turn(graph, &made) == Some(Turn::ToImage) {
                    uses.remove(*from);
                    region.nodes[copy] = made;
                    gone.insert(place);
                }
            }
            NodeOp::Operation(Operation::StridedCopy(_)) => {
                copies.insert(*to, place);
                let Some(from) = shown.get(from).copied() else { continue };
                let made = Node { inputs: vec![from], ..node.clone() };
                if turn(graph, node).is_none() && turn(graph, &made) == Some(Turn::FromImage) {
                    uses.replace(node, &made);
                    region.nodes[place] = made;
                }
            }
            _ => {}
        }
    }
    let mut place = 0..;
    region.nodes.retain(|_| place.next().is_none_or(|place| !gone.contains(&place)));
    Ok(())
}

fn turn(graph: &Graph, node: &Node) -> Option<Turn> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    Turn::of(graph, copy, node)
}

#[cfg(test)]
mod tests {
    use halite_ops::{expression::Function, window::Layout};

    use super::*;
    use crate::{
        build::{Builder, Sliding},
        passes::tests::{constant, kernels, optimized},
    };

    /// A weight of 16 bits.
    fn weights(b: &mut Builder, dims: &[u64], seed: u64) -> TensorId {
        let made = constant(b, dims, seed);
        b.cast(made, DType::F16).unwrap()
    }

    /// What is left of blocks as ConvNeXt has them: a convolution of single channels, and two products of places with their channels
    /// last, the second times a factor for each channel, beside the block's image. Some exporters put the places into one dimension.
    fn blocks(are_flat: bool) -> Vec<Operation> {
        let (images, channels, side) = (4, 16, 9);
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[images, side, side, channels]).unwrap();
        let mut y = b.transpose(x, &[0, 3, 1, 2]).unwrap();
        for seed in 0..2 {
            let taps = weights(&mut b, &[channels, 1, 7, 7], seed);
            let sliding = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(3, 3); 2] };
            let mut z = b.conv(y, taps, None, &sliding, channels).unwrap();
            z = match are_flat {
                true => {
                    let flat = b.reshape(z, &[images, channels, side * side]).unwrap();
                    b.transpose(flat, &[0, 2, 1]).unwrap()
                }
                false => b.transpose(z, &[0, 2, 3, 1]).unwrap(),
            };
            for (from, to) in [(channels, 32), (32, channels)] {
                let matrix = weights(&mut b, &[from, to], seed + to);
                z = b.matmul(z, matrix).unwrap();
            }
            z = match are_flat {
                true => {
                    let turned = b.transpose(z, &[0, 2, 1]).unwrap();
                    b.reshape(turned, &[images, channels, side, side]).unwrap()
                }
                false => b.transpose(z, &[0, 3, 1, 2]).unwrap(),
            };
            let factors = weights(&mut b, &[channels, 1, 1], seed + 3);
            z = b.binary(Function::Mul, z, factors).unwrap();
            y = b.binary(Function::Add, z, y).unwrap();
        }
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = true;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    #[test]
    fn copies_between_images_and_what_has_channels_last_go() {
        for are_flat in [false, true] {
            let all = blocks(are_flat);
            let count = |name: &str| all.iter().filter(|operation| operation.name() == name).count();
            // The result has its channels first.
            assert_eq!([count("copy"), count("conv2d"), count("matmul")], [1, 2, 4], "{all:?}");
            let first = |op: &&Operation| matches!(op, Operation::Conv2d(op) if op.layout == Layout::Nchw);
            assert_eq!(all.iter().find(first), None);
            let added = all.iter().filter(|op| matches!(op, Operation::MatMul(op) if op.residual)).count();
            assert_eq!(added, 2, "{all:?}");
        }
    }
}
