//! Convolutions of single channels between transposes, and products along tokens between transposes. Networks of tokens have their
//! channels last, and turn them for such an operation alone: here it reads and writes them where they lie.

#[cfg(test)]
mod chain_tests;
mod mixing;

use std::collections::HashMap;

use halite_ops::{Operation, conv2d::Conv2d, copy::StridedCopy, window::Layout};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// The orders of dimensions that put channels first and last again, and the one that puts those of filters last.
const FIRST: [usize; 4] = [0, 3, 1, 2];
const LAST: [usize; 4] = [0, 2, 3, 1];
const FILTERS: [usize; 4] = [2, 3, 1, 0];

/// Rewrites such convolutions; transposes that nothing reads any more go with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let lines = Lines::of(region);
    let mut plan = Plan::default();
    for place in 0..region.nodes.len() {
        watch.check()?;
        let look = Look { graph, region, uses, lines: &lines, taken: &plan.new };
        if let Some(conv) = look.at(place) {
            plan.convolution(graph, &region.nodes, place, conv);
        } else if let Some(chain) = look.mixing(place).filter(|_| !plan.new.contains_key(&place)) {
            let between = look.views_of(&chain);
            plan.chain(graph, &region.nodes, chain);
            // They show what is not computed any more.
            plan.new.extend(between.into_iter().map(|view| (view, Vec::new())));
        }
    }
    if plan.new.is_empty() {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let nodes = std::mem::take(&mut region.nodes).into_iter().enumerate();
    region.nodes =
        nodes.flat_map(|(place, node)| plan.new.remove(&place).unwrap_or_else(|| vec![node])).collect();
    uses.extend(&Uses::of(region));
    Ok(())
}

/// What comes in the place of nodes.
#[derive(Default)]
struct Plan {
    new: HashMap<usize, Vec<Node>>,
}

impl Plan {
    fn convolution(&mut self, graph: &mut Graph, nodes: &[Node], place: usize, conv: Found) {
        let turned_back = conv.turned_back.clone();
        let mut new = Vec::new();
        let result = conv.write(graph, &nodes[place], &mut new);
        self.new.insert(place, new);
        turned_back.into_iter().for_each(|back| self.view(&nodes[back], back, result));
    }

    fn chain(&mut self, graph: &mut Graph, nodes: &[Node], chain: mixing::Chain) {
        let (products, back) = (chain.products.clone(), chain.turned_back);
        let (mut written, result) = chain.write(graph, nodes);
        let turned = nodes[back].outputs[0];
        if graph.tensor(turned).sizes() == graph.tensor(result).sizes() {
            // What is added behind a view is not found.
            written
                .last_mut()
                .and_then(|last| last.last_mut())
                .into_iter()
                .for_each(|node| node.outputs = vec![turned]);
            self.new.insert(back, Vec::new());
        } else {
            self.view(&nodes[back], back, result);
        }
        self.new.extend(products.into_iter().zip(written));
    }

    /// What turned a result back shows it as it is.
    fn view(&mut self, node: &Node, place: usize, result: TensorId) {
        self.new.insert(place, vec![Node { op: NodeOp::View, inputs: vec![result], ..node.clone() }]);
    }
}

/// Which nodes of a region make tensors and read them.
struct Lines {
    makers: HashMap<TensorId, usize>,
    readers: HashMap<TensorId, Vec<usize>>,
}

impl Lines {
    fn of(region: &Region) -> Lines {
        let mut lines = Lines { makers: HashMap::new(), readers: HashMap::new() };
        for (place, node) in region.nodes.iter().enumerate() {
            lines.makers.extend(node.outputs.iter().map(|id| (*id, place)));
            node.inputs.iter().for_each(|id| lines.readers.entry(*id).or_default().push(place));
        }
        lines
    }

    fn readers(&self, id: TensorId) -> &[usize] {
        self.readers.get(&id).map_or(&[], Vec::as_slice)
    }
}

