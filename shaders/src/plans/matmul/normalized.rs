//! Products whose left operand has rows that are normalized: by kernels on matrix units that add them up while they multiply them, or
//! by a dispatch before those that do not.

use halite_ops::{
    DType, Operation,
    matmul::MatMul,
    norm::{Norm, NormKind},
};
use halite_sizes::is_worth;

use crate::{Params, Plan, Unfit, plans::Lower};

/// Whether the kernels of a template normalize rows themselves.
pub(super) fn is_taken(op: &MatMul, template: &str, params: &Params) -> bool {
    let is_one = |name| params.get(name).unwrap_or(1) == 1;
    let words = || is_worth(|| op.k.is_multiple_of(8)) && is_worth(|| op.n.is_multiple_of(4));
    super::is_coop(template)
        && [op.lhs, op.rhs] == [DType::F16; 2]
        && is_one("parts")
        && is_one("slices")
        && op.norm.is_none()
        && op.k.is_constant()
        && words()
        && (op.lhs_sums && template == super::FRAGMENTS || adds_rows_up(op, params))
}

/// Whether kernels add rows up themselves. A dispatch before takes 3 µs and what it reads and writes, and as long as a barrier.
fn adds_rows_up(op: &MatMul, params: &Params) -> bool {
    const DISPATCH: (f64, f64) = (4.5, 2.9e-6);
    adding(op, params).is_some_and(|adding| adding < DISPATCH.0 + DISPATCH.1 * elements(op))
}

/// Microseconds that kernels take longer where they add rows up, which each column of tiles does again: on an H200, 2,048 rows of 768
/// take 12 in products with 9 and 12 columns of tiles.
pub(crate) fn adding(op: &MatMul, params: &Params) -> Option<f64> {
    const COLUMN: f64 = 9e-7;
    Some(COLUMN * op.n.div_ceil(params.get("bn").ok()?).as_f64() * elements(op))
}

/// Elements of the left operand.
fn elements(op: &MatMul) -> f64 {
    op.m.as_f64() * op.batch.as_f64() * op.k.as_f64()
}

/// The plan of other kernels: rows are normalized to memory before.
pub(super) fn before(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let plain = MatMul { lhs_norm: None, lhs_sums: false, ..op.clone() };
    let plan = plain.lower(template, build, params)?;
    super::behind(plan, &plain, 0, &normalization(op)?)
}

/// What becomes of the left operand's rows.
fn normalization(op: &MatMul) -> Result<Operation, Unfit> {
    let Some(epsilon) = op.lhs_norm else { return Err(Unfit("normalizes no rows".into())) };
    if !op.k.is_constant() {
        return Err(Unfit("normalizes rows whose length is known".into()));
    }
    let rows = op.batch * op.m;
    Ok(Operation::Norm(Norm::of_lines(NormKind::Group, rows, op.k.exact(), epsilon, op.lhs)))
}
