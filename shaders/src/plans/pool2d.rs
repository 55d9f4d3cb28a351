//! The dispatches of the kernels of `pool2d`, by template.

use halite_ops::{Op, pool2d::Pool2d, window::Layout};

use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::Lower,
};

impl Lower for Pool2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "direct" => dispatch(self, build, params, params.get("lanes")?),
            "wide" => wide(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// A workgroup for each result.
fn wide(op: &Pool2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let least = params.get("min_columns")?;
    if op.kernel[1] < u64::from(least) {
        return Err(Unfit(format!("wants a window of at least {least} columns, not {}", op.kernel[1])));
    }
    dispatch(op, build, params, 1)
}

/// Workgroups that have `results` each.
fn dispatch(op: &Pool2d, build: &str, params: &Params, results: u32) -> Result<Plan, Unfit> {
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
    let constants = vec![lanes, op.kind as u32];
    let bindings = vec![Slot::Input(0), Slot::Output(0)];
    let grid = [groups(channels * rows * columns, results)?, narrow("a number of images", images)?, 1.into()];
    Ok(Plan::of(Step { module, constants, push, bindings, grid, subgroup_size: 0 }))
}
