//! The dispatches of the kernels of `attention`, by template.

use halite_ops::{
    Op,
    attention::{Attention, Mask},
    cached,
};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
    plans::{Lower, lines::packed_name},
};

impl Lower for Attention {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if self.out() != self.dtype && !matches!(template, "decode" | "short" | "slices" | "split") {
            return Err(Unfit(format!("makes {} of {}", self.dtype, self.dtype)));
        }
        if self.has_blocks() != build.contains("_blocks") {
            return Err(Unfit("is for caches in blocks, or for none".into()));
        }
        match template {
            "coop" => coop(self, build, params),
            "decode" => decode(self, build, params),
            "exchange" => exchange(self, build, params),
            "flash" => flash(self, build, params),
            "short" => short(self, build, params),
            "slices" => slices(self, build, params),
            "split" => split(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Parts of a kernel's memory between its steps: two numbers of each query, and its result.
const SUM_BYTES: u64 = 8;

const ELEMENT_BYTES: u64 = 4;

/// Shared memory of kernels for keys that are not many.
const SHORT_SHARED: u32 = 32768;

/// Parts that `combine.comp` has room for.
const MOST_SPLITS: u32 = 256;

/// One workgroup for some queries of a key-value head, over all of its keys.
pub(super) fn flash(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    Ok(Plan::of(tiles(op, build, params, 1.into(), Slot::Output(0))?))
}

/// A workgroup of one subgroup for some queries of a key-value head, with nothing shared.
pub(super) fn exchange(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, most) = (params.get("lanes")?, params.get("most")?);
    let d = fixed("head_dim", op.head_dim)?;
    if d % 4 != 0 || d == 0 || d > most {
        return Err(Unfit(format!("is for a head_dim of 4, 8, … up to {most}, not {d}")));
    }
    let rows = op.q_len * group(op);
    // More queries share what is read of keys, as far as there are queries and registers for their sums.
    let fits = |queries: u32| queries * d <= most && rows > lanes * queries / 2;
    let queries = if rows.is_constant() { [4, 2].into_iter().find(|queries| fits(*queries)) } else { None };
    let queries = queries.unwrap_or(1);
    let push = pushed(op, 4, 4)?;
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: [lanes, queries, d].into_iter().chain(flags(op)).chain(formats(op)?).collect(),
        push,
        bindings: bindings(op, Slot::Output(0)),
        grid: [
            groups(rows, lanes * queries)?,
            narrow("a number of heads", op.kv_heads())?,
            narrow("the batch", op.batch)?,
        ],
        subgroup_size: 0,
    }))
}

/// Keys in parts, for few queries of many keys.
pub(super) fn split(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let splits = splits(op, params)?;
    let tiles = tiles(op, build, params, splits, Slot::Scratch(0))?;
    combined(op, tiles, params, splits)
}

/// The same, with whole words of 16 bytes and no tiles.
pub(super) fn decode(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, rb, kb) = (params.get("lanes")?, params.get("rb")?, params.get("kb")?);
    let d = fixed("head_dim", op.head_dim)?;
    // 16-byte words of a row.
    let words = d * fixed("a size", op.dtype.size())? / 16;
    let whole = (op.head_dim * op.dtype.size()).is_multiple_of(16);
    if !whole || !words.is_power_of_two() || words > lanes {
        return Err(Unfit(format!("is for rows of 16, 32, 64, … bytes, not of {d} elements")));
    }
    let team = lanes.checked_div(rb).unwrap_or(0);
    let shared = team != 0 && lanes % rb == 0 && kb % team == 0;
    if !shared || lanes % 8 != 0 || kb % (lanes / words.min(8)).max(1) != 0 {
        return Err(Unfit(format!("has blocks of {rb}x{kb} that {lanes} invocations do not cover")));
    }
    let splits = splits(op, params)?;
    let unit = 16 / op.dtype.size();
    let mut step = tiles_of(op, [lanes, rb, kb], build, (splits, unit), Slot::Scratch(0))?;
    step.constants.push(words.min(8));
    step.constants.extend(formats(op)?);
    combined(op, step, params, splits)
}

