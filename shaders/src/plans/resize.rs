//! The dispatches of the kernels of `resize`, by template.

use halite_ops::{
    Op,
    axis::Nearest,
    resize::{Interpolation, Resize},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    divider::Divider,
    plans::{
        Lower, axis,
        moves::{Mover, narrow_all},
    },
};

impl Lower for Resize {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "nearest" | "weighted" => resized(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn resized(op: &Resize, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let mut push = [1, 0, 0, 1].map(|number| [Size::constant(number); 3]);
    for (d, line) in op.lines().iter().rev().enumerate() {
        for (numbers, number) in push.iter_mut().zip(axis::told(line)?) {
            numbers[d] = number;
        }
    }
    let rounded = matches!(op.nearest, Nearest::RoundPreferFloor | Nearest::RoundPreferCeil);
    let halves = if op.interpolation == Interpolation::Nearest && rounded { 2 } else { 1 };
    let inverses = push[3].map(|divisor| Divider::of(divisor * halves));
    let mut push: Vec<Size> = push.concat();
    push.extend(inverses.map(|inverse| inverse.factor));
    // Five bits each.
    push.push(inverses.iter().rev().fold(Size::constant(0), |all, inverse| all * 32 + inverse.shift));
    push.push((op.cubic.0 as f32).to_bits().into());
    let constants = if op.interpolation == Interpolation::Nearest {
        vec![op.nearest as u32]
    } else {
        vec![op.taps(), (op.exclude_outside && op.interpolation == Interpolation::Cubic).into()]
    };
    if op.interpolation == Interpolation::Nearest {
        push.pop();
    }
    let sizes: Vec<Size> = [op.images].iter().chain(&op.output).copied().collect();
    let mover = Mover::new(build, params, &sizes)?;
    Ok(Plan::of(mover.step(&constants, &push, vec![Slot::Input(0), Slot::Output(0)])?))
}
