//! The dispatches of the kernels of `block_matmul`, by template.

use halite_ops::{Op, block_matmul::BlockMatMul, blocks::CHUNK};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
    plans::{Lower, moves::flat_grid},
};

impl Lower for BlockMatMul {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "tiled" => tiled(self, build, params),
            "vector" => vector(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Rows of activations that the kernels for few rows can hold.
const FEW_ROWS: u64 = 8;

fn step(
    op: &BlockMatMul,
    build: &str,
    constants: Vec<u32>,
    push: Vec<Size>,
    grid: [Size; 3],
) -> Result<Plan, Unfit> {
    // Kernels count the bytes of weights.
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)];
    Ok(Plan::of(Step { module: module(build)?, constants, push, bindings, grid, subgroup_size: 0 }))
}

fn vector(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, span, columns) = (params.get("lanes")?, params.get("span")?, params.get("columns")?);
    if op.m > FEW_ROWS {
        return Err(Unfit(format!("is for up to {FEW_ROWS} rows, and these are {}", op.m)));
    }
    if !span.is_power_of_two() || !lanes.is_multiple_of(span) || columns == 0 {
        return Err(Unfit(format!("has {span} of {lanes} invocations for {columns} columns")));
    }
    let rows = fixed("m", op.m)?;
    let grid = flat_grid(Size::from(op.n * u64::from(rows.min(1))), lanes / span * columns)?;
    let push = vec![narrow("n", op.n)?, fixed("k", op.k / CHUNK)?.into()];
    step(op, build, vec![lanes, span, rows.max(1), columns], push, grid)
}

fn tiled(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, tm) = (p("lanes")?, p("bm")?, p("bn")?, p("tm")?);
    if lanes * tm * 4 != bm * bn || !tm.is_multiple_of(4) || !bm.is_multiple_of(tm) {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, fixed("k", op.k / CHUNK)?.into()];
    let grid = [groups(op.n, bn)?, groups(op.m, bm)?, 1.into()];
    step(op, build, vec![lanes, bm, bn, tm], push, grid)
}
