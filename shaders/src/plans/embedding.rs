//! The dispatches of the kernels of `embedding`, by template.

use halite_ops::{DType, Op, embedding::Embedding};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::{fixed, narrow},
    plans::{
        Lower,
        moves::{Mover, index_words, narrow_all},
    },
};

impl Lower for Embedding {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "quantized" => quantized(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn quantized(op: &Embedding, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let sizes = [op.indices, Size::from(op.width / 8)];
    let group = fixed("a group", op.group / 8)?;
    let constants =
        [index_words(op.index), op.bits, (op.scales == DType::F16).into(), op.zero_points.into(), group];
    // Every kernel has all bindings; without zero points theirs holds the weights.
    let zeros = if op.zero_points { Slot::Input(3) } else { Slot::Input(0) };
    let bindings = vec![Slot::Input(0), Slot::Input(1), zeros, Slot::Input(2), Slot::Output(0)];
    let mover = Mover::new(build, params, &sizes)?.by_unit();
    Ok(Plan::of(mover.step(&constants, &[narrow("a number of rows", op.rows)?], bindings)?))
}
