//! The dispatches of the kernels of `block_matmul`, by template.

pub(super) mod matrix;
mod several;

use halite_ops::{
    DType, Op, Operation,
    block_matmul::BlockMatMul,
    blocks::{BlockFormat, CHUNK},
    matmul::MatMul,
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit, Variant,
    plan::{fixed, groups, module, narrow},
    plans::{
        Lower,
        epilogue::{Added, activation_code},
        moves::flat_grid,
    },
    variants_of,
};

impl Lower for BlockMatMul {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "given" => given(self, build, params),
            "held" => held(self, build, params),
            "matrix" => matrix::plan(self, build, params),
            "quads" => quads(self, build, params),
            "several" => several::plan(self, build, params),
            "tiled" => tiled(self, build, params),
            "unpacked" => unpacked(self, build, params),
            "vector" => vector(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Sums that the workgroups of a kernel keep in shared memory, a float for each invocation: 16 KiB of 128 invocations.
const MOST_SUMS: u32 = 32;
/// Rows of weights times chunks that an invocation has at once in registers.
const MOST_AHEAD: u32 = 8;

/// What is done to sums: two constants.
fn finish(op: &BlockMatMul) -> [u32; 2] {
    let added = Added { bias: op.bias, residual: op.residual, ..Added::default() };
    [added.code(), activation_code(op.gate.unwrap_or(op.activation))]
}

/// Operands, the result, a bias and a residual, the scale of rows; a codebook where formats have one. What else is not there has the
/// activations' place, and nothing reads it.
fn bindings(op: &BlockMatMul) -> Vec<Slot> {
    let first = op.behind_weights();
    let behind = first + usize::from(op.norm.is_some());
    let [scale, bias] = [op.norm.is_some(), op.bias].map(|there| if there { first } else { 0 });
    let bias = if op.bias { behind } else { bias };
    let residual = if op.residual { behind + usize::from(op.bias) } else { 0 };
    let mut all = vec![
        Slot::Input(0),
        Slot::Input(1),
        Slot::Output(0),
        Slot::Input(bias),
        Slot::Input(residual),
        Slot::Input(scale),
    ];
    all.extend(codebook(op));
    all
}

/// The codebook of the weights' format.
fn codebook(op: &BlockMatMul) -> Option<Slot> {
    op.format.codebook().map(|_| Slot::Input(2))
}

fn step(
    op: &BlockMatMul,
    build: &str,
    constants: Vec<u32>,
    push: Vec<Size>,
    grid: [Size; 3],
) -> Result<Step, Unfit> {
    // Kernels count the bytes of weights.
    let bytes = op.format.row_bytes(op.k).map_err(Unfit)?.saturating_mul(op.weight_rows());
    narrow("bytes of weights", bytes)?;
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    Ok(Step { module: module(build)?, constants, push, bindings: bindings(op), grid, subgroup_size: 0 })
}

/// Kernels on matrix units read weights in words of 16 bytes, the last of which a binding must hold whole. Blocks of other formats are
/// as many words, or are not read beyond their last one.
pub(super) fn whole_words(format: BlockFormat, k: u64, rows: u64) -> Result<(), Unfit> {
    let bytes = format.row_bytes(k).map_err(Unfit)?.saturating_mul(rows);
    match format {
        BlockFormat::Q2K
        | BlockFormat::Q3K
        | BlockFormat::Iq4Xs
        | BlockFormat::Mxfp4
        | BlockFormat::Iq2Xxs
        | BlockFormat::Iq2Xs
        | BlockFormat::Iq3Xxs
        | BlockFormat::Iq3S
        | BlockFormat::Tq2_0
        | BlockFormat::Nvfp4
            if !bytes.is_multiple_of(16) =>
        {
            Err(Unfit(format!("is for weights of whole 16 bytes, not of {bytes}")))
        }
        _ => Ok(()),
    }
}

/// The rows of activations, which are few.
fn few_rows(op: &BlockMatMul) -> Result<u32, Unfit> {
    if op.m > BlockMatMul::FEW_ROWS {
        return Err(Unfit(format!("is for up to {} rows, and these are {}", BlockMatMul::FEW_ROWS, op.m)));
    }
    fixed("m", op.m)
}

/// Four invocations for each chunk.
fn quads(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, span) = (params.get("lanes")?, params.get("span")?);
    let (columns, ahead) = (params.get("columns")?, params.get("ahead")?);
    let rows = few_rows(op)?;
    // With more rows, adding up what so many invocations have takes longer than reading with them saves.
    let most = params.get("most_rows").unwrap_or(rows);
    if rows > most {
        return Err(Unfit(format!("is for up to {most} rows, and these are {rows}")));
    }
    if span < 4 || !span.is_power_of_two() || !lanes.is_multiple_of(span) || lanes > 128 {
        return Err(Unfit(format!("has {span} of {lanes} invocations for a column")));
    }
    let (each, normed) = (1 + u32::from(op.gate.is_some()), u32::from(op.norm.is_some()));
    let sums = |columns: u32| rows.max(1) * (columns * each + normed);
    let columns = (1..=columns.max(1)).rev().find(|columns| sums(*columns) <= MOST_SUMS);
    let columns = columns.ok_or_else(|| Unfit(format!("has no room for the sums of {rows} rows")))?;
    let ahead = ahead.min(MOST_AHEAD / (columns * each)).max(1);
    let constants = [lanes, span, rows.max(1), columns].into_iter().chain(finish(op));
    let constants = constants.chain([normed, op.gate.is_some().into(), ahead]).collect();
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let push = vec![narrow("n", op.n)?, fixed("k", op.k / CHUNK)?.into(), epsilon.to_bits().into()];
    let grid = flat_grid(Size::from(op.n * u64::from(rows.min(1))), lanes / span * columns)?;
    Ok(Plan::of(step(op, build, constants, push, grid)?))
}

/// Units of 32 of a row that an invocation holds at most, where no more invocations share it.
const MOST_HELD: u64 = 4;
/// Invocations that share a row at most.
const WIDEST: u64 = 128;
/// The row in registers, columns in turns.
fn held(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, columns) = (params.get("lanes")?, params.get("columns")?.max(1));
    if !op.m.is(1.into()) {
        return Err(Unfit(format!("is for one row, and these are {}", op.m)));
    }
    let chunks = op.k / CHUNK;
    if chunks == 0 {
        return Err(Unfit("is for sums of something".into()));
    }
    let fits = |span: &u64| chunks.div_ceil(*span) <= u64::from(params.get("held").unwrap_or(1));
    let span = [32, 64].into_iter().find(fits).unwrap_or(WIDEST);
    let units = chunks.div_ceil(span);
    if units > MOST_HELD {
        return Err(Unfit(format!(
            "holds rows of up to {} elements, not {}",
            MOST_HELD * WIDEST * CHUNK,
            op.k
        )));
    }
    let (span, units) = (fixed("a team", span)?, fixed("units", units)?);
    let lanes = lanes.max(span);
    let enough = u64::from(params.get("enough")?).max(1);
    // As many columns at a time, and more turns, only where enough workgroups are left.
    let groups_of = |columns: u32| op.n / u64::from(lanes / span * columns);
    let halved = |columns: &u32| (*columns > 1).then_some(columns / 2);
    let columns = std::iter::successors(Some(columns), halved)
        .find(|columns| groups_of(*columns) >= enough / 2)
        .unwrap_or(1);
    let each = lanes / span * columns;
    let (normed, gated) = (u32::from(op.norm.is_some()), u32::from(op.gate.is_some()));
    // Where a row has several subgroups: on an H100, 14336 columns of 4096 with gates, two at a time, took 207 µs in turns and 44
    // without, and four at a time 67 to 104. Registers are the likely reason, which nobody looked at.
    let crowded = gated == 1 && columns > 1 && span > 32;
    if crowded && columns > 2 {
        return Err(Unfit(format!(
            "takes up to two columns with gates where several subgroups share a row of {}, not {columns}",
            op.k
        )));
    }
    let most = if crowded { 1 } else { op.n / (u64::from(each) * enough) };
    let turns = fixed("turns", most.clamp(1, params.get("turns")?.max(1).into()))?;
    let constants = [lanes, span, units, columns].into_iter().chain(finish(op));
    let whole = chunks == u64::from(span * units);
    let constants = constants.chain([normed, gated, turns, whole.into()]).collect();
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let push = vec![narrow("n", op.n)?, fixed("k", chunks)?.into(), epsilon.to_bits().into()];
    let grid = flat_grid(Size::from(op.n), each * turns)?;
    Ok(Plan::of(step(op, build, constants, push, grid)?))
}

