//! Weights of products and convolutions on matrix units in the order in which kernels read them straight into registers: brought to it at load, where all
//! targets are faster so.

use halite_ops::{Op, Operation, conv2d::Conv2d, fragments, matmul::MatMul};

use super::{
    flow::{StorageClass, StorageId},
    from_graph::FlowBuilder,
    pool::Known,
};
use crate::{SourceLocation, backend::Computation};

impl FlowBuilder<'_> {
    /// A computation with its weights in fragments, and with these among the inputs, where that is faster.
    pub(super) fn in_fragments(
        &mut self,
        computation: &Computation,
        inputs: &mut [StorageId],
        location: &SourceLocation,
    ) -> Computation {
        let Computation::Operation(operation) = computation else { return computation.clone() };
        let Some((wanted, matrix)) = wanted(operation) else { return computation.clone() };
        let mut weights = match self.class(inputs[1]) {
            StorageClass::Constant(id) => Known::Constant(id),
            StorageClass::Packed(id) => Known::Packed(id),
            _ => return computation.clone(),
        };
        if !(self.prefers)(operation, &wanted) {
            return computation.clone();
        }
        let Matrix { terms, columns, is_transposed } = matrix;
        let bytes = terms * columns * 2;
        for copy in fragments::copies(terms, columns, is_transposed) {
            let copied = self.pool.pack(&Operation::StridedCopy(copy), vec![weights], &[bytes], location);
            weights = Known::Packed(copied[0]);
        }
        if let Known::Packed(id) = weights {
            inputs[1] = self.storage(StorageClass::Packed(id), bytes.into());
        }
        Computation::Operation(Box::new(wanted))
    }
}

/// Weights as the right operand of a product.
struct Matrix {
    terms: u64,
    columns: u64,
    /// Whether they are rows of terms for each column.
    is_transposed: bool,
}

/// The operation with its weights in fragments, if there is such a one, and how they lie now.
fn wanted(operation: &Operation) -> Option<(Operation, Matrix)> {
    match operation {
        Operation::MatMul(op) => {
            let [terms, columns] = [op.k, op.n].map(|size| if size.is_constant() { size.exact() } else { 0 });
            Some((product(op)?, Matrix { terms, columns, is_transposed: op.rhs_transposed }))
        }
        Operation::Conv2d(op) => {
            let shape = op.shape().ok()?;
            let columns = shape.groups * shape.filters;
            Some((convolution(op)?, Matrix { terms: shape.depth(), columns, is_transposed: false }))
        }
        _ => None,
    }
}

/// The convolution with its filters in fragments.
fn convolution(op: &Conv2d) -> Option<Operation> {
    let is_known = op.input.iter().all(|size| size.is_constant() && size.exact() > 0);
    let wanted = Conv2d { filter_fragments: true, ..op.clone() };
    let has_results = || wanted.result().elements().exact() > 0;
    (is_known && wanted.check().is_ok() && has_results()).then_some(Operation::Conv2d(wanted))
}

/// The product with its weights in fragments.
fn product(op: &MatMul) -> Option<Operation> {
    let is_known = op.m.is_constant() && op.batch.is_constant() && fragments::are_whole(op.k, op.n);
    let is_empty = || [op.batch, op.m, op.k, op.n].iter().any(|size| size.exact() == 0);
    if !is_known || is_empty() {
        return None;
    }
    let wanted = MatMul { rhs_fragments: true, rhs_transposed: false, ..op.clone() };
    wanted.check().is_ok().then_some(Operation::MatMul(wanted))
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values};
    use halite_targets::{Capabilities, Target};

    use super::*;
    use crate::{
        CompileOptions, Control, Function, Program, backend::vulkan::Vulkan, build::Builder,
        plan::flow::Step, plan::plan,
    };

    /// Operations at load, and whether weights are in fragments, of a product of so many rows for targets.
    fn planned(targets: &[&str], rows: u64) -> (usize, bool) {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[rows, 128]).unwrap();
        let values = (0..128 * 768).map(|i| f64::from(i % 7)).collect();
        let weights = b.values(DType::F16, &[128, 768], &Values::Float(values)).unwrap();
        let y = b.matmul(x, weights).unwrap();
        b.output("y", y);
        let graph = b.finish().unwrap();
        let program = Program { functions: vec![Function::new("main", vec![graph])], model: None };
        let targets = targets.iter().map(|name| Capabilities::of(Target::parse(name).unwrap())).collect();
        let options = CompileOptions { targets, baseline: false, ..CompileOptions::default() };
        let plan = plan(&program, &options, &Vulkan::new(&options.tuning), &Control::new()).unwrap();
        let in_fragments = |step: &Step| match step {
            Step::Compute { computation: Computation::Operation(op), .. } => {
                matches!(&**op, Operation::MatMul(op) if op.rhs_fragments)
            }
            _ => false,
        };
        (plan.pool.packings.len(), plan.functions[0][0].steps.iter().any(in_fragments))
    }

    #[test]
    fn weights_of_many_rows_are_in_fragments_where_all_targets_are_faster() {
        assert_eq!(planned(&["hopper-h200-linux"], 13_994), (2, true));
        assert_eq!(planned(&["hopper-h200-linux"], 4), (0, false), "few rows");
        assert_eq!(planned(&["hopper-h200-linux", "cpu-swiftshader-unknown"], 13_994), (0, false));
        assert_eq!(planned(&["valhall-g78-android30"], 13_994), (0, false), "no matrix units");
    }
}
