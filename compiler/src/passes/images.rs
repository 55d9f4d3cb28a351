//! Images of which the channels come first or last instead: where that is worth the copies around a group of operations, and what the
//! operations of the group become. What is computed element by element, concatenations of channels, borders and look-ups take any order.

mod groups;

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_ops::{Operation, concat::Concat, copy::StridedCopy, elementwise::Elementwise, pad::Pad};
use halite_sizes::Size;

pub(super) use self::groups::Members;
use self::groups::Read;
use super::{Result, Uses};
use crate::{
    SourceLocation,
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId, each_region},
};

/// Another order of the four dimensions of images.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// Which dimension as it was comes at each place.
    pub there: [usize; 4],
    /// The way back.
    pub back: [usize; 4],
    /// Which dimension had the channels.
    pub channels: usize,
}

/// Images whose channels came last get them first.
pub(super) const FIRST: Order = Order { there: [0, 3, 1, 2], back: [0, 2, 3, 1], channels: 3 };
/// Images whose channels came first get them last.
pub(super) const LAST: Order = Order { there: [0, 2, 3, 1], back: [0, 3, 1, 2], channels: 1 };

/// A change of the order.
pub(super) trait Change {
    /// The name of its pass.
    const NAME: &'static str;
    /// The order that images get.
    const ORDER: Order;

    /// The images that a node reads and writes which only this change knows; `None` for others.
    fn members(graph: &Graph, node: &Node) -> Option<Members>;

    /// Whether so many copies around a group are worth it, of whose operations so many gain.
    fn is_worth(gains: usize, copies: usize) -> bool;

    /// What such a node becomes: its nodes are pushed. Nothing where it cannot be changed after all.
    fn changed(images: &mut Images<'_>, node: &Node) -> Option<()>;
}

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
    let mut images =
        Images { graph, order: C::ORDER, turned: HashMap::new(), missing: HashSet::new(), nodes: Vec::new() };
    for (place, node) in nodes.into_iter().enumerate() {
        watch.check()?;
        let changed =
            chosen.contains(&place).then(|| images.known(&node).or_else(|| C::changed(&mut images, &node)));
        if changed.flatten().is_none() {
            images.as_it_is(node);
        }
    }
    for id in &region.results {
        images.old(*id, &SourceLocation::new(C::NAME));
    }
    region.nodes = images.nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

/// The images of a region while their order changes.
pub(super) struct Images<'a> {
    /// The graph of the region.
    pub graph: &'a mut Graph,
    order: Order,
    /// The same images in the new order, by those in the old one.
    turned: HashMap<TensorId, TensorId>,
    /// Images that are there in the new order only, so far.
    missing: HashSet<TensorId>,
    /// What has come about so far.
    nodes: Vec<Node>,
}

