//! Steps over tensors that lie in runs of others: operations that write and read them there, and copies of those that are elsewhere.

use std::borrow::Cow;

use halite_ops::{Operation, concat::Concat, runs::Runs};

use super::{
    flow::{Step, StorageClass, StorageId},
    from_graph::FlowBuilder,
    runs::{Seat, elementwise_reading, moving, parts, reading, within, writing},
};
use crate::{
    CompileError,
    backend::Computation,
    graph::{Node, NodeOp, TensorId},
};

/// Runs of elements of a size as runs of bytes.
fn in_bytes(runs: Runs, element: u64) -> Runs {
    let [length, pitch, offset] = [runs.length, runs.pitch, runs.offset].map(|elements| elements * element);
    Runs { length, pitch, offset }
}

impl FlowBuilder<'_> {
    /// The place of what is computed in runs of another.
    pub(super) fn seated(&mut self, tensor: TensorId, seat: Seat) -> StorageId {
        let root = self.joining(seat.root);
        let runs = in_bytes(seat.runs, self.element_bytes(tensor));
        let bytes = self.graph.tensor(tensor).byte_size();
        let id = self.storage(StorageClass::Runs(root, runs), bytes);
        self.of.insert(tensor, id);
        id
    }

    /// Makes a tensor the runs, in elements, of a storage. `false` where that is something else than was thought.
    pub(super) fn show_runs(&mut self, tensor: TensorId, from: StorageId, runs: Runs) -> bool {
        let inner = in_bytes(runs, self.element_bytes(tensor));
        let (root, runs) = match self.class(from) {
            StorageClass::Runs(root, outer) => (root, within(outer, inner)),
            StorageClass::Transient | StorageClass::Input(_) => (from, Some(inner)),
            _ => (from, None),
        };
        let Some(runs) = runs else { return false };
        let id = self.storage(StorageClass::Runs(root, runs), self.graph.tensor(tensor).byte_size());
        self.of.insert(tensor, id);
        true
    }

    /// Brings together what a node joins in runs: what was not computed there is copied there.
    pub(super) fn join_runs(&mut self, node: &Node, concat: &Concat) -> Result<(), CompileError> {
        let (result, Some(whole)) = (node.outputs[0], self.seats.joined(node.outputs[0])) else {
            return Ok(());
        };
        let to = self.result(result);
        let root = self.flow.root(to);
        for (input, part) in parts(concat, whole).enumerate() {
            let (read, from) = (node.inputs[input], self.of(node.inputs[input])?);
            let runs = in_bytes(part.runs, concat.dtype.size());
            let is_there = self.class(from) == StorageClass::Runs(root, runs);
            if is_there || !self.copied.insert((from, (root, runs.offset))) {
                continue;
            }
            let own = Concat {
                sizes: vec![concat.sizes[input]],
                written: Some(part.runs),
                ..Concat::new(concat.outer, &[], concat.inner, concat.dtype)
            };
            let operation = match self.runs_of(read)? {
                Some(shown) => {
                    let count = self.graph.tensor(read).count() / shown.length;
                    let refused = || CompileError::invalid(&node.location, "it joins no such runs");
                    moving(concat.dtype, count, shown, part.runs).ok_or_else(refused)?
                }
                None => Operation::Concat(own),
            };
            let to = self.storage(StorageClass::Runs(root, runs), concat.outer * runs.length);
            self.flow.steps.push(Step::Compute {
                computation: Computation::Operation(Box::new(operation)),
                inputs: vec![from],
                outputs: vec![to],
                location: node.location.clone(),
            });
        }
        Ok(())
    }

    /// The runs, in elements, that a tensor is of another.
    fn runs_of(&mut self, tensor: TensorId) -> Result<Option<Runs>, CompileError> {
        let from = self.of(tensor)?;
        let StorageClass::Runs(_, bytes) = self.class(from) else { return Ok(None) };
        let size = self.element_bytes(tensor);
        let [length, pitch, offset] = [bytes.length, bytes.pitch, bytes.offset].map(|bytes| bytes / size);
        Ok(Some(Runs { length, pitch, offset }))
    }

    fn element_bytes(&self, tensor: TensorId) -> u64 {
        let tensor = self.graph.tensor(tensor);
        (tensor.byte_size() / tensor.count().max(1)).value().max(1)
    }

    /// A node with what it reads and writes in runs.
    pub(super) fn with_runs<'n>(
        &mut self,
        node: &'n Node,
        computation: Computation,
    ) -> Result<(Cow<'n, Node>, Computation), CompileError> {
        let mut read: Vec<(TensorId, Runs)> = Vec::new();
        for id in &node.inputs {
            read.extend(self.runs_of(*id)?.map(|runs| (*id, runs)));
        }
        let written = node.outputs.first().and_then(|id| self.seats.seat(*id));
        let mut operation = match computation {
            Computation::Operation(operation) if !read.is_empty() || written.is_some() => operation,
            other => return Ok((Cow::Borrowed(node), other)),
        };
        let refused = || CompileError::invalid(&node.location, "it takes no tensors that are runs of others");
        let mut node = Cow::Borrowed(node);
        if matches!(*operation, Operation::Elementwise(_)) && !read.is_empty() {
            let runs = |id| read.iter().find(|(own, _)| *own == id).map(|(_, runs)| *runs);
            let made = elementwise_reading(self.graph, &node, runs).ok_or_else(refused)?;
            if let NodeOp::Operation(reading) = &made.op {
                *operation = reading.clone();
            }
            node = Cow::Owned(made);
        } else if let Some((id, runs)) = read.first() {
            let first = read.len() == 1 && node.inputs[0] == *id && !node.inputs[1..].contains(id);
            *operation = reading(&operation, *runs).filter(|_| first).ok_or_else(refused)?;
        }
        if let Some(seat) = written {
            *operation = writing(&operation, seat.runs).ok_or_else(refused)?;
        }
        Ok((node, Computation::Operation(operation)))
    }
}
