//! The dispatches of the kernels of `pool2d`, by template.

use halite_ops::{Op, Operation, pool2d::Pool2d, runs::Runs, window::Layout};

use halite_sizes::{Size, is_worth};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::{
        Lower,
        moves::items_for,
        runs::{Around, Taken},
    },
};

impl Lower for Pool2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let taken = taken(self, template);
        let (own, other) = taken.split(self.read, self.written);
        let alone = Pool2d { read: None, written: None, ..self.clone() };
        if let Some(around) = Around::of(other, Operation::Pool2d(alone)) {
            let own = Pool2d { read: own[0], written: own[1], ..self.clone() };
            return around.plan(own.lower(template, build, params)?);
        }
        match template {
            "direct" => direct(self, build, params),
            "last" => last(self, build, params),
            "wide" => wide(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Which runs the kernels of a template take: channels of a place, in fours.
fn taken(op: &Pool2d, template: &str) -> Taken {
    let (_, channels, _) = op.shape();
    let is_taken =
        |runs: Runs| template == "last" && runs.are_multiples_of(4) && channels.is(runs.length.into());
    Taken { read: op.read.is_some_and(is_taken), written: op.written.is_some_and(is_taken) }
}

/// Most elements of a window whose reads are all written out.
const MOST_TAPS: u64 = 16;

/// Rows and columns of a small window, or zeros. There must be an element to read for what is not in the input.
fn taps(op: &Pool2d) -> [u32; 2] {
    let some = op.shape().2.input.iter().all(|size| size.least() > 0);
    let small = some && op.kernel[0].saturating_mul(op.kernel[1]) <= MOST_TAPS;
    match op.kernel.map(u32::try_from) {
        [Ok(height), Ok(width)] if small => [height, width],
        _ => [0, 0],
    }
}

/// Results in the order of memory, some for each invocation where they are very many.
fn direct(op: &Pool2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (images, channels, window) = op.shape();
    let [rows, columns] = window.output();
    let lanes = params.get("lanes")?;
    let items = items_for(images * channels * rows * columns, lanes, 1);
    let [height, width] = taps(op);
    dispatch(op, build, params, lanes * items, &[height, width, items])
}

/// Four channels at one place for each invocation.
fn last(op: &Pool2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let (_, channels, _) = op.shape();
    if op.layout != Layout::Nhwc || !is_worth(|| channels.is_multiple_of(4)) {
        return Err(Unfit("wants channels last, in fours".into()));
    }
    let [height, width] = taps(op);
    let mut plan = dispatch(op, build, params, params.get("lanes")? * 4, &[height, width])?;
    for runs in [op.read, op.written] {
        let [pitch, first] =
            runs.map_or([channels, 0.into()], |runs| [runs.pitch, runs.offset].map(Size::from));
        for step in &mut plan.steps {
            step.push.extend([narrow("a size", pitch / 4)?, narrow("a size", first / 4)?]);
        }
    }
    Ok(plan)
}

/// A workgroup for each result.
fn wide(op: &Pool2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let least = params.get("min_columns")?;
    if op.kernel[1] < u64::from(least) {
        return Err(Unfit(format!("wants a window of at least {least} columns, not {}", op.kernel[1])));
    }
    dispatch(op, build, params, 1, &[])
}

/// Workgroups that have `results` each; `more` are constants behind the first two.
fn dispatch(op: &Pool2d, build: &str, params: &Params, results: u32, more: &[u32]) -> Result<Plan, Unfit> {
    let lanes = params.get("lanes")?;
    let (images, channels, window) = op.shape();
    let module = module(build)?;
    let [rows, columns] = window.output();
    let input = window.input;
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let [height, width] = op.kernel.map(Size::from);
    let sizes = [channels, input[0], input[1], height, width, rows, columns];
    let window = op.strides.iter().chain(&op.dilations).chain(&op.pads).map(Size::from);
    let all = sizes.into_iter().chain(window);
    let mut push = all.map(|v| narrow("a size", v)).collect::<Result<Vec<Size>, Unfit>>()?;
    push.push(i32::from(op.layout == Layout::Nhwc).into());
    let constants = [&[lanes, op.kind as u32], more].concat();
    let bindings = vec![Slot::Input(0), Slot::Output(0)];
    let grid = [groups(channels * rows * columns, results)?, narrow("a number of images", images)?, 1.into()];
    Ok(Plan::of(Step { module, constants, push, bindings, grid, subgroup_size: 0 }))
}