/// An invocation for each chunk.
fn vector(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, span, columns) = (params.get("lanes")?, params.get("span")?, params.get("columns")?);
    let rows = few_rows(op)?;
    if !span.is_power_of_two() || !lanes.is_multiple_of(span) || columns == 0 {
        return Err(Unfit(format!("has {span} of {lanes} invocations for {columns} columns")));
    }
    let grid = flat_grid(Size::from(op.n * u64::from(rows.min(1))), lanes / span * columns)?;
    let push = vec![narrow("n", op.n)?, fixed("k", op.k / CHUNK)?.into()];
    let constants = [lanes, span, rows.max(1), columns].into_iter().chain(finish(op));
    let constants = constants.chain([op.gate.is_some().into()]).collect();
    normed(op, step(op, build, constants, push, grid)?)
}

/// Sums that an invocation of `given` has at most: those of more rows are of fewer columns.
const MOST_GIVEN: u32 = 32;

/// Columns for each invocation, which are given the activations that others read.
fn given(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, most, least) = (params.get("lanes")?, params.get("rows")?.max(1), params.get("least")?);
    if op.m.is_constant() && op.m.exact() < u64::from(least) {
        return Err(Unfit(format!("is for {least} rows or more, not {}", op.m)));
    }
    // Rows in equal shares, of which none is more than the most.
    let rows = match op.m.is_constant() {
        true => {
            let m = op.m.exact().max(1);
            fixed("rows", m.div_ceil(m.div_ceil(most.into())))?
        }
        false => most,
    };
    let each = 1 + u32::from(op.gate.is_some());
    let columns = params.get("columns")?.min(MOST_GIVEN / rows) / each;
    let columns = columns.max(1);
    if op.n.div_ceil(u64::from(lanes * columns)) > MOST_GROUPS {
        return Err(Unfit(format!("has no room for {} columns", op.n)));
    }
    let constants = [lanes, rows, columns].into_iter().chain(finish(op));
    let constants = constants.chain([op.norm.is_some().into(), op.gate.is_some().into()]).collect();
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let chunks = fixed("k", op.k / CHUNK)?;
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, chunks.into(), epsilon.to_bits().into()];
    let grid = [groups(op.n, lanes * columns)?, groups(op.m, rows)?, 1.into()];
    Ok(Plan::of(step(op, build, constants, push, grid)?))
}