/// A convolution whose image comes out of a transpose.
struct Found {
    operation: Conv2d,
    /// The image with its channels last, and what is added, likewise.
    image: TensorId,
    residual: Option<TensorId>,
    /// The nodes that turn its results back.
    turned_back: Vec<usize>,
}

/// A region that is looked at.
struct Look<'a> {
    graph: &'a Graph,
    region: &'a Region,
    uses: &'a Uses,
    lines: &'a Lines,
    /// Nodes that something comes in the place of. What turned a result back then has it turned already, and what it turned is not computed.
    taken: &'a HashMap<usize, Vec<Node>>,
}

impl Look<'_> {
    fn at(&self, place: usize) -> Option<Found> {
        let node = &self.region.nodes[place];
        let NodeOp::Operation(Operation::Conv2d(op)) = &node.op else { return None };
        let [images, channels, rows, columns] = op.input;
        let single = op.filter[1] == 1 && op.filter[0] == op.groups && channels.is(op.groups.into());
        if op.layout != Layout::Nchw || !single || !op.groups.is_multiple_of(4) {
            return None;
        }
        let [_, _, height, width] = *self.graph.tensor(node.outputs[0]).sizes() else { return None };
        let places = height * width;
        let image = self.source(node.inputs[0], [images, rows * columns, channels])?;
        let added = op.residual.then(|| node.inputs[2 + usize::from(op.bias)]);
        let residual = match added {
            Some(id) => Some(self.source(id, [images, places, channels])?),
            None => None,
        };
        let (mut turned_back, mut others) = (Vec::new(), 0);
        self.each_reader(node.outputs[0], &mut |reader| match reader {
            Some(reader) if self.swaps(reader, [images, channels, places]) => turned_back.push(reader),
            _ => others += 1,
        });
        // What turns the image is saved where nothing else reads it.
        let own = added.into_iter().filter(|id| self.behind(*id) == self.behind(node.inputs[0])).count() + 1;
        let mut reads = 0;
        self.each_reader(self.behind(node.inputs[0]), &mut |_| reads += 1);
        let saved = turned_back.len() + usize::from(reads <= own);
        let worth = !turned_back.is_empty() && saved > usize::from(others > 0);
        worth.then(|| Found { operation: op.clone(), image, residual, turned_back })
    }

    /// The tensor that a tensor shows, behind views that keep the type.
    fn behind(&self, mut id: TensorId) -> TensorId {
        while let Some(Node { op: NodeOp::View, inputs, .. }) = self.maker(id) {
            if self.graph.tensor(inputs[0]).element != self.graph.tensor(id).element {
                break;
            }
            id = inputs[0];
        }
        id
    }

    fn maker(&self, id: TensorId) -> Option<&Node> {
        self.lines.makers.get(&id).map(|place| &self.region.nodes[*place])
    }

    /// What a tensor is of which a copy swaps the two last of three dimensions, which are the source's.
    fn source(&self, id: TensorId, dims: [Size; 3]) -> Option<TensorId> {
        let place = *self.lines.makers.get(&self.behind(id))?;
        (!self.taken.contains_key(&place) && self.swaps(place, dims))
            .then(|| self.region.nodes[place].inputs[0])
    }

    /// Whether a node is such a copy.
    fn swaps(&self, place: usize, [outer, rows, columns]: [Size; 3]) -> bool {
        let NodeOp::Operation(Operation::StridedCopy(copy)) = &self.region.nodes[place].op else {
            return false;
        };
        let wanted = StridedCopy::transpose(&[outer, rows, columns], &[0, 2, 1], copy.dtype);
        copy.offset == 0 && copy.source == wanted.source && merged(copy) == merged(&wanted)
    }

    /// The views of what the products of a chain compute, which lead to the next of its nodes and nowhere else.
    fn views_of(&self, chain: &mixing::Chain) -> Vec<usize> {
        let made = chain.products.iter().flat_map(|place| &self.region.nodes[*place].outputs);
        let (mut left, mut views) = (made.copied().collect::<Vec<_>>(), Vec::new());
        while let Some(id) = left.pop() {
            for reader in self.lines.readers(id) {
                let node = &self.region.nodes[*reader];
                if matches!(node.op, NodeOp::View) {
                    left.extend(&node.outputs);
                    views.push(*reader);
                }
            }
        }
        views
    }

    /// Calls for each reader of a tensor, through views that keep the type; with nothing for one that is not a node of the region.
    fn each_reader(&self, id: TensorId, call: &mut dyn FnMut(Option<usize>)) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let readers = self.lines.readers(id);
            (readers.len()..self.uses.count(id)).for_each(|_| call(None));
            for reader in readers {
                let node = &self.region.nodes[*reader];
                let keeps = |to: &TensorId| self.graph.tensor(*to).element == self.graph.tensor(id).element;
                match &node.op {
                    NodeOp::View if node.outputs.iter().all(keeps) => left.extend(&node.outputs),
                    _ => call(Some(*reader)),
                }
            }
        }
    }
}

