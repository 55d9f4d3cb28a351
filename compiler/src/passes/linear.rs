//! What convolutions and products have in common for passes, and giving convolutions the batch normalization behind them.

use std::collections::HashMap;

use halite_ops::{
    Activation, DType, Operation,
    block_matmul::BlockMatMul,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand},
    matmul::MatMul,
    norm::{Norm, NormKind},
    quant_matmul::QuantMatMul,
    window::Layout,
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// The fields of convolutions and products that passes change.
pub(super) struct LinearOp<'a> {
    pub bias: &'a mut bool,
    /// `None` where kernels add none.
    pub residual: Option<&'a mut bool>,
    /// Whether the residual is added behind the activation; `None` where kernels do not do that.
    pub residual_behind: Option<&'a mut bool>,
    pub activation: &'a mut Activation,
    /// Number of values of a bias.
    pub values: Size,
    /// Dimensions of results behind those of a bias's values.
    pub behind: usize,
    /// Type of a bias and of results.
    pub dtype: DType,
    /// Weights that have a part for each value of a bias.
    weights: Option<Weights>,
}

/// What is multiplied with the input.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Their dimensions.
    pub dims: Vec<u64>,
    /// Dimensions with which a value for each filter or column lies beside them.
    pub beside: Vec<u64>,
}

/// Views an operation so, if it is one of these.
pub(super) fn linear_op(operation: &mut Operation) -> Option<LinearOp<'_>> {
    Some(match operation {
        Operation::Conv2d(c) => {
            // Where they lie last, filters are as columns of products.
            let first = c.layout == Layout::Nchw;
            let filters = Weights { beside: vec![c.filter[0], 1, 1, 1], dims: c.filter.into() };
            let last = Weights { beside: vec![1, 1, 1, c.filter[3]], dims: c.filter.into() };
            LinearOp {
                values: c.filter[if first { 0 } else { 3 }].into(),
                behind: if first { 2 } else { 0 },
                weights: Some(if first { filters } else { last }),
                dtype: c.dtype,
                bias: &mut c.bias,
                residual: Some(&mut c.residual),
                residual_behind: (c.groups == 1).then_some(&mut c.residual_behind),
                activation: &mut c.activation,
            }
        }
        Operation::Conv1d(c) if c.layout == Layout::Nchw => LinearOp {
            values: c.filter[0].into(),
            behind: 1,
            weights: Some(Weights { beside: vec![c.filter[0], 1, 1], dims: c.filter.into() }),
            dtype: c.dtype,
            bias: &mut c.bias,
            residual: Some(&mut c.residual),
            residual_behind: None,
            activation: &mut c.activation,
        },
        Operation::ConvTranspose2d(c) if c.groups == 1 => LinearOp {
            values: c.filter[1].into(),
            behind: 2,
            weights: Some(Weights { beside: vec![1, c.filter[1], 1, 1], dims: c.filter.into() }),
            dtype: c.dtype,
            bias: &mut c.bias,
            residual: None,
            residual_behind: None,
            activation: &mut c.activation,
        },
        Operation::MatMul(op) if op.out.is_float() => matrices(op),
        Operation::BlockMatMul(BlockMatMul { n, gate: None, bias, residual, activation, .. }) => {
            product((*n).into(), DType::F32, [bias, residual], activation)
        }
        Operation::QuantMatMul(QuantMatMul { n, out, bias, residual, activation, .. }) => {
            product((*n).into(), *out, [bias, residual], activation)
        }
        _ => return None,
    })
}

/// A product of matrices of floats.
fn matrices(op: &mut MatMul) -> LinearOp<'_> {
    let weights = columns(op);
    let MatMul { n, out, bias, residual, residual_behind, activation, .. } = op;
    let residual_behind = Some(residual_behind);
    LinearOp { weights, residual_behind, ..product(*n, *out, [bias, residual], activation) }
}

/// The right operand of a product, if it is one matrix.
fn columns(op: &MatMul) -> Option<Weights> {
    let one = op.rhs_shared || op.batch == 1;
    if !one || op.lhs != op.out || op.rhs != op.out || !op.n.is_constant() || !op.k.is_constant() {
        return None;
    }
    let (n, k) = (op.n.exact(), op.k.exact());
    Some(match op.rhs_transposed {
        true => Weights { dims: vec![n, k], beside: vec![n, 1] },
        false => Weights { dims: vec![k, n], beside: vec![1, n] },
    })
}

/// A product of so many columns.
fn product<'a>(
    values: Size,
    dtype: DType,
    [bias, residual]: [&'a mut bool; 2],
    activation: &'a mut Activation,
) -> LinearOp<'a> {
    LinearOp {
        bias,
        residual: Some(residual),
        residual_behind: None,
        activation,
        values,
        behind: 0,
        dtype,
        weights: None,
    }
}

