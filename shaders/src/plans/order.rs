//! The order of elements, which sorting, the first k, and places of extremes go by, and the dispatches that sort.

use halite_ops::{
    DType,
    order::{ORDERED, Sorting},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, groups, module, narrow},
};

/// Most passes that select: each leaves at most half.
const MOST_PASSES: usize = 32;

/// The number of a type.
pub(crate) fn number_of(dtype: DType) -> Result<u32, Unfit> {
    let position = ORDERED.iter().position(|d| *d == dtype);
    position.map(|n| n as u32).ok_or_else(|| Unfit(format!("knows no order of {dtype}")))
}

/// Sorts blocks in shared memory and, of longer lines, merges neighbouring runs until there is one.
///
/// # Errors
/// There are too many elements, or the variant's data lacks `block`.
pub(super) fn merging(sorting: &Sorting, params: &Params) -> Result<Plan, Unfit> {
    let block = block_size(sorting, params)?;
    let blocks = sorting.lines.length.div_ceil(block);
    let pairs = sorting.lines.elements();
    let mut steps = vec![sort_blocks(
        sorting,
        block,
        block.into(),
        Pass::of(0, blocks.is_at_most(1)),
        sorting.lines.length,
    )?];
    let mut run = u64::from(block);
    while !sorting.lines.length.is_at_most(run) {
        let pass = Pass::of(steps.len(), sorting.lines.length.is_at_most(run * 2));
        let total = groups(pairs, MERGE_LANES)?;
        let across = total.min(32768);
        steps.push(Step {
            module: module("sort_merge")?,
            constants: [&[MERGE_LANES, 0, 0][..], &constants(sorting)?, &[pass.last.into()]].concat(),
            push: push(sorting, sorting.lines.length, narrow("a run", run)?, sorting.lines.length)?,
            bindings: pass.bindings(),
            grid: [across, total.div_ceil(across.max(1)), 1.into()],
            subgroup_size: 0,
        });
        run *= 2;
    }
    let scratch = match steps.len() {
        1 => Vec::new(),
        2 => vec![pairs * 8],
        _ => vec![pairs * 8; 2],
    };
    Ok(Plan::new(steps, scratch))
}

/// Sorts blocks in shared memory and goes on with the first `keep` of each, until one block is left.
///
/// # Errors
/// More than half a block is wanted of a line that is longer.
pub(super) fn selecting(sorting: &Sorting, params: &Params) -> Result<Plan, Unfit> {
    let block = block_size(sorting, params)?;
    let mut count = sorting.lines.length;
    if !count.is_at_most(block.into()) && !(sorting.keep * 2).is_at_most(block.into()) {
        return Err(Unfit(format!("is for at most {} elements of a line", block / 2)));
    }
    let keep = narrow("k", sorting.keep)?;
    let (mut steps, mut scratch) = (Vec::new(), Vec::new());
    loop {
        if steps.len() > MOST_PASSES {
            return Err(Unfit(format!("is for lines that {MOST_PASSES} passes select from")));
        }
        let pass = Pass::of(steps.len(), count.is_at_most(block.into()));
        let kept = count / u64::from(block) * sorting.keep + (count % u64::from(block)).min(sorting.keep);
        let mut step = sort_blocks(sorting, block, keep, pass, count)?;
        if let Some(number) = step.push.last_mut() {
            *number = narrow("pairs", kept)?;
        }
        steps.push(step);
        if pass.last {
            return Ok(Plan::new(steps, scratch));
        }
        if scratch.len() < 2 {
            scratch.push(kept * sorting.lines.count() * 8);
        }
        count = kept;
    }
}

/// One pass of sorting blocks, of which `run` elements remain.
fn sort_blocks(sorting: &Sorting, block: u32, run: Size, pass: Pass, count: Size) -> Result<Step, Unfit> {
    let across = (256 / block).max(1);
    let lanes = (block * across / 2).clamp(1, 128);
    let lines = groups(sorting.lines.count(), across)?;
    let x = lines.min(32768);
    let first = u32::from(pass.number == 0);
    let mine = [lanes, block, across];
    Ok(Step {
        module: module("sort_blocks")?,
        constants: [&mine[..], &constants(sorting)?, &[first, pass.last.into()]].concat(),
        push: push(sorting, count, run, count)?,
        bindings: pass.bindings(),
        grid: [x, lines.div_ceil(x.max(1)), groups(count, block)?],
        subgroup_size: 0,
    })
}

/// Elements that are sorted in shared memory: a power of two, not longer than lines need.
fn block_size(sorting: &Sorting, params: &Params) -> Result<u32, Unfit> {
    let most = params.get("block")?;
    narrow("a number of elements", sorting.lines.elements())?;
    let length = sorting.lines.length;
    if !most.is_power_of_two() || most < 2 {
        return Err(Unfit(format!("has blocks of {most}, which is no power of two")));
    }
    // Lines that data decide may be as long as any.
    let block =
        if length.is_data() || length >= most { most } else { fixed("a length", length.ceil_log2().pow2())? };
    Ok(block.max(2))
}

fn constants(sorting: &Sorting) -> Result<[u32; 3], Unfit> {
    Ok([number_of(sorting.dtype)?, sorting.descending.into(), (sorting.indices == DType::I64).into()])
}

fn push(sorting: &Sorting, count: Size, run: Size, kept: Size) -> Result<Vec<Size>, Unfit> {
    Ok(vec![
        narrow("a number of lines", sorting.lines.count())?,
        narrow("a length", sorting.lines.length)?,
        narrow("inner", sorting.lines.inner)?,
        narrow("k", sorting.keep)?,
        narrow("pairs", count)?,
        run,
        narrow("pairs", kept)?,
    ])
}

/// Invocations in a workgroup that merges.
const MERGE_LANES: u32 = 128;

/// One of several dispatches, which write two scratch buffers by turns.
#[derive(Clone, Copy)]
struct Pass {
    number: usize,
    last: bool,
}

impl Pass {
    fn of(number: usize, last: bool) -> Pass {
        Pass { number, last }
    }

    /// What is not used is bound to what is bound anyway: devices may have few bindings.
    fn bindings(self) -> Vec<Slot> {
        let from = if self.number == 0 { Slot::Input(0) } else { Slot::Scratch((self.number - 1) % 2) };
        let to = if self.last { Slot::Output(1) } else { Slot::Scratch(self.number % 2) };
        let (values, places) = if self.last { (Slot::Output(0), Slot::Output(1)) } else { (to, to) };
        vec![Slot::Input(0), values, places, from, to]
    }
}
