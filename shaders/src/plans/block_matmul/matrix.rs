//! Few rows on matrix units: how subgroups share the weights.

use halite_ops::{
    block_matmul::BlockMatMul,
    blocks::{BlockFormat, CHUNK},
};
use halite_sizes::Size;

use super::{MOST_GROUPS, few_rows, finish, step, whole_words};
use crate::{
    Params, Plan, Unfit,
    plan::{fixed, narrow},
};

/// Chunks of a row that a subgroup of `matrix` takes at a time: a step.
const MATRIX_STEP: u64 = 8;
/// Rows of activations that matrix units take at once: what is left of their shared memory and registers for.
const MATRIX_ROWS: u32 = 4;
/// Steps of a row of activations that a workgroup of `matrix` has shared memory for, a KiB each, and one of zeros.
const MATRIX_STAGED: u32 = 36;
/// The same beside the largest table of a codebook's entries, of 8 KiB.
const STAGED_BESIDE_TABLE: u32 = 28;

/// How the subgroups of `matrix` share tiles of 16 rows of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    /// Subgroups that share the steps of a tile.
    parts: u32,
    /// Tiles that a workgroup has at once, and in turns.
    teams: u32,
    turns: u32,
    /// Each subgroup puts activations into shared memory for itself.
    own: bool,
}

impl Shares {
    /// For a device that runs so many workgroups (`units`) of up to so many subgroups (`most`) at once. The rule is that of the
    /// fastest of some forty ways for each of twenty shapes (docs/results/kernels.md).
    fn of(tiles: u64, steps: u64, rows: u32, units: u64, most: u64) -> Self {
        // More rows need more registers.
        let most = if rows > 2 { most / 2 } else { most };
        let wanted = (units * most / tiles.max(1)).clamp(1, most.min(steps));
        let parts = 1u64 << wanted.ilog2();
        let turns = (tiles * parts).div_ceil(units * most).max(1);
        // Two smaller workgroups, of which one computes while the other waits.
        let each = if rows == 1 && turns == 1 { 2 * units } else { units };
        let teams = tiles.div_ceil(each * turns).clamp(1, (most / parts).max(1));
        let own = turns == 1 && (parts >= 4 || teams <= 3);
        // Below what a grid takes: `fits` says so.
        let [parts, teams, turns] =
            [parts, teams, turns].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        match own {
            true => Self { parts, teams: 1, turns: 1, own },
            false => Self { parts, teams, turns, own },
        }
    }
}

/// How a workgroup computes its tiles: what both operations with this kernel need.
pub(in crate::plans) struct Tiling {
    /// Invocations.
    pub lanes: u32,
    /// Subgroups that share a tile.
    pub parts: u32,
    /// Whether rows of weights are whole steps.
    pub whole: bool,
    /// Steps whose activations are in shared memory at once.
    pub round: u32,
    /// Tiles one after another.
    pub turns: u32,
    /// Whether subgroups put activations there for themselves.
    pub own: bool,
    /// Workgroups for all tiles.
    pub groups: u64,
}

impl Tiling {
    /// For weights of a format, sums of so many chunks, `rows` of activations at a time and `tiles` of weights for them, where the
    /// device has something to do `times` as often.
    pub(in crate::plans) fn new(
        format: BlockFormat,
        (chunks, rows): (u64, u32),
        tiles: u64,
        times: u64,
        params: &Params,
    ) -> Result<Tiling, Unfit> {
        if chunks == 0 || !chunks.is_multiple_of(2) {
            return Err(Unfit(format!(
                "is for sums of whole pairs of chunks, not of {} terms",
                chunks * CHUNK
            )));
        }
        let steps = chunks.div_ceil(MATRIX_STEP);
        let (units, most) = (params.get("units")?.max(1), params.get("subgroups")?.max(2));
        let all = tiles.saturating_mul(times);
        let mut shares = Shares::of(all, steps, rows, units.into(), most.into());
        let steps = fixed("steps", steps)?;
        let staged = if format == BlockFormat::Iq2S { STAGED_BESIDE_TABLE } else { MATRIX_STAGED };
        let rounds = steps.div_ceil(staged / rows - 1);
        let round = if shares.own { shares.parts } else { steps.div_ceil(rounds) };
        // A tile after another would need the first round's activations once more.
        if rounds > 1 {
            shares.turns = 1;
        }
        let groups = tiles.div_ceil(u64::from(shares.teams) * u64::from(shares.turns));
        if groups > MOST_GROUPS {
            return Err(Unfit(format!("has no room for {tiles} tiles")));
        }
        let whole = chunks.is_multiple_of(MATRIX_STEP);
        let Shares { parts, teams, turns, own } = shares;
        Ok(Tiling { lanes: 32 * parts * teams, parts, whole, round, turns, own, groups })
    }
}

