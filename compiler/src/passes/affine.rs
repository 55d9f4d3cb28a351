//! Batch normalization by constants, in front of an elementwise operation, becomes arithmetic that goes into it.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Replaces those whose results only elementwise operations read. There may be several, as those of `x * sigmoid(x)`, which become one.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let elementwise = |node: &&Node| matches!(node.op, NodeOp::Operation(Operation::Elementwise(_)));
    let mut reads: HashMap<TensorId, usize> = HashMap::new();
    let all = region.nodes.iter().filter(elementwise).flat_map(|node| &node.inputs);
    all.for_each(|id| *reads.entry(*id).or_default() += 1);
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        let joins = |id: &&TensorId| reads.get(*id).is_some_and(|count| uses.count(**id) == *count);
        let plain = node.outputs.first().filter(joins).and_then(|_| plain(graph, &node));
        let Some(plain) = plain else {
            nodes.push(node);
            continue;
        };
        node.inputs.iter().for_each(|id| uses.remove(*id));
        plain.iter().flat_map(|new| &new.inputs).for_each(|id| uses.add(*id));
        nodes.extend(plain);
    }
    region.nodes = nodes;
    Ok(())
}

/// The factor of each channel, which is constant, and the arithmetic: `(x - mean) * factor + bias`.
fn plain(graph: &mut Graph, node: &Node) -> Option<[Node; 2]> {
    let NodeOp::Operation(Operation::Norm(norm)) = &node.op else { return None };
    let constants = node.inputs.get(1..)?;
    let all = constants.iter().all(|id| graph.tensor(*id).constant.is_some());
    if norm.kind != NormKind::Batch || norm.order.is_some() || !all {
        return None;
    }
    let (mean, mut rest) = (*constants.first()?, constants.get(2..)?.iter().copied());
    let scale = if norm.scale { Some(rest.next()?) } else { None };
    let bias = if norm.bias { Some(rest.next()?) } else { None };
    let factor = factor(graph, node, norm, [Some(*constants.get(1)?), scale]);

    let (dims, beside) = dims(graph, node, norm);
    let mut shapes = vec![(norm.dtype, dims), (norm.dtype, beside.clone()), (DType::F32, beside.clone())];
    let mut inputs = vec![node.inputs[0], mean, factor.outputs[0]];
    let mut program = Expression::default();
    let centred = program.call(Function::Sub, &[Operand::Input(0), Operand::Input(1)]);
    let mut value = program.call(Function::Mul, &[centred, Operand::Input(2)]);
    if let Some(bias) = bias {
        value = program.call(Function::Add, &[value, Operand::Input(inputs.len())]);
        shapes.push((norm.dtype, beside));
        inputs.push(bias);
    }
    program.store(value, norm.dtype);
    let op = NodeOp::Operation(Operation::Elementwise(Elementwise::new(shapes, program)));
    Some([factor, Node { op, inputs, ..node.clone() }])
}

/// `scale / sqrt(variance + epsilon)` of each channel, in 32 bits whatever the tensors are.
pub(super) fn factor(graph: &mut Graph, node: &Node, norm: &Norm, parts: [Option<TensorId>; 2]) -> Node {
    let inputs: Vec<TensorId> = parts.into_iter().flatten().collect();
    let mut program = Expression::default();
    let sum = program.call(Function::Add, &[Operand::Input(0), norm.epsilon.0.into()]);
    let mut value = program.call(Function::Rsqrt, &[sum]);
    if inputs.len() == 2 {
        value = program.call(Function::Mul, &[value, Operand::Input(1)]);
    }
    program.store(value, DType::F32);
    let shapes = inputs.iter().map(|_| (norm.dtype, vec![norm.channels]));
    let op = NodeOp::Operation(Operation::Elementwise(Elementwise::new(shapes, program)));
    let (name, shape) = (node.location.as_str().to_owned(), Shape::new([norm.channels]));
    let id = graph.add_tensor(Tensor::new(name, ElementType::Of(DType::F32), shape));
    Node { op, inputs, outputs: vec![id], location: node.location.clone() }
}

/// Dimensions of what is normalized, and those of a value for each channel beside it.
fn dims(graph: &Graph, node: &Node, norm: &Norm) -> (Vec<Size>, Vec<Size>) {
    let own = graph.tensor(node.inputs[0]).sizes().to_vec();
    let channels = Size::from(norm.channels);
    let is_second = own.get(1).is_some_and(|size| *size == channels);
    let dims = if is_second { own } else { vec![norm.batch, channels, norm.spatial] };
    let beside = (0..dims.len()).map(|d| if d == 1 { channels } else { 1.into() }).collect();
    (dims, beside)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{constant, kernels, norm, optimized};
    use super::*;
    use crate::build::Builder;

    #[test]
    fn what_follows_joins_batch_normalization() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 3, 5, 4]).unwrap();
        let y = norm(&mut b, x, 5);
        let y = b.map(&[y], DType::F32, |p, x| p.call(Function::Relu, &[x[0]])).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let left = kernels(&graph);
        assert!(left.iter().all(|o| matches!(o, Operation::Elementwise(_))), "{graph}");
        // The factors of constants, and all of the rest.
        assert_eq!(left.len(), 2, "{graph}");
    }

    #[test]
    fn several_readers_that_become_one_join_it() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 3, 5, 4]).unwrap();
        let y = norm(&mut b, x, 5);
        let gate = b.map(&[y], DType::F32, |p, x| p.call(Function::Sigmoid, &[x[0]])).unwrap();
        let y = b.binary(Function::Mul, y, gate).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let left = kernels(&graph);
        assert!(left.iter().all(|o| matches!(o, Operation::Elementwise(_))), "{graph}");
        assert_eq!(left.len(), 2, "{graph}");
    }

    #[test]
    fn one_that_nothing_elementwise_reads_stays() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 3, 5, 4]).unwrap();
        let y = norm(&mut b, x, 5);
        let rows = b.view(y, DType::F32.into(), &[30, 4]).unwrap();
        let weights = constant(&mut b, &[4, 6], 9);
        let product = Operation::parse("matmul:m=30,n=6,k=4").unwrap();
        let z = b.kernel1(product, &[rows, weights], DType::F32.into(), &[30, 6]).unwrap();
        b.output("z", z);
        let graph = optimized(b.finish().unwrap());
        assert!(kernels(&graph).iter().any(|o| matches!(o, Operation::Norm(_))), "{graph}");
    }
}
