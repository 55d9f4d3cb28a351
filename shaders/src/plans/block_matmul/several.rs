//! Several rows on matrix units: activations become halves in the order of their lanes, then subgroups share the weights.

use halite_ops::{block_matmul::BlockMatMul, blocks::BlockFormat, blocks::CHUNK};
use halite_sizes::Size;

use super::{MOST_GROUPS, finish, step, whole_words};
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, module, narrow},
};

/// Subgroups of a workgroup at least.
const LEAST: u64 = 4;
/// Chunks of a row that a subgroup takes at a time: a step.
const STEP: u64 = 8;
/// Bytes of halves of eight rows in a step.
const STEP_BYTES: u64 = 8 * STEP * CHUNK * 2;

/// How subgroups share tiles of 16 rows of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    /// Subgroups that share the steps of a tile.
    parts: u64,
    /// Tiles of a workgroup.
    teams: u64,
}

impl Shares {
    /// As many parts as it takes to have so many subgroups for each of a device's processors (`units`).
    fn of([tiles, steps]: [u64; 2], [units, subgroups]: [u64; 2]) -> Self {
        let wanted = (units * subgroups).div_ceil(tiles.max(1));
        let parts = wanted.next_power_of_two().min(subgroups).min(1 << steps.max(1).ilog2());
        Self { parts, teams: (LEAST / parts).max(1) }
    }
}

/// A product of 3 to `most` rows.
pub(super) fn plan(op: &BlockMatMul, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (least, most) = (params.get("least")?, params.get("most")?);
    let [units, subgroups] = ["units", "subgroups"].map(|name| params.get(name).map(|n| u64::from(n.max(1))));
    let rows = fixed("m", op.m)?;
    if rows < least || rows > most {
        return Err(Unfit(format!("is for {least} to {most} rows, and these are {rows}")));
    }
    let chunks = op.k / CHUNK;
    if chunks == 0 || !chunks.is_multiple_of(2) {
        return Err(Unfit(format!("is for sums of whole pairs of chunks, not of {} terms", op.k)));
    }
    whole_words(op.format, op.k, op.weight_rows())?;
    let gated = u32::from(op.gate.is_some());
    // Half of a tile is for gates.
    let tiles = op.n.div_ceil((16 / (1 + gated)).into());
    let (steps, eights) = (chunks.div_ceil(STEP), u64::from(rows.div_ceil(8)));
    let shares = Shares::of([tiles, steps], [units?, subgroups?]);
    let groups = tiles.div_ceil(shares.teams);
    if groups > MOST_GROUPS || steps > MOST_GROUPS {
        return Err(Unfit(format!("has no room for {} columns of {} terms", op.n, op.k)));
    }
    let whole = u32::from(chunks.is_multiple_of(STEP));
    let [lanes, parts, count] =
        [32 * shares.parts * shares.teams, shares.parts, eights].map(|count| fixed("shares", count));
    let constants = [lanes?, parts?, count?, whole].into_iter().chain(finish(op));
    let constants = constants.chain([u32::from(op.norm.is_some()), gated]).collect();
    let epsilon = op.norm.map_or(0.0, |epsilon| epsilon.0);
    let (m, chunks) = (narrow("m", op.m)?, Size::from(fixed("k", chunks)?));
    let push = vec![m, narrow("n", op.n)?, chunks, epsilon.to_bits().into()];
    let mut product = step(op, build, constants, push, [groups.into(), 1.into(), 1.into()])?;
    product.bindings.extend([Slot::Scratch(0), Slot::Scratch(1)]);
    let left = halves(op, vec![m, chunks], [steps, eights])?;
    let scratch = [steps * eights * STEP_BYTES, steps * eights * 8 * 8];
    Ok(Plan::new(vec![left, product], scratch.map(Size::from).to_vec()))
}

