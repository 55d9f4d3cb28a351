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
        && adds_rows_up(op, params)
}

/// Whether kernels add rows up themselves, which each column of tiles does again: on an H200, 2,048 rows of 768 take 12 µs longer so in products
/// with 9 and 12 columns of tiles. A dispatch before takes 3 µs and what it reads and writes, and as long as a barrier.
fn adds_rows_up(op: &MatMul, params: &Params) -> bool {
    const COLUMN: f64 = 9e-7;
    const DISPATCH: (f64, f64) = (4.5, 2.9e-6);
    let Ok(columns) = params.get("bn") else { return false };
    let (columns, elements) =
        (op.n.div_ceil(columns).as_f64(), op.m.as_f64() * op.batch.as_f64() * op.k.as_f64());
    COLUMN * columns * elements < DISPATCH.0 + DISPATCH.1 * elements
}

/// The plan of other kernels: rows are normalized to memory before.
pub(super) fn before(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let plain = MatMul { lhs_norm: None, ..op.clone() };
    let plan = plain.lower(template, build, params)?;
    super::behind(plan, &plain, 0, &normalization(op)?)
}

/// What becomes of the left operand's rows.
fn normalization(op: &MatMul) -> Result<Operation, Unfit> {
    let Some(epsilon) = op.lhs_norm else { return Err(Unfit("normalizes no rows".into())) };
    if !op.k.is_constant() {
        return Err(Unfit("normalizes rows whose length is known".into()));
    }
    Ok(Operation::Norm(Norm {
        kind: NormKind::Group,
        batch: op.batch * op.m,
        channels: op.k.exact(),
        spatial: 1.into(),
        groups: 1,
        scale: false,
        bias: false,
        epsilon,
        dtype: op.lhs,
        order: None,
    }))
}
