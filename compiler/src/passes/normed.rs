//! Normalizations of few rows go into the products by weights in blocks that read them: a kernel that waits for weights has time to
//! add up squares.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation,
    block_matmul::BlockMatMul,
    norm::{Norm, NormKind},
};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Puts normalizations into all products that read them, if nothing else does.
pub(super) fn run(_: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut readers: HashMap<TensorId, Vec<usize>> = HashMap::new();
    for (place, node) in region.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(place));
    }
    for place in 0..region.nodes.len() {
        watch.check()?;
        let node = region.nodes[place].clone();
        let Some(norm) = norm_of_rows(&node) else { continue };
        let places = readers.get(&node.outputs[0]).cloned().unwrap_or_default();
        if places.is_empty() || places.len() != uses.count(node.outputs[0]) {
            continue;
        }
        let new: Option<Vec<Node>> =
            places.iter().map(|place| with_norm(&region.nodes[*place], &node, norm)).collect();
        for (place, new) in places.iter().zip(new.into_iter().flatten()) {
            uses.replace(&region.nodes[*place], &new);
            region.nodes[*place] = new;
        }
    }
    Ok(())
}

/// The normalization of rows by the root of the mean of their squares, with a scale.
fn norm_of_rows(node: &Node) -> Option<&Norm> {
    let NodeOp::Operation(Operation::Norm(norm)) = &node.op else { return None };
    let plain = norm.kind == NormKind::Rms && norm.scale && !norm.bias;
    (plain && norm.is_of_lines() && norm.dtype == DType::F32).then_some(norm)
}

/// A product that reads the rows before they are normalized.
fn with_norm(reader: &Node, before: &Node, norm: &Norm) -> Option<Node> {
    let NodeOp::Operation(Operation::BlockMatMul(product)) = &reader.op else { return None };
    let reads_once = reader.inputs.iter().filter(|id| **id == before.outputs[0]).count() == 1;
    let goes_in = reads_once && reader.inputs[0] == before.outputs[0] && product.norm.is_none();
    // Devices have room for five buffers, as a rule.
    let fits = goes_in
        && product.k == norm.channels
        && norm.batch.is(product.m)
        && !(product.bias && product.residual);
    let product = BlockMatMul { norm: Some(norm.epsilon), ..product.clone() };
    crate::backend::check(&Operation::BlockMatMul(product.clone())).ok().filter(|()| fits)?;
    let mut inputs = reader.inputs.clone();
    inputs[0] = before.inputs[0];
    inputs.insert(product.behind_weights(), before.inputs[1]);
    Some(Node { op: NodeOp::Operation(Operation::BlockMatMul(product)), inputs, ..reader.clone() })
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::super::tests::{block_weights, constant, kernels, optimized};
    use super::*;
    use crate::build::{Builder, Normalization};

    /// Names of operations, and whether products have norms, of some rows that are normalized and read by a product, and by more.
    fn operations(rows: u64, read_twice: bool) -> Vec<(&'static str, bool)> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[rows, 32]).unwrap();
        let scale = constant(&mut b, &[32], 3);
        let norm = Normalization { kind: NormKind::Rms, first: 1, end: 2, groups: 1, epsilon: 1e-5 };
        let x = b.normalize(x, Some(scale), None, norm).unwrap();
        let weights = block_weights(&mut b, 32, 7);
        let made = b.row_product(x, &weights).unwrap();
        let made = if read_twice { b.binary(Function::Mul, made, x).unwrap() } else { made };
        b.output("y", made);
        let graph = optimized(b.finish().unwrap());
        let of = |operation: &Operation| match operation {
            Operation::BlockMatMul(product) => ("product", product.norm.is_some()),
            operation => (operation.name(), false),
        };
        kernels(&graph).into_iter().map(of).collect()
    }

    #[test]
    fn norms_of_few_rows_go_into_products() {
        assert_eq!(operations(1, false), [("product", true)]);
        assert_eq!(operations(9, false), [("norm", false), ("product", false)]);
        assert_eq!(operations(1, true)[..2], [("norm", false), ("product", false)]);
    }
}
