//! The dispatches of the kernels of `kv_append`, by template.

use halite_ops::{Op, kv_append::KvAppend};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::Lower,
};

impl Lower for KvAppend {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let bytes = self.head_dim * self.cache.size();
        match template {
            "words" if !bytes.is_multiple_of(4) => {
                Err(Unfit(format!("is for whole words, not {bytes} bytes")))
            }
            "words" => append(self, build, params, bytes / 4),
            "elements" => append(self, build, params, self.head_dim),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// The dispatch, with elements of `unit` bytes.
fn append(op: &KvAppend, build: &str, params: &Params, dim: u64) -> Result<Plan, Unfit> {
    let lanes = params.get("lanes")?;
    let each = if op.in_place { op.len } else { Size::from(op.capacity) };
    let items = narrow("a number of elements", each * (op.batch * op.kv_heads) * dim)?;
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    // What is not read has the rows in its place.
    let cache = if op.in_place { Slot::Input(0) } else { Slot::Input(1) };
    let starts = if op.starts { Slot::Input(op.starts_index()) } else { Slot::Input(0) };
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: vec![lanes, (!op.in_place).into(), op.seq_first.into(), op.starts.into()],
        push: vec![
            narrow("the batch", op.batch)?,
            narrow("a number of heads", op.kv_heads)?,
            narrow("len", op.len)?,
            narrow("capacity", op.capacity)?,
            narrow("head_dim", dim)?,
            narrow("start", op.start)?,
        ],
        bindings: vec![Slot::Input(0), cache, starts, Slot::Output(0)],
        grid: [groups(items, lanes)?.min(65535), 1.into(), 1.into()],
        subgroup_size: 0,
    }))
}
