//! Copies between images with their channels first and what has its channels last, such as the tokens of a normalization of channels.
//! Where the images get their channels last, nothing is left to copy.

use std::collections::{HashMap, HashSet};

use halite_ops::{DType, Operation, copy::StridedCopy};
use halite_sizes::Size;

use super::blocks::Blocks;
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
    let mut names =
        Names { graph, uses, shown: HashMap::new(), copies: HashMap::new(), gone: HashSet::new() };
    for place in 0..region.nodes.len() {
        watch.check()?;
        names.see(&mut region.nodes, place);
    }
    let (gone, mut place) = (names.gone, 0..);
    region.nodes.retain(|_| place.next().is_none_or(|place| !gone.contains(&place)));
    Ok(())
}

/// What is known of the nodes so far.
struct Names<'a> {
    graph: &'a Graph,
    uses: &'a mut Uses,
    /// What views show, and where they are, by what they make.
    shown: HashMap<TensorId, (TensorId, usize)>,
    /// Where copies are, by what they make.
    copies: HashMap<TensorId, usize>,
    /// Places of views that are not needed any more.
    gone: HashSet<usize>,
}

impl Names<'_> {
    fn see(&mut self, nodes: &mut [Node], place: usize) {
        let node = &nodes[place];
        let ([from], [to]) = (&node.inputs[..], &node.outputs[..]) else { return };
        let (from, to) = (*from, *to);
        match &node.op {
            NodeOp::View => {
                self.shown.insert(to, (from, place));
                let copy = self.copies.get(&from).copied().filter(|_| self.uses.count(from) == 1);
                let made = copy.and_then(|copy| Some((copy, self.to_image(&nodes[copy], to)?)));
                if let Some((copy, made)) = made {
                    self.replace(&mut nodes[copy], made);
                    self.uses.remove(from);
                    self.gone.insert(place);
                }
            }
            NodeOp::Operation(Operation::StridedCopy(_)) => {
                self.copies.insert(to, place);
                let made = Node { inputs: vec![self.of_view(from)], ..node.clone() };
                let is_turn = turn(self.graph, &made) == Some(Turn::FromImage);
                if is_turn && turn(self.graph, node).is_none() {
                    self.replace(&mut nodes[place], made);
                }
            }
            _ => {}
        }
    }

    /// A copy that writes an image as which its result is seen.
    fn to_image(&self, copy: &Node, image: TensorId) -> Option<Node> {
        let made = Node { outputs: vec![image], ..copy.clone() };
        if turn(self.graph, copy).is_none() && turn(self.graph, &made) == Some(Turn::ToImage) {
            return Some(made);
        }
        let inputs = made.inputs.iter().map(|id| self.of_view(*id)).collect();
        let made = Node { inputs, ..made };
        is_of_blocks(self.graph, &made).then_some(made)
    }

    /// What a view shows, or the tensor itself.
    fn of_view(&self, id: TensorId) -> TensorId {
        self.shown.get(&id).map_or(id, |(shown, _)| *shown)
    }

    /// A node takes the place of another. Views that nothing reads any more go, so that they do not count as readers of their image.
    fn replace(&mut self, node: &mut Node, made: Node) {
        self.uses.replace(node, &made);
        let old = std::mem::replace(node, made);
        for id in old.inputs {
            if self.uses.count(id) == 0
                && let Some((shown, place)) = self.shown.get(&id).copied()
                && self.gone.insert(place)
            {
                self.uses.remove(shown);
            }
        }
    }
}

fn turn(graph: &Graph, node: &Node) -> Option<Turn> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    Turn::of(graph, copy, node)
}

/// Whether a node copies between channels of an image and blocks of places of another.
fn is_of_blocks(graph: &Graph, node: &Node) -> bool {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return false };
    Blocks::of(graph, copy, node).is_some()
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
