//! Convolutions whose filters cover their images, such as those behind a mean over the image: products of images by filters, for which
//! devices have kernels of few rows and of many.

use halite_ops::{Operation, matmul::MatMul};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Puts products in the place of such convolutions.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    if !region.nodes.iter().any(|node| product(node).is_some()) {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        match product(&node) {
            Some(product) => write(graph, product, node, &mut nodes),
            None => nodes.push(node),
        }
    }
    region.nodes = nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

/// The product that a node's convolution is.
fn product(node: &Node) -> Option<MatMul> {
    match &node.op {
        NodeOp::Operation(Operation::Conv2d(op)) => op.product(),
        NodeOp::Operation(Operation::Conv1d(op)) => op.images().product(),
        _ => None,
    }
}

/// The product between views: its inputs and its result are matrices.
fn write(graph: &mut Graph, product: MatMul, node: Node, nodes: &mut Vec<Node>) {
    let MatMul { m, n, k, rhs_transposed, bias, residual, .. } = product;
    let mut sizes = vec![[m, k], if rhs_transposed { [n, k] } else { [k, n] }];
    // A bias is a vector already.
    let added = usize::from(bias);
    sizes.extend(residual.then_some([m, n]));
    let mut inputs = Vec::with_capacity(node.inputs.len());
    for (place, id) in node.inputs.iter().enumerate() {
        let dims = match place {
            0 | 1 => sizes.get(place),
            2 if bias => None,
            _ => sizes.get(place - added),
        };
        inputs.push(dims.map_or(*id, |dims| view(graph, *id, *dims, &node, nodes)));
    }
    let result = like(graph, node.outputs[0], [m, n]);
    let location = node.location.clone();
    nodes.push(Node {
        op: NodeOp::Operation(Operation::MatMul(product)),
        inputs,
        outputs: vec![result],
        location,
    });
    nodes.push(Node { op: NodeOp::View, inputs: vec![result], ..node });
}

/// A tensor under other dimensions.
fn view(graph: &mut Graph, id: TensorId, sizes: [Size; 2], node: &Node, nodes: &mut Vec<Node>) -> TensorId {
    let to = like(graph, id, sizes);
    nodes.push(Node {
        op: NodeOp::View,
        inputs: vec![id],
        outputs: vec![to],
        location: node.location.clone(),
    });
    to
}

/// A new tensor of the type of another.
fn like(graph: &mut Graph, id: TensorId, sizes: [Size; 2]) -> TensorId {
    let tensor = graph.tensor(id);
    let tensor = Tensor::new(tensor.name.clone(), tensor.element, Shape::new(sizes));
    graph.add_tensor(tensor)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function};

    use super::super::tests::{constant, kernels, optimized};
    use crate::build::{Builder, Sliding};

    /// Operations of a convolution of `images` with so many rows and columns, and kernels of as many less `less`, with something added
    /// and a rectifier.
    fn operations(images: u64, sides: &[u64], less: u64, groups: u64) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[&[images, 8], sides].concat()).unwrap();
        let kernel: Vec<u64> = sides.iter().map(|side| side - less).collect();
        let filters = constant(&mut b, &[&[6, 8 / groups], &kernel[..]].concat(), 1);
        let bias = constant(&mut b, &[6], 2);
        let n = sides.len();
        let sliding = Sliding { strides: vec![1; n], dilations: vec![1; n], pads: vec![(0, 0); n] };
        let y = b.conv(x, filters, Some(bias), &sliding, groups).unwrap();
        let dims = b.dims(y).to_vec();
        let more = b.input("more", DType::F32.into(), &dims).unwrap();
        let y = b.binary(Function::Add, y, more).unwrap();
        let y = b.unary(Function::Relu, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        kernels(&graph).into_iter().map(|operation| operation.name().to_owned()).collect()
    }

    #[test]
    fn convolutions_of_one_place_are_products() {
        for images in [1, 3] {
            assert_eq!(operations(images, &[1, 1], 0, 1), ["matmul"]);
            assert_eq!(operations(images, &[3, 4], 0, 1), ["matmul"]);
            assert_eq!(operations(images, &[5], 0, 1), ["matmul"]);
        }
    }

    #[test]
    fn other_convolutions_stay() {
        assert_eq!(operations(2, &[2, 2], 1, 1), ["conv2d"]);
        assert_eq!(operations(2, &[1, 1], 0, 2), ["conv2d"]);
        assert_eq!(operations(2, &[2], 1, 1), ["conv1d"]);
    }
}
