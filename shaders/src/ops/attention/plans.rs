//! Owns what the kernels of attention are given: constants, bindings, grids. Does not own: what they compute.

use super::{Attention, Mask};
use crate::{
    Module, Params, Plan, Slot, Step, Unfit, library,
    plan::{groups, narrow},
};

/// Parts of a kernel's memory between its steps: two numbers of each query, and its result.
const SUM_BYTES: u64 = 8;
const ELEMENT_BYTES: u64 = 4;

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
        let rows = self.batch * self.heads * self.q_len;
        let (part_len, most) = (params.get("split_len")?, params.get("max_splits")?);
        let splits = self.kv_len.div_ceil(part_len.max(1).into()).clamp(1, most.max(1).into());
        if self.q_len > params.get("max_q_len")?.into() {
            return Err(Unfit(format!("is for few queries, not {}", self.q_len)));
        }
        let mut tiles = self.tiles(build, params, splits, Slot::Scratch(0))?;
        tiles.bindings.push(Slot::Scratch(1));
        let splits = narrow("a number of parts", splits)?;
        let combine = Step {
            module: module(&build.replace("split", "combine"))?,
            constants: vec![params.get("combine_lanes")?, narrow("head_dim", self.head_dim)?],
            push: vec![narrow("a number of queries", rows)?, splits],
            bindings: vec![Slot::Scratch(0), Slot::Scratch(1), Slot::Output(0)],
            grid: [narrow("a number of queries", rows)?.min(65535), 1, 1],
            subgroup_size: 0,
        };
        let bytes = |each: u64| (rows * u64::from(splits) * each).max(4);
        let scratch = vec![bytes(self.head_dim * ELEMENT_BYTES), bytes(SUM_BYTES)];
        Ok(Plan { steps: vec![tiles, combine], scratch })
    }

    /// The dispatch over queries and `splits` parts of the keys.
    fn tiles(&self, build: &str, params: &Params, splits: u64, out: Slot) -> Result<Step, Unfit> {
        let (lanes, bq, bk) = (params.get("lanes")?, params.get("bq")?, params.get("bk")?);
        if lanes % 8 != 0 || bk % 8 != 0 || (bq * 8) % lanes.max(1) != 0 {
            return Err(Unfit(format!("has tiles of {bq}x{bk} that {lanes} invocations do not cover")));
        }
        let mask = if self.mask == Mask::None { Slot::Input(0) } else { Slot::Input(3) };
        // Parts are whole tiles of keys.
        let split_len = self.kv_len.div_ceil(splits).next_multiple_of(bk.into());
        let mut push = self.shape()?;
        push.extend([narrow("a number of parts", splits)?, narrow("a part of the keys", split_len)?]);
        push.extend(self.factors());
        Ok(Step {
            module: module(build)?,
            constants: vec![
                lanes,
                bq,
                bk,
                narrow("head_dim", self.head_dim)?,
                self.causal.into(),
                (self.mask != Mask::None).into(),
                self.softcap.is_some().into(),
            ],
            push,
            bindings: vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), mask, out],
            grid: [
                groups(self.group() * self.q_len, bq)?,
                narrow("a number of heads", self.kv_heads())?,
                narrow("batch and parts", self.batch * splits)?,
            ],
            subgroup_size: 0,
        })
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
