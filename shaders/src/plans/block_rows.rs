//! The dispatches of the kernels of `block_rows`, by template.

use halite_ops::{block_rows::BlockRows, blocks::CHUNK};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, module, narrow},
    plans::{
        Lower,
        moves::{flat_grid, index_words, narrow_all},
    },
};

impl Lower for BlockRows {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "rows" => rows(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn rows(op: &BlockRows, build: &str, params: &Params) -> Result<Plan, Unfit> {
    use halite_ops::Op;

    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let mut bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)];
    bindings.extend(op.format.codebook().map(|_| Slot::Input(2)));
    let (lanes, chunks) = (params.get("lanes")?, op.width / CHUNK);
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: vec![lanes, index_words(op.index)],
        push: vec![narrow("indices", op.indices)?, fixed("a row", chunks)?.into(), narrow("rows", op.rows)?],
        bindings,
        grid: flat_grid(op.indices * chunks, lanes)?,
        subgroup_size: 0,
    }))
}
