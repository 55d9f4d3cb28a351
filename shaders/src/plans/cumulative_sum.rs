//! The dispatches of the kernels of `cumulative_sum`, by template.

use halite_ops::cumulative_sum::CumulativeSum;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::module,
    plans::{
        Lower,
        lines::{self, Share},
    },
};

impl Lower for CumulativeSum {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        lines::plan(&self.lines(), template, params, 4, |share, mode, pieces| {
            step(self, build, share, mode, pieces)
        })
    }
}

fn step(op: &CumulativeSum, build: &str, share: &Share, mode: u32, pieces: Slot) -> Result<Step, Unfit> {
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&[mode, op.exclusive.into(), op.reverse.into()]),
        push: share.push(&[]),
        bindings: vec![Slot::Input(0), Slot::Output(0), pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}