impl Images<'_> {
    /// A node that stays as it is reads images in their old order.
    fn as_it_is(&mut self, node: Node) {
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
            self.old(id, &node.location);
        }
        self.nodes.push(node);
    }

    /// Changes an operation that takes images in any order.
    fn known(&mut self, node: &Node) -> Option<()> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let (operation, inputs) = match operation {
            Operation::Elementwise(op) => self.elementwise(op, node)?,
            Operation::Gather(op) => {
                let [list, places] = *node.inputs else { return None };
                self.old(list, &node.location);
                (Operation::Gather(op.clone()), vec![list, self.new(places, &node.location)])
            }
            Operation::Concat(op) => self.concat(op, node)?,
            Operation::Pad(op) => self.pad(op, node),
            _ => return None,
        };
        self.push(operation, inputs, node);
        Some(())
    }

    /// Pushes an operation whose results are the images of a node in the new order.
    pub fn push(&mut self, operation: Operation, inputs: Vec<TensorId>, node: &Node) {
        let outputs = node.outputs.iter().map(|id| self.result(*id)).collect();
        self.nodes.push(Node {
            op: NodeOp::Operation(operation),
            inputs,
            outputs,
            location: node.location.clone(),
        });
    }

    /// Pushes a node that is not about images, or has them under other dimensions.
    pub fn push_node(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// A new tensor for an image that is computed in the new order.
    pub fn result(&mut self, id: TensorId) -> TensorId {
        let tensor = self.graph.tensor(id);
        let sizes = tensor.sizes();
        let shape = Shape::new(self.order.there.map(|d| sizes[d]));
        let made = self.graph.add_tensor(Tensor::new(tensor.name.clone(), tensor.element, shape));
        self.turned.insert(id, made);
        self.missing.insert(id);
        made
    }

    fn elementwise(&mut self, op: &Elementwise, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let (dims, order) = (op.dims(), self.order.there);
        let mut changed = op.clone();
        let mut inputs = Vec::new();
        for (id, (_, own)) in node.inputs.iter().zip(&mut changed.inputs.0) {
            inputs.push(match Read::of(own, &dims, order)? {
                Read::Image => {
                    *own = order.map(|d| own[d]).to_vec();
                    self.new(*id, &node.location)
                }
                Read::One => {
                    self.old(*id, &node.location);
                    *id
                }
                Read::Lying(lying) => {
                    own.clone_from(&lying);
                    self.seen(*id, &lying, &node.location)
                }
            });
        }
        for table in &node.inputs[inputs.len()..] {
            self.old(*table, &node.location);
            inputs.push(*table);
        }
        Some((Operation::Elementwise(changed), inputs))
    }

    /// Channels side by side.
    fn concat(&mut self, op: &Concat, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let sizes = self.graph.tensor(node.outputs[0]).sizes();
        let [images, a, b, c] = <[Size; 4]>::try_from(sizes).ok()?;
        let (outer, inner) =
            if self.order.channels == 3 { (images, a * b) } else { (images * b * c, Size::constant(1)) };
        let changed = Concat { outer, inner, ..op.clone() };
        let inputs = node.inputs.iter().map(|id| self.new(*id, &node.location)).collect();
        Some((Operation::Concat(changed), inputs))
    }

    fn pad(&mut self, op: &Pad, node: &Node) -> (Operation, Vec<TensorId>) {
        let order = self.order.there;
        let changed = Pad {
            input: order.map(|d| op.input[d]).to_vec(),
            before: order.map(|d| op.before[d]).to_vec(),
            after: order.map(|d| op.after[d]).to_vec(),
            ..op.clone()
        };
        (Operation::Pad(changed), vec![self.new(node.inputs[0], &node.location)])
    }

    /// An image in the new order.
    pub fn new(&mut self, id: TensorId, here: &SourceLocation) -> TensorId {
        if let Some(turned) = self.turned.get(&id) {
            return *turned;
        }
        let turned = self.turned(id, self.order.there, here);
        self.turned.insert(id, turned);
        turned
    }

    /// Makes sure that a tensor is there as it was.
    pub fn old(&mut self, id: TensorId, here: &SourceLocation) {
        if self.missing.remove(&id)
            && let Some(turned) = self.turned.get(&id).copied()
        {
            self.copy(turned, id, self.order.back, here);
        }
    }

    /// A tensor of four dimensions in another order of them. Constants are turned here.
    pub fn turned(&mut self, id: TensorId, order: [usize; 4], here: &SourceLocation) -> TensorId {
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

    /// The same bytes of a tensor, which is there as it was, under other dimensions.
    pub fn seen(&mut self, id: TensorId, sizes: &[Size], here: &SourceLocation) -> TensorId {
        if self.graph.tensor(id).constant.is_none() {
            self.old(id, here);
        }
        self.view(id, sizes, here)
    }

    /// The same bytes of a tensor under other dimensions.
    pub fn view(&mut self, id: TensorId, sizes: &[Size], here: &SourceLocation) -> TensorId {
        let from = self.graph.tensor(id);
        let mut tensor = Tensor::new(from.name.clone(), from.element, Shape::new(sizes.iter().copied()));
        tensor.constant.clone_from(&from.constant);
        let is_constant = tensor.constant.is_some();
        let to = self.graph.add_tensor(tensor);
        if !is_constant {
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
