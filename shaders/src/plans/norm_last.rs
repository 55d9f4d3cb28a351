//! The dispatches of `norm` where channels come last. The other half is `ops/norm/last.comp`.

use halite_ops::norm::{Norm, NormKind};
use halite_sizes::Size;

use super::epilogue::activation_code;
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
};

/// Channels that a packed kernel takes at a time.
const UNIT: u64 = 4;
/// Places that an invocation has under way at once.
const AHEAD: u64 = 4;
/// Turns of the loop over a piece: several such are fewer than llvmpipe ends loops after.
const LONGEST_LOOP: u64 = 4096;
/// Bytes of a place that a workgroup reads at least, if the image has so many: those that memory gives at once.
const LEAST_BYTES: u64 = 64;
/// The same where a workgroup has many places.
const WIDE_BYTES: u64 = 128;
/// Invocations that run together, on most devices.
const SUBGROUP: u64 = 32;

/// The channels of an image that a workgroup has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    /// So many at most.
    width: u64,
    /// Whole groups, or 1 for a part of one.
    groups: u64,
    /// Blocks of a group.
    parts: u64,
    /// Blocks of an image.
    blocks: u64,
    /// Invocations for each place, and places at once.
    units: u64,
    rows: u64,
}

impl Block {
    /// So many groups, or as much of one as invocations can take; `None` where those are too many, or begin inside of a unit.
    fn of(op: &Norm, groups: u64, unit: u64, lanes: u64) -> Option<Block> {
        let per_group = op.channels / op.groups;
        let most = lanes * unit;
        let (width, parts) = match per_group > most {
            true => {
                let parts = per_group.div_ceil(most);
                (per_group.div_ceil(parts).next_multiple_of(unit), parts)
            }
            false => (per_group * groups, 1),
        };
        let begins = if parts > 1 { per_group.is_multiple_of(unit) } else { width.is_multiple_of(unit) };
        let fits = begins && (1..=most).contains(&width) && (parts == 1 || groups == 1);
        let units = width / unit;
        if !fits {
            return None;
        }
        // Rounded up, they may be fewer.
        let parts = if parts > 1 { per_group.div_ceil(width) } else { 1 };
        let blocks = if parts > 1 { op.groups * parts } else { op.groups.div_ceil(groups) };
        Some(Block { width, groups, parts, blocks, units, rows: lanes / units })
    }

    fn lanes(&self) -> u64 {
        self.units * self.rows
    }

    /// How many invocations of a thousand have something to do.
    fn busy(&self, op: &Norm, unit: u64) -> u64 {
        let places = self.blocks * self.units * self.lanes().next_multiple_of(SUBGROUP);
        (op.channels / unit * self.lanes() * 1000).checked_div(places).unwrap_or(0)
    }
}

/// The block of a variant: a narrow one for images that a workgroup each has for itself, else the one that leaves the fewest
/// invocations idle.
fn block(op: &Norm, params: &Params) -> Result<Block, Unfit> {
    let is_packed = params.get("packed").unwrap_or(0) == 1;
    let (unit, lanes) = (if is_packed { UNIT } else { 1 }, u64::from(params.get("lanes")?));
    let is_wide = |block: &Block, least: u64| block.width * op.dtype.size() >= least;
    if !op.channels.is_multiple_of(unit) {
        return Err(Unfit(format!("takes {unit} channels at a time")));
    }
    let all = (1..=op.groups).filter_map(|groups| Block::of(op, groups, unit, lanes));
    let all: Vec<Block> = all.collect();
    let found = match params.get("whole")? {
        0 => {
            let wide: Vec<&Block> = all.iter().filter(|block| is_wide(block, WIDE_BYTES)).collect();
            let best = |blocks: Vec<&Block>| {
                blocks.into_iter().max_by_key(|block| (block.busy(op, unit), block.width)).copied()
            };
            best(wide).or_else(|| best(all.iter().collect()))
        }
        _ => all.iter().find(|block| is_wide(block, LEAST_BYTES)).or(all.last()).copied(),
    };
    found.ok_or_else(|| Unfit(format!("takes {unit} channels at a time, of whole groups or one")))
}

/// Places of a piece, and pieces.
fn pieces(op: &Norm, block: &Block, params: &Params) -> Result<[Size; 2], Unfit> {
    let one = Size::constant(1);
    if params.get("whole")? == 1 {
        if block.parts > 1 {
            return Err(Unfit("is for groups of fewer channels".into()));
        }
        let most = params.get("most").map_or(u64::MAX, u64::from);
        if most != u64::MAX && op.spatial > most / block.width {
            return Err(Unfit("is for smaller images".into()));
        }
        return Ok([op.spatial, one]);
    }
    let step = block.rows * AHEAD;
    let longest = step * LONGEST_LOOP;
    let (groups, most) = (params.get("groups")?, params.get("max_chunks")?);
    let least = op.spatial.div_ceil(longest);
    let wanted = (Size::from(groups) / (op.batch * block.blocks).max(1)).min(most).max(least).max(1);
    // Neither is more anyway, which what is known of open sizes alone does not tell. Images of nothing have one piece.
    let chunk = op.spatial.div_ceil(wanted).next_multiple_of(step).min(longest);
    let chunks = op.spatial.div_ceil(chunk.max(1)).min(wanted).max(1);
    if params.get("any").unwrap_or(0) == 0 && chunks < 2 {
        return Err(Unfit("is for larger images".into()));
    }
    Ok([chunk, chunks])
}

