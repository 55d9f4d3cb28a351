//! The dispatches of the kernels of `reduce`, by template.

use halite_ops::{
    DType,
    lines::Lines,
    reduce::{Reduce, ReduceKind},
};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{
        Lower,
        lines::{self, Share, packed_name},
    },
};

impl Lower for Reduce {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "whole" => whole(self, build, params),
            "split" => split(self, build, params),
            "columns" => columns(self, build, params),
            other => Err(lines::unknown(other)),
        }
    }
}

/// One dispatch, or a part of two.
fn step(op: &Reduce, build: &str, share: &Share, slots: [Slot; 2], ends: [bool; 2]) -> Result<Step, Unfit> {
    let kind = ReduceKind::ALL.iter().position(|k| *k == op.kind).unwrap_or_default() as u32;
    let (constants, push) = match op.kind {
        ReduceKind::LogSumExp => (share.constants(&[]), share.push(&[])),
        _ => {
            let ends = ends.map(u32::from);
            (share.constants(&[kind, ends[0], ends[1]]), share.push(&[narrow("length", op.length)?]))
        }
    };
    Ok(Step {
        module: module(build)?,
        constants,
        push,
        bindings: slots.to_vec(),
        grid: share.grid(),
        subgroup_size: 0,
    })
}

fn whole(op: &Reduce, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let share = lines::share(&op.lines(), params)?;
    let slots = [Slot::Input(0), Slot::Output(0)];
    Ok(Plan::of(step(op, build, &share, slots, [true, true])?))
}

/// Four neighbouring lines at a time: one dispatch, or where the variant is for pieces, a second one for what came of them.
fn columns(op: &Reduce, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.inner < 4 || !op.inner.is_multiple_of(4) {
        return Err(Unfit("takes four neighbouring lines".into()));
    }
    let fours = Lines { inner: op.inner / 4, ..op.lines() };
    if params.get("groups").is_err() {
        let share = lines::share(&fours, params)?;
        let slots = [Slot::Input(0), Slot::Output(0)];
        return Ok(Plan::of(step(op, build, &share, slots, [true, true])?));
    }
    let share = lines::split(&fours, params)?;
    let pieces = Lines { length: share.chunks, ..fours };
    let rest = lines::whole(&pieces, share.along)?.beside(share.across);
    let last = match op.dtype {
        DType::F32 => "reduce_columns_f32".to_owned(),
        dtype => format!("reduce_columns_f32_{}", packed_name(dtype)),
    };
    let scratch = Slot::Scratch(0);
    let steps = vec![
        step(op, build, &share, [Slot::Input(0), scratch], [true, false])?,
        step(op, &last, &rest, [scratch, Slot::Output(0)], [false, true])?,
    ];
    Ok(Plan::new(steps, vec![pieces.elements() * 4 * DType::F32.size()]))
}

/// Pieces of lines first, then what came of them.
fn split(op: &Reduce, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let share = lines::split(&op.lines(), params)?;
    let pairs = op.kind == ReduceKind::LogSumExp;
    let pieces = Lines { outer: share.lines(), length: share.chunks, inner: 1.into() };
    let rest = lines::whole(&pieces, 128);
    let last = match (pairs, op.dtype) {
        (true, _) => format!("reduce_lse_{}_last", packed_name(op.dtype)),
        (false, dtype) if dtype.size() >= 4 => format!("reduce_{}", op.dtype),
        (false, _) => format!("reduce_f32_{}", packed_name(op.dtype)),
    };
    let scratch = Slot::Scratch(0);
    let steps = vec![
        step(op, build, &share, [Slot::Input(0), scratch], [true, false])?,
        step(op, &last, &rest?, [scratch, Slot::Output(0)], [false, true])?,
    ];
    let bytes = if pairs { 8 } else { op.dtype.size().max(4) };
    Ok(Plan::new(steps, vec![pieces.elements() * bytes]))
}
