//! The dispatches of the kernels of `quant_matmul`, by template.

use halite_ops::{
    DType, Op,
    quant_matmul::{CHUNK, QuantMatMul},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, fixed_groups, groups, module, narrow},
    plans::{
        Lower,
        epilogue::{Added, activation_code},
    },
};

impl Lower for QuantMatMul {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "given" => given(self, build, params),
            "matrix" => matrix(self, build, params),
            "rows" => rows(self, build, params),
            "tiled" => tiled(self, build, params),
            "vector" => vector(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Rows of activations that the kernels for few rows can hold.
const FEW_ROWS: u64 = 8;
/// Chunks that a subgroup takes at a time in `matrix.comp`.
const STEP: u32 = 8;

fn chunks(op: &QuantMatMul) -> Result<[u32; 2], Unfit> {
    Ok([fixed("k", op.k / CHUNK)?, fixed("a group", op.group / CHUNK)?])
}

/// Every kernel has all bindings; those that an operation has no tensor for hold the weights.
fn bindings(op: &QuantMatMul) -> Vec<Slot> {
    let zeros = if op.zero_points { Slot::Input(3) } else { Slot::Input(1) };
    let own = op.left_inputs();
    let [lhs_scales, lhs_zeros] = own.map(|own| own.map_or(Slot::Input(1), Slot::Input));
    let [bias, residual] = op.added_inputs().map(|own| own.map_or(Slot::Input(1), Slot::Input));
    let operands = [Slot::Input(0), Slot::Input(1), Slot::Input(2), zeros, lhs_scales];
    operands.into_iter().chain([Slot::Output(0), lhs_zeros, bias, residual]).collect()
}

fn constants(op: &QuantMatMul) -> [u32; 6] {
    let added = Added { bias: op.bias, residual: op.residual, ..Added::default() };
    let [halves, zeros, left] = [op.scales == DType::F16, op.zero_points, op.lhs_zeros].map(u32::from);
    [op.bits, halves, zeros, left, added.code(), activation_code(op.activation)]
}

fn step(
    op: &QuantMatMul,
    build: &str,
    tile: &[u32],
    push: Vec<Size>,
    grid: [Size; 3],
) -> Result<Plan, Unfit> {
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let constants = tile.iter().copied().chain(constants(op)).collect();
    let bindings = bindings(op);
    Ok(Plan::of(Step { module: module(build)?, constants, push, bindings, grid, subgroup_size: 0 }))
}

fn vector(op: &QuantMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, span, columns) = (params.get("lanes")?, params.get("span")?, params.get("columns")?);
    if op.m > FEW_ROWS {
        return Err(Unfit(format!("is for up to {FEW_ROWS} rows, and these are {}", op.m)));
    }
    if span < 8 || !span.is_power_of_two() || !lanes.is_multiple_of(span) || columns > span {
        return Err(Unfit(format!("has {span} of {lanes} invocations for {columns} columns")));
    }
    let rows = fixed("m", op.m)?;
    let [chunks, group] = chunks(op)?;
    let count = groups(op.n, lanes / span * columns)?;
    let grid = [count, rows.min(1).into(), 1.into()];
    let push = vec![narrow("n", op.n)?, chunks.into(), group.into()];
    step(op, build, &[lanes, span, columns, rows.max(1)], push, grid)
}

/// Sums that an invocation of `given` has at most: those of more rows are of fewer columns.
const MOST_GIVEN: u32 = 32;

/// Activations that subgroups exchange, rows in equal shares of which none is more than `rows`.
fn given(op: &QuantMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, most) = (params.get("lanes")?, params.get("rows")?.max(1));
    let rows = match op.m.is_constant() {
        true => {
            let m = op.m.exact().max(1);
            fixed("rows", m.div_ceil(m.div_ceil(most.into())))?
        }
        false => most,
    };
    let columns = params.get("columns")?.min(MOST_GIVEN / rows).max(1);
    let [chunks, group] = chunks(op)?;
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, chunks.into(), group.into()];
    let grid = [groups(op.n, lanes * columns)?, groups(op.m, rows)?, 1.into()];
    step(op, build, &[lanes, rows, columns], push, grid)
}

/// The same with four columns and a number of rows that the build has.
fn rows(op: &QuantMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, rows) = (params.get("lanes")?, params.get("rows")?);
    if rows == 1 && op.m > 1u64 {
        return Err(Unfit(format!("is for one row, not {}", op.m)));
    }
    let [chunks, group] = chunks(op)?;
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, chunks.into(), group.into()];
    let grid = [groups(op.n, lanes * 4)?, groups(op.m, rows)?, 1.into()];
    step(op, build, &[lanes], push, grid)
}

/// Cooperative matrices whose left operands are made in registers, a workgroup for `16 * tiles` columns. Its subgroups,
/// `most` at most, share the sums, so that there are about `subgroups` on the device in all: fewer leave memory idle,
/// more only begin and end.
fn matrix(op: &QuantMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (tiles, most) = (params.get("tiles")?, params.get("most")?);
    if op.m > FEW_ROWS {
        return Err(Unfit(format!("is for up to {FEW_ROWS} rows, and these are {}", op.m)));
    }
    let rows = fixed("m", op.m)?;
    let [chunks, group] = chunks(op)?;
    let count = fixed_groups(op.n, 16 * tiles)?;
    let wanted = params.get("subgroups")?.checked_div(count).unwrap_or(1);
    let share = wanted.min(chunks.div_ceil(STEP)).clamp(1, most.max(1));
    let subgroups = (share + 1).next_power_of_two() / 2;
    let regular = match (chunks.is_multiple_of(STEP), op.scales == DType::F16 && group == 1) {
        (true, true) => 2,
        (whole, _) => u32::from(whole),
    };
    let push = vec![narrow("n", op.n)?, chunks.into(), group.into()];
    let grid = [count, rows.min(1), 1].map(Size::from);
    step(op, build, &[32 * subgroups, tiles, rows.max(1), regular], push, grid)
}

fn tiled(op: &QuantMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, tm) = (p("lanes")?, p("bm")?, p("bn")?, p("tm")?);
    if lanes * tm * 4 != bm * bn || !tm.is_multiple_of(4) || !bm.is_multiple_of(tm) {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    let [chunks, group] = chunks(op)?;
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, chunks.into(), group.into()];
    let grid = [groups(op.n, bn)?, groups(op.m, bm)?, 1.into()];
    step(op, build, &[lanes, bm, bn, tm], push, grid)
}

#[cfg(test)]
mod tests {
    use halite_ops::Samples as _;

    use super::*;

    #[test]
    fn subgroups_share_long_sums_of_few_columns() {
        let params: Params = serde_json::from_str(r#"{"tiles":1,"subgroups":2048,"most":8}"#).unwrap();
        let op = QuantMatMul::samples().into_iter().find(|op| op.m == 1 && op.bits == 4).unwrap();
        let op = QuantMatMul { lhs: DType::F16, out: DType::F16, group: 32, ..op };
        for (n, k, subgroups) in
            [(14336, 4096, 2), (4096, 14336, 8), (16, 64, 1), (100_000, 4096, 1), (3, 0, 1)]
        {
            let op = QuantMatMul { n, k, ..op.clone() };
            let plan = matrix(&op, "quant_matmul_matrix_f16_f16", &params).unwrap();
            assert_eq!(plan.steps[0].constants[0], 32 * subgroups, "{n} x {k}");
        }
    }
}
