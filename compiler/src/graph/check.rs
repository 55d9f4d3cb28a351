//! The rules that every graph keeps, as a check.

use std::collections::HashSet;

use halite_ops::TensorDesc;

use halite_sizes::Size;

use super::{ForeignBinding, ForeignKernel, Graph, Node, NodeOp, Region, TensorId};
use crate::{CompileError, Control, SourceLocation, Stage, control::Watch};

impl Graph {
    /// Whether the graph keeps its rules: every tensor is defined once and before it is used, and has the type and size that
    /// the nodes around it ask for. For tests, and after passes in debug builds.
    ///
    /// # Errors
    /// Names the node and the rule.
    pub fn check(&self) -> Result<(), CompileError> {
        self.check_while(Control::new().at(Stage::Importing))
    }

    /// The same, as long as it is wanted.
    pub(crate) fn check_while(&self, watch: Watch<'_>) -> Result<(), CompileError> {
        let constants = self.tensors.iter().enumerate().filter(|(_, t)| t.constant.is_some());
        let mut known: HashSet<TensorId> = constants.map(|(i, _)| TensorId(i as u32)).collect();
        for (id, tensor) in self.tensors.iter().enumerate() {
            if let Some(bytes) = tensor.constant.as_ref().filter(|c| c.len() as u64 != tensor.bytes()) {
                let what = self.describe(TensorId(id as u32));
                return Err(wrong(&SourceLocation::default(), format!("{what} has {} bytes", bytes.len())));
            }
        }
        let same =
            |ports: &[super::Port], ids: &[TensorId]| ports.iter().map(|p| p.tensor).eq(ids.iter().copied());
        if !same(&self.inputs, &self.body.parameters) || !same(&self.outputs, &self.body.results) {
            return Err(wrong(&SourceLocation::default(), "ports are not those of the body".to_owned()));
        }
        self.check_states()?;
        self.check_region(&self.body, &mut known, watch)
    }

    fn check_region(
        &self,
        region: &Region,
        known: &mut HashSet<TensorId>,
        watch: Watch<'_>,
    ) -> Result<(), CompileError> {
        // What the region defines, which those around it do not see.
        let mut own: Vec<TensorId> =
            region.parameters.iter().copied().filter(|id| known.insert(*id)).collect();
        for node in &region.nodes {
            self.check_in_region(node, known, watch)?;
            if let Some(id) = node.outputs.iter().find(|id| !known.insert(**id)) {
                return Err(wrong(&node.location, format!("{} is computed twice", self.describe(*id))));
            }
            own.extend(&node.outputs);
        }
        if let Some(id) = region.results.iter().find(|id| !known.contains(id)) {
            return Err(wrong(
                &SourceLocation::default(),
                format!("the result {} is not computed", self.describe(*id)),
            ));
        }
        for id in &own {
            known.remove(id);
        }
        Ok(())
    }

    /// A node among what is known before it, and the regions in it.
    fn check_in_region(
        &self,
        node: &Node,
        known: &mut HashSet<TensorId>,
        watch: Watch<'_>,
    ) -> Result<(), CompileError> {
        watch.check()?;
        if let Some(id) = node.inputs.iter().find(|id| !known.contains(id)) {
            return Err(wrong(
                &node.location,
                format!("{} is read before it is computed", self.describe(*id)),
            ));
        }
        self.check_node(node)?;
        match &node.op {
            NodeOp::If(branches) => {
                for branch in branches.iter() {
                    self.check_region(branch, known, watch)?;
                    self.same_types(node, &branch.results, &node.outputs)?;
                }
            }
            NodeOp::Loop(body) => {
                self.check_region(body, known, watch)?;
                self.same_types(node, &body.parameters, &node.inputs)?;
                self.same_types(node, &body.results, &node.inputs[1..])?;
                self.same_types(node, &node.outputs, &node.inputs[2..])?;
            }
            NodeOp::Operation(_) | NodeOp::Foreign(_) | NodeOp::View | NodeOp::Host(_) => {}
        }
        Ok(())
    }

