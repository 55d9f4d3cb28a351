//! Images whose channels lie last get them first, since that is what the fast convolutions want: TOSA's graphs have them last.
//! The order is changed where images come from and where they go, and not around each operation: what is computed element by
//! element or looked up in lists, borders and concatenations of channels keep it.

mod groups;

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_ops::{
    Operation, concat::Concat, conv2d::Conv2d, conv2d_int8::Conv2dInt8, copy::StridedCopy,
    elementwise::Elementwise, pad::Pad, pool2d::Pool2d, window::Layout,
};
use halite_sizes::Size;

use self::groups::{FIRST, Read};
use super::{Result, Uses};
use crate::{
    SourceLocation,
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId, each_region},
};

/// The way back from [`FIRST`].
const LAST: [usize; 4] = [0, 2, 3, 1];
/// Rows, columns, channels, filters to filters, channels, rows, columns.
const FILTERS: [usize; 4] = [3, 2, 0, 1];

/// Gives images their channels first where that saves more than it costs.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let chosen = groups::worth(graph, region, uses);
    if chosen.is_empty() {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let nodes = std::mem::take(&mut region.nodes);
    let mut state = State { graph, first: HashMap::new(), missing: HashSet::new(), nodes: Vec::new() };
    for (place, node) in nodes.into_iter().enumerate() {
        watch.check()?;
        state.node(node, chosen.contains(&place));
    }
    for id in &region.results {
        state.last(*id, &SourceLocation::new("channels-first"));
    }
    region.nodes = state.nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

struct State<'a> {
    graph: &'a mut Graph,
    /// The same images with the channels first, by those with the channels last.
    first: HashMap<TensorId, TensorId>,
    /// Images that are there with the channels first only, so far.
    missing: HashSet<TensorId>,
    /// What has come about so far.
    nodes: Vec<Node>,
}

