//! The dispatches of the kernels of `concat`, by template.

use halite_ops::{Op, concat::Concat};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, Walk, factor, narrow_all, six},
    },
};

impl Lower for Concat {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "place" => place(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn place(op: &Concat, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let factor = factor(params.get("unit")?, op.dtype)?;
    let row = narrow("a row", op.written.map_or(op.total() * op.inner, |runs| runs.pitch.into()))?;
    // Each step writes a part of its own; parts of one word by atomics.
    let mut plan = Plan { independent: true, ..Plan::default() };
    let mut offset = op.written.map_or(0.into(), |runs| Size::from(runs.offset));
    for (input, size) in op.sizes.iter().enumerate() {
        let block = *size * op.inner;
        // The source is dense, and is walked in the order of this.
        let walk = Walk { sizes: vec![op.outer, block], strides: vec![row, 1.into()], offset };
        offset += block;
        let walk = if block == 0 || op.outer == 0 { walk.merged() } else { walk.merged().widened(factor)? };
        let mut push = vec![narrow("an offset", walk.offset)?];
        push.extend(six(&walk.strides));
        let mover = Mover::new(build, params, &walk.sizes)?.by_unit();
        plan.steps.push(mover.step(&[], &push, vec![Slot::Input(input), Slot::Output(0)])?);
    }
    Ok(plan)
}
