//! The dispatches of the kernels of `expert_matmul`, by template.

use halite_ops::{
    Op,
    blocks::CHUNK,
    expert_matmul::{ExpertMatMul, RowLayout},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{MOST_TURNS, fixed, groups, module, narrow},
    plans::{
        Lower,
        block_matmul::{matrix::Tiling, whole_words},
        moves::narrow_all,
    },
};

/// Rows of the result for which weights are read anew for each: as many as take no part in halves.
const FEW_ROWS: u64 = ExpertMatMul::EXACT_ROWS;
/// Invocations of a workgroup on matrix units, twice as many as columns.
const COOP_LANES: u32 = 128;
/// Invocations that look for rows with the same expert, and how many experts they have counters for.
const FINDING_LANES: u32 = 256;
const MOST_EXPERTS: u64 = 2048;

impl Lower for ExpertMatMul {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "coop" => coop(self, build),
            "matrix" => matrix(self, build, params),
            "tiled" => tiled(self, build, params),
            "vector" => vector(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn step(
    op: &ExpertMatMul,
    build: &str,
    constants: Vec<u32>,
    rows: Option<[Size; 2]>,
    grid: [Size; 3],
) -> Result<Plan, Unfit> {
    // Kernels count the bytes of weights.
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let own = [op.n, op.k / CHUNK, op.sharing(), op.first, op.experts];
    let mut push = Vec::new();
    if let Some([rows, _]) = rows {
        push.push(narrow("rows", rows)?);
    }
    for number in own {
        push.push(fixed("a number", number)?.into());
    }
    if let Some([_, piece]) = rows {
        push.push(narrow("rows", piece)?);
    }
    let mut bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), Slot::Output(0)];
    if let RowLayout::Blocks(format) = op.format {
        bindings.extend(format.codebook().map(|_| Slot::Input(3)));
    }
    Ok(Plan::of(Step { module: module(build)?, constants, push, bindings, grid, subgroup_size: 0 }))
}

/// Refuses more than so many rows.
fn up_to(most: u64, op: &ExpertMatMul) -> Result<(), Unfit> {
    match op.rows() > most {
        true => Err(Unfit(format!("is for up to {most} rows, and these are {}", op.rows()))),
        false => Ok(()),
    }
}

fn vector(op: &ExpertMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, span, columns) = (params.get("lanes")?, params.get("span")?, params.get("columns")?);
    up_to(FEW_ROWS, op)?;
    if !span.is_power_of_two() || !lanes.is_multiple_of(span) || columns == 0 {
        return Err(Unfit(format!("has {span} of {lanes} invocations for {columns} columns")));
    }
    let grid = [groups(op.n, lanes / span * columns)?, op.rows(), 1.into()];
    step(op, build, vec![lanes, span, columns], None, grid)
}

/// The kernel of `block_matmul` for few rows on matrix units, a row of the result at a time.
fn matrix(op: &ExpertMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    // Of so many experts, few rows have the same.
    up_to(FEW_ROWS.max(op.experts), op)?;
    let RowLayout::Blocks(format) = op.format else { return Err(Unfit("is for weights in blocks".into())) };
    whole_words(format, op.k, op.experts.saturating_mul(op.n))?;
    // What is not known is one row or more.
    let rows = if op.rows().is_constant() { op.rows().exact().max(1) } else { op.used.max(1) };
    let tiling = Tiling::new(format, (op.k / CHUNK, 1), op.n.div_ceil(16), rows, params)?;
    let constants =
        [tiling.lanes, tiling.parts, tiling.whole.into(), tiling.round, tiling.turns, tiling.own.into()];
    step(op, build, constants.into(), None, [tiling.groups.into(), op.rows(), 1.into()])
}

/// Matrix units: tiles of as many rows as most experts have, which a first step finds.
fn coop(op: &ExpertMatMul, build: &str) -> Result<Plan, Unfit> {
    if op.rows() <= FEW_ROWS {
        return Err(Unfit(format!("is for more than {FEW_ROWS} rows, and these are {}", op.rows())));
    }
    let bm = if op.rows() > op.experts.saturating_mul(32) { 64 } else { 32 };
    if op.experts > MOST_EXPERTS {
        return Err(Unfit(format!("is for up to {MOST_EXPERTS} experts, and these are {}", op.experts)));
    }
    let columns = COOP_LANES / 2;
    // Each expert, and those that are not there, may have a tile that is not full.
    let tiles = narrow("tiles", op.rows().div_ceil(bm) + (op.experts + 1))?;
    let grid = [groups(op.n, columns)?, tiles, 1.into()];
    let mut product = step(op, build, vec![COOP_LANES, bm, columns], None, grid)?.steps;
    for step in &mut product {
        let codebook = step.bindings.split_off(4);
        step.bindings =
            [Slot::Input(0), Slot::Input(1), Slot::Scratch(0), Slot::Output(0), Slot::Scratch(1)].into();
        step.bindings.extend(codebook);
    }
    let find = Step {
        module: module("expert_matmul_rows")?,
        constants: vec![FINDING_LANES, bm, fixed("experts", op.experts + 1)?],
        push: vec![narrow("rows", op.rows())?, fixed("the first expert", op.first)?.into(), tiles],
        bindings: vec![Slot::Input(2), Slot::Scratch(0), Slot::Scratch(1)],
        grid: [1.into(); 3],
        subgroup_size: 0,
    };
    Ok(Plan::new([vec![find], product].concat(), vec![tiles * 16, op.rows() * 4]))
}

