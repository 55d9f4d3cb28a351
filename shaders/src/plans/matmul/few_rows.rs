//! Products of few rows without matrix units.

use halite_ops::matmul::MatMul;
use halite_sizes::{Size, is_worth};

use super::{ENOUGH_WORKGROUPS, bindings, cut, epilogue, parts, quads, shape};
use crate::{
    Params, Plan, Step, Unfit,
    plan::{fixed, groups, module, narrow},
};

/// Rows that the kernels for few rows can hold.
pub(super) const FEW_ROWS: u64 = 8;

/// Terms of sums of few rows that take less time than a second dispatch: on an H200, 2 rows of 96 to 263 terms took 3.8 to 4.3 µs
/// whole and 5.6 to 7.0 µs in parts. The limit itself is an estimate: no sums between 263 and 1,280 terms were measured.
const SHORT_SUMS: u64 = 512;

/// Few rows: `across` invocations share the sums of four columns, `along` when the right operand lies along k. Cuts
/// sums as `wide` does.
pub(in crate::plans) fn vector(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.m > FEW_ROWS {
        return Err(Unfit(format!("is for up to {FEW_ROWS} rows, and these are {}", op.m)));
    }
    let (lanes, most) = (params.get("lanes")?, params.get("parts")?);
    let slices = match params.get(if op.rhs_transposed { "along" } else { "across" })? {
        0 => slices_for(op, lanes),
        slices => slices,
    };
    if !slices.is_power_of_two() || !lanes.is_multiple_of(slices) {
        return Err(Unfit(format!("has {lanes} invocations, {slices} for a column")));
    }
    if most > 1 && op.m <= 1 {
        return Err(Unfit("cuts sums of several rows; those of one are sooner there whole".into()));
    }
    if most > 1 && op.k.value() <= SHORT_SUMS {
        return Err(Unfit(format!("cuts long sums, and those of {} terms are short", op.k)));
    }
    let columns = lanes / slices * 4;
    let workgroups = op.n.div_ceil(columns) * op.batch;
    let parts = if most > 1 { cut(op, workgroups, slices, most, ENOUGH_WORKGROUPS)? } else { 1 };
    let part = narrow("k", op.k.div_ceil(parts).next_multiple_of(4))?;
    let rhs_row = if op.rhs_transposed { op.k } else { op.n };
    let [m, n, k, stride] = shape(op)?;
    let mut constants = vec![
        lanes,
        slices,
        fixed("m", m.max(1))?,
        op.rhs_transposed.into(),
        quads(op.k),
        quads(rhs_row),
        parts,
    ];
    constants.extend(if parts == 1 { epilogue(op).0 } else { [0, 0] });
    let z = narrow("the batch", op.batch * u64::from(parts))?;
    let step = Step {
        module: module(build)?,
        constants,
        push: vec![m, n, k, stride, part, narrow("the batch", op.batch)?],
        bindings: bindings(op),
        grid: [groups(op.n, columns)?, m.min(1), z],
        subgroup_size: 0,
    };
    if parts == 1 { Ok(Plan::of(step)) } else { parts::summed(op, step, parts) }
}

/// Least elements of a right operand for the kernel of octets: 4 MB, which memory has to bring. Of smaller ones, 8 MB is the least that was
/// measured.
const OCTET_WEIGHTS: u64 = 1 << 21;
/// Rows that the kernel of octets holds.
const OCTET_ROWS: u64 = 4;
/// Columns for each team of a workgroup that make enough workgroups for a large GPU, most teams, and most invocations of one: with
/// these, 1 x 2048 x 2048, 1 x 8192 x 2048, 1 x 4096 x 4096 and 1 x 2048 x 16384 took 1.03 times the best on an H200 at most.
const COLUMNS_OF_TEAM: u64 = 1024;
const MOST_TEAMS: u64 = 8;
const MOST_OF_TEAM: u32 = 128;

/// Few rows, whole octets: `teams` of invocations with eight columns each, 0 for as many as leave enough workgroups.
pub(super) fn octets(op: &MatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.m > OCTET_ROWS {
        return Err(Unfit(format!("is for up to {OCTET_ROWS} rows, and these are {}", op.m)));
    }
    if (op.n * op.k).value() < OCTET_WEIGHTS {
        return Err(Unfit(format!("is for {OCTET_WEIGHTS} weights and more, not {} x {}", op.k, op.n)));
    }
    let whole = |length: Size| is_worth(|| length > 0 && length.is_multiple_of(8));
    if !whole(op.n) || !whole(op.k) {
        return Err(Unfit(format!("is for whole octets, not {} x {} elements", op.k, op.n)));
    }
    let lanes = params.get("lanes")?;
    let teams = match params.get("teams")? {
        // Any number computes the product.
        0 => {
            let teams = op.n.value() / COLUMNS_OF_TEAM;
            1 << teams.clamp((lanes / MOST_OF_TEAM).into(), MOST_TEAMS).ilog2()
        }
        teams => teams,
    };
    if !teams.is_power_of_two() || lanes / teams < 8 {
        return Err(Unfit(format!("has {lanes} invocations in {teams} teams")));
    }
    let [m, n, k, stride] = shape(op)?;
    let mut constants = vec![lanes, lanes / teams, fixed("m", m.max(1))?, op.rhs_transposed.into()];
    constants.extend(epilogue(op).0);
    Ok(Plan::of(Step {
        module: module(build)?,
        constants,
        push: vec![m, n, k, stride],
        bindings: bindings(op),
        grid: [groups(op.n, 8 * teams)?, m.min(1), narrow("the batch", op.batch)?],
        subgroup_size: 0,
    }))
}

/// Terms of a sum that an invocation takes, where sums decide how many share one: reads that wait for each other are few.
const TERMS_OF_ONE: u64 = 16;

/// Invocations that share the sums of four columns. The reads of neighbours along a row are whole sectors of 32 bytes.
fn slices_for(op: &MatMul, lanes: u32) -> u32 {
    let most = if op.rhs_transposed { lanes } else { lanes / if op.rhs.size() < 4 { 4 } else { 2 } };
    // Any number computes the product.
    let wanted = op.k.value().div_ceil(TERMS_OF_ONE).next_power_of_two();
    u32::try_from(wanted).unwrap_or(most).clamp(8, most)
}
