//! What passes compute of constants: nodes that a session does once, when it loads a module.

use std::collections::HashSet;

use halite_ops::{
    DType, Operation,
    concat::Concat,
    elementwise::Elementwise,
    expression::{Expression, Operand},
    reduce::{Reduce, ReduceKind},
};
use halite_sizes::Size;

use crate::graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId};

/// What a region computes of constants alone.
pub(super) fn known(graph: &Graph, region: &Region) -> HashSet<TensorId> {
    let mut known: HashSet<TensorId> = HashSet::new();
    for node in &region.nodes {
        let is_known = |id: &TensorId| graph.tensor(*id).constant.is_some() || known.contains(id);
        let plain = matches!(
            node.op,
            NodeOp::Operation(
                Operation::Concat(_)
                    | Operation::Elementwise(_)
                    | Operation::Reduce(_)
                    | Operation::StridedCopy(_)
            ) | NodeOp::View
        );
        if plain && node.inputs.iter().all(is_known) {
            known.extend(&node.outputs);
        }
    }
    known
}

/// Makes nodes over constants.
pub(super) struct Constants<'a> {
    /// The graph of the tensors.
    pub graph: &'a mut Graph,
    /// Where they are put.
    pub nodes: &'a mut Vec<Node>,
    /// What they are for.
    pub node: &'a Node,
}

impl Constants<'_> {
    /// A tensor of so many dimensions, of others that lie beside it.
    pub fn elementwise(
        &mut self,
        inputs: &[(TensorId, DType, Vec<Size>)],
        dtype: DType,
        dims: &[Size],
        compute: impl FnOnce(&mut Expression, &[Operand]) -> Operand,
    ) -> TensorId {
        let operands: Vec<Operand> = (0..inputs.len()).map(Operand::Input).collect();
        let mut program = Expression::default();
        let value = compute(&mut program, &operands);
        program.store(value, dtype);
        let shapes: Vec<_> = inputs.iter().map(|(_, dtype, dims)| (*dtype, dims.clone())).collect();
        let operation = Operation::Elementwise(Elementwise::new(shapes, program));
        self.push(operation, inputs.iter().map(|(id, ..)| *id).collect(), dtype, dims)
    }

    /// Sums of 32 bits along the middle one of three dimensions.
    pub fn sums(&mut self, terms: TensorId, dims: [Size; 3]) -> TensorId {
        self.sums_of(terms, DType::F32, dims)
    }

    /// The same of terms of a type, which sums are rounded to.
    pub fn sums_of(&mut self, terms: TensorId, dtype: DType, [outer, length, inner]: [Size; 3]) -> TensorId {
        let reduce = Reduce { kind: ReduceKind::Sum, outer, length, inner, dtype };
        self.push(Operation::Reduce(reduce), vec![terms], dtype, &[outer * inner])
    }

    /// Vectors of a length, one behind the other.
    pub fn rows(&mut self, vectors: &[TensorId], dtype: DType, length: u64) -> TensorId {
        let concat = Concat::new(1u64, &vec![length; vectors.len()], 1u64, dtype);
        let dims = [Size::from(vectors.len() as u64), length.into()];
        self.push(Operation::Concat(concat), vectors.to_vec(), dtype, &dims)
    }

    /// A vector of zeros.
    pub fn zeros(&mut self, dtype: DType, length: u64) -> TensorId {
        let name = self.node.location.as_str().to_owned();
        let mut tensor = Tensor::new(name, ElementType::Of(dtype), Shape::new([length]));
        tensor.constant = Some(vec![0; (length * dtype.size()) as usize].into());
        self.graph.add_tensor(tensor)
    }

    fn push(&mut self, operation: Operation, inputs: Vec<TensorId>, dtype: DType, dims: &[Size]) -> TensorId {
        let name = self.node.location.as_str().to_owned();
        let shape = Shape::new(dims.iter().copied());
        let id = self.graph.add_tensor(Tensor::new(name, ElementType::Of(dtype), shape));
        let (op, location) = (NodeOp::Operation(operation), self.node.location.clone());
        self.nodes.push(Node { op, inputs, outputs: vec![id], location });
        id
    }
}
