//! What rows cost that products normalize, or whose sums they take and leave.

use halite_ops::{Operation, matmul::MatMul};

use crate::{Params, Plan, plans::matmul::adding};

/// Microseconds of a dispatch that normalizes rows, and bytes that it reads and writes in a microsecond: 1,576 rows of 768 halves take
/// 6.4 on an H200.
const NORMALIZED: (f64, f64) = (3.0, 1.4e6);

/// A product without what it does with rows, the plan of it, and microseconds that the rest takes; `None` for those that do nothing.
pub(super) fn beside(operation: &Operation, params: &Params, plan: &Plan) -> Option<(Operation, Plan, f64)> {
    let Operation::MatMul(op) = operation else { return None };
    if let Some((product, rest)) = behind_norm(op, plan) {
        let bytes = 2.0 * plan.scratch.last()?.value() as f64;
        return Some((product, rest, NORMALIZED.0 + bytes / NORMALIZED.1));
    }
    if op.lhs_norm.is_none() && !op.row_sums {
        return None;
    }
    let plain = MatMul { lhs_norm: None, lhs_sums: false, row_sums: false, ..op.clone() };
    Some((Operation::MatMul(plain), plan.clone(), summed(op, params)?))
}

/// Microseconds that sums of rows take in a product: adding them up, or taking and leaving them.
fn summed(op: &MatMul, params: &Params) -> Option<f64> {
    let taken = match op.lhs_norm {
        Some(_) if op.lhs_sums => SUMS.0,
        Some(_) => adding(op, params)?,
        None => 0.0,
    };
    Some(taken + if op.row_sums { SUMS.1 } else { 0.0 })
}

/// Microseconds that a product takes longer where it takes sums of rows, and where it leaves such. Both are guesses: five shapes took 0 to 3.5
/// longer with sums that were given, and four that leave some 1.7 to 4.2, of which the estimate was not fitted.
const SUMS: (f64, f64) = (1.0, 0.5);

/// A product behind the dispatch of its plan that normalizes rows of the left operand, and what is left of the plan.
fn behind_norm(op: &MatMul, plan: &Plan) -> Option<(Operation, Plan)> {
    op.lhs_norm?;
    // Kernels that normalize rows themselves have one dispatch.
    let [_, rest @ ..] = &plan.steps[..] else { return None };
    let scratch = plan.scratch.get(..plan.scratch.len().checked_sub(1)?)?;
    (!rest.is_empty()).then(|| {
        let product = Operation::MatMul(MatMul { lhs_norm: None, ..op.clone() });
        (product, Plan::new(rest.to_vec(), scratch.to_vec()))
    })
}
