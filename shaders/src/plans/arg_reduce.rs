//! The dispatches of the kernels of `arg_reduce`, by template.

use halite_ops::{DType, arg_reduce::ArgReduce, lines::Lines};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::module,
    plans::{
        Lower,
        lines::{self, Share},
        order,
    },
};

impl Lower for ArgReduce {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "split" => split(self, build, params),
            _ => lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
                step(self, build, share, mode, pieces)
            }),
        }
    }
}

fn step(op: &ArgReduce, build: &str, share: &Share, mode: u32, pieces: Slot) -> Result<Step, Unfit> {
    let wide = op.indices == DType::I64;
    let dtype = order::number_of(op.dtype)?;
    let constants = [dtype, mode, op.smallest.into(), op.last.into(), wide.into()];
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&constants),
        push: share.push(&[]),
        bindings: vec![Slot::Input(0), Slot::Output(0), pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}

fn split(op: &ArgReduce, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let share = lines::split(&op.lines(), params)?;
    let pieces = Lines { outer: share.lines(), length: share.chunks, inner: 1.into() };
    let (scratch, merged) = (Slot::Scratch(0), lines::whole(&pieces, 128)?);
    let steps = vec![step(op, build, &share, 1, scratch)?, step(op, build, &merged, 2, scratch)?];
    Ok(Plan::new(steps, vec![pieces.elements() * 8]))
}