impl LinearOp<'_> {
    /// Whether it is a convolution.
    pub fn is_convolution(&self) -> bool {
        self.behind > 0
    }

    /// What is multiplied with the input, if it has a part for each value of a bias.
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }
}

/// Batch normalization by constants goes into the weights of the convolution or product before it.
pub(super) fn fold_batch_norm(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
) -> Result {
    each_after(graph, region, uses, watch, &|graph, before, node| {
        let NodeOp::Operation(Operation::Norm(norm)) = &node.op else { return None };
        if norm.kind != NormKind::Batch {
            return None;
        }
        fold_norm(graph, norm, before, node)
    })
}

/// A rewrite of such an operation and the node behind it: nodes in their place, in order.
type Rewrite<'a> = dyn Fn(&mut Graph, &Node, &Node) -> Option<Vec<Node>> + 'a;

/// Offers each such operation whose result is read once, and its reader; of several before one reader, the first whose
/// rewrite there is.
pub(super) fn each_after(
    graph: &mut Graph,
    region: &mut Region,
    uses: &mut Uses,
    watch: Watch<'_>,
    rewrite: &Rewrite<'_>,
) -> Result {
    let mut nodes: Vec<Vec<Node>> = region.nodes.drain(..).map(|node| vec![node]).collect();
    let mut producers: HashMap<TensorId, usize> = HashMap::new();
    for index in 0..nodes.len() {
        watch.check()?;
        let node = nodes[index].last().expect("one was put there").clone();
        let rewritten = node.inputs.iter().find_map(|id| {
            let found = Before::of(&nodes, &producers, uses, *id)?;
            rewrite(graph, &found.node, &node).map(|new| (found, new))
        });
        if let Some((found, new)) = rewritten {
            let gone = found.places.iter().filter_map(|place| nodes[*place].pop()).chain([node]);
            gone.for_each(|old| old.inputs.iter().for_each(|id| uses.remove(*id)));
            new.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
            nodes[index] = new;
        }
        let outputs = nodes[index].last().map(|node| node.outputs.clone()).unwrap_or_default();
        producers.extend(outputs.into_iter().map(|id| (id, index)));
    }
    region.nodes = nodes.into_iter().flatten().collect();
    Ok(())
}

/// Such an operation before a node.
struct Before {
    /// The operation's node. It has what the node reads as its result.
    node: Node,
    /// Where it is, and where the view of its result is that the node reads, if it does.
    places: Vec<usize>,
}

impl Before {
    /// That of a tensor which nothing else reads. Of products a view is as good: their results have one order only.
    fn of(
        nodes: &[Vec<Node>],
        producers: &HashMap<TensorId, usize>,
        uses: &Uses,
        id: TensorId,
    ) -> Option<Before> {
        let made = |id: TensorId| {
            let place = *producers.get(&id).filter(|_| uses.count(id) == 1)?;
            Some((place, nodes[place].last()?))
        };
        let (place, node) = made(id)?;
        let (places, node, viewed) = match node.op {
            NodeOp::View => {
                let (before, source) = made(node.inputs[0])?;
                (vec![place, before], source, true)
            }
            _ => (vec![place], node, false),
        };
        let NodeOp::Operation(operation) = &node.op else { return None };
        let fits = !(linear_op(&mut operation.clone())?.is_convolution() && viewed);
        fits.then(|| Before { node: Node { outputs: vec![id], ..node.clone() }, places })
    }
}

/// The convolution or product with scaled weights: `(conv(x) + b - mean) * s + beta` with `s = scale / sqrt(variance + epsilon)`.
fn fold_norm(graph: &mut Graph, norm: &Norm, before: &Node, node: &Node) -> Option<Vec<Node>> {
    let NodeOp::Operation(mut operation) = before.op.clone() else { return None };
    let own = linear_op(&mut operation)?;
    let filters = own.weights.as_ref()?;
    if !own.is_convolution() && !lies_as(graph.tensor(before.inputs[1]), norm, filters) {
        return None;
    }
    let constant = |id: &TensorId| graph.tensor(*id).constant.is_some();
    let fits = *own.activation == Activation::None && norm.channels == own.values && norm.dtype == own.dtype;
    if !fits || !before.inputs[1..].iter().all(constant) || !node.inputs[1..].iter().all(constant) {
        return None;
    }
    let (beside, weights) = (filters.beside.clone(), filters.dims.clone());
    let (dtype, values) = (own.dtype, own.values.exact());
    let had_bias = std::mem::replace(own.bias, true);
    let mut rest = node.inputs[3..].iter().copied();
    let (mean, variance) = (node.inputs[1], node.inputs[2]);
    let scale = if norm.scale { rest.next() } else { None };
    let beta = if norm.bias { rest.next() } else { None };

    let mut new = Vec::new();
    let vector = vec![values];
    let mut s = NodeBuilder { graph, new: &mut new, dtype, node };
    let epsilon = norm.epsilon.0;
    let inputs: Vec<_> =
        [Some(variance), scale].into_iter().flatten().map(|id| (id, vector.clone())).collect();
    let factor = s.make(&inputs, &vector, |p, x| {
        let sum = p.call(Function::Add, &[x[0], epsilon.into()]);
        let inverse = p.call(Function::Rsqrt, &[sum]);
        x.get(1).map_or(inverse, |scale| p.call(Function::Mul, &[*scale, inverse]))
    });
    let filter = s.make(&[(before.inputs[1], weights.clone()), (factor, beside)], &weights, |p, x| {
        p.call(Function::Mul, x)
    });
    let bias = had_bias.then(|| before.inputs[2]);
    let present = [Some(mean), Some(factor), bias, beta];
    let inputs: Vec<_> = present.into_iter().flatten().map(|id| (id, vector.clone())).collect();
    let added = s.make(&inputs, &vector, |p, x| {
        let mut rest = x[2..].iter();
        let bias = if had_bias { rest.next().copied() } else { None };
        let centred = p.call(Function::Sub, &[bias.unwrap_or(0.0.into()), x[0]]);
        let scaled = p.call(Function::Mul, &[centred, x[1]]);
        rest.next().map_or(scaled, |beta| p.call(Function::Add, &[scaled, *beta]))
    });
    let inputs = vec![before.inputs[0], filter, added];
    let (outputs, location) = (node.outputs.clone(), before.location.clone());
    new.push(Node { op: NodeOp::Operation(operation), inputs, outputs, location });
    Some(new)
}