impl State<'_> {
    fn node(&mut self, node: Node, is_chosen: bool) {
        let made = match &node.op {
            NodeOp::Operation(operation) if is_chosen => self.changed(operation, &node),
            _ => None,
        };
        if let Some((operation, inputs)) = made {
            let outputs: Vec<TensorId> = node.outputs.iter().map(|id| self.like(*id)).collect();
            for (last, first) in node.outputs.iter().zip(&outputs) {
                self.first.insert(*last, *first);
                self.missing.insert(*last);
            }
            self.nodes.push(Node {
                op: NodeOp::Operation(operation),
                inputs,
                outputs,
                location: node.location,
            });
            return;
        }
        let mut read = node.inputs.clone();
        let inner: &[Region] = match &node.op {
            NodeOp::If(branches) => branches.as_slice(),
            NodeOp::Loop(body) => std::slice::from_ref(body),
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => &[],
        };
        for region in inner {
            each_region(region, &mut |region| {
                region.nodes.iter().for_each(|node| read.extend(&node.inputs));
                read.extend(&region.results);
            });
        }
        for id in read {
            self.last(id, &node.location);
        }
        self.nodes.push(node);
    }

    /// The operation on images with the channels first, and what it reads.
    fn changed(&mut self, operation: &Operation, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let here = &node.location;
        match operation {
            Operation::Conv2d(op) => {
                let (input, filter) = (op.input, op.filter);
                let changed = Conv2d {
                    input: FIRST.map(|d| input[d]),
                    filter: FILTERS.map(|d| filter[d]),
                    layout: Layout::Nchw,
                    ..op.clone()
                };
                let mut inputs = self.image_and_filters(node);
                if op.residual {
                    let residual = inputs.pop()?;
                    inputs.push(self.first(residual, here));
                }
                Some((Operation::Conv2d(changed), inputs))
            }
            Operation::Conv2dInt8(op) => {
                let (input, filter) = (op.input, op.filter);
                let changed = Conv2dInt8 {
                    input: FIRST.map(|d| input[d]),
                    filter: FILTERS.map(|d| filter[d]),
                    layout: Layout::Nchw,
                    ..op.clone()
                };
                Some((Operation::Conv2dInt8(changed), self.image_and_filters(node)))
            }
            Operation::Pool2d(op) => {
                let input = FIRST.map(|d| op.input[d]);
                let changed = Pool2d { input, layout: Layout::Nchw, ..op.clone() };
                Some((Operation::Pool2d(changed), vec![self.first(node.inputs[0], here)]))
            }
            Operation::Elementwise(op) => self.elementwise(op, node),
            Operation::Gather(op) => {
                let [list, places] = *node.inputs else { return None };
                self.last(list, here);
                Some((Operation::Gather(op.clone()), vec![list, self.first(places, here)]))
            }
            Operation::Concat(op) => self.concat(op, node),
            Operation::Pad(op) => Some(self.pad(op, node)),
            _ => None,
        }
    }

    fn image_and_filters(&mut self, node: &Node) -> Vec<TensorId> {
        let mut inputs = node.inputs.clone();
        inputs[0] = self.first(inputs[0], &node.location);
        // Filters may be computed like images.
        self.last(inputs[1], &node.location);
        inputs[1] = self.turned(inputs[1], FILTERS, &node.location);
        inputs
    }

    fn elementwise(&mut self, op: &Elementwise, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let dims = op.dims();
        let mut changed = op.clone();
        let mut inputs = Vec::new();
        for (id, (_, own)) in node.inputs.iter().zip(&mut changed.inputs.0) {
            inputs.push(match Read::of(own, &dims)? {
                Read::Image => {
                    *own = FIRST.map(|d| own[d]).to_vec();
                    self.first(*id, &node.location)
                }
                Read::One => {
                    self.last(*id, &node.location);
                    *id
                }
                Read::Lying(lying) => {
                    own.clone_from(&lying);
                    self.seen(*id, &lying, &node.location)
                }
            });
        }
        for table in &node.inputs[inputs.len()..] {
            self.last(*table, &node.location);
            inputs.push(*table);
        }
        Some((Operation::Elementwise(changed), inputs))
    }

    /// Channels side by side.
    fn concat(&mut self, op: &Concat, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let sizes = self.graph.tensor(node.outputs[0]).sizes();
        let [images, rows, columns, _] = <[Size; 4]>::try_from(sizes).ok()?;
        let changed = Concat { outer: images, inner: rows * columns, ..op.clone() };
        let inputs = node.inputs.iter().map(|id| self.first(*id, &node.location)).collect();
        Some((Operation::Concat(changed), inputs))
    }

    fn pad(&mut self, op: &Pad, node: &Node) -> (Operation, Vec<TensorId>) {
        let changed = Pad {
            input: FIRST.map(|d| op.input[d]).to_vec(),
            before: FIRST.map(|d| op.before[d]).to_vec(),
            after: FIRST.map(|d| op.after[d]).to_vec(),
            ..op.clone()
        };
        (Operation::Pad(changed), vec![self.first(node.inputs[0], &node.location)])
    }

    /// A new tensor for images with the channels first.
    fn like(&mut self, id: TensorId) -> TensorId {
        let tensor = self.graph.tensor(id);
        let sizes = tensor.sizes();
        let shape = Shape::new(FIRST.map(|d| sizes[d]));
        self.graph.add_tensor(Tensor::new(tensor.name.clone(), tensor.element, shape))
    }

    /// Images with the channels first.
    fn first(&mut self, id: TensorId, here: &SourceLocation) -> TensorId {
        if let Some(first) = self.first.get(&id) {
            return *first;
        }
        let first = self.turned(id, FIRST, here);
        self.first.insert(id, first);
        first
    }

    /// Makes sure that a tensor is there as it was.
    fn last(&mut self, id: TensorId, here: &SourceLocation) {
        if self.missing.remove(&id)
            && let Some(first) = self.first.get(&id).copied()
        {
            self.copy(first, id, LAST, here);
        }
    }

    /// A tensor of four dimensions in another order of them. Constants are turned here.
    fn turned(&mut self, id: TensorId, order: [usize; 4], here: &SourceLocation) -> TensorId {
        let from = self.graph.tensor(id);
        let sizes: Vec<Size> = order.iter().map(|d| from.sizes()[*d]).collect();
        let mut tensor = Tensor::new(from.name.clone(), from.element, Shape::new(sizes));
        let known = from.constant.as_ref().map(|bytes| {
            let lengths = from.dims().iter().map(|size| *size as usize).collect::<Vec<_>>();
            turned_bytes(bytes, &lengths, order)
        });
        let made_here = known.is_none();
        tensor.constant = known;
        let to = self.graph.add_tensor(tensor);
        if made_here {
            self.copy(id, to, order, here);
        }
        to
    }

    fn copy(&mut self, from: TensorId, to: TensorId, order: [usize; 4], here: &SourceLocation) {
        let tensor = self.graph.tensor(from);
        let sizes = tensor.sizes();
        // Where dimensions of one place move, nothing does.
        let long =
            |order: &[usize]| -> Vec<usize> { order.iter().copied().filter(|d| sizes[*d] != 1).collect() };
        let op = if long(&order).is_sorted() {
            NodeOp::View
        } else {
            let copy = StridedCopy::transpose(sizes, &order, tensor.element.storage());
            NodeOp::Operation(Operation::StridedCopy(copy))
        };
        self.nodes.push(Node { op, inputs: vec![from], outputs: vec![to], location: here.clone() });
    }

    /// The same bytes under other dimensions.
    fn seen(&mut self, id: TensorId, sizes: &[Size], here: &SourceLocation) -> TensorId {
        let from = self.graph.tensor(id);
        let mut tensor = Tensor::new(from.name.clone(), from.element, Shape::new(sizes.iter().copied()));
        tensor.constant.clone_from(&from.constant);
        let is_constant = tensor.constant.is_some();
        let to = self.graph.add_tensor(tensor);
        if !is_constant {
            self.last(id, here);
            let op = NodeOp::View;
            self.nodes.push(Node { op, inputs: vec![id], outputs: vec![to], location: here.clone() });
        }
        to
    }
}

