//! The dispatches of the kernels of `kv_append`, by template.

use halite_ops::{Op, Operation, cached, copy::StridedCopy, kv_append::KvAppend};

use crate::{
    Params, Plan, Slot, Step, Unfit, Variant,
    plan::{fixed, groups, module, narrow},
    plans::Lower,
    variants_of,
};

impl Lower for KvAppend {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let bytes = self.head_dim * self.cache.size();
        if self.turned.is_some() != (template == "turned") {
            return Err(Unfit("does not turn rows, or nothing else".into()));
        }
        match template {
            "turned" => turned(self, build, params),
            "blocks" => blocks(self, build, params),
            "words" if !bytes.is_multiple_of(4) => {
                Err(Unfit(format!("is for whole words, not {bytes} bytes")))
            }
            "words" => append(self, build, params, bytes / 4),
            "elements" => append(self, build, params, self.head_dim),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Rows that become blocks while they are written.
fn blocks(op: &KvAppend, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let format = op.blocks.ok_or_else(|| Unfit("is for caches in blocks".into()))?;
    let bits = cached::bits(format).map_err(Unfit)?;
    let mut plan = append(op, build, params, op.head_dim)?;
    let each = if op.in_place { op.len } else { op.capacity };
    let items = each * (op.batch * op.kv_heads) * cached::scale_words(op.head_dim);
    for step in &mut plan.steps {
        step.constants.push(bits);
        step.grid[0] = groups(narrow("a number of blocks", items)?, params.get("lanes")?)?.min(65535);
    }
    Ok(plan)
}

/// Rows that are turned while they are written. What is not there of the cache is copied first.
fn turned(op: &KvAppend, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (lanes, heads_each) = (params.get("lanes")?, params.get("heads")?);
    let rotary = op.rotary().ok_or_else(|| Unfit("turns rows".into()))?;
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let starts = if op.starts { Slot::Input(op.starts_index()) } else { Slot::Input(0) };
    let first = op.turns_index();
    let slots = rotary.head_dim - rotary.pairs();
    let (dim, pairs) = (fixed("head_dim", op.head_dim)?, fixed("pairs", rotary.pairs())?);
    let step = Step {
        module: module(build)?,
        constants: vec![lanes, dim, pairs, rotary.interleaved.into(), op.starts.into(), heads_each],
        push: vec![
            narrow("len", op.len)?,
            narrow("a number of heads", op.kv_heads)?,
            narrow("capacity", op.capacity)?,
            narrow("start", op.start)?,
            narrow("a table", rotary.tables.unwrap_or(1.into()))?,
        ],
        bindings: vec![
            Slot::Input(0),
            starts,
            Slot::Input(first),
            Slot::Input(first + 1),
            Slot::Input(first + 2),
            Slot::Output(0),
        ],
        grid: [
            groups(narrow("rows of pairs", op.len * slots)?, lanes)?,
            groups(op.kv_heads, heads_each)?,
            narrow("the batch", op.batch)?,
        ],
        subgroup_size: 0,
    };
    let mut steps = Vec::new();
    if !op.in_place {
        let elements = op.outputs()[0].elements();
        let whole = StridedCopy {
            source: elements,
            shape: vec![elements],
            strides: vec![1.into()],
            offset: 0.into(),
            dtype: op.cache,
        };
        steps.extend(copied(Operation::StridedCopy(whole))?);
    }
    steps.push(step);
    Ok(Plan::new(steps, Vec::new()))
}

/// A copy of the cache as it was, by a kernel that any device has.
fn copied(copy: Operation) -> Result<Vec<Step>, Unfit> {
    let baseline = |v: &&Variant| v.needs.is_baseline() && v.signatures.contains(&copy.signature());
    let plans =
        variants_of(copy.name()).filter(baseline).filter_map(|v| Some((v.order, v.plan(&copy).ok()?)));
    let plan = plans.min_by_key(|(order, _)| *order).map(|(_, plan)| plan);
    let mut steps = plan.ok_or_else(|| Unfit("finds no kernel that copies the cache".into()))?.steps;
    for slot in steps.iter_mut().flat_map(|step| &mut step.bindings) {
        if *slot == Slot::Input(0) {
            *slot = Slot::Input(1);
        }
    }
    Ok(steps)
}

/// The dispatch, with elements of `unit` bytes.
fn append(op: &KvAppend, build: &str, params: &Params, dim: u64) -> Result<Plan, Unfit> {
    let lanes = params.get("lanes")?;
    let each = if op.in_place { op.len } else { op.capacity };
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