/// Keys that are not many, all in one workgroup for each `rb` queries of a key-value head.
pub(super) fn short(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, rb, ahead) = (params.get("lanes")?, params.get("rb")?, params.get("ahead")?);
    let d = fixed("head_dim", op.head_dim)?;
    let words = fixed("a row", op.head_dim * op.dtype.size() / 16)?;
    let whole = (op.head_dim * op.dtype.size()).is_multiple_of(16);
    let wave = params.get("wave")?.max(1);
    // What subgroups leave in shared memory.
    let fits = lanes / wave * rb * (d + 2) * 4 <= SHORT_SHARED;
    if !whole || !words.is_power_of_two() || words > wave || !fits {
        return Err(Unfit(format!("is for rows of 16, 32, … up to 512 bytes, not of {d} elements")));
    }
    let most = u64::from(params.get("most")?);
    if op.q_len > params.get("max_q_len")? || op.kv_len * op.head_dim > most {
        return Err(Unfit(format!(
            "is for few queries of up to {most} elements of keys, not {} of {} x {d}",
            op.q_len, op.kv_len
        )));
    }
    let unit = 16 / op.dtype.size();
    let push = pushed(op, unit, 4)?;
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: [lanes, rb, ahead, d].into_iter().chain(flags(op)).chain([words, lanes / wave]).collect(),
        push,
        bindings: bindings(op, Slot::Output(0)),
        grid: [
            groups(op.q_len * group(op), rb)?,
            narrow("a number of heads", op.kv_heads())?,
            narrow("the batch", op.batch)?,
        ],
        subgroup_size: 0,
    }))
}

/// Queries of a workgroup of `slices`, and keys whose scores it makes together.
const SLICED_ROWS: u32 = 4;
const SLICED_KEYS: u32 = 32;

/// A workgroup of one subgroup for four queries of a key-value head and all keys, whose rows its invocations share.
fn slices(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, most) = (params.get("lanes")?, params.get("max_rows")?);
    let d = fixed("head_dim", op.head_dim)?;
    let whole = (op.head_dim * op.dtype.size()).is_multiple_of(16);
    if !whole || d == 0 || !SLICED_KEYS.is_multiple_of(lanes) {
        return Err(Unfit(format!("is for rows of 16, 32, 48, … bytes, not of {d} elements")));
    }
    let rows = op.q_len * group(op);
    // Many queries of shorter rows are what `exchange` is for.
    if rows > most && d < params.get("wide")? {
        return Err(Unfit(format!("is for up to {most} queries of heads that share keys, not {rows}")));
    }
    let unit = 16 / op.dtype.size();
    let push = pushed(op, unit, 4)?;
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: [lanes, d].into_iter().chain(flags(op)).chain(formats(op)?).collect(),
        push,
        bindings: bindings(op, Slot::Output(0)),
        grid: [
            groups(rows, SLICED_ROWS)?,
            narrow("a number of heads", op.kv_heads())?,
            narrow("the batch", op.batch)?,
        ],
        subgroup_size: 0,
    }))
}

/// Parts of the keys.
fn splits(op: &Attention, params: &Params) -> Result<Size, Unfit> {
    if op.q_len > params.get("max_q_len")? {
        return Err(Unfit(format!("is for few queries, not {}", op.q_len)));
    }
    let (part_len, most) = (params.get("split_len")?, params.get("max_splits")?);
    if most > MOST_SPLITS {
        return Err(Unfit(format!("cuts keys into {most} parts, and {MOST_SPLITS} can be combined")));
    }
    Ok(op.kv_len.div_ceil(part_len.max(1)).min(most.max(1)).max(1))
}

/// A dispatch over parts of the keys, and the one that combines what it leaves.
fn combined(op: &Attention, mut tiles: Step, params: &Params, splits: Size) -> Result<Plan, Unfit> {
    let combine_lanes = params.get("combine_lanes")?;
    if !combine_lanes.is_power_of_two() {
        return Err(Unfit(format!("combines with {combine_lanes} invocations, which is no power of two")));
    }
    let rows = op.batch * op.heads * op.q_len;
    tiles.bindings.push(Slot::Scratch(1));
    let splits = narrow("a number of parts", splits)?;
    let mut push = vec![narrow("a number of queries", rows)?, splits];
    push.extend([narrow("q_len", op.q_len)?, narrow("a number of heads", op.heads)?]);
    push.extend(target(op, if op.head_dim.is_multiple_of(4) { 4 } else { 1 })?);
    let combine = Step {
        module: module(&format!("attention_combine_{}", packed_name(op.out())))?,
        constants: vec![combine_lanes, fixed("head_dim", op.head_dim)?],
        push,
        bindings: vec![Slot::Scratch(0), Slot::Scratch(1), Slot::Output(0)],
        grid: [narrow("a number of queries", rows)?.min(65535), 1.into(), 1.into()],
        subgroup_size: 0,
    };
    let bytes = |each: u64| (rows * splits * each).max(4);
    let scratch = vec![bytes(op.head_dim * ELEMENT_BYTES), bytes(SUM_BYTES)];
    Ok(Plan::new(vec![tiles, combine], scratch))
}