/// Sizes and strides of a copy, without dimensions of one place, and with neighbours that are one dimension as such.
pub(super) fn merged(copy: &StridedCopy) -> Vec<(Size, Size)> {
    let mut all: Vec<(Size, Size)> = Vec::new();
    for (size, stride) in copy.shape.iter().copied().zip(copy.strides.iter().copied()) {
        if size == 1 {
            continue;
        }
        match all.last_mut() {
            Some((outer, step)) if *step == stride * size => (*outer, *step) = (*outer * size, stride),
            _ => all.push((size, stride)),
        }
    }
    all
}

impl Found {
    /// The nodes in the place of the convolution; gives its result with the channels last.
    fn write(self, graph: &mut Graph, node: &Node, new: &mut Vec<Node>) -> TensorId {
        let Conv2d { input, filter, .. } = self.operation;
        let sizes = graph.tensor(node.outputs[0]).sizes().to_vec();
        let result = LAST.map(|d| sizes[d]);
        let operation = Conv2d {
            input: LAST.map(|d| input[d]),
            filter: FILTERS.map(|d| filter[d]),
            layout: Layout::Nhwc,
            ..self.operation
        };
        let mut builder = Builder { graph, node, new };
        let mut inputs = vec![
            builder.view(self.image, operation.input),
            builder.turned(node.inputs[1], &filter.map(Size::from), FILTERS),
        ];
        inputs.extend(node.inputs.get(2).filter(|_| operation.bias));
        inputs.extend(self.residual.map(|id| builder.view(id, result)));
        let made = builder.like(node.outputs[0], result);
        builder.push(NodeOp::Operation(Operation::Conv2d(operation)), inputs, made);
        let back = StridedCopy::transpose(&result, &FIRST, builder.graph.tensor(made).element.storage());
        builder.push(NodeOp::Operation(Operation::StridedCopy(back)), vec![made], node.outputs[0]);
        made
    }
}

struct Builder<'a> {
    graph: &'a mut Graph,
    node: &'a Node,
    new: &'a mut Vec<Node>,
}