/// Elements of a constant with four dimensions in another order of them.
fn turned_bytes(bytes: &Bytes, dims: &[usize], order: [usize; 4]) -> Bytes {
    let count: usize = dims.iter().product();
    let size = bytes.len().checked_div(count).unwrap_or(0);
    let mut strides = [size; 4];
    for d in (0..3).rev() {
        strides[d] = strides[d + 1] * dims[d + 1];
    }
    let [sizes, steps] = [order.map(|d| dims[d]), order.map(|d| strides[d])];
    let mut turned = Vec::with_capacity(bytes.len());
    for a in 0..sizes[0] {
        for b in 0..sizes[1] {
            for c in 0..sizes[2] {
                let line = a * steps[0] + b * steps[1] + c * steps[2];
                for d in 0..sizes[3] {
                    let at = line + d * steps[3];
                    turned.extend_from_slice(&bytes[at..at + size]);
                }
            }
        }
    }
    turned.into()
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function, pool2d::Pooling};

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, Sliding};
    use groups::has_channels_last;

    fn sliding(stride: u64) -> Sliding {
        Sliding { strides: vec![stride; 2], dilations: vec![1; 2], pads: vec![(1, 1), (0, 1)] }
    }

    fn conv(b: &mut Builder, x: TensorId, filter: [u64; 4], groups: u64, seed: u64) -> TensorId {
        let (taps, bias) = (constant(b, &filter, seed), constant(b, &[filter[3]], seed + 1));
        b.conv_nhwc(x, taps, Some(bias), &sliding(1), groups).unwrap()
    }

    #[test]
    fn images_are_turned_once_on_the_way_in_and_once_on_the_way_out() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 7, 6, 5]).unwrap();
        let first = conv(&mut b, x, [3, 2, 5, 6], 1, 1);
        let factors = constant(&mut b, &[6], 9);
        let scaled = b.binary(Function::Mul, first, factors).unwrap();
        let deep = conv(&mut b, scaled, [3, 3, 1, 6], 6, 3);
        let pooled = b.pool_nhwc(deep, Pooling::Max, [2, 3], &sliding(2)).unwrap();
        let all = b.concat(&[pooled, pooled], 3).unwrap();
        b.output("out", all);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        let copies = names.iter().filter(|name| **name == "copy").count();
        assert_eq!(copies, 2, "{names:?}");
        each_region(&graph.body, &mut |region| {
            assert!(!region.nodes.iter().any(|node| has_channels_last(&node.op)));
        });
    }

    #[test]
    fn lists_are_looked_up_in_any_order() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 7, 6, 5]).unwrap();
        let first = conv(&mut b, x, [3, 2, 5, 6], 1, 1);
        let places = b.cast(first, DType::I32).unwrap();
        let list = constant(&mut b, &[40], 7);
        let found = b.gather(list, places, 0).unwrap();
        let second = conv(&mut b, found, [3, 2, 6, 4], 1, 3);
        b.output("out", second);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert_eq!(names.iter().filter(|name| **name == "copy").count(), 2, "{names:?}");
        each_region(&graph.body, &mut |region| {
            assert!(!region.nodes.iter().any(|node| has_channels_last(&node.op)));
        });
    }

    #[test]
    fn one_operation_alone_stays() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 4, 4, 3]).unwrap();
        let y = conv(&mut b, x, [3, 2, 3, 4], 1, 1);
        b.output("out", y);
        let graph = optimized(b.finish().unwrap());
        assert!(graph.body.nodes.iter().any(|node| has_channels_last(&node.op)));
    }
}
