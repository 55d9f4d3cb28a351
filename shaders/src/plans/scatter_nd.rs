//! The dispatches of the kernels of `scatter_nd`, by template.

use halite_ops::{Op, moves::MOST_DIMS, scatter_nd::ScatterNd};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, factor, index_words, narrow_all, whole_copy},
        scatters::{Claims, check_many, shares, turns},
    },
};

impl Lower for ScatterNd {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "claimed" => claimed(self, build, params),
            "slices" => scattered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Units of a slice.
fn units(op: &ScatterNd, params: &Params) -> Result<Size, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let factor = factor(params.get("unit")?, op.dtype)?;
    if !op.inner.is_multiple_of(factor) {
        return Err(Unfit(format!("moves {factor} elements at a time, slices have {}", op.inner)));
    }
    Ok(op.inner / factor)
}

/// Push constants with the dimensions that are indexed.
fn extents(op: &ScatterNd) -> Result<Vec<Size>, Unfit> {
    let extents = op.extents.iter().map(|e| narrow("a dimension", *e)).collect::<Result<Vec<_>, _>>()?;
    Ok(extents.into_iter().chain(std::iter::repeat(1.into())).take(MOST_DIMS).collect())
}

/// All updates at once, behind claims to their slices.
fn claimed(op: &ScatterNd, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let places: Size = op.extents.iter().product();
    check_many(params, op.slices, places)?;
    let (inner, push) = (units(op, params)?, extents(op)?);
    let depth = op.extents.len() as u32;
    let claims = Claims { build: "scatter_nd_claim", of: places, push: &push };
    let constants = |clears: bool| [index_words(op.index), clears.into(), depth];
    let mut steps = vec![whole_copy(&op.outputs()[0], Slot::Input(0), Slot::Output(0))?];
    steps.extend(claims.steps(params, &[op.slices], constants)?);
    let sizes = [op.slices, inner];
    let bindings = vec![Slot::Input(1), Slot::Input(2), Slot::Output(0), Slot::Scratch(0)];
    steps.push(Mover::new(build, params, &sizes)?.by_unit().step(&constants(false), &push, bindings)?);
    Ok(Plan::new(steps, vec![claims.bytes()?]).updating())
}

fn scattered(op: &ScatterNd, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (inner, push) = (units(op, params)?, extents(op)?);
    let shares = shares(inner.value(), op.slices.value());
    let slices = narrow("a number of slices", op.slices)?;
    let constants = [index_words(op.index), op.reduction as u32, op.extents.len() as u32];
    let sizes = [Size::from(shares), inner];
    let mover = Mover::new(build, params, &sizes)?.by_unit();
    let mut steps = vec![whole_copy(&op.outputs()[0], Slot::Input(0), Slot::Output(0))?];
    for [first, end] in turns(slices) {
        let push = [&push[..], &[first, end, shares.into()]].concat();
        let bindings = vec![Slot::Input(1), Slot::Input(2), Slot::Output(0)];
        steps.push(mover.clone().step(&constants, &push, bindings)?);
    }
    Ok(Plan::new(steps, Vec::new()).updating())
}
