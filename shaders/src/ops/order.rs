//! Owns the order of elements, which sorting, the first k, and places of extremes go by, and the dispatches that sort.
//! Does not own: the operations themselves.

use std::cmp::Ordering;

use super::lines::{Lines, module};
use crate::{
    DType, Params, Plan, Slot, Step, TensorDesc, Unfit, Values,
    plan::{groups, narrow},
};

/// Types whose elements have an order here, numbered as in `include/keys.glsl`.
pub(crate) const ORDERED: [DType; 7] =
    [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U8];

/// The number of a type.
pub(crate) fn number_of(dtype: DType) -> Result<u32, Unfit> {
    let position = ORDERED.iter().position(|d| *d == dtype);
    position.map(|n| n as u32).ok_or_else(|| Unfit(format!("knows no order of {dtype}")))
}

/// The reason when elements or places cannot have these types.
pub(crate) fn check_types(dtype: DType, indices: DType) -> Result<(), String> {
    if !ORDERED.contains(&dtype) {
        return Err(format!("elements of type {dtype} cannot be put in order"));
    }
    if !matches!(indices, DType::I32 | DType::I64) {
        return Err(format!("indices are i32 or i64, not {indices}"));
    }
    Ok(())
}

/// Default of types of indices, for serde.
pub(crate) fn i64() -> DType {
    DType::I64
}

/// The order of two elements: NaN above all, as in NumPy, and both zeros the same.
pub(crate) fn order(values: &Values, a: usize, b: usize) -> Ordering {
    match values {
        Values::Int(v) => v[a].cmp(&v[b]),
        Values::Float(v) => v[a].partial_cmp(&v[b]).unwrap_or_else(|| v[a].is_nan().cmp(&v[b].is_nan())),
    }
}

/// The first elements of sorted lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorting {
    /// What is sorted.
    pub(crate) lines: Lines,
    /// How many of each line are wanted.
    pub(crate) keep: u64,
    /// Whether the largest come first.
    pub(crate) descending: bool,
    /// Type of the elements.
    pub(crate) dtype: DType,
    /// Type of their places.
    pub(crate) indices: DType,
}

impl Sorting {
    pub(crate) fn inputs(&self) -> Vec<TensorDesc> {
        let Lines { outer, length, inner } = self.lines;
        vec![TensorDesc::new("in", self.dtype, [outer, length, inner])]
    }

    pub(crate) fn outputs(&self) -> Vec<TensorDesc> {
        let dims = [self.lines.outer, self.keep, self.lines.inner];
        vec![TensorDesc::new("values", self.dtype, dims), TensorDesc::new("indices", self.indices, dims)]
    }

    /// Sorted elements and their places; equal ones stay in order.
    pub(crate) fn twin(&self, inputs: &[Values]) -> Vec<Values> {
        let kept = Lines { length: self.keep, ..self.lines };
        let (mut sources, mut indices) =
            (vec![0; kept.elements() as usize], vec![0; kept.elements() as usize]);
        for (line, targets) in self.lines.places().zip(kept.places()) {
            let mut sorted: Vec<usize> = (0..line.len()).collect();
            sorted.sort_by(|a, b| {
                let ascending = order(&inputs[0], line[*a], line[*b]);
                if self.descending { ascending.reverse() } else { ascending }
            });
            for (place, target) in sorted.into_iter().zip(targets) {
                sources[target] = line[place];
                indices[target] = place as i64;
            }
        }
        let values = match &inputs[0] {
            Values::Float(v) => Values::Float(sources.iter().map(|at| v[*at]).collect()),
            Values::Int(v) => Values::Int(sources.iter().map(|at| v[*at]).collect()),
        };
        vec![values, Values::Int(indices)]
    }

