//! The dispatches of the kernels of `gather`, by template.

use halite_ops::{Op, gather::Gather};

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, factor, index_words, narrow_all},
    },
};

impl Lower for Gather {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "rows" => gathered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn gathered(op: &Gather, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let factor = factor(params.get("unit")?, op.dtype)?;
    if !op.inner.is_multiple_of(factor) {
        return Err(Unfit(format!("moves {factor} elements at a time, rows have {}", op.inner)));
    }
    let sizes = [op.outer, op.indices, op.inner / factor];
    let mover = Mover::new(build, params, &sizes)?;
    let bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)];
    Ok(Plan::of(mover.step(&[index_words(op.index)], &[narrow("a dimension", op.axis)?], bindings)?))
}
