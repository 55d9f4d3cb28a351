//! The dispatches of the kernels of `gather_nd`, by template.

use halite_ops::{Op, gather_nd::GatherNd, moves::MOST_DIMS};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, factor, index_words, narrow_all},
    },
};

impl Lower for GatherNd {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "slices" => gathered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn gathered(op: &GatherNd, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let factor = factor(params.get("unit")?, op.dtype)?;
    if !op.inner.is_multiple_of(factor) {
        return Err(Unfit(format!("moves {factor} elements at a time, slices have {}", op.inner)));
    }
    let sizes = [op.batch, op.slices, op.inner / factor].map(Size::from);
    let extents = op.extents.iter().map(|e| narrow("a dimension", *e)).collect::<Result<Vec<_>, _>>()?;
    let push: Vec<Size> = extents.into_iter().chain(std::iter::repeat(1.into())).take(MOST_DIMS).collect();
    let mover = Mover::new(build, params, &sizes)?;
    let bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)];
    let constants = [index_words(op.index), op.extents.len() as u32];
    Ok(Plan::of(mover.step(&constants, &push, bindings)?))
}
