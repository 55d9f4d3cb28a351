//! The dispatches of the kernels of `line_codes`, by template.

use halite_ops::line_codes::{CodeRule, LineCodes};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::module,
    plans::{
        Lower,
        epilogue::activation_code,
        lines::{self, Share},
    },
};

impl Lower for LineCodes {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if self.norm.is_some() && template == "split" {
            return Err(Unfit("has pieces of lines, and these are normalized as a whole".into()));
        }
        lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
            step(self, build, share, mode, pieces)
        })
    }
}

fn step(op: &LineCodes, build: &str, share: &Share, mode: u32, pieces: Slot) -> Result<Step, Unfit> {
    let rule = CodeRule::ALL.into_iter().zip(0..).find(|(rule, _)| *rule == op.rule).map_or(0, |(_, n)| n);
    let factors = Slot::Input(usize::from(op.norm.is_some()));
    // Without codes nothing is written there.
    let codes = if op.codes.is_some() { Slot::Output(2) } else { Slot::Output(1) };
    // Bounds may be below 0: as the bits that the kernel reads.
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let bits = [op.least as u32, op.most as u32, op.smallest.0.to_bits(), epsilon.to_bits()].map(Into::into);
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&[
            mode,
            rule,
            op.divide.into(),
            op.zero_first.into(),
            op.codes.is_some().into(),
            op.norm.is_some().into(),
            op.gate.is_some().into(),
            activation_code(op.gate.unwrap_or_default()),
        ]),
        push: share.push(&bits),
        bindings: vec![Slot::Input(0), Slot::Output(0), Slot::Output(1), codes, pieces, factors],
        grid: share.grid(),
        subgroup_size: 0,
    })
}