/// Turns of all loops in which rows of a tile are computed, and those in which they are looked for.
pub(crate) fn turns_of_a_tile(k: u64, [bm, bn, lanes]: [u32; 3]) -> u64 {
    let reads = (bm * 8).div_ceil(lanes) + bn.div_ceil(lanes);
    (k / CHUNK + 1) * u64::from(33 + reads) + u64::from(bm)
}

fn tiled(op: &ExpertMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, tm) = (p("lanes")?, p("bm")?, p("bn")?, p("tm")?);
    if lanes * tm * 4 != bm * bn || !tm.is_multiple_of(4) || !bm.is_multiple_of(tm) || bm > lanes {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    // All rows may be of one expert: loops of processors, which end them early, are through with so many.
    let piece = match params.get("pieces") {
        Ok(1) => Size::from(u64::from(bm) * (MOST_TURNS / turns_of_a_tile(op.k, [bm, bn, lanes])).max(1)),
        _ => op.rows().max(1),
    };
    let pieces = narrow("a number of pieces", op.rows().div_ceil(piece))?;
    let grid = [groups(op.n, bn)?, op.experts.into(), pieces];
    step(op, build, vec![lanes, bm, bn, tm], Some([op.rows(), piece]), grid)
}

#[cfg(test)]
mod tests {
    use halite_ops::{Operation, blocks::BlockFormat};

    use super::*;
    use crate::variants_of;

    /// The workgroups and constants of a kernel for 768 columns of 2048 terms in Q4_K.
    fn plan(way: &str, tokens: u64, used: u64, experts: u64) -> Result<([u64; 3], Vec<u32>), Unfit> {
        let format = RowLayout::Blocks(BlockFormat::Q4K);
        let (shared, n, k, tokens) = (true, 768, 2048, tokens.into());
        let op = ExpertMatMul { tokens, used, shared, n, k, experts, first: 0, format };
        let name = format!("expert_matmul.q4_k.{way}");
        let variant = variants_of("expert_matmul").find(|v| v.name == name).expect(&name);
        let plan = variant.plan(&Operation::ExpertMatMul(op))?;
        let last = plan.steps.last().expect("every plan has a step");
        Ok((last.exact_grid().map(u64::from), last.constants.clone()))
    }

    #[test]
    fn many_rows_go_to_matrix_units_in_tiles() {
        // (columns of workgroups, tiles, rows of a tile)
        let of = |tokens, used, experts| {
            plan("coop", tokens, used, experts).map(|(grid, constants)| (grid, constants[1]))
        };
        assert_eq!(of(512, 8, 128), Ok(([12, 128 + 129, 1], 32)));
        assert_eq!(of(512, 2, 8), Ok(([12, 16 + 9, 1], 64)));
        assert_eq!(of(17, 2, 8), Ok(([12, 2 + 9, 1], 32)));
        assert!(of(512, 2, 4096).is_err(), "there are no counters for so many");
        assert!([of(16, 2, 8), of(1, 8, 128), of(4, 8, 128)].iter().all(Result::is_err));
    }

    #[test]
    fn few_rows_share_the_device() {
        // (workgroups of a row, rows), (invocations, subgroups that share a tile, whole steps, …, activations of its own)
        let of = |tokens, used, experts| {
            plan("matrix16", tokens, used, experts).map(|(grid, c)| (grid, [c[0], c[1], c[2], c[5]]))
        };
        // 48 tiles of 8 steps for each row.
        assert_eq!(of(1, 1, 8), Ok(([48, 1, 1], [256, 8, 1, 1])));
        assert_eq!(of(1, 8, 128), Ok(([48, 8, 1], [128, 4, 1, 1])));
        let (grid, constants) = of(8, 8, 128).unwrap();
        assert_eq!((grid[1], constants[1]), (64, 1), "one subgroup for a tile, of so many");
        assert!(of(17, 2, 8).is_err() && of(17, 8, 128).is_err());
    }

    #[test]
    fn a_codebook_is_behind_all_that_every_format_has() {
        let format = RowLayout::Blocks(BlockFormat::Iq2Xxs);
        let bindings = |way: &str, tokens: u64| {
            let (shared, n, k, tokens) = (true, 768, 2048, tokens.into());
            let op = ExpertMatMul { tokens, used: 8, shared, n, k, experts: 128, first: 0, format };
            let name = format!("expert_matmul.iq2xxs.{way}");
            let variant = variants_of("expert_matmul").find(|v| v.name == name).expect(&name);
            let plan = variant.plan(&Operation::ExpertMatMul(op)).expect("fits");
            plan.steps.last().expect("every plan has a step").bindings.clone()
        };
        let [lhs, weights, chosen, codebook] = [0, 1, 2, 3].map(Slot::Input);
        let result = Slot::Output(0);
        // As the templates say: CODEBOOK_SLOT is 4, and 5 where rows have been found before.
        assert_eq!(bindings("matrix16", 1), [lhs, weights, chosen, result, codebook]);
        let [tiles, rows] = [0, 1].map(Slot::Scratch);
        assert_eq!(bindings("coop", 512), [lhs, weights, tiles, result, rows, codebook]);
    }
}