    pub(crate) fn check_node(&self, node: &Node) -> Result<(), CompileError> {
        match &node.op {
            NodeOp::Operation(operation) => {
                crate::backend::check(operation)
                    .map_err(|reason| wrong(&node.location, format!("{operation}: {reason}")))?;
                self.same_as(node, &node.inputs, &operation.inputs())?;
                self.same_as(node, &node.outputs, &operation.outputs())
            }
            NodeOp::Foreign(kernel) => {
                kernel.check().map_err(|reason| wrong(&node.location, format!("{kernel}: {reason}")))?;
                self.same_bindings(node, kernel)
            }
            NodeOp::View => {
                let sizes: Vec<_> =
                    node.inputs.iter().chain(&node.outputs).map(|id| self.tensor(*id).byte_size()).collect();
                if node.inputs.len() == 1 && sizes.len() == 2 && sizes[0].agrees(sizes[1]) {
                    return Ok(());
                }
                Err(wrong(&node.location, format!("a view of tensors of {sizes:?} bytes")))
            }
            NodeOp::If(_) if node.inputs.len() == 1 => Ok(()),
            NodeOp::If(_) => Err(wrong(&node.location, "an if has one input".to_owned())),
            NodeOp::Host(work) => work.check(node, self).map_err(|reason| wrong(&node.location, reason)),
            NodeOp::Loop(_) if node.inputs.len() >= 2 => Ok(()),
            NodeOp::Loop(_) => Err(wrong(&node.location, "a loop has at least two inputs".to_owned())),
        }
    }

    /// Tensors of a foreign kernel: each is bound, with the bytes that its binding says.
    fn same_bindings(&self, node: &Node, kernel: &ForeignKernel) -> Result<(), CompileError> {
        let mut bound = [vec![false; node.inputs.len()], vec![false; node.outputs.len()]];
        for binding in &kernel.bindings {
            let (ids, bound, index) = match binding {
                ForeignBinding::Input { index, .. } => (&node.inputs, &mut bound[0], *index),
                ForeignBinding::Output { index, .. } => (&node.outputs, &mut bound[1], *index),
            };
            let fits = ids.get(index).is_some_and(|id| self.tensor(*id).byte_size() == binding.bytes());
            if !fits {
                return Err(wrong(
                    &node.location,
                    format!("{kernel} has {binding:?} for [{}]", self.list(ids)),
                ));
            }
            bound[index] = true;
        }
        match bound.iter().flatten().all(|bound| *bound) {
            true => Ok(()),
            false => Err(wrong(&node.location, format!("{kernel} does not bind all of its tensors"))),
        }
    }

    /// Tensors of an operation: types and numbers of elements agree; dimensions are the graph's own matter.
    fn same_as(&self, node: &Node, ids: &[TensorId], descs: &[TensorDesc]) -> Result<(), CompileError> {
        let fits = |(id, desc): (&TensorId, &TensorDesc)| {
            let tensor = self.tensor(*id);
            // Sizes that data decide, on either side, are equal by a promise.
            let same = tensor.count().agrees(desc.elements());
            tensor.element.storage() == desc.dtype && same
        };
        if ids.len() == descs.len() && ids.iter().zip(descs).all(fits) {
            return Ok(());
        }
        Err(wrong(&node.location, format!("tensors [{}] where the operation has {descs:?}", self.list(ids))))
    }

    fn same_types(&self, node: &Node, some: &[TensorId], others: &[TensorId]) -> Result<(), CompileError> {
        let of = |id: &TensorId| (self.tensor(*id).element, self.tensor(*id).sizes());
        let same = |(a, b): (&TensorId, &TensorId)| {
            let ((a, own), (b, sizes)) = (of(a), of(b));
            // Sizes that data decide have symbols of their own inside and outside.
            let equal = |(a, b): (&Size, &Size)| a.is_data() || b.is_data() || a == b;
            a == b && own.len() == sizes.len() && own.iter().zip(sizes).all(equal)
        };
        if some.len() == others.len() && some.iter().zip(others).all(same) {
            return Ok(());
        }
        let (some, others) = (self.list(some), self.list(others));
        Err(wrong(&node.location, format!("tensors [{some}] where there should be [{others}]")))
    }
}

fn wrong(location: &SourceLocation, reason: String) -> CompileError {
    CompileError::invalid(location, format!("internal: {reason}"))
}
