//! The dispatch behind a product whose sums are cut: it adds the parts, and may normalize rows of what they are.

use halite_ops::{DType, matmul::MatMul, runs::Runs};

use super::{epilogue, quads};
use crate::{
    Plan, Slot, Step, Unfit,
    plan::{fixed_groups, groups, module, narrow},
    plans::moves::flat_grid,
};

/// Invocations of a kernel that only adds.
const ADD_LANES: u32 = 128;

/// The plan that lets `step` write `parts` results one behind the other, and adds them.
pub(super) fn summed(op: &MatMul, mut step: Step, parts: u32) -> Result<Plan, Unfit> {
    let length = op.batch * op.m * op.n;
    narrow("a number of elements of all parts", length * u64::from(parts))?;
    // What is added comes with the second step.
    step.bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Scratch(0), Slot::Input(1), Slot::Input(1)];
    let bytes = (length * u64::from(parts) * 4).max(4);
    if let Some(epsilon) = op.norm {
        return Ok(Plan::new(vec![step, normalized(op, parts, epsilon.0)?], vec![bytes]));
    }
    let run = op.written.unwrap_or(Runs { length: 0, pitch: 0, offset: 0 });
    let (epilogue, [bias, residual]) = epilogue(op);
    let build = match op.out {
        DType::F32 => "matmul_parts_f32",
        DType::F16 => "matmul_parts_f16",
        DType::I32 => "matmul_parts_i32",
        other => return Err(Unfit(format!("adds no parts of {other}"))),
    };
    let in_quads = quads(op.n) == 1 && op.written.is_none_or(|runs| runs.are_multiples_of(4));
    let each = if in_quads { 4 } else { 1 };
    let add = Step {
        module: module(build)?,
        constants: [&[ADD_LANES, parts][..], &epilogue, &[op.written.is_some().into(), in_quads.into()]]
            .concat(),
        push: [length, op.n, run.length.into(), run.pitch.into(), run.offset.into()]
            .map(|size| narrow("a size", size))
            .into_iter()
            .collect::<Result<_, _>>()?,
        bindings: vec![Slot::Scratch(0), Slot::Output(0), bias, residual],
        grid: [groups(length, ADD_LANES * each)?, 1.into(), 1.into()],
        subgroup_size: 0,
    };
    Ok(Plan::new(vec![step, add], vec![bytes]))
}

/// Quads of a row that an invocation keeps at most.
const MOST_KEPT: u32 = 8;

/// The step that adds parts and normalizes rows of what they are.
fn normalized(op: &MatMul, parts: u32, epsilon: f32) -> Result<Step, Unfit> {
    let build = match op.out {
        DType::F32 => "matmul_parts_norm_f32",
        DType::F16 => "matmul_parts_norm_f16",
        other => return Err(Unfit(format!("normalizes no rows of {other}"))),
    };
    if quads(op.n) == 0 || !op.n.is_constant() {
        return Err(Unfit(format!("normalizes rows of quads whose number is known, not of {}", op.n)));
    }
    let kept = fixed_groups(op.n.exact(), ADD_LANES * 4)?.max(1);
    if kept > MOST_KEPT {
        let most = MOST_KEPT * ADD_LANES * 4;
        return Err(Unfit(format!("normalizes rows of up to {most} elements, not of {}", op.n)));
    }
    let (epilogue, [bias, residual]) = epilogue(op);
    let scale = op.scale_input();
    let shift = Slot::Input(if op.centered { scale + 1 } else { scale });
    let rows = narrow("a number of rows", op.batch * op.m)?;
    Ok(Step {
        module: module(build)?,
        constants: [&[ADD_LANES, parts][..], &epilogue, &[kept, op.centered.into()]].concat(),
        push: vec![rows, narrow("n", op.n)?, epsilon.to_bits().into()],
        bindings: vec![
            Slot::Scratch(0),
            Slot::Output(0),
            bias,
            residual,
            Slot::Input(scale),
            shift,
            Slot::Output(1),
        ],
        grid: flat_grid(rows, 1)?,
        subgroup_size: 0,
    })
}
