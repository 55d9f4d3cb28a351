//! The dispatches of the kernels of `line_codes`, by template.

use halite_ops::line_codes::{CodeRule, LineCodes};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::module,
    plans::{
        Lower,
        lines::{self, Share},
    },
};

impl Lower for LineCodes {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
            step(self, build, share, mode, pieces)
        })
    }
}

fn step(op: &LineCodes, build: &str, share: &Share, mode: u32, pieces: Slot) -> Result<Step, Unfit> {
    let rule = CodeRule::ALL.into_iter().zip(0..).find(|(rule, _)| *rule == op.rule).map_or(0, |(_, n)| n);
    // Without codes nothing is written there.
    let codes = if op.codes.is_some() { Slot::Output(2) } else { Slot::Output(1) };
    // Bounds may be below 0: as the bits that the kernel reads.
    let bits = [op.least as u32, op.most as u32, op.smallest.0.to_bits()].map(Into::into);
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&[
            mode,
            rule,
            op.divide.into(),
            op.zero_first.into(),
            op.codes.is_some().into(),
        ]),
        push: share.push(&bits),
        bindings: vec![Slot::Input(0), Slot::Output(0), Slot::Output(1), codes, pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}