/// The dispatches: one, or one for the statistics of pieces and one for the rest.
pub(super) fn plan(op: &Norm, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.channels == 0 {
        return Err(Unfit("is for images with channels".into()));
    }
    narrow("a number of elements", op.elements())?;
    let block = block(op, params)?;
    let [chunk, chunks] = pieces(op, &block, params)?;
    if params.get("whole")? == 1 {
        // There are no pieces; a binding must have something.
        return Ok(Plan::of(step(op, build, &block, (0, [chunk, chunks]), Slot::Output(0))?));
    }
    let steps = [1, 2].map(|mode| step(op, build, &block, (mode, [chunk, chunks]), Slot::Scratch(0)));
    let [first, second] = steps;
    let bytes = op.batch * chunks * block.parts * op.groups * 8;
    Ok(Plan::new(vec![first?, second?], vec![bytes]))
}

fn step(
    op: &Norm,
    build: &str,
    block: &Block,
    (mode, [chunk, chunks]): (u32, [Size; 2]),
    pieces: Slot,
) -> Result<Step, Unfit> {
    let [scale, bias] = op.channel_inputs().map(Slot::Input);
    let word = |number: u64| u32::try_from(number).map_err(|_| Unfit("is for fewer channels".into()));
    let slices = (block.lanes() / block.groups).max(1);
    let constants = vec![
        word(block.lanes())?,
        mode,
        (op.kind == NormKind::Group).into(),
        op.scale.into(),
        op.bias.into(),
        activation_code(op.activation),
        word(block.width)?,
        word(block.groups)?,
        word(block.parts)?,
        word(block.rows)?,
        1 << slices.ilog2(),
    ];
    let push = vec![
        narrow("spatial", op.spatial)?,
        narrow("channels", op.channels)?,
        narrow("groups", op.groups)?,
        narrow("channels of a group", op.channels / op.groups)?,
        narrow("places of a piece", chunk)?,
        op.epsilon.0.to_bits().into(),
    ];
    Ok(Step {
        module: module(build)?,
        constants,
        push,
        bindings: vec![Slot::Input(0), scale, bias, Slot::Output(0), pieces],
        grid: [block.blocks.into(), op.batch, chunks],
        subgroup_size: 0,
    })
}

/// The most turns that the loops of an invocation take.
pub(crate) fn turns(plan: &Plan) -> Size {
    let Some(step) = plan.steps.last() else { return 0.into() };
    let constant = |at: usize| step.constants.get(at).map_or(1, |value| u64::from((*value).max(1)));
    let [width, parts, rows, slices] = [constant(6), constant(8), constant(9), constant(10)];
    let places = step.push.get(4).map_or(Size::constant(0), |chunk| chunk.div_ceil(rows * AHEAD)) * 2;
    let merged = (step.grid[2] * parts).div_ceil(slices * AHEAD);
    // Blocks of many groups have several jobs of one slice, each of which is short.
    places + merged * (1 + width / constant(0)) + 2 * (rows * width).div_ceil(slices)
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;

    fn op(channels: u64, groups: u64) -> Norm {
        let plain = Norm::of_lines(NormKind::Group, 8.into(), channels, 1e-5.into(), DType::F16);
        Norm { spatial: 4096.into(), groups, channels_last: true, ..plain }
    }

    fn params(text: &str) -> Params {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn blocks_have_whole_groups_or_parts_of_one() {
        let wide = params(r#"{"whole":0,"lanes":256,"packed":1,"groups":528,"max_chunks":256}"#);
        let narrow = params(r#"{"whole":1,"lanes":256,"packed":1,"most":16384}"#);
        for (channels, groups) in [(320, 32), (640, 32), (1280, 32), (64, 8), (96, 1), (5000, 1), (512, 512)]
        {
            for (params, least) in [(&wide, WIDE_BYTES), (&narrow, LEAST_BYTES)] {
                let op = op(channels, groups);
                let block = block(&op, params).unwrap();
                assert!(block.lanes() <= 256 && block.width.is_multiple_of(UNIT), "{block:?}");
                assert!(block.width * 2 >= least.min(channels * 2), "{block:?}");
                let covered = match block.parts {
                    1 => block.blocks * block.groups * (channels / groups),
                    parts => groups * parts * block.width,
                };
                assert!(covered >= channels && covered - channels < block.width * groups, "{block:?}");
            }
        }
        assert!(block(&op(302, 1), &wide).is_err(), "no whole units");
        assert!(block(&op(30, 3), &wide).is_err(), "places do not begin at whole units");
        let any = params(r#"{"whole":1,"lanes":128}"#);
        let parts = block(&op(302, 1), &any).unwrap();
        assert_eq!(parts.parts, 3);
        assert!(pieces(&op(302, 1), &parts, &any).is_err(), "parts of a group are pieces");
    }

    #[test]
    fn pieces_cover_an_image() {
        let params = params(r#"{"whole":0,"lanes":256,"packed":1,"groups":528,"max_chunks":256}"#);
        for (places, batch) in [(4096, 8), (300, 1), (5003, 2), (1 << 20, 1)] {
            let op = Norm { spatial: Size::from(places), batch: Size::from(batch), ..op(320, 32) };
            let block = block(&op, &params).unwrap();
            let [chunk, chunks] = pieces(&op, &block, &params).unwrap();
            assert!(chunk * chunks >= places && chunk * (chunks - 1) < places, "{chunk} {chunks}");
        }
        let small = Norm { spatial: 9.into(), ..op(320, 32) };
        assert!(pieces(&small, &block(&small, &params).unwrap(), &params).is_err());
    }
}