/// Whether columns of a product lie as a norm's channels, and its right operand has no more dimensions.
fn lies_as(operand: &Tensor, norm: &Norm, filters: &Weights) -> bool {
    let dims = filters.dims.iter().map(|dim| Size::from(*dim));
    norm.spatial == 1 && operand.sizes().iter().copied().eq(dims)
}

/// Makes elementwise nodes over constants.
pub(super) struct NodeBuilder<'a> {
    /// The graph of the tensors.
    pub graph: &'a mut Graph,
    /// What was made.
    pub new: &'a mut Vec<Node>,
    /// The type of all tensors.
    pub dtype: DType,
    /// The node whose location the nodes get.
    pub node: &'a Node,
}

impl NodeBuilder<'_> {
    /// A constant under other dimensions.
    pub fn seen(&mut self, id: TensorId, dims: &[u64]) -> TensorId {
        let from = self.graph.tensor(id);
        let mut tensor = Tensor::new(from.name.clone(), from.element, Shape::new(dims.iter().copied()));
        tensor.constant.clone_from(&from.constant);
        self.graph.add_tensor(tensor)
    }

    /// Computes one tensor.
    pub fn make(
        &mut self,
        inputs: &[(TensorId, Vec<u64>)],
        dims: &[u64],
        compute: impl FnOnce(&mut Expression, &[Operand]) -> Operand,
    ) -> TensorId {
        let operands: Vec<Operand> = (0..inputs.len()).map(Operand::Input).collect();
        let mut program = Expression::default();
        let value = compute(&mut program, &operands);
        program.store(value, self.dtype);
        let name = self.node.location.as_str().to_owned();
        let element = ElementType::Of(self.dtype);
        let id = self.graph.add_tensor(Tensor::new(name, element, Shape::new(dims.iter().copied())));
        let shapes: Vec<_> = inputs.iter().map(|(_, dims)| (self.dtype, dims.clone())).collect();
        self.new.push(Node {
            op: NodeOp::Operation(Operation::Elementwise(Elementwise::new(shapes, program))),
            inputs: inputs.iter().map(|(id, _)| *id).collect(),
            outputs: vec![id],
            location: self.node.location.clone(),
        });
        id
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::Builder;

    #[test]
    fn batch_norms_behind_products_go_into_their_weights() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[3, 2, 6]).unwrap();
        let weights = constant(&mut b, &[6, 5], 1);
        let y = b.matmul(x, weights).unwrap();
        let y = b.reshape(y, &[6, 5]).unwrap();
        let [mean, scale, beta] = [2, 3, 4].map(|seed| constant(&mut b, &[5], seed));
        let variance = Values::Float(vec![0.5, 1.0, 1.5, 2.0, 0.25]);
        let variance = b.values(DType::F32, &[5], &variance).unwrap();
        let y = b.batch_norm(y, [mean, variance], Some(scale), Some(beta), 1e-2).unwrap();
        let y = b.reshape(y, &[3, 2, 5]).unwrap();
        let y = b.unary(Function::Relu, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let left = kernels(&graph);
        let Some(Operation::MatMul(product)) = left.last() else { panic!("{graph}") };
        assert!(product.bias && product.activation == Activation::Relu, "{graph}");
        // The others compute weights of constants.
        let rest = left.iter().rev().skip(1).all(|op| matches!(op, Operation::Elementwise(_)));
        assert!(rest, "{graph}");
    }
}