/// Workgroups that every device takes in a dimension.
const MOST_GROUPS: u64 = 65535;

fn tiled(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (lanes, bm, bn, tm) = (p("lanes")?, p("bm")?, p("bn")?, p("tm")?);
    if lanes * tm * 4 != bm * bn || !tm.is_multiple_of(4) || !bm.is_multiple_of(tm) {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    if op.gate.is_some() {
        return Err(Unfit("has no gates".into()));
    }
    let push = vec![narrow("m", op.m)?, narrow("n", op.n)?, fixed("k", op.k / CHUNK)?.into()];
    let grid = [groups(op.n, bn)?, groups(op.m, bm)?, 1.into()];
    let constants = [lanes, bm, bn, tm].into_iter().chain(finish(op)).collect();
    normed(op, step(op, build, constants, push, grid)?)
}

/// Most bytes of weights as 16-bit floats, which are memory beside the model's own.
const MOST_HALVES: u64 = 1 << 29;

/// The product of 16-bit floats that many rows become: with weights a row for each column.
fn halves(op: &BlockMatMul) -> MatMul {
    MatMul {
        rhs_transposed: true,
        bias: op.bias,
        residual: op.residual,
        activation: op.activation,
        ..MatMul::new(op.m, op.n, op.k, DType::F16, DType::F32)
    }
}

/// Both operands as 16-bit floats, then a kernel of `matmul`: of matrix units where the variant has a size of subgroups.
fn unpacked(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.m.is_constant() && op.m.exact() <= BlockMatMul::FEW_ROWS {
        return Err(Unfit(format!("is for more than {} rows, not {}", BlockMatMul::FEW_ROWS, op.m)));
    }
    if op.norm.is_some() || op.gate.is_some() {
        return Err(Unfit("has no norms and no gates".into()));
    }
    let [lhs, weights] = [op.m * op.k, Size::from(op.n) * op.k].map(|elements| elements * 2);
    if !weights.is_at_most(MOST_HALVES) {
        return Err(Unfit(format!("needs {weights} bytes for weights of 16 bits, more than {MOST_HALVES}")));
    }
    // Devices with matrices of 16-bit floats round to them as they should.
    let rounds = params.get("wave")? > 0;
    let template = if rounds { "coop" } else { "wide" };
    let product = halves(op).lower(template, &format!("matmul_{template}_f16_f32"), params)?;
    let lanes = params.get("unpack")?;
    let shares = narrow("shares of weights", Size::from(op.n) * (op.k / CHUNK * 4))?;
    let total = narrow("shares of both operands", shares + op.m * (op.k / 8))?;
    let constants = vec![lanes, u32::from(!rounds)];
    let mut first = step(op, build, constants, vec![shares, total], flat_grid(total, lanes)?)?;
    first.bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Scratch(0), Slot::Scratch(1)];
    first.bindings.extend(codebook(op));
    let mut steps = vec![first];
    for mut step in product.steps {
        for slot in &mut step.bindings {
            *slot = match *slot {
                Slot::Input(operand @ 0..=1) => Slot::Scratch(operand),
                // Behind a codebook, which only the first step reads.
                Slot::Input(added) => Slot::Input(added + op.behind_weights() - 2),
                Slot::Scratch(index) => Slot::Scratch(2 + index),
                other => other,
            };
        }
        steps.push(step);
    }
    let least = |bytes: Size| bytes.max(4);
    Ok(Plan::new(steps, [least(lhs), least(weights)].into_iter().chain(product.scratch).collect()))
}

