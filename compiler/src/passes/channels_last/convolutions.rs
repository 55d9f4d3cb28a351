//! What convolutions become whose images get their channels last: products of places or of parts of pictures, or convolutions in that order.

use halite_ops::{Operation, conv2d::Conv2d, copy::StridedCopy, matmul::MatMul, window::Layout};
use halite_sizes::Size;

use crate::{
    graph::{Graph, Node, NodeOp, Shape, Tensor, TensorId},
    passes::images::{Images, LAST},
};

/// Filters, channels of a group, rows, columns to rows, columns, channels of a group, filters.
pub(super) const FILTERS: [usize; 4] = [2, 3, 1, 0];

/// The product of all places by filters that such a convolution is.
pub(super) fn product(images: &mut Images<'_>, op: &Conv2d, node: &Node) -> Option<()> {
    let [count, channels, rows, columns] = op.input;
    let places = count * rows * columns;
    let image = images.in_new_order(node.inputs[0], &node.location);
    let image = images.view(image, &[places, channels], &node.location);
    multiplied(images, op, node, (image, [Size::constant(1), places, channels]))
}

/// The fewest places of an image that are a product by themselves. A tensor that is joined of such takes results where they belong.
const LEAST_PLACES: u64 = 128;

/// The product of parts of the picture, in a copy, by filters.
pub(super) fn patches(images: &mut Images<'_>, op: &Conv2d, node: &Node) -> Option<()> {
    let [count, channels, height, width] = op.input;
    let [rows, columns] = op.shape().ok()?.window.output();
    let [down, right] = [op.filter[2], op.filter[3]].map(Size::from);
    let one = Size::constant(1);
    let copy = StridedCopy {
        source: count * channels * height * width,
        shape: vec![count, rows, columns, channels, down, right],
        strides: vec![channels * height * width, down * width, right, height * width, width, one],
        offset: 0.into(),
        dtype: op.dtype,
    };
    crate::backend::check(&Operation::StridedCopy(copy.clone())).ok()?;
    let terms = channels * down * right;
    let own = rows * columns >= LEAST_PLACES;
    let [batch, places] = if own { [count, rows * columns] } else { [one, count * rows * columns] };
    images.in_old_order(node.inputs[0], &node.location);
    let made = like(images.graph, node.inputs[0], &[batch, places, terms]);
    images.push_node(Node {
        op: NodeOp::Operation(Operation::StridedCopy(copy)),
        inputs: vec![node.inputs[0]],
        outputs: vec![made],
        location: node.location.clone(),
    });
    multiplied(images, op, node, (made, [batch, places, terms]))
}

/// The product of rows of a batch of so many terms by filters, with what such a convolution adds.
fn multiplied(
    images: &mut Images<'_>,
    op: &Conv2d,
    node: &Node,
    (rows, [batch, places, terms]): (TensorId, [Size; 3]),
) -> Option<()> {
    let (filters, here) = (Size::from(op.filter[0]), &node.location);
    let product = MatMul {
        batch,
        rhs_shared: !batch.is(1.into()),
        rhs_transposed: true,
        bias: op.bias,
        residual: op.residual,
        residual_behind: op.residual_behind,
        activation: op.activation,
        ..MatMul::new(places, filters, terms, op.dtype, op.dtype)
    };
    let mut inputs = vec![rows, images.seen(node.inputs[1], &[filters, terms], here)];
    if op.bias {
        images.in_old_order(node.inputs[2], here);
        inputs.push(node.inputs[2]);
    }
    if op.residual {
        let residual = images.in_new_order(*node.inputs.last()?, here);
        inputs.push(images.view(residual, &[batch * places, filters], here));
    }
    let made = like(images.graph, node.outputs[0], &[batch * places, filters]);
    let operation = NodeOp::Operation(Operation::MatMul(product));
    images.push_node(Node { op: operation, inputs, outputs: vec![made], location: here.clone() });
    let result = images.result(node.outputs[0]);
    images.push_node(Node {
        op: NodeOp::View,
        inputs: vec![made],
        outputs: vec![result],
        location: here.clone(),
    });
    Some(())
}

/// A convolution that reads the image as it lies then.
pub(super) fn channels_last(images: &mut Images<'_>, op: &Conv2d, node: &Node) -> Option<()> {
    let (input, filter, here) = (op.input, op.filter, &node.location);
    let changed = Conv2d {
        input: LAST.there.map(|d| input[d]),
        filter: FILTERS.map(|d| filter[d]),
        layout: Layout::Nhwc,
        ..op.clone()
    };
    let mut inputs = vec![images.in_new_order(node.inputs[0], here)];
    images.in_old_order(node.inputs[1], here);
    inputs.push(images.turned(node.inputs[1], FILTERS, here));
    if op.bias {
        images.in_old_order(node.inputs[2], here);
        inputs.push(node.inputs[2]);
    }
    if op.residual {
        inputs.push(images.in_new_order(*node.inputs.last()?, here));
    }
    images.push(Operation::Conv2d(changed), inputs, node);
    Some(())
}

/// A new tensor of the type of another.
pub(super) fn like(graph: &mut Graph, id: TensorId, sizes: &[Size]) -> TensorId {
    let tensor = graph.tensor(id);
    let tensor = Tensor::new(tensor.name.clone(), tensor.element, Shape::new(sizes.iter().copied()));
    graph.add_tensor(tensor)
}
