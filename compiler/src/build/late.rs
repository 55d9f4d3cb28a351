//! What is computed of open sizes as floats, such as positions: a device computes it, so that one plan is for many sizes. Where a size of a
//! tensor depends on it in the end, it is computed here, and the sizes are fixed.

use std::collections::{BTreeSet, HashMap};

use halite_ops::{Operation, Values};
use halite_sizes::Size;

use super::{Builder, Result, budget::Cost, floats::Known};
use crate::graph::{ElementType, NodeOp, TensorId};

/// Most elements of what sizes depend on.
const MOST: u64 = 64;

/// How a tensor is computed of sizes.
#[derive(Debug)]
pub(super) enum Late {
    /// The elements of another.
    View(TensorId),
    /// By an operation with one output.
    Operation(Box<Operation>, Vec<TensorId>),
}

impl Late {
    fn inputs(&self) -> &[TensorId] {
        match self {
            Late::View(from) => std::slice::from_ref(from),
            Late::Operation(_, inputs) => inputs,
        }
    }
}

impl Builder {
    /// Whether the result of an operation on these is left to a device though it could be known: floats of sizes that are open.
    pub(super) fn is_left(&self, inputs: &[TensorId], element: ElementType) -> bool {
        let is_open = |id: &TensorId| {
            let values = self.tensor(*id).values.as_deref();
            values.is_some_and(|values| values.iter().any(|size| !size.is_constant()))
        };
        inputs.iter().any(|id| self.late.contains_key(id)) || element.is_float() && inputs.iter().any(is_open)
    }

    /// An operation whose result could be known and is left to a device. Integers that it computes of sizes are expressions instead.
    pub(super) fn left(
        &mut self,
        operation: Operation,
        inputs: &[TensorId],
        element: ElementType,
        sizes: &[Size],
    ) -> Result<Vec<TensorId>> {
        let floats = self.fold_floats(&operation, inputs);
        let whole =
            floats.as_ref().and_then(|known| known.iter().map(Known::whole).collect::<Option<Vec<_>>>());
        if let Some(values) = whole {
            let dims: Vec<u64> = sizes.iter().map(|size| size.exact()).collect();
            return Ok(vec![self.computed(element, &dims, values)?]);
        }
        let late = Late::Operation(Box::new(operation.clone()), inputs.to_vec());
        let made = self.push(NodeOp::Operation(operation), inputs, &[(element, sizes.to_vec())])?;
        self.leave(made[0], late);
        if let Some(known) = floats {
            self.remember_floats(made[0], known);
        }
        Ok(made)
    }

    /// Notes how a tensor is computed that was left to a device.
    pub(super) fn leave(&mut self, id: TensorId, late: Late) {
        if let Late::View(from) = &late
            && let Some(floats) = self.floats_of_sizes.get(from).cloned()
        {
            self.floats_of_sizes.insert(id, floats);
        }
        let is_small = |id: &TensorId| {
            let count = self.tensor(*id).count();
            count.is_constant() && count.value() <= MOST
        };
        let is_known = |id: &TensorId| {
            let tensor = self.tensor(*id);
            tensor.constant.is_some() || tensor.values.is_some() || self.late.contains_key(id)
        };
        if is_small(&id) && late.inputs().iter().all(|id| is_small(id) && is_known(id)) {
            self.late.insert(id, late);
        }
    }

    /// The elements of a tensor that was left to a device.
    pub(super) fn late(&self, id: TensorId) -> Option<Values> {
        let (mut needed, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if let Some(late) = self.late.get(&id)
                && needed.insert(id)
            {
                open.extend(late.inputs());
            }
        }
        let mut made: HashMap<TensorId, Values> = HashMap::new();
        // What an operation reads came about before its result.
        for id in needed {
            let of = |id: &TensorId| made.get(id).cloned().or_else(|| self.known(*id));
            let values = match &self.late[&id] {
                Late::View(from) => of(from)?,
                Late::Operation(operation, inputs) => {
                    let known: Option<Vec<Values>> = inputs.iter().map(of).collect();
                    operation.reference(&known?).into_iter().next()?
                }
            };
            self.budget.count(Cost::Folding, 32 + values.len() as u64);
            made.insert(id, values);
        }
        made.remove(&id)
    }
}
