//! Owns what the kernels of attention are given: constants, bindings, grids. Does not own: what they compute.

use super::{super::lines::packed_name, Attention, Mask};
use crate::{
    Module, Params, Plan, Slot, Step, Unfit, library,
    plan::{groups, narrow},
};

/// Parts of a kernel's memory between its steps: two numbers of each query, and its result.
const SUM_BYTES: u64 = 8;
const ELEMENT_BYTES: u64 = 4;
/// Parts that `combine.comp` has room for.
const MOST_SPLITS: u32 = 256;

/// A build by name.
pub(super) fn module(build: &str) -> Result<Module, Unfit> {
    library::module(build).ok_or_else(|| Unfit(format!("has no build '{build}'")))
}

impl Attention {
    /// One workgroup for some queries of a key-value head, over all of its keys.
    pub(super) fn flash(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        Ok(Plan::of(self.tiles(build, params, 1, Slot::Output(0))?))
    }

    /// Keys in parts, for few queries of many keys.
    pub(super) fn split(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let splits = self.splits(params)?;
        let tiles = self.tiles(build, params, splits, Slot::Scratch(0))?;
        self.combined(tiles, params, splits)
    }

    /// The same, with whole words of 16 bytes and no tiles.
    pub(super) fn decode(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let (lanes, rb, kb) = (params.get("lanes")?, params.get("rb")?, params.get("kb")?);
        let d = narrow("head_dim", self.head_dim)?;
        // 16-byte words of a row.
        let words = d * narrow("a size", self.dtype.size())? / 16;
        let whole = (self.head_dim * self.dtype.size()).is_multiple_of(16);
        if !whole || !words.is_power_of_two() || words > lanes {
            return Err(Unfit(format!("is for rows of 16, 32, 64, … bytes, not of {d} elements")));
        }
        let team = lanes.checked_div(rb).unwrap_or(0);
        let shared = team != 0 && lanes % rb == 0 && kb % team == 0;
        if !shared || lanes % 8 != 0 || kb % (lanes / words.min(8)).max(1) != 0 {
            return Err(Unfit(format!("has blocks of {rb}x{kb} that {lanes} invocations do not cover")));
        }
        let splits = self.splits(params)?;
        let mut step = self.tiles_of([lanes, rb, kb], build, splits, Slot::Scratch(0))?;
        step.constants.push(words.min(8));
        self.combined(step, params, splits)
    }

    /// Parts of the keys.
    fn splits(&self, params: &Params) -> Result<u64, Unfit> {
        if self.q_len > params.get("max_q_len")?.into() {
            return Err(Unfit(format!("is for few queries, not {}", self.q_len)));
        }
        let (part_len, most) = (params.get("split_len")?, params.get("max_splits")?);
        if most > MOST_SPLITS {
            return Err(Unfit(format!("cuts keys into {most} parts, and {MOST_SPLITS} can be combined")));
        }
        Ok(self.kv_len.div_ceil(part_len.max(1).into()).clamp(1, most.max(1).into()))
    }

    /// A dispatch over parts of the keys, and the one that combines what it leaves.
    fn combined(&self, mut tiles: Step, params: &Params, splits: u64) -> Result<Plan, Unfit> {
        let combine_lanes = params.get("combine_lanes")?;
        if !combine_lanes.is_power_of_two() {
            return Err(Unfit(format!(
                "combines with {combine_lanes} invocations, which is no power of two"
            )));
        }
        let rows = self.batch * self.heads * self.q_len;
        tiles.bindings.push(Slot::Scratch(1));
        let splits = narrow("a number of parts", splits)?;
        let combine = Step {
            module: module(&format!("attention_combine_{}", packed_name(self.dtype)))?,
            constants: vec![combine_lanes, narrow("head_dim", self.head_dim)?],
            push: vec![narrow("a number of queries", rows)?, splits],
            bindings: vec![Slot::Scratch(0), Slot::Scratch(1), Slot::Output(0)],
            grid: [narrow("a number of queries", rows)?.min(65535), 1, 1],
            subgroup_size: 0,
        };
        let bytes = |each: u64| (rows * u64::from(splits) * each).max(4);
        let scratch = vec![bytes(self.head_dim * ELEMENT_BYTES), bytes(SUM_BYTES)];
        Ok(Plan { steps: vec![tiles, combine], scratch })
    }

