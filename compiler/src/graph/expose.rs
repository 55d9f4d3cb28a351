//! Looking into graphs while they run: giving out what every node computes, and what it should be by the operations' references.

use halite_ops::{DType, Tolerance, Values};

use super::{Graph, Node, NodeOp, Port, TensorId};

/// What a node's results should be.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The results, as they are stored.
    pub values: Vec<Values>,
    /// How far a device's may be off.
    pub tolerance: Tolerance,
}

impl Graph {
    /// The graph with further outputs, behind its own: everything that the nodes of its body compute, but for views. Nodes
    /// inside of branches and loops are not looked into. Gives the tensors of these outputs, too.
    pub fn exposed(&self) -> (Graph, Vec<TensorId>) {
        let mut graph = self.clone();
        let computed = self.body.nodes.iter().filter(|node| !matches!(node.op, NodeOp::View));
        let tensors: Vec<TensorId> = computed.flat_map(|node| node.outputs.iter().copied()).collect();
        for (index, tensor) in tensors.iter().enumerate() {
            graph.body.results.push(*tensor);
            graph.outputs.push(Port {
                name: format!("computed {index}"),
                tensor: *tensor,
                value: None,
                shape: None,
            });
        }
        (graph, tensors)
    }

    /// What a node computes of these values of its inputs; `None` where there is no reference: for control flow, views, and
    /// kernels that models bring along.
    pub fn expected(&self, node: &Node, inputs: &[Values]) -> Option<Expected> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let magnitudes: Vec<f64> = inputs.iter().map(Values::magnitude).collect();
        let made = operation.reference(inputs).into_iter().zip(&node.outputs);
        let stored = |(values, id): (Values, &TensorId)| {
            let dtype = self.stored_type(*id);
            Values::from_bytes(dtype, &values.to_bytes(dtype))
        };
        Some(Expected { values: made.map(stored).collect(), tolerance: operation.tolerance(&magnitudes) })
    }

    /// The type that a tensor's elements are stored in.
    pub fn stored_type(&self, id: TensorId) -> DType {
        self.tensor(id).element.storage()
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::*;
    use crate::build::Builder;

    #[test]
    fn everything_that_is_computed_is_given_out_and_has_a_reference() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[4]).unwrap();
        let negative = b.unary(Function::Neg, x).unwrap();
        let sum = b.binary(Function::Add, negative, negative).unwrap();
        b.output("y", sum);
        let graph = b.finish().unwrap();
        let (exposed, tensors) = graph.exposed();
        exposed.check().unwrap();
        assert_eq!(exposed.outputs.len(), 1 + tensors.len());
        let x = Values::Float(vec![1.0, -2.0, 0.5, 4.0]);
        let all = exposed.evaluate(std::slice::from_ref(&x)).unwrap();
        let mut known = vec![(graph.inputs[0].tensor, x)];
        for node in &graph.body.nodes {
            let inputs: Vec<Values> = node
                .inputs
                .iter()
                .map(|id| known.iter().find(|(own, _)| own == id).unwrap().1.clone())
                .collect();
            let expected = graph.expected(node, &inputs).unwrap();
            for (id, values) in node.outputs.iter().zip(expected.values) {
                let place = tensors.iter().position(|own| own == id).unwrap();
                assert_eq!(values.floats(), all[1 + place].floats());
                known.push((*id, values));
            }
        }
    }
}
