//! Gates go into the product of few rows by weights in blocks that computes both what gates and what is gated.

use halite_ops::{
    Activation, DType, Operation,
    block_matmul::BlockMatMul,
    copy::StridedCopy,
    expression::{Function, Operand},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    activations::activation,
    merge::{Reader, is_call},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Replaces the elementwise operations; products and parts that nothing reads any more go with the next cleaning.
pub(super) fn run(_: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    for place in 0..region.nodes.len() {
        watch.check()?;
        let Some((operation, inputs)) = found(region, uses, &region.nodes[place]) else { continue };
        let node = &region.nodes[place];
        let new = Node { op: NodeOp::Operation(Operation::BlockMatMul(operation)), inputs, ..node.clone() };
        uses.replace(node, &new);
        region.nodes[place] = new;
    }
    Ok(())
}

/// What an elementwise node is that gates columns of rows by others of the same rows.
pub(super) struct Halves {
    /// What both are parts of.
    pub whole: TensorId,
    /// The first column of what the function is applied to.
    pub first: Size,
    /// The first column of what is multiplied with that.
    pub second: Size,
    /// The function.
    pub function: Activation,
    /// Type of the result.
    pub dtype: DType,
    /// Elements of either.
    counts: [Size; 2],
}

/// Views a node so, if nothing else reads both parts.
pub(super) fn halves(region: &Region, uses: &Uses, node: &Node) -> Option<Halves> {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let ([left, right], [_]) = (&node.inputs[..], &node.outputs[..]) else { return None };
    if uses.count(*left) != 1 || uses.count(*right) != 1 {
        return None;
    }
    if !elementwise.tables.is_empty() {
        return None;
    }
    let mut reader = Reader::new(elementwise, &node.inputs);
    let (input, function, dtype) = gate(&mut reader)?;
    let [gate, gated] = if input == 0 { [*left, *right] } else { [*right, *left] };
    let (first, whole) = part(region, gate)?;
    let (second, other) = part(region, gated)?;
    let counts = [0, 1].map(|input: usize| reader.inputs[input].2.iter().product());
    (whole == other && uses.count(whole) == 2).then_some(Halves {
        whole,
        first,
        second,
        function,
        dtype,
        counts,
    })
}

/// The product with a gate that an elementwise node is with what it reads, and what that reads.
fn found(region: &Region, uses: &Uses, node: &Node) -> Option<(BlockMatMul, Vec<TensorId>)> {
    let halves = halves(region, uses, node)?;
    let before = producer(region, halves.whole)?;
    let NodeOp::Operation(Operation::BlockMatMul(product)) = &before.op else { return None };
    let n = product.n / 2;
    let plain = *product
        == BlockMatMul {
            norm: product.norm,
            ..BlockMatMul::new(product.m, product.n, product.k, product.format)
        };
    let parts = n * 2 == product.n && halves.first.is(0.into()) && halves.second.is(n.into());
    let same = halves.dtype == DType::F32 && halves.counts.iter().all(|count| count.is(product.m * n));
    if !plain || !parts || !same {
        return None;
    }
    let operation = BlockMatMul { n, gate: Some(halves.function), ..product.clone() };
    // Not for many rows, for one.
    crate::backend::check(&Operation::BlockMatMul(operation.clone())).ok()?;
    Some((operation, before.inputs.clone()))
}

/// The input that is a gate, its function, and the result's type, where all that is computed is their product.
fn gate(reader: &mut Reader) -> Option<(usize, Activation, DType)> {
    let found = (0..2).find_map(|input| activation(reader, input).map(|found| (input, found)));
    let (input, (result, dropped, function)) = found?;
    reader.replace_by_input(result, input, &dropped);
    let ([call], [output]) = (&reader.program.nodes[..], &reader.program.outputs[..]) else { return None };
    let both = [Operand::Input(0), Operand::Input(1)];
    let product = is_call(call, Function::Mul, &both) || is_call(call, Function::Mul, &[both[1], both[0]]);
    (product && output.value == Operand::Node(0)).then_some((input, function, output.dtype))
}

/// The node that makes a tensor.
pub(super) fn producer(region: &Region, id: TensorId) -> Option<&Node> {
    region.nodes.iter().find(|node| node.outputs.contains(&id))
}

/// Where neighbouring columns begin that a tensor is of a tensor, and this tensor.
fn part(region: &Region, id: TensorId) -> Option<(Size, TensorId)> {
    let node = producer(region, id)?;
    match &node.op {
        NodeOp::View => part(region, node.inputs[0]),
        NodeOp::Operation(Operation::StridedCopy(copy)) => Some((columns(copy)?, node.inputs[0])),
        _ => None,
    }
}

/// The first column of what copies columns of all rows.
fn columns(copy: &StridedCopy) -> Option<Size> {
    let whole = match (&copy.shape[..], &copy.strides[..]) {
        ([_], [step]) => step.is(1.into()),
        ([rows, _], [row, step]) => step.is(1.into()) && copy.source.is(*rows * *row),
        _ => false,
    };
    whole.then_some(copy.offset)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{block_weights, kernels, optimized};
    use super::*;
    use crate::build::Builder;

    /// The products of a feed-forward network of some rows, as the passes leave it.
    fn products(rows: u64, swapped: bool) -> Vec<(u64, Option<Activation>)> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[rows, 32]).unwrap();
        let (one, two) = (block_weights(&mut b, 64, 3), block_weights(&mut b, 64, 5));
        let (one, two) = (b.row_product(x, &one).unwrap(), b.row_product(x, &two).unwrap());
        let (gate, up) = if swapped { (two, one) } else { (one, two) };
        let y = b.map(&[gate, up], DType::F32, |p, x| {
            let part = p.call(Function::Sigmoid, &[x[0]]);
            let gate = p.call(Function::Mul, &[x[0], part]);
            p.call(Function::Mul, &[gate, x[1]])
        });
        b.output("y", y.unwrap());
        let graph = optimized(b.finish().unwrap());
        let product = |operation: &Operation| match operation {
            Operation::BlockMatMul(product) => Some((product.n, product.gate)),
            _ => None,
        };
        kernels(&graph).into_iter().filter_map(product).collect()
    }

    #[test]
    fn gates_of_few_rows_are_parts_of_the_product() {
        assert_eq!(products(1, false), [(64, Some(Activation::Silu))]);
        assert_eq!(products(3, false), [(64, Some(Activation::Silu))]);
        // Many rows have a gate of their own, and so has what gates from behind.
        assert_eq!(products(9, false), [(128, None)]);
        assert_eq!(products(1, true), [(128, None)]);
    }
}