/// Cooperative matrices of 16x16x16 in subgroups of 32, each with `16 * tm` queries; `teams` of them share the keys where queries
/// are few.
pub(super) fn coop(op: &Attention, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, tm, bk) = (params.get("lanes")?, params.get("tm")?, params.get("bk")?);
    let (length, most) = (fixed("head_dim", op.head_dim)?, params.get("max_dim")?);
    // Whole matrices.
    let d = length.next_multiple_of(16);
    let teams = params.get("teams").unwrap_or(1);
    let bq = lanes / 32 / teams.max(1) * tm * 16;
    let room = if teams > 1 { bk } else { 2 * bk };
    if lanes % (32 * teams) != 0 || bk % 16 != 0 || bq > room {
        return Err(Unfit(format!("has {bq} queries in {lanes} invocations, and tiles of {bk} keys")));
    }
    if length == 0 || length % 4 != 0 || d > most {
        return Err(Unfit(format!("is for a head_dim of 4, 8, … up to {most}, not {length}")));
    }
    let least = params.get("min_q_len")?;
    if op.q_len < least {
        return Err(Unfit(format!("is for {least} queries or more, not {}", op.q_len)));
    }
    if op.scale() <= 0.0 {
        return Err(Unfit(format!("is for positive scales, not {}", op.scale())));
    }
    if teams > 1 {
        few_queries(op, params.get("busy")?)?;
    }
    // Words of 16 bytes, or of 8.
    let unit = if length % 8 == 0 { 16 } else { 8 } / op.dtype.size();
    let push = pushed(op, unit, unit)?;
    let constants = vec![lanes, tm, bk, d];
    let flags = flags(op).into_iter().chain([params.get("direct")?, teams, length]);
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: constants.into_iter().chain(flags).collect(),
        push,
        bindings: bindings(op, Slot::Output(0)),
        grid: [
            groups(op.q_len * group(op), bq)?,
            narrow("a number of heads", op.kv_heads())?,
            narrow("the batch", op.batch)?,
        ],
        subgroup_size: 0,
    }))
}

/// Refuses queries that keep a device `busy` in blocks of 64, and keys that leave nothing to share.
fn few_queries(op: &Attention, busy: u32) -> Result<(), Unfit> {
    let blocks = (op.q_len * group(op)).div_ceil(64) * op.kv_heads() * op.batch;
    if blocks > u64::from(busy) || op.kv_len <= 32 {
        return Err(Unfit(format!(
            "shares more than 32 keys of up to {busy} blocks of queries; these are {} and {blocks}",
            op.kv_len
        )));
    }
    Ok(())
}

/// The dispatch over queries and `splits` parts of the keys.
fn tiles(op: &Attention, build: &str, params: &Params, splits: Size, out: Slot) -> Result<Step, Unfit> {
    let (lanes, bq, bk) = (params.get("lanes")?, params.get("bq")?, params.get("bk")?);
    if lanes % 8 != 0 || bk % 8 != 0 || (bq * 8) % lanes.max(1) != 0 {
        return Err(Unfit(format!("has tiles of {bq}x{bk} that {lanes} invocations do not cover")));
    }
    tiles_of(op, [lanes, bq, bk], build, (splits, 1), out)
}

/// The dispatch of blocks of `bq` queries and `bk` keys in `splits` parts, checked, which reads `unit` elements at once.
fn tiles_of(
    op: &Attention,
    [lanes, bq, bk]: [u32; 3],
    build: &str,
    (splits, unit): (Size, u64),
    out: Slot,
) -> Result<Step, Unfit> {
    let d = fixed("head_dim", op.head_dim)?;
    // Parts are whole tiles of keys.
    let split_len = op.kv_len.div_ceil(splits).next_multiple_of(bk);
    let mut push = shape(op)?;
    push.extend([narrow("a number of parts", splits)?, narrow("a part of the keys", split_len)?]);
    push.extend(factors(op).map(Size::from));
    push.extend(sources(op, unit)?);
    if out == Slot::Output(0) {
        push.extend(target(op, unit)?);
    }
    Ok(Step {
        module: module(build)?,
        constants: [lanes, bq, bk, d].into_iter().chain(flags(op)).collect(),
        push,
        bindings: bindings(op, out),
        grid: [
            groups(op.q_len * group(op), bq)?,
            narrow("a number of heads", op.kv_heads())?,
            narrow("batch and parts", op.batch * splits)?,
        ],
        subgroup_size: 0,
    })
}

