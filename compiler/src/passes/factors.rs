//! Factors of what convolutions and products give, such as those of LayerScale: they go into constant weights.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
};

use super::linear::{LinearOp, NodeBuilder, Weights};
use crate::graph::{ElementType, Graph, Node, TensorId};

/// The smallest factor that leaves weights of 16 bits exact enough by themselves: most of them have more than its inverse times the
/// smallest normal number.
const LEAST_ALONE: f64 = 1.0 / 32.0;

/// Most weights that get a factor: a session computes them when it loads a module, and holds both for a while.
const MOST_WEIGHTS: u64 = 1 << 25;

/// What results are multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// A value for each filter or column.
    Each(TensorId),
    /// One number.
    All(f64),
}

/// A factor, and where it was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    /// What results are multiplied by.
    pub of: Of,
    /// Whether the added values were added before.
    pub is_behind_bias: bool,
}

impl Factor {
    /// The values of the factor; `None` where they are computed.
    pub fn values(&self, graph: &Graph) -> Option<Vec<f64>> {
        match self.of {
            Of::All(value) => Some(vec![value]),
            Of::Each(id) => {
                let tensor = graph.tensor(id);
                let ElementType::Of(dtype) = tensor.element else { return None };
                Some(Values::from_bytes(dtype, tensor.constant.as_ref()?).floats())
            }
        }
    }

    /// Whether weights have room for the factor: all of them are constants, and what 16 bits cannot tell apart does not show. With a
    /// tensor added behind, that has most of the magnitude, whatever small factors lose.
    fn fits(&self, graph: &Graph, before: &Node, dtype: DType, is_added: bool) -> bool {
        let Some(weights) = before.inputs.get(1).and_then(|id| graph.tensor(*id).constant.as_ref()) else {
            return false;
        };
        let Some(values) = self.values(graph) else { return false };
        let magnitudes = || values.iter().map(|value| value.abs());
        if !values.iter().all(|value| value.is_finite()) {
            return false;
        }
        if dtype != DType::F16 {
            return true;
        }
        let largest = magnitudes().fold(0.0, f64::max) * largest_half(weights);
        largest < 65_504.0 && (is_added || magnitudes().all(|value| value >= LEAST_ALONE))
    }

    /// Nodes that multiply the weights of an operation, and its added values if those were there before, and the inputs with those in
    /// their places.
    pub fn into_weights(
        self,
        graph: &mut Graph,
        own: &LinearOp<'_>,
        (before, node): (&Node, &Node),
        mut inputs: Vec<TensorId>,
    ) -> Option<(Vec<Node>, Vec<TensorId>)> {
        let Weights { dims, beside } = own.weights()?.clone();
        let is_added = own.residual.as_ref().is_some_and(|there| **there);
        let lies = |id: TensorId| {
            let sizes = graph.tensor(id).sizes();
            sizes.len() == dims.len() && sizes.iter().zip(&dims).all(|(size, dim)| *size == *dim)
        };
        let bias = inputs.get(2).copied().filter(|_| self.is_behind_bias);
        let is_constant = |id: &TensorId| graph.tensor(*id).constant.is_some();
        let is_little = dims.iter().product::<u64>() <= MOST_WEIGHTS;
        if !is_little || !self.fits(graph, before, own.dtype, is_added) || !lies(before.inputs[1]) {
            return None;
        }
        if bias.as_ref().is_some_and(|id| !is_constant(id)) {
            return None;
        }
        let vector = vec![own.values.exact()];
        let mut new = Vec::new();
        let mut builder = NodeBuilder { graph, new: &mut new, dtype: own.dtype, node };
        let parts = [(Some(before.inputs[1]), dims, beside, 1), (bias, vector.clone(), vector, 2)];
        for (id, dims, beside, place) in parts {
            let Some(id) = id else { continue };
            let mut read = vec![(id, dims.clone())];
            if let Of::Each(factor) = self.of {
                read.push((factor, beside));
            }
            inputs[place] = builder.make(&read, &dims, |program, x| {
                let by = match self.of {
                    Of::Each(_) => x[1],
                    Of::All(value) => Operand::Constant(Scalar::Float(value)),
                };
                program.call(Function::Mul, &[x[0], by])
            });
        }
        Some((new, inputs))
    }
}

/// The largest magnitude of 16-bit floats, whose bits without the sign are in their order.
fn largest_half(bytes: &[u8]) -> f64 {
    let bits = bytes.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes) & 0x7fff);
    let largest = bits.max().unwrap_or(0);
    Values::from_bytes(DType::F16, &largest.to_le_bytes()).float(0)
}

#[cfg(test)]
mod tests {
    use halite_ops::{Activation, Operation, matmul::MatMul};

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::Builder;

    /// The last product or convolution of a product with added values, factors, and perhaps the input added, and how many other
    /// operations there are.
    fn product(dtype: DType, factors: &[f64], residual: bool) -> (MatMul, usize) {
        let mut b = Builder::new();
        let x = b.input("x", dtype.into(), &[3, 4, 5]).unwrap();
        let weights = constant(&mut b, &[5, 5], 1);
        let weights = b.cast(weights, dtype).unwrap();
        let bias = constant(&mut b, &[5], 2);
        let bias = b.cast(bias, dtype).unwrap();
        let factors = b.values(dtype, &[factors.len() as u64], &Values::Float(factors.to_vec())).unwrap();
        let y = b.matmul(x, weights).unwrap();
        let y = b.binary(Function::Add, y, bias).unwrap();
        let mut y = b.binary(Function::Mul, y, factors).unwrap();
        if residual {
            y = b.binary(Function::Add, x, y).unwrap();
        }
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let all = kernels(&graph);
        let of_rows = |op: &&Operation| matches!(op, Operation::Elementwise(op) if op.dims().len() == 3);
        let found = all.iter().find_map(|op| match op {
            Operation::MatMul(op) => Some(op.clone()),
            _ => None,
        });
        (found.expect("the product stays"), all.iter().copied().filter(of_rows).count())
    }

    #[test]
    fn factors_of_columns_go_into_weights_and_added_values() {
        for dtype in [DType::F32, DType::F16] {
            let (op, others) = product(dtype, &[0.5, 2.0, -1.0, 3.0, 0.25], true);
            assert_eq!((op.bias, op.residual, op.activation, others), (true, true, Activation::None, 0));
            let (op, others) = product(dtype, &[0.5], false);
            assert_eq!((op.bias, op.residual, others), (true, false, 0));
        }
    }

    #[test]
    fn small_factors_stay_where_16_bits_would_lose_them() {
        let small = [1e-6, 1.0, 1.0, 1.0, 1.0];
        // What the input adds is larger than what is lost.
        assert_eq!(product(DType::F16, &small, true).1, 0);
        assert_eq!(product(DType::F16, &small, false).1, 1);
        assert_eq!(product(DType::F32, &small, false).1, 0);
        let weights = Values::Float(vec![0.5, -3.0, 2.0]).to_bytes(DType::F16);
        assert_eq!(largest_half(&weights), 3.0);
    }
}