/// The dispatch that makes halves of activations.
fn halves(op: &BlockMatMul, push: Vec<Size>, [steps, eights]: [u64; 2]) -> Result<Step, Unfit> {
    // Lanes share the chunks of a step in one way for all formats but this one.
    let build =
        if op.format == BlockFormat::Q6K { "block_matmul_left_q6_k" } else { "block_matmul_left_q4_0" };
    let scale = if op.norm.is_some() { op.behind_weights() } else { 0 };
    Ok(Step {
        module: module(build)?,
        constants: vec![op.norm.is_some().into()],
        push,
        bindings: vec![Slot::Input(0), Slot::Input(scale), Slot::Scratch(0), Slot::Scratch(1)],
        grid: [steps.into(), eights.into(), 1.into()],
        subgroup_size: 0,
    })
}

#[cfg(test)]
mod tests {
    use halite_ops::{Activation, Operation};

    use super::*;
    use crate::variants_of;

    fn planned(op: BlockMatMul) -> Result<Plan, Unfit> {
        let name = format!("block_matmul.{}.several", op.format);
        let variant = variants_of("block_matmul").find(|v| v.name == name).expect(&name);
        variant.plan(&Operation::BlockMatMul(op))
    }

    #[test]
    fn weights_that_are_read_beyond_their_blocks_are_whole_words() {
        let fits = |format, n| planned(BlockMatMul::new(8, n, 256, format)).is_ok();
        // 84, 110 and 136 bytes a row.
        for (format, least) in [(BlockFormat::Q2K, 4), (BlockFormat::Q3K, 8), (BlockFormat::Iq4Xs, 2)] {
            assert!(fits(format, least) && fits(format, 3 * least) && !fits(format, least + 1), "{format}");
        }
        assert!(fits(BlockFormat::Q6K, 1) && fits(BlockFormat::Iq4Nl, 1));
    }

    #[test]
    fn each_processor_has_subgroups_and_all_sums_fit_shared_memory() {
        let of = |tiles, steps| {
            let shares = Shares::of([tiles, steps], [132, 8]);
            [shares.parts, shares.teams]
        };
        assert_eq!([of(256, 56), of(896, 16), of(1792, 16)], [[8, 1], [2, 2], [1, 4]]);
        assert_eq!([of(16, 1), of(16, 3), of(16, 4)], [[1, 4], [2, 2], [4, 1]]);
        for rows in 3..=32 {
            for (n, k) in [(64, 64), (2048, 8192), (4096, 14336), (14336, 4096), (128_256, 4096)] {
                let plan = planned(BlockMatMul::new(rows, n, k, BlockFormat::Q4_0)).expect("fits");
                let [lanes, _, eights] = plan.steps[1].constants[..3] else { panic!("three constants") };
                assert!(lanes / 32 * 16 * eights * 8 * 4 <= 32768, "{rows} x {n} x {k}");
            }
        }
    }

    #[test]
    fn rows_become_halves_first() {
        let (norm, gate) = (Some(1e-5.into()), Some(Activation::Silu));
        let op = BlockMatMul { norm, gate, ..BlockMatMul::new(5, 2048, 2048 + 64, BlockFormat::Q8_0) };
        let plan = planned(op).expect("fits");
        assert_eq!(plan.scratch, [9 * 4096, 9 * 64].map(Size::from));
        assert_eq!(plan.steps[0].bindings[..2], [Slot::Input(0), Slot::Input(2)]);
        assert_eq!(plan.steps[1].bindings[5..], [Slot::Input(2), Slot::Scratch(0), Slot::Scratch(1)]);
        assert_eq!(plan.steps[1].constants[3], 0);
        assert_eq!(plan.steps[1].constants[6..], [1, 1]);
        for (m, k) in [(2, 256), (33, 256), (4, 96), (4, 0)] {
            assert!(planned(BlockMatMul::new(m, 64, k, BlockFormat::Q8_0)).is_err(), "{m} rows of {k}");
        }
    }

    #[test]
    fn a_codebook_is_between_the_weights_and_the_scale() {
        let op = BlockMatMul { norm: Some(1e-5.into()), ..BlockMatMul::new(5, 64, 256, BlockFormat::Iq3S) };
        let plan = planned(op).expect("fits");
        assert_eq!(plan.steps[0].bindings[..2], [Slot::Input(0), Slot::Input(3)]);
        let [scale, codebook] = [Slot::Input(3), Slot::Input(2)];
        assert_eq!(plan.steps[1].bindings[5..], [scale, codebook, Slot::Scratch(0), Slot::Scratch(1)]);
    }
}