/// A kernel that takes rows as they are, behind one that normalizes them where that is asked for.
fn normed(op: &BlockMatMul, mut product: Step) -> Result<Plan, Unfit> {
    let Some(epsilon) = op.norm else { return Ok(Plan::of(product)) };
    let norm = Norm::of_lines(NormKind::Rms, op.m, op.k, epsilon, DType::F32);
    let norm = Operation::Norm(Norm { scale: true, ..norm });
    let baseline = |v: &&Variant| v.needs.is_baseline() && v.signatures.contains(&norm.signature());
    let plans =
        variants_of(norm.name()).filter(baseline).filter_map(|v| Some((v.order, v.plan(&norm).ok()?)));
    let one = plans.filter(|(_, plan)| plan.steps.len() == 1).min_by_key(|(order, _)| *order);
    let (_, plan) = one.ok_or_else(|| Unfit("finds no kernel for the norm".to_owned()))?;
    let mut steps = plan.steps;
    for slot in steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = match *slot {
            Slot::Input(1) => Slot::Input(op.behind_weights()),
            Slot::Output(_) => Slot::Scratch(0),
            other => other,
        };
    }
    product.bindings[0] = Slot::Scratch(0);
    steps.push(product);
    Ok(Plan::new(steps, vec![op.m * op.k * DType::F32.size()]))
}

#[cfg(test)]
mod tests {
    use halite_ops::{Activation, blocks::BlockFormat};

    use super::*;

    #[test]
    fn sums_of_all_rows_fit_shared_memory() {
        let (norm, gate) = (Some(1e-5.into()), Some(Activation::Silu));
        let plans = variants_of("block_matmul").filter(|v| v.signatures.contains(&"q4_0".to_owned()));
        for variant in plans.filter(|v| v.template == "quads") {
            let rows = variant.params.get("most_rows").map_or(8, u64::from);
            let op = BlockMatMul { norm, gate, ..BlockMatMul::new(rows, 64, 256, BlockFormat::Q4_0) };
            let plan = variant.plan(&Operation::BlockMatMul(op)).expect(&variant.name);
            let [lanes, _, rows, columns] = plan.steps[0].constants[..4] else { panic!("four constants") };
            assert!((rows * (2 * columns + 1)) * lanes * 4 <= 16384, "{}", variant.name);
        }
    }