impl Builder<'_> {
    fn push(&mut self, op: NodeOp, inputs: Vec<TensorId>, output: TensorId) {
        self.new.push(Node { op, inputs, outputs: vec![output], location: self.node.location.clone() });
    }

    /// A new tensor of the type of another.
    fn like<const N: usize>(&mut self, id: TensorId, sizes: [Size; N]) -> TensorId {
        let tensor = self.graph.tensor(id);
        let tensor = Tensor::new(tensor.name.clone(), tensor.element, Shape::new(sizes));
        self.graph.add_tensor(tensor)
    }

    fn view<const N: usize>(&mut self, id: TensorId, sizes: [Size; N]) -> TensorId {
        if self.graph.tensor(id).sizes() == sizes {
            return id;
        }
        let to = self.like(id, sizes);
        self.push(NodeOp::View, vec![id], to);
        to
    }

    fn turned(&mut self, id: TensorId, sizes: &[Size; 4], order: [usize; 4]) -> TensorId {
        let to = self.like(id, order.map(|d| sizes[d]));
        let copy = StridedCopy::transpose(sizes, &order, self.graph.tensor(id).element.storage());
        self.push(NodeOp::Operation(Operation::StridedCopy(copy)), vec![id], to);
        to
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function};

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, Sliding};

    /// Names of the operations of tokens that go through a convolution of single channels, with itself added or not, whose result
    /// is read in its own order too, or not.
    fn names(images: u64, is_added: bool, is_read: bool) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[images, 42, 8]).unwrap();
        let (taps, bias) = (constant(&mut b, &[8, 1, 3, 3], 1), constant(&mut b, &[8], 2));
        let turned = b.transpose(x, &[0, 2, 1]).unwrap();
        let image = b.reshape(turned, &[images, 8, 6, 7]).unwrap();
        let sliding = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(1, 1); 2] };
        let mut y = b.conv(image, taps, Some(bias), &sliding, 8).unwrap();
        if is_added {
            y = b.binary(Function::Add, y, image).unwrap();
        }
        let flat = b.reshape(y, &[images, 8, 42]).unwrap();
        let last = b.transpose(flat, &[0, 2, 1]).unwrap();
        b.output("last", last);
        if is_read {
            b.output("first", y);
        }
        let graph = optimized(b.finish().unwrap());
        let name = |operation: &Operation| match operation {
            Operation::Conv2d(conv) => format!("{:?} {}", conv.layout, conv.residual),
            other => other.name().to_owned(),
        };
        kernels(&graph).into_iter().map(name).collect()
    }

    #[test]
    fn tokens_are_read_and_written_where_they_lie() {
        // The copy is the one of the filters.
        for images in [1, 3] {
            assert_eq!(names(images, false, false), ["copy", "Nhwc false"]);
            assert_eq!(names(images, true, false), ["copy", "Nhwc true"]);
        }
    }

    /// Names of the operations of tokens that two linear layers mix, with the tokens added, and whether each adds a tensor.
    fn mixed(images: u64, is_flat: bool) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[images, 6, 8]).unwrap();
        let weights = [constant(&mut b, &[6, 10], 1), constant(&mut b, &[10, 6], 2)];
        let mut turned = b.transpose(x, &[0, 2, 1]).unwrap();
        if is_flat {
            turned = b.reshape(turned, &[images * 8, 6]).unwrap();
        }
        let mut wide = b.matmul(turned, weights[0]).unwrap();
        wide = b.unary(Function::Relu, wide).unwrap();
        if is_flat {
            wide = b.reshape(wide, &[8, images, 10]).unwrap();
            wide = b.reshape(wide, &[images * 8, 10]).unwrap();
        }
        let mut narrow = b.matmul(wide, weights[1]).unwrap();
        if is_flat {
            narrow = b.reshape(narrow, &[images, 8, 6]).unwrap();
        }
        let last = b.transpose(narrow, &[0, 2, 1]).unwrap();
        let y = b.binary(Function::Add, x, last).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let name = |operation: &Operation| match operation {
            Operation::Conv1d(conv) => format!("{:?} {}", conv.activation, conv.residual),
            other => other.name().to_owned(),
        };
        kernels(&graph).into_iter().map(name).collect()
    }

    #[test]
    fn tokens_are_mixed_where_they_lie() {
        for images in [1, 3] {
            for is_flat in [false, true] {
                assert_eq!(mixed(images, is_flat), ["copy", "copy", "Relu false", "None true"]);
            }
        }
    }

    #[test]
    fn results_that_are_read_in_both_orders_are_turned_once() {
        assert_eq!(names(1, false, true), ["copy", "Nhwc false", "copy"]);
    }
}
