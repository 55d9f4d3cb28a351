//! Products whose sums have one term, and sums along one place, as recurrent layers have in a step of one token: elementwise arithmetic,
//! which joins what is around it, and nothing.

use std::collections::HashSet;

use halite_ops::{
    Activation, DType, Operation,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
    matmul::MatMul,
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Rewrites such operations.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    if !region.nodes.iter().any(|node| is_narrow(&node.op)) {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    // Weights of one key: attention is found later.
    let weights: HashSet<TensorId> = region
        .nodes
        .iter()
        .filter(|node| matches!(node.op, NodeOp::Operation(Operation::Softmax(_))))
        .flat_map(|node| node.outputs.iter().copied())
        .collect();
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        match &node.op {
            NodeOp::Operation(Operation::CumulativeSum(sum)) if !sum.exclusive && sum.length.is(1.into()) => {
                nodes.push(Node { op: NodeOp::View, ..node });
            }
            NodeOp::Operation(Operation::MatMul(product))
                if is_one_term(product) && !weights.contains(&node.inputs[0]) =>
            {
                let op = multiplied(graph, product, &node).unwrap_or_else(|| node.op.clone());
                nodes.push(Node { op, ..node });
            }
            _ => nodes.push(node),
        }
    }
    region.nodes = nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

fn is_narrow(op: &NodeOp) -> bool {
    match op {
        NodeOp::Operation(Operation::CumulativeSum(sum)) => !sum.exclusive && sum.length.is(1.into()),
        NodeOp::Operation(Operation::MatMul(product)) => is_one_term(product),
        _ => false,
    }
}

/// Whether it multiplies columns by rows, and does nothing else.
fn is_one_term(product: &MatMul) -> bool {
    let MatMul { lhs, rhs, out, bias, residual, activation, norm, .. } = product;
    let plain = lhs == out && rhs == out && matches!(out, DType::F32 | DType::F16);
    let alone = !bias && !residual && *activation == Activation::None && norm.is_none();
    product.k.is(1.into()) && plain && alone
}

/// Elementwise multiplication of both operands, each repeated along the dimension of the other. `None` where the result has other
/// dimensions than the product.
fn multiplied(graph: &Graph, product: &MatMul, node: &Node) -> Option<NodeOp> {
    let result = graph.tensor(node.outputs[0]).sizes();
    let (outer, [_, _]) = result.split_last_chunk::<2>()?;
    let one = Size::constant(1);
    let left = [&result[..result.len() - 1], &[one]].concat();
    let right = if product.rhs_shared || product.batch.is(one) {
        [&vec![one; result.len() - 1][..], &[product.n]].concat()
    } else {
        [outer, &[one, product.n]].concat()
    };
    let dims = [left, right];
    let same = dims.iter().zip(&node.inputs).all(|(dims, id)| {
        dims.iter().product::<Size>() == graph.tensor(*id).sizes().iter().product::<Size>()
    });
    if !same || result.last() != Some(&product.n) {
        return None;
    }
    let mut program = Expression::default();
    let value = program.call(Function::Mul, &[Operand::Input(0), Operand::Input(1)]);
    program.store(value, product.out);
    let operation = Elementwise::new(dims.map(|dims| (product.out, dims)), program);
    Some(NodeOp::Operation(Operation::Elementwise(operation)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::Builder;

    /// Operations of a state that decays, and to which a product of columns by rows is added.
    fn step(left: &[u64], right: &[u64]) -> Vec<String> {
        let mut b = Builder::new();
        let (x, y) =
            (b.input("x", DType::F32.into(), left).unwrap(), b.input("y", DType::F32.into(), right).unwrap());
        let product = b.matmul(x, y).unwrap();
        let dims = b.dims(product).to_vec();
        let state = b.input("state", DType::F32.into(), &dims).unwrap();
        let decayed = b.unary(Function::Tanh, state).unwrap();
        let sum = b.binary(Function::Add, decayed, product).unwrap();
        b.output("sum", sum);
        let graph = optimized(b.finish().unwrap());
        kernels(&graph).into_iter().map(|operation| operation.name().to_owned()).collect()
    }

    #[test]
    fn products_of_one_term_join_what_reads_them() {
        assert_eq!(step(&[2, 3, 5, 1], &[2, 3, 1, 4]), ["elementwise"]);
        assert_eq!(step(&[5, 1], &[1, 4]), ["elementwise"]);
        // One right operand for all.
        assert_eq!(step(&[2, 5, 1], &[1, 4]), ["elementwise"]);
        assert_eq!(step(&[3, 1, 1], &[3, 1, 4]), ["elementwise"]);
    }

    #[test]
    fn products_of_more_terms_stay() {
        assert!(step(&[2, 5, 2], &[2, 2, 4]).contains(&"matmul".to_owned()));
    }

    #[test]
    fn sums_along_one_place_go() {
        for (places, left) in [(1, vec![]), (2, vec!["cumulative_sum"])] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F32.into(), &[3, places, 4]).unwrap();
            let y = b.cumulative_sum(x, 1, false, false).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
            assert_eq!(names, left, "{graph}");
        }
    }
}
