//! Products along tokens between transposes, as in networks that mix tokens by linear layers: a convolution of one place, whose
//! channels are the tokens, computes them where the tokens lie.

use halite_ops::{DType, Operation, conv1d::Conv1d, copy::StridedCopy, matmul::MatMul};
use halite_sizes::Size;

use super::{Builder, Look};
use crate::graph::{Graph, Node, NodeOp, TensorId};

/// Products behind one another, of tokens that a transpose before them makes columns, and that one behind them makes rows again.
pub(super) struct Chain {
    /// Before the transpose: images, tokens, columns.
    source: TensorId,
    images: Size,
    columns: Size,
    /// The products' nodes, and the one of the transpose behind them.
    pub(super) products: Vec<usize>,
    pub(super) turned_back: usize,
}

impl Look<'_> {
    /// The chain that begins with a node.
    pub(super) fn mixing(&self, place: usize) -> Option<Chain> {
        let first = self.product(place)?;
        let node = &self.region.nodes[place];
        let id = self.behind(node.inputs[0]);
        let copy = *self.lines.makers.get(&id)?;
        let [images, tokens, columns] = self.turned(copy)?;
        if !tokens.is(first.k) || self.uses.count(id) != 1 || self.taken.contains_key(&copy) {
            return None;
        }
        let (mut products, mut rows) = (vec![place], first.n);
        loop {
            let last = &self.region.nodes[*products.last()?];
            let next = self.only_reader(last.outputs[0])?;
            match self.product(next) {
                // The result has to be its left operand.
                Some(product) if product.k == rows && self.leads_to(last.outputs[0], next) => {
                    products.push(next);
                    rows = product.n;
                }
                _ => {
                    break self.swaps(next, [images, columns, rows]).then(|| Chain {
                        source: self.region.nodes[copy].inputs[0],
                        images,
                        columns,
                        products,
                        turned_back: next,
                    });
                }
            }
        }
    }

    /// A product by one matrix of constants, which adds no tensor.
    fn product(&self, place: usize) -> Option<&MatMul> {
        let node = &self.region.nodes[place];
        let NodeOp::Operation(Operation::MatMul(product)) = &node.op else { return None };
        let weights = self.graph.tensor(node.inputs[1]);
        let MatMul { lhs, rhs, out, residual, norm, .. } = product;
        let fits = weights.constant.is_some()
            && (product.rhs_shared || product.batch == 1)
            && lhs == out
            && rhs == out
            && matches!(out, DType::F32 | DType::F16)
            && !residual
            && norm.is_none();
        (fits && product.n.is_constant() && product.k.is_constant()).then_some(product)
    }

    /// The sizes of a tensor of which a copy swaps the two last of three dimensions: the first one, rows, columns.
    fn turned(&self, place: usize) -> Option<[Size; 3]> {
        let NodeOp::Operation(Operation::StridedCopy(copy)) = &self.region.nodes[place].op else {
            return None;
        };
        let dims = match super::merged(copy)[..] {
            [(columns, _), (rows, step)] if step == columns => [1.into(), rows, columns],
            [(outer, _), (columns, _), (rows, step)] if step == columns => [outer, rows, columns],
            _ => return None,
        };
        self.swaps(place, dims).then_some(dims)
    }

    /// The node that reads a tensor, if nothing else does.
    fn only_reader(&self, id: TensorId) -> Option<usize> {
        let (mut reader, mut count) = (None, 0);
        self.each_reader(id, &mut |found| {
            count += 1;
            reader = found;
        });
        reader.filter(|_| count == 1)
    }

    /// Whether a node's first input shows a tensor.
    fn leads_to(&self, id: TensorId, reader: usize) -> bool {
        self.behind(self.region.nodes[reader].inputs[0]) == id
    }
}

impl Chain {
    /// What the products become, in order: nodes in the place of each, and the tensor behind the last, images, tokens, columns.
    pub(super) fn write(self, graph: &mut Graph, nodes: &[Node]) -> (Vec<Vec<Node>>, TensorId) {
        let mut input = self.source;
        let mut written = Vec::new();
        for place in &self.products {
            let node = &nodes[*place];
            let NodeOp::Operation(Operation::MatMul(product)) = &node.op else { continue };
            let mut new = Vec::new();
            let mut builder = Builder { graph, node, new: &mut new };
            input = convolved(&mut builder, product, input, [self.images, self.columns]);
            written.push(new);
        }
        (written, input)
    }
}

/// A product as a convolution of one place: its terms are channels, its columns filters.
fn convolved(
    builder: &mut Builder<'_>,
    product: &MatMul,
    input: TensorId,
    [images, columns]: [Size; 2],
) -> TensorId {
    let node = builder.node;
    let (k, n) = (product.k.exact(), product.n.exact());
    let operation = Conv1d {
        bias: product.bias,
        activation: product.activation,
        ..Conv1d::new([images, k.into(), columns], [n, k, 1], product.out)
    };
    let mut filters = node.inputs[1];
    if !product.rhs_transposed {
        let copy = StridedCopy::transpose(&[k.into(), n.into()], &[1, 0], product.out);
        let to = builder.like(filters, [n.into(), k.into()]);
        builder.push(NodeOp::Operation(Operation::StridedCopy(copy)), vec![filters], to);
        filters = to;
    }
    let mut inputs =
        vec![builder.view(input, operation.input), builder.view(filters, operation.filter.map(Size::from))];
    inputs.extend(node.inputs.get(2).filter(|_| product.bias));
    let made = builder.like(node.outputs[0], [images, n.into(), columns]);
    builder.push(NodeOp::Operation(Operation::Conv1d(operation)), inputs, made);
    made
}
