//! The dispatches of the kernels of `recurrent`, by template: all steps of a layer in one, or one for each step of all layers.

use halite_ops::{
    DType,
    recurrent::{BLOCK, Cell, Recurrent},
};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed_groups, groups, module, narrow},
    plans::{Lower, epilogue::activation_code},
};

/// Most steps that are a dispatch each.
const MOST_DISPATCHES: u64 = 4096;
/// Shared memory of every device.
const SHARED_BYTES: u64 = 16384;

impl Lower for Recurrent {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        counted(self)?;
        match template {
            "whole" => whole(self, build, params),
            "layers" => each_layer(self, build, params),
            "step" => each_step(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Kernels count elements with 32 bits.
fn counted(op: &Recurrent) -> Result<(), Unfit> {
    narrow("a number of weights", op.weights())?;
    let places = op.steps * op.batch;
    narrow("a number of elements", places * (op.directions() * op.rows()))?;
    narrow("a number of elements", places * (op.hidden + op.rows()) + states(op))?;
    Ok(())
}

/// Steps and sequences of kernels with a dispatch for each step, or with layers.
fn known(op: &Recurrent) -> Result<[u64; 2], Unfit> {
    if !op.steps.is_constant() || !op.batch.is_constant() {
        return Err(Unfit("is for known numbers of steps and sequences".into()));
    }
    Ok([op.steps.exact(), op.batch.exact()])
}

/// What a dispatch does.
#[derive(Clone, Copy)]
enum Done {
    /// Some steps of a layer; whether they are its first.
    Turns { layer: u64, from: Size, to: Size, first: bool },
    /// A step of all layers, each of which is one step behind the layer below it.
    Step(u64),
    /// A step of a layer, for which what it reads of the layer below was multiplied.
    LayerStep { layer: u64, step: u64 },
}

/// How the invocations of a workgroup share the sums of a step.
struct Share {
    lanes: u32,
    /// Sequences of a workgroup.
    rows: u64,
    /// Blocks that are worked at together, and invocations for each quad of their columns.
    pass: u64,
    slices: u64,
    /// Quads of weights that stay in registers.
    held: u64,
    /// Elements of shared memory for terms and for cells.
    terms: u64,
    cells: u64,
}

impl Share {
    /// With `sums` quads of sums for each block.
    fn new(op: &Recurrent, params: &Params, [pass, sums]: [u64; 2], depth: u64) -> Result<Share, Unfit> {
        let lanes = params.get("lanes")?;
        let quads = pass * sums;
        let slices = if params.get("exchanged")? == 1 { 1 } else { (u64::from(lanes) / quads).max(1) };
        let (mut rows, most) = (1, u64::from(params.get("rows")?));
        while rows < most && op.batch > rows {
            rows *= 2;
        }
        let (slices, terms) = (slices.min(depth), rows * depth);
        Ok(Share { lanes, rows, pass, slices, held: 0, terms, cells: 1 })
    }

    fn shared_bytes(&self) -> u64 {
        (self.terms + self.cells + u64::from(self.lanes) * self.rows * 4) * 4
    }

    /// The same with fewer sequences where shared memory has no room for as many.
    fn fitting(mut self, bytes: u64) -> Result<Share, Unfit> {
        while self.shared_bytes() > bytes && self.rows > 1 {
            self.rows /= 2;
            self.terms /= 2;
            self.cells = self.cells.div_ceil(2);
        }
        match self.shared_bytes() {
            wanted if wanted > bytes => {
                Err(Unfit(format!("has {bytes} bytes of shared memory, and would need {wanted}")))
            }
            _ => Ok(self),
        }
    }

    fn step(&self, op: &Recurrent, build: &str, done: Done) -> Result<Step, Unfit> {
        let whole = matches!(done, Done::Turns { .. });
        let cell = match op.cell {
            Cell::Rnn => 0,
            Cell::Gru => 1,
            Cell::Lstm => 2,
        };
        let stacked = op.stacked();
        let reversed = (0..op.directions()).filter(|i| op.is_reverse(*i)).map(|i| 1 << i).sum();
        let numbers = [self.rows, self.pass, self.slices, self.held, self.terms, self.cells];
        let mut constants = vec![self.lanes, cell, whole.into()];
        constants.extend(numbers.map(|number| number as u32));
        constants.extend([
            activation_code(op.activation),
            op.lengths.into(),
            stacked.is_some().into(),
            reversed,
        ]);
        constants.push(matches!(done, Done::LayerStep { .. }).into());
        let networks = op.layers * op.directions();
        let columns = if whole { 1 } else { fixed_groups(op.blocks(), self.pass as u32)? };
        let zero = Size::constant(0);
        let (beside, [first, from, to]) = match done {
            Done::Turns { layer, from, to, .. } => (op.directions(), [layer.into(), from, to]),
            Done::Step(step) => (networks, [step.into(), zero, zero]),
            Done::LayerStep { layer, step } => (op.directions(), [step.into(), layer.into(), zero]),
        };
        let push = [op.steps, op.batch, op.hidden.into(), networks.into(), first, from, to];
        let bias = stacked.or(op.reset_bias());
        let bindings = vec![
            Slot::Input(0),
            Slot::Input(1),
            Slot::Input(bias.unwrap_or(2)),
            // Steps behind others go on where these ended.
            if matches!(done, Done::Turns { first: false, .. }) { Slot::Output(1) } else { Slot::Input(2) },
            Slot::Input(op.length_input().unwrap_or(2)),
            Slot::Output(0),
            Slot::Output(1),
            Slot::Scratch(0),
        ];
        let grid = [columns.into(), groups(op.batch, self.rows as u32)?, beside.into()];
        dispatch(build, constants, push.to_vec(), bindings, grid)
    }
}

fn whole(op: &Recurrent, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let lanes = u64::from(params.get("lanes")?);
    let quads = op.cell.gates() * 2;
    let pass = (lanes / quads).min(op.blocks());
    let mut share = Share::new(op, params, [pass, quads], op.hidden)?;
    if pass == op.blocks() {
        share.held = held(op, params, share.slices, op.hidden)?;
    }
    share.terms = 2 * share.rows * op.hidden;
    share.cells = if op.cell == Cell::Lstm { share.rows * op.hidden } else { 1 };
    let share = share.fitting(params.get("shared")?.into())?;
    let most = steps_together(op, &share, params.get("turns")?)?;
    let dispatches = dispatches(op, most);
    if dispatches * op.layers > MOST_DISPATCHES {
        return Err(Unfit(format!("would be more than {MOST_DISPATCHES} dispatches")));
    }
    // What a layer hands to the one above, and products of it.
    let between = if op.layers > 1 {
        let [steps, batch] = known(op)?;
        steps * batch * (op.hidden + op.rows())
    } else {
        1
    };
    let mut steps = Vec::new();
    for layer in 0..op.layers {
        if layer > 0 {
            steps.push(project(op, build, params, layer)?);
        }
        for index in 0..dispatches {
            let [from, to] = [index, index + 1].map(|index| op.steps.min(index * most));
            steps.push(share.step(op, build, Done::Turns { layer, from, to, first: index == 0 })?);
        }
    }
    Ok(Plan::new(steps, vec![(between * 4).into()]))
}

/// Quads of weights that stay in registers, of which each has this many words in 32 bits, and half as many in 16.
fn held(op: &Recurrent, params: &Params, slices: u64, depth: u64) -> Result<u64, Unfit> {
    let words = if op.dtype == DType::F32 { 4 } else { 2 };
    Ok((u64::from(params.get("held")?) / words).min(depth.div_ceil(slices)))
}

/// Dispatches for all steps, of which each does `most`. Where their number is open, twice as many each time, the last ones perhaps for
/// none: so a plan is for many lengths.
fn dispatches(op: &Recurrent, most: u64) -> u64 {
    if op.steps.is_constant() {
        return op.steps.exact().div_ceil(most);
    }
    let mut count = 1;
    while count <= MOST_DISPATCHES && op.steps > count * most {
        count *= 2;
    }
    count
}

/// Steps of a dispatch in which loops turn `most` times at most: llvmpipe ends those that turn 65536 times, whatever they do.
fn steps_together(op: &Recurrent, share: &Share, most: u32) -> Result<u64, Unfit> {
    let lanes = u64::from(share.lanes);
    let passes = op.blocks().div_ceil(share.pass);
    let units = (share.pass * BLOCK * share.rows).div_ceil(lanes) * (1 + share.slices.min(8));
    let turns = passes * (op.hidden / 4 + 8 + units) + share.rows * op.hidden / lanes;
    match u64::from(most) / turns {
        0 => Err(Unfit(format!("turns loops {most} times at most, and a step would take {turns}"))),
        steps => Ok(steps),
    }
}

/// What a layer reads of the one below, multiplied for all steps.
fn project(op: &Recurrent, build: &str, params: &Params, layer: u64) -> Result<Step, Unfit> {
    // It stores 32-bit floats, and has no build for 16-bit stores.
    let build = if build.ends_with("_f16") { format!("{build}p") } else { build.to_owned() };
    let [steps, batch] = known(op)?;
    let places = steps * batch;
    // On processors what is read of weights counts, and not registers: 92 places of 320 took 5 % less in 24 rows than in 8.
    let rows = places.min(if params.get("exchanged")? == 1 { 24 } else { 8 });
    let columns = op.blocks() * op.cell.gates() * 2;
    let lanes = u64::from(params.get("lanes")?).min(64);
    dispatch(
        &build.replace("cells", "project"),
        vec![lanes as u32, op.cell.gates() as u32, rows as u32],
        [places, op.hidden, layer].map(Size::from).to_vec(),
        vec![Slot::Input(1), Slot::Scratch(0)],
        [fixed_groups(columns, lanes as u32)?, fixed_groups(places, rows as u32)?, 1].map(Size::from),
    )
}

fn dispatch(
    build: &str,
    constants: Vec<u32>,
    push: Vec<Size>,
    bindings: Vec<Slot>,
    grid: [Size; 3],
) -> Result<Step, Unfit> {
    Ok(Step { module: module(build)?, constants, push, bindings, grid, subgroup_size: 0 })
}

fn each_step(op: &Recurrent, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let [steps, _] = known(op)?;
    let dispatches = steps + op.layers - 1;
    if dispatches > MOST_DISPATCHES {
        return Err(Unfit(format!("is for up to {MOST_DISPATCHES} steps, not {steps}")));
    }
    let pass = u64::from(params.get("blocks")?);
    let lanes = u64::from(params.get("lanes")?);
    // What the new gate of a GRU gets of the layer below is as that of a fourth gate.
    let apart = u64::from(op.cell == Cell::Gru && op.layers > 1);
    let sums = (op.cell.gates() + apart) * 2;
    let pass = pass.min(lanes / sums).max(1);
    let depth = op.depth(op.layers - 1);
    let mut share = Share::new(op, params, [pass, sums], depth)?;
    share.held = held(op, params, share.slices, depth)?;
    let share = share.fitting(SHARED_BYTES)?;
    let steps = (0..dispatches).map(|step| share.step(op, build, Done::Step(step)));
    Ok(Plan::new(steps.collect::<Result<Vec<Step>, Unfit>>()?, vec![states(op) * 4]))
}

/// Elements of the states that steps hand on.
fn states(op: &Recurrent) -> Size {
    op.batch * (3 * op.hidden * op.layers * op.directions())
}

/// Layer after layer: a product for all steps, which reads weights once, then a dispatch for each step. Processors, where weights that
/// are read at every step take their time, are sooner done so than with all layers at once.
fn each_layer(op: &Recurrent, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.layers < 2 {
        return Err(Unfit("is for several layers".into()));
    }
    let [all, batch] = known(op)?;
    if all.saturating_mul(op.layers) > MOST_DISPATCHES {
        return Err(Unfit(format!("would be more than {MOST_DISPATCHES} dispatches")));
    }
    let quads = op.cell.gates() * 2;
    let pass = u64::from(params.get("blocks")?).min(u64::from(params.get("lanes")?) / quads).max(1);
    let share = Share::new(op, params, [pass, quads], op.hidden)?.fitting(SHARED_BYTES)?;
    let mut steps = Vec::new();
    for layer in 0..op.layers {
        if layer > 0 {
            steps.push(project(op, build, params, layer)?);
        }
        for step in 0..all {
            steps.push(share.step(op, build, Done::LayerStep { layer, step })?);
        }
    }
    let between = all * batch * (op.hidden + op.rows());
    Ok(Plan::new(steps, vec![(states(op) + between) * 4]))
}

const _: () = assert!(BLOCK == 8, "the kernels have blocks of eight units");