/// Matrix units, for few rows whose activations are two halves each.
pub(super) fn plan(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let rows = few_rows(op)?;
    if rows > MATRIX_ROWS {
        return Err(Unfit(format!("is for up to {MATRIX_ROWS} rows, and these are {rows}")));
    }
    whole_words(op.format, op.k, op.weight_rows())?;
    let (chunks, gated) = (op.k / CHUNK, u32::from(op.gate.is_some()));
    // Half of a tile is for gates.
    let tiles = op.n.div_ceil((16 / (1 + gated)).into());
    let tiling = Tiling::new(op.format, (chunks, rows.max(1)), tiles, 1, params)?;
    let constants =
        [tiling.lanes, tiling.parts, rows.max(1), tiling.whole.into()].into_iter().chain(finish(op));
    let constants =
        constants.chain([u32::from(op.norm.is_some()), gated, tiling.round, tiling.turns, tiling.own.into()]);
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let push = vec![narrow("n", op.n)?, fixed("k", chunks)?.into(), epsilon.to_bits().into()];
    let grid = [tiling.groups.into(), Size::from(u64::from(rows.min(1))), 1.into()];
    Ok(Plan::of(step(op, build, constants.collect(), push, grid)?))
}

#[cfg(test)]
mod tests {
    use halite_ops::{Activation, Operation, blocks::BlockFormat};

    use super::*;
    use crate::variants_of;

    /// The constants of the kernel for a product by weights of Q4_0.
    fn constants(m: u64, n: u64, k: u64) -> Result<Vec<u32>, Unfit> {
        let op = BlockMatMul::new(m, n, k, BlockFormat::Q4_0);
        let variant = variants_of("block_matmul").find(|v| v.name == "block_matmul.q4_0.matrix16").unwrap();
        variant.plan(&Operation::BlockMatMul(op)).map(|plan| plan.steps[0].constants.clone())
    }

    #[test]
    fn subgroups_share_tiles_on_matrix_units_so_that_all_have_work() {
        let of = |tiles, steps, rows| Shares::of(tiles, steps, rows, 132, 16);
        let own = |parts| Shares { parts, teams: 1, turns: 1, own: true };
        let shared = |parts, teams, turns| Shares { parts, teams, turns, own: false };
        // Few tiles: many subgroups for each, at most one for each step.
        assert_eq!([of(128, 32, 1), of(128, 8, 1), of(256, 56, 1)], [own(16), own(8), own(8)]);
        assert_eq!([of(4, 1, 1), of(1, 448, 1)], [own(1), own(16)]);
        // Many: workgroups share activations, two for each unit as long as each has one turn.
        assert_eq!([of(1024, 8, 1), of(1792, 16, 1)], [shared(2, 4, 1), shared(1, 7, 1)]);
        assert_eq!(of(8016, 8, 1), shared(1, 16, 4));
        // Registers of several rows leave room for fewer.
        assert_eq!([of(1792, 16, 2), of(1792, 16, 4)], [shared(1, 14, 1), shared(1, 7, 2)]);
        assert_eq!([of(128, 32, 2), of(128, 32, 3)], [own(16), own(8)]);
    }

