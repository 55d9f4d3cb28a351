//! The images of a region while their order changes.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_ops::{Operation, concat::Concat, copy::StridedCopy, elementwise::Elementwise, pad::Pad};
use halite_sizes::Size;

use super::{
    order::{Order, Read},
    padded,
    slice::Slice,
};
use crate::{
    SourceLocation,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId, each_region},
};

/// The images of a region while their order changes.
pub(in crate::passes) struct Images<'a> {
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

impl<'a> Images<'a> {
    /// Nothing has changed yet.
    pub fn new(graph: &'a mut Graph, order: Order) -> Images<'a> {
        Images { graph, order, turned: HashMap::new(), missing: HashSet::new(), nodes: Vec::new() }
    }

    /// What has come about.
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }
    /// A node that stays as it is reads images in their old order.
    pub fn keep(&mut self, node: Node) {
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
            self.in_old_order(id, &node.location);
        }
        self.nodes.push(node);
    }

    /// Changes an operation that takes images in any order.
    pub fn known(&mut self, node: &Node) -> Option<()> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let (operation, inputs) = match operation {
            Operation::Elementwise(op) => self.elementwise(op, node)?,
            Operation::Gather(op) => {
                let [list, places] = *node.inputs else { return None };
                self.in_old_order(list, &node.location);
                (Operation::Gather(op.clone()), vec![list, self.in_new_order(places, &node.location)])
            }
            Operation::Concat(op) => self.concat(op, node)?,
            Operation::Pad(op) => self.pad(op, node)?,
            Operation::StridedCopy(op) => {
                let slice = Slice::of(self.order, self.graph, op, node)?;
                let copy = slice.copy(self.order.there, op);
                (Operation::StridedCopy(copy), vec![self.in_new_order(node.inputs[0], &node.location)])
            }
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
                    self.in_new_order(*id, &node.location)
                }
                Read::One => {
                    self.in_old_order(*id, &node.location);
                    *id
                }
                Read::Lying(lying) => {
                    own.clone_from(&lying);
                    self.seen(*id, &lying, &node.location)
                }
            });
        }
        for table in &node.inputs[inputs.len()..] {
            self.in_old_order(*table, &node.location);
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
        let inputs = node.inputs.iter().map(|id| self.in_new_order(*id, &node.location)).collect();
        Some((Operation::Concat(changed), inputs))
    }

    fn pad(&mut self, op: &Pad, node: &Node) -> Option<(Operation, Vec<TensorId>)> {
        let order = self.order.there;
        let op = padded::of_image(self.graph, op, node)?;
        let changed = Pad {
            input: order.map(|d| op.input[d]).to_vec(),
            before: order.map(|d| op.before[d]).to_vec(),
            after: order.map(|d| op.after[d]).to_vec(),
            ..op
        };
        Some((Operation::Pad(changed), vec![self.in_new_order(node.inputs[0], &node.location)]))
    }

    /// An image in the new order.
    pub fn in_new_order(&mut self, id: TensorId, here: &SourceLocation) -> TensorId {
        if let Some(turned) = self.turned.get(&id) {
            return *turned;
        }
        let turned = self.turned(id, self.order.there, here);
        self.turned.insert(id, turned);
        turned
    }

    /// Makes sure that a tensor is there as it was.
    pub fn in_old_order(&mut self, id: TensorId, here: &SourceLocation) {
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
            self.in_old_order(id, here);
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
