//! Sums of a result's rows and of their squares, from which products behind take means and deviations: by kernels on matrix units that
//! leave them beside the result, or by a dispatch behind those that do not.

use halite_ops::{Op, matmul::MatMul};
use halite_sizes::Size;

use super::tiles::Tiles;
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::Lower,
};

/// Invocations of the kernel that adds rows up.
const LANES: u32 = 128;

/// Refuses tiles whose kernels of `coop.comp` leave or take no sums.
pub(super) fn check(op: &MatMul, tiles: &Tiles) -> Result<(), Unfit> {
    if op.row_sums && !(tiles.are_strips() && super::leaves_by_strips(op)) {
        return Err(Unfit("leaves sums of rows where results leave by strips".into()));
    }
    let lanes = tiles.team() * tiles.slices;
    if op.lhs_sums && lanes < tiles.bm {
        return Err(Unfit(format!(
            "takes sums of {} rows with an invocation for each, and has {lanes}",
            tiles.bm
        )));
    }
    Ok(())
}

/// The bindings of kernels of `coop.comp`. What is not there has the place of something else, and nothing reads or writes it.
pub(super) fn bindings(op: &MatMul, params: &Params) -> Vec<Slot> {
    let mut bindings = super::bindings(op);
    if params.get("ring").is_ok() {
        bindings.push(Slot::Input(if op.lhs_sums { op.inputs().len() - 1 } else { 1 }));
        bindings.push(Slot::Output(op.outputs().len() - 1));
    }
    bindings
}

/// The plan of other kernels.
pub(super) fn behind(op: &MatMul, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let plain = MatMul { row_sums: false, ..op.clone() };
    let mut plan = plain.lower(template, build, params)?;
    let rows = narrow("a number of rows", op.batch * op.m)?;
    let columns = narrow("a number of columns", op.n / Size::from(MatMul::SUMMED))?;
    plan.steps.push(Step {
        module: module("matmul_row_sums_f16")?,
        constants: vec![LANES],
        push: vec![rows, columns],
        bindings: vec![Slot::Output(0), Slot::Output(1)],
        grid: [groups(rows * columns, LANES)?, 1.into(), 1.into()],
        subgroup_size: 0,
    });
    Ok(Plan { independent: false, ..plan })
}
