//! Products whose left operand has rows that are normalized: by kernels on matrix units that add them up while they multiply them, or
//! by a dispatch before those that do not.

use halite_ops::{
    DType, Op, Operation,
    matmul::MatMul,
    norm::{Norm, NormKind},
};
use halite_sizes::{Size, is_worth};

use crate::{Params, Plan, Slot, Unfit, plans::Lower, variants_of};

/// Whether the kernels of a template normalize rows themselves.
pub(super) fn is_taken(op: &MatMul, template: &str, params: &Params) -> bool {
    let is_one = |name| params.get(name).unwrap_or(1) == 1;
    let words = || is_worth(|| op.k.is_multiple_of(8)) && is_worth(|| op.n.is_multiple_of(4));
    template == "coop"
        && [op.lhs, op.rhs] == [DType::F16; 2]
        && is_one("parts")
        && is_one("slices")
        && op.norm.is_none()
        && op.k.is_constant()
        && words()
}

/// Constants and push constants that tell the kernels of such a template.
pub(super) fn constants(op: &MatMul) -> (Vec<u32>, Vec<Size>) {
    let constants = op.lhs_norm.map(|epsilon| vec![1, epsilon.0.to_bits()]);
    (constants.unwrap_or_default(), Vec::new())
}

/// The plan of other kernels: rows are normalized to memory before.
pub(super) fn before(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let plain = MatMul { lhs_norm: None, ..op.clone() };
    let mut plan = plain.lower(template, build, params)?;
    let left = plain.inputs().remove(0);
    let between = Slot::Scratch(plan.scratch.len());
    plan.scratch.push(left.bytes().max(4));
    for slot in plan.steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = if *slot == Slot::Input(0) { between } else { *slot };
    }
    let norm = normalization(op)?;
    let signature = norm.signature();
    let mut all = variants_of(norm.name())
        .filter(|variant| variant.needs.is_baseline() && variant.signatures.contains(&signature));
    let steps = all.find_map(|variant| variant.plan(&norm).ok().filter(|plan| plan.steps.len() == 1));
    let Some(mut step) = steps.and_then(|plan| plan.steps.into_iter().next()) else {
        return Err(Unfit(format!("finds no single dispatch for {norm}")));
    };
    for slot in &mut step.bindings {
        *slot = if *slot == Slot::Output(0) { between } else { *slot };
    }
    plan.steps.insert(0, step);
    Ok(Plan { independent: false, ..plan })
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
