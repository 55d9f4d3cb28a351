//! Weights of products on matrix units in the order in which kernels read them straight into registers: brought to it at load, where all
//! targets are faster so.

use halite_ops::{Op, Operation, fragments, matmul::MatMul};
use halite_sizes::Size;

use super::{
    flow::{StorageClass, StorageId},
    from_graph::FlowBuilder,
    pool::Known,
};
use crate::{SourceLocation, backend::Computation};

/// Whether all targets are estimated to compute the second of two operations faster than the first.
pub(super) type Prefers<'a> = &'a dyn Fn(&Operation, &Operation) -> bool;

impl FlowBuilder<'_> {
    /// A computation with its weights in fragments, and with these among the inputs, where that is faster.
    pub(super) fn in_fragments(
        &mut self,
        computation: &Computation,
        inputs: &mut [StorageId],
        location: &SourceLocation,
    ) -> Computation {
        let Computation::Operation(operation) = computation else { return computation.clone() };
        let Operation::MatMul(op) = &**operation else { return computation.clone() };
        let mut weights = match self.class(inputs[1]) {
            StorageClass::Constant(id) => Known::Constant(id),
            StorageClass::Packed(id) => Known::Packed(id),
            _ => return computation.clone(),
        };
        let Some(wanted) = wanted(op).filter(|wanted| (self.prefers)(operation, wanted)) else {
            return computation.clone();
        };
        let [terms, columns] = [op.k, op.n].map(Size::exact);
        let bytes = terms * columns * 2;
        for copy in fragments::copies(terms, columns, op.rhs_transposed) {
            let copied = self.pool.pack(&Operation::StridedCopy(copy), vec![weights], &[bytes], location);
            weights = Known::Packed(copied[0]);
        }
        if let Known::Packed(id) = weights {
            inputs[1] = self.storage(StorageClass::Packed(id), bytes.into());
        }
        Computation::Operation(Box::new(wanted))
    }
}

/// The product with its weights in fragments, if there is such a one.
fn wanted(op: &MatMul) -> Option<Operation> {
    let is_known = op.m.is_constant() && op.batch.is_constant() && fragments::are_whole(op.k, op.n);
    let is_empty = || [op.batch, op.m, op.k, op.n].iter().any(|size| size.exact() == 0);
    if !is_known || is_empty() {
        return None;
    }
    let wanted = MatMul { rhs_fragments: true, rhs_transposed: false, ..op.clone() };
    wanted.check().is_ok().then_some(Operation::MatMul(wanted))
}