    /// The constants of a variant's first step for a product by weights of Q4_0.
    fn constants(way: &str, m: u64, n: u64, k: u64) -> Result<Vec<u32>, Unfit> {
        let op = BlockMatMul::new(m, n, k, BlockFormat::Q4_0);
        let name = format!("block_matmul.q4_0.{way}");
        let variant = variants_of("block_matmul").find(|v| v.name == name).expect(&name);
        variant.plan(&Operation::BlockMatMul(op)).map(|plan| plan.steps[0].constants.clone())
    }

    #[test]
    fn more_invocations_share_longer_rows() {
        let span_and_units = |k| constants("held1", 1, 64, k).map(|constants| (constants[1], constants[2]));
        assert_eq!(span_and_units(640), Ok((32, 1)));
        assert_eq!(span_and_units(2048), Ok((32, 2)));
        assert_eq!(span_and_units(8192), Ok((128, 2)));
        assert_eq!(span_and_units(14336), Ok((128, 4)));
        assert!(span_and_units(28672).is_err() && span_and_units(0).is_err());
        assert!(constants("held1", 2, 64, 640).is_err());
    }

    #[test]
    fn rows_that_are_given_activations_go_in_equal_shares() {
        let rows_and_columns =
            |m| constants("given.s8", m, 640, 256).map(|constants| (constants[1], constants[2]));
        assert_eq!(rows_and_columns(1), Ok((1, 8)));
        assert_eq!(rows_and_columns(9), Ok((5, 6)));
        assert_eq!(rows_and_columns(512), Ok((8, 4)));
        assert!(constants("given.s8", 1, 1 << 23, 256).is_err());
    }

    #[test]
    fn columns_take_turns_where_there_are_many() {
        let turns = |n| constants("held1t4", 1, n, 2048).map(|constants| constants[8]);
        assert_eq!([turns(64), turns(3072), turns(131_072)], [Ok(1), Ok(2), Ok(4)]);
    }

    #[test]
    fn columns_at_a_time_leave_enough_workgroups() {
        let columns = |n| constants("held4t2", 1, n, 2048).map(|constants| constants[3]);
        assert_eq!([columns(8192), columns(3072), columns(1024)], [Ok(4), Ok(2), Ok(1)]);
    }

    #[test]
    fn long_rows_with_gates_take_few_columns_and_no_turns() {
        let of = |way: &str, k| {
            let gate = Some(Activation::Silu);
            let op = BlockMatMul { gate, ..BlockMatMul::new(1, 14336, k, BlockFormat::Q4_0) };
            let name = format!("block_matmul.q4_0.{way}");
            let variant = variants_of("block_matmul").find(|v| v.name == name).expect(&name);
            let plan = variant.plan(&Operation::BlockMatMul(op))?;
            Ok::<_, Unfit>((plan.steps[0].constants[3], plan.steps[0].constants[8]))
        };
        assert_eq!(of("held2t4", 2048), Ok((2, 4)));
        assert_eq!(of("held2t4", 4096), Ok((2, 1)));
        assert_eq!(of("held1t4", 4096), Ok((1, 4)));
        assert!(of("held4t2", 2048).is_ok() && of("held4t2", 4096).is_err());
    }

    #[test]
    fn operands_of_many_rows_become_halves_first() {
        let op = Operation::BlockMatMul(BlockMatMul::new(64, 96, 256, BlockFormat::Q4K));
        let variant = variants_of("block_matmul").find(|v| v.name == "block_matmul.q4_k.coop64x64x64");
        let plan = variant.unwrap().plan(&op).unwrap();
        assert_eq!(plan.scratch, [64 * 256 * 2, 96 * 256 * 2]);
        assert_eq!(plan.steps[1].bindings[..3], [Slot::Scratch(0), Slot::Scratch(1), Slot::Output(0)]);
        assert!(constants("coop64x64x64", 8, 96, 256).is_err());
        let large = constants("coop64x64x64", 64, 1 << 18, 4096).unwrap_err();
        assert!(large.0.contains("bytes"), "{large}");
    }
}