/// Specialization constants: what happens to scores.
fn flags(op: &Attention) -> [u32; 4] {
    [op.causal, op.mask != Mask::None, op.softcap.is_some(), op.lengths].map(u32::from)
}

/// Specialization constants of kernels for caches in blocks: bits of the codes of keys and of values, 0 for halves.
fn formats(op: &Attention) -> Result<Vec<u32>, Unfit> {
    if !op.has_blocks() {
        return Ok(Vec::new());
    }
    let bits = |format| Option::map_or(format, Ok(0), cached::bits).map_err(Unfit);
    Ok(vec![bits(op.keys)?, bits(op.values)?])
}

/// The inputs and the output; lengths have the place of the mask, and where neither is there, and read, the queries have it.
fn bindings(op: &Attention, out: Slot) -> Vec<Slot> {
    let mask = if op.mask == Mask::None && !op.lengths { Slot::Input(0) } else { Slot::Input(3) };
    vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), mask, out]
}

/// Query heads that share a key-value head.
pub(super) fn group(op: &Attention) -> u64 {
    op.heads / op.kv_heads()
}

/// All push constants of a dispatch that writes whole results: operands are read `unit` elements at a time, and results written
/// `out` at a time.
fn pushed(op: &Attention, unit: u64, out: u64) -> Result<Vec<Size>, Unfit> {
    let factors = factors(op).map(Size::from).to_vec();
    Ok([shape(op)?, factors, sources(op, unit)?, target(op, out)?.into()].concat())
}

/// Push constants: lengths and strides of the mask. Every index of an element must fit 32 bits.
pub(super) fn shape(op: &Attention) -> Result<Vec<Size>, Unfit> {
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let stride = |b, h| narrow("the mask", op.mask_start(b, h));
    Ok(vec![
        narrow("q_len", op.q_len)?,
        narrow("kv_len", op.kv_len)?,
        narrow("a number of heads", group(op))?,
        stride(1, 0)?,
        stride(0, 1)?,
        narrow("a number of masks", op.mask_batches().max(1))?,
    ])
}

/// Push constants: where queries, keys and values lie, in units of so many elements.
pub(super) fn sources(op: &Attention, unit: u64) -> Result<Vec<Size>, Unfit> {
    let mut push = Vec::new();
    for (rows, format) in op.rows().into_iter().zip([None, op.keys, op.values]) {
        // Those of blocks are in words.
        let unit = if format.is_some() { 1 } else { unit };
        push.extend(in_units([rows.offset, rows.batch, rows.head, rows.row], unit)?);
    }
    Ok(push)
}

/// Push constants: where results lie.
pub(super) fn target(op: &Attention, unit: u64) -> Result<[Size; 3], Unfit> {
    let rows = op.result_rows();
    in_units([rows.batch, rows.head, rows.row], unit)
}

fn in_units<const N: usize>(strides: [Size; N], unit: u64) -> Result<[Size; N], Unfit> {
    let mut units = strides;
    for stride in &mut units {
        if unit > 1 && !stride.is_multiple_of(unit) {
            return Err(Unfit(format!("reads {unit} elements at once, and rows are {stride} apart")));
        }
        *stride = narrow("a distance of rows", *stride / unit)?;
    }
    Ok(units)
}

/// Push constants: scale and softcap.
pub(super) fn factors(op: &Attention) -> [u32; 2] {
    [op.scale(), op.softcap.map_or(1.0, |cap| cap.0)].map(|factor| (factor as f32).to_bits())
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Operation};

    use super::*;

    #[test]
    fn every_variant_for_few_queries_finds_the_kernel_that_combines_its_parts() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let op = Operation::Attention(Attention::new(2, 1, 300, 64, dtype));
            for variant in
                crate::variants_of("attention").filter(|v| v.signatures.contains(&dtype.to_string()))
            {
                if matches!(variant.template.as_str(), "decode" | "split") {
                    let plan = variant.plan(&op).unwrap_or_else(|unfit| panic!("{} {unfit}", variant.name));
                    assert_eq!(plan.steps.len(), 2, "{}", variant.name);
                }
            }
        }
    }
}