    /// Sorts blocks in shared memory and, of longer lines, merges neighbouring runs until there is one.
    ///
    /// # Errors
    /// There are too many elements, or the variant's data lacks `block`.
    pub(crate) fn merging(&self, params: &Params) -> Result<Plan, Unfit> {
        let block = self.block(params)?;
        let blocks = self.lines.length.div_ceil(block.into());
        let pairs = self.lines.elements();
        let mut steps = vec![self.blocks(block, block, Pass::of(0, blocks <= 1), self.lines.length)?];
        let mut run = u64::from(block);
        while run < self.lines.length {
            let pass = Pass::of(steps.len(), run * 2 >= self.lines.length);
            let total = groups(pairs, MERGE_LANES)?;
            let across = total.min(32768);
            steps.push(Step {
                module: module("sort_merge")?,
                constants: [&[MERGE_LANES, 0, 0][..], &self.constants()?, &[pass.last.into()]].concat(),
                push: self.push(self.lines.length, narrow("a run", run)?, self.lines.length)?,
                bindings: pass.bindings(),
                grid: [across, total.div_ceil(across.max(1)), 1],
                subgroup_size: 0,
            });
            run *= 2;
        }
        let scratch = match steps.len() {
            1 => Vec::new(),
            2 => vec![8 * pairs],
            _ => vec![8 * pairs; 2],
        };
        Ok(Plan { steps, scratch })
    }

    /// Sorts blocks in shared memory and goes on with the first `keep` of each, until one block is left.
    ///
    /// # Errors
    /// More than half a block is wanted of a line that is longer.
    pub(crate) fn selecting(&self, params: &Params) -> Result<Plan, Unfit> {
        let block = self.block(params)?;
        let mut count = self.lines.length;
        if count > u64::from(block) && self.keep * 2 > u64::from(block) {
            return Err(Unfit(format!("is for at most {} elements of a line", block / 2)));
        }
        let keep = narrow("k", self.keep)?;
        let (mut steps, mut scratch) = (Vec::new(), Vec::new());
        loop {
            let pass = Pass::of(steps.len(), count <= block.into());
            let kept = (count / u64::from(block)) * self.keep + (count % u64::from(block)).min(self.keep);
            let mut step = self.blocks(block, keep, pass, count)?;
            if let Some(number) = step.push.last_mut() {
                *number = narrow("pairs", kept)?;
            }
            steps.push(step);
            if pass.last {
                return Ok(Plan { steps, scratch });
            }
            if scratch.len() < 2 {
                scratch.push(8 * kept * self.lines.count());
            }
            count = kept;
        }
    }

    /// One pass of sorting blocks, of which `run` elements remain.
    fn blocks(&self, block: u32, run: u32, pass: Pass, count: u64) -> Result<Step, Unfit> {
        let across = (256 / block).max(1);
        let lanes = (block * across / 2).clamp(1, 128);
        let lines = groups(self.lines.count(), across)?;
        let x = lines.min(32768);
        let first = u32::from(pass.number == 0);
        let mine = [lanes, block, across];
        Ok(Step {
            module: module("sort_blocks")?,
            constants: [&mine[..], &self.constants()?, &[first, pass.last.into()]].concat(),
            push: self.push(count, run, count)?,
            bindings: pass.bindings(),
            grid: [x, lines.div_ceil(x.max(1)), groups(count, block)?],
            subgroup_size: 0,
        })
    }

    /// Elements that are sorted in shared memory: a power of two, not longer than lines need.
    fn block(&self, params: &Params) -> Result<u32, Unfit> {
        let most = params.get("block")?;
        narrow("a number of elements", self.lines.elements())?;
        let length = narrow("a length", self.lines.length)?;
        if !most.is_power_of_two() || most < 2 {
            return Err(Unfit(format!("has blocks of {most}, which is no power of two")));
        }
        Ok(length.min(most).next_power_of_two().max(2))
    }

    fn constants(&self) -> Result<[u32; 3], Unfit> {
        Ok([number_of(self.dtype)?, self.descending.into(), (self.indices == DType::I64).into()])
    }

    fn push(&self, count: u64, run: u32, kept: u64) -> Result<Vec<u32>, Unfit> {
        Ok(vec![
            narrow("a number of lines", self.lines.count())?,
            narrow("a length", self.lines.length)?,
            narrow("inner", self.lines.inner)?,
            narrow("k", self.keep)?,
            narrow("pairs", count)?,
            run,
            narrow("pairs", kept)?,
        ])
    }
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