    /// Cooperative matrices of 16x16x16 in subgroups of 32, each with `16 * tm` queries.
    pub(super) fn coop(&self, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let (lanes, tm, bk) = (params.get("lanes")?, params.get("tm")?, params.get("bk")?);
        let (d, most) = (narrow("head_dim", self.head_dim)?, params.get("max_dim")?);
        let bq = lanes / 32 * tm * 16;
        if lanes % 32 != 0 || bk % 16 != 0 || bq > 2 * bk {
            return Err(Unfit(format!("has {bq} queries in {lanes} invocations, and tiles of {bk} keys")));
        }
        if d % 16 != 0 || d > most {
            return Err(Unfit(format!("is for a head_dim of 16, 32, … up to {most}, not {d}")));
        }
        let least = params.get("min_q_len")?;
        if self.q_len < least.into() {
            return Err(Unfit(format!("is for {least} queries or more, not {}", self.q_len)));
        }
        if self.scale() <= 0.0 {
            return Err(Unfit(format!("is for positive scales, not {}", self.scale())));
        }
        let mut push = self.shape()?;
        push.extend(self.factors());
        let constants = vec![lanes, tm, bk, d];
        let flags = self.flags().into_iter().chain([params.get("direct")?]);
        Ok(Plan::of(Step {
            module: module(build)?,
            constants: constants.into_iter().chain(flags).collect(),
            push,
            bindings: self.bindings(Slot::Output(0)),
            grid: [
                groups(self.group() * self.q_len, bq)?,
                narrow("a number of heads", self.kv_heads())?,
                narrow("the batch", self.batch)?,
            ],
            subgroup_size: 0,
        }))
    }

    /// The dispatch over queries and `splits` parts of the keys.
    fn tiles(&self, build: &str, params: &Params, splits: u64, out: Slot) -> Result<Step, Unfit> {
        let (lanes, bq, bk) = (params.get("lanes")?, params.get("bq")?, params.get("bk")?);
        if lanes % 8 != 0 || bk % 8 != 0 || (bq * 8) % lanes.max(1) != 0 {
            return Err(Unfit(format!("has tiles of {bq}x{bk} that {lanes} invocations do not cover")));
        }
        self.tiles_of([lanes, bq, bk], build, splits, out)
    }

    /// The dispatch of blocks of `bq` queries and `bk` keys, checked.
    fn tiles_of(
        &self,
        [lanes, bq, bk]: [u32; 3],
        build: &str,
        splits: u64,
        out: Slot,
    ) -> Result<Step, Unfit> {
        let d = narrow("head_dim", self.head_dim)?;
        // Parts are whole tiles of keys.
        let split_len = self.kv_len.div_ceil(splits).next_multiple_of(bk.into());
        let mut push = self.shape()?;
        push.extend([narrow("a number of parts", splits)?, narrow("a part of the keys", split_len)?]);
        push.extend(self.factors());
        Ok(Step {
            module: module(build)?,
            constants: [lanes, bq, bk, d].into_iter().chain(self.flags()).collect(),
            push,
            bindings: self.bindings(out),
            grid: [
                groups(self.group() * self.q_len, bq)?,
                narrow("a number of heads", self.kv_heads())?,
                narrow("batch and parts", self.batch * splits)?,
            ],
            subgroup_size: 0,
        })
    }

    /// Specialization constants: what happens to scores.
    fn flags(&self) -> [u32; 3] {
        [self.causal, self.mask != Mask::None, self.softcap.is_some()].map(u32::from)
    }

    /// The inputs and the output; a mask that is not there, and not read, has the queries in its place.
    fn bindings(&self, out: Slot) -> Vec<Slot> {
        let mask = if self.mask == Mask::None { Slot::Input(0) } else { Slot::Input(3) };
        vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), mask, out]
    }

    /// Query heads that share a key-value head.
    pub(super) fn group(&self) -> u64 {
        self.heads / self.kv_heads()
    }

    /// Push constants: lengths and strides. Every index of an element must fit 32 bits.
    pub(super) fn shape(&self) -> Result<Vec<u32>, Unfit> {
        use super::Op;
        for tensor in self.inputs().iter().chain(&self.outputs()) {
            narrow("a number of elements", tensor.elements())?;
        }
        let stride = |b, h| narrow("the mask", self.mask_start(b, h));
        Ok(vec![
            narrow("q_len", self.q_len)?,
            narrow("kv_len", self.kv_len)?,
            narrow("capacity", self.capacity())?,
            narrow("a number of heads", self.group())?,
            stride(1, 0)?,
            stride(0, 1)?,
        ])
    }

    /// Push constants: scale and softcap.
    pub(super) fn factors(&self) -> [u32; 2] {
        [self.scale(), self.softcap.unwrap_or(1.0)].map(|factor| (factor as f32).to_bits())
    }
}
