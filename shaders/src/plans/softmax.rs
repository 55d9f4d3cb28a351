//! The dispatches of the kernels of `softmax`, by template.

use halite_ops::softmax::Softmax;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{
        Lower,
        lines::{self, Share},
    },
};

impl Lower for Softmax {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let held = params.get("held").unwrap_or(0);
        lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
            step(self, build, share, mode, pieces, held)
        })
    }
}

/// `held` fours of a line are kept in registers by each invocation; with 0, lines are read twice.
fn step(op: &Softmax, build: &str, share: &Share, mode: u32, pieces: Slot, held: u32) -> Result<Step, Unfit> {
    let masked = op.mask_rows > 0;
    let most = u64::from(held) * 4 * u64::from(share.along);
    if held > 0 && op.length > most {
        return Err(Unfit(format!("holds lines of up to {most} elements, not of {}", op.length)));
    }
    // No more than the line has: each is a register of four, and a turn of a loop.
    let fours = |length: u64| length.div_ceil(4 * u64::from(share.along)).max(1) as u32;
    let held = if held > 0 && op.length.is_constant() { fours(op.length.exact()) } else { held };
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&[mode, op.log.into(), masked.into(), held]),
        push: share.push(&[narrow("mask_rows", op.mask_rows)?, narrow("mask_heads", op.mask_heads)?]),
        bindings: vec![Slot::Input(0), Slot::Input(masked.into()), Slot::Output(0), pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}