    #[test]
    fn matrix_units_take_few_rows_and_what_shared_memory_holds() {
        // (lanes, parts, rows, whole steps, …, steps at once, turns, own activations)
        let of = |m, n, k| constants(m, n, k).map(|c| [c[0], c[1], c[3], c[8], c[9], c[10]]);
        assert_eq!(of(1, 4096, 14336), Ok([256, 8, 1, 8, 1, 1]));
        assert_eq!(of(1, 128_256, 2048), Ok([512, 1, 1, 8, 4, 0]));
        // Sums of more steps than there is room for: in rounds, and then a tile is all that a subgroup has.
        assert_eq!(of(1, 128_256, 14336), Ok([512, 1, 1, 28, 1, 0]));
        assert_eq!(of(4, 128_256, 4096), Ok([256, 1, 1, 8, 1, 0]));
        assert_eq!(of(1, 64, 64 * 7), Ok([64, 2, 0, 2, 1, 1]));
        assert!(of(5, 512, 896).is_err() && of(1, 512, 96).is_err() && of(1, 16, 0).is_err());
        for rows in 1..=4 {
            for (n, k) in
                [(64, 64), (2048, 8192), (4096, 28672), (14336, 4096), (128_256, 4096), (1 << 20, 512)]
            {
                let [lanes, parts, _, round, turns, _] = of(rows, n, k).unwrap();
                let (rows, subgroups) = (u32::try_from(rows).unwrap(), lanes / 32);
                let partial = if parts > 1 { turns.min(2) * subgroups * 16 * rows } else { 1 };
                let words = (round + 1) * rows * 256 + round * rows * 9 + partial + subgroups * (rows + 1);
                // Q2_K has sums of both halves of chunks, IQ4 a table.
                let words = words + (round * rows * 8).max(16 * 32);
                assert!(words * 4 <= 47104, "{rows} x {n} x {k}: {} bytes", words * 4);
            }
        }
    }

    #[test]
    fn tables_of_codebooks_have_room_beside_activations() {
        // Bytes of a codebook's table: two words for each entry, or one, or half of one (block_pair_codes.glsl).
        let of = |format: BlockFormat| match format {
            BlockFormat::Iq2Xxs => 256 * 8,
            BlockFormat::Iq2Xs => 512 * 8,
            BlockFormat::Iq2S => 1024 * 8,
            BlockFormat::Iq3Xxs => 256 * 4,
            BlockFormat::Iq3S => 512 * 4,
            BlockFormat::Iq1S | BlockFormat::Iq1M => 2048 * 2,
            _ => 0,
        };
        for format in BlockFormat::ALL.into_iter().filter(|format| format.codebook().is_some()) {
            for (rows, k) in [1, 2, 3, 4].into_iter().flat_map(|m| [512, 4096, 14336, 28672].map(|k| (m, k)))
            {
                let op = BlockMatMul::new(u64::from(rows), 128_256, k, format);
                let name = format!("block_matmul.{format}.matrix16");
                let variant = variants_of("block_matmul").find(|v| v.name == name).expect(&name);
                let c = variant.plan(&Operation::BlockMatMul(op)).unwrap().steps[0].constants.clone();
                let [lanes, parts, round, turns] = [c[0], c[1], c[8], c[9]];
                let subgroups = lanes / 32;
                let partial = if parts > 1 { turns.min(2) * subgroups * 16 * rows } else { 1 };
                let words = (round + 1) * rows * 256 + round * rows * 9 + partial + subgroups * (rows + 1);
                assert!(words * 4 + of(format) <= 47104, "{name}, {rows} x {k}");
            }
        }
    }

    #[test]
    fn half_of_a_tile_is_for_gates() {
        let of = |gate| {
            let op = BlockMatMul { gate, ..BlockMatMul::new(1, 2048, 2048, BlockFormat::Q6K) };
            let variant = variants_of("block_matmul").find(|v| v.name == "block_matmul.q6_k.matrix16");
            variant.unwrap().plan(&Operation::BlockMatMul(op)).unwrap().steps[0].grid[0]
        };
        assert_eq!([of(None), of(Some(Activation::Silu))], [128, 256].map(Size::from));
    }
}
