//! The values of a graph's tensors while it is checked.

use std::collections::HashMap;

use bytes::Bytes;
use halite_compiler::graph::{Graph, Node, NodeOp, TensorId};
use halite_ops::Values;

use crate::{Result, Value};

/// Values of tensors, as the device has them.
pub(super) struct Known<'a> {
    pub(super) graph: &'a Graph,
    pub(super) computed: HashMap<TensorId, Bytes>,
}

impl Known<'_> {
    /// Adds what was handed in.
    pub(super) fn inputs(&mut self, given: &[Value]) -> Result<()> {
        for (port, value) in self.graph.inputs.iter().zip(given) {
            if let Some(tensor) = value.as_tensor() {
                self.computed.insert(port.tensor, tensor.to_bytes()?);
            }
        }
        Ok(())
    }

    /// Adds what a view shows.
    pub(super) fn views(&mut self, node: &Node) {
        if let (NodeOp::View, [from], [to]) = (&node.op, &node.inputs[..], &node.outputs[..])
            && let Some(bytes) = self.bytes(*from)
        {
            self.computed.insert(*to, bytes);
        }
    }

    fn bytes(&self, id: TensorId) -> Option<Bytes> {
        self.computed.get(&id).or(self.graph.tensor(id).constant.as_ref()).cloned()
    }

    pub(super) fn values(&self, id: TensorId) -> Option<Values> {
        Some(Values::from_bytes(self.graph.stored_type(id), &self.bytes(id)?))
    }
}
