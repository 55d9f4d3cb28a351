//! The dispatches of the kernels of `resize`, by template.

use halite_ops::{
    Op,
    axis::{Line, Nearest},
    resize::{Interpolation, Resize},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    divider::Divider,
    plans::{
        Lower, axis,
        moves::{Mover, factor, narrow_all},
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
    let (mut lines, together) = (op.lines(), neighbours(op, params)?);
    if let Some(last) = lines.last_mut().filter(|_| together > 1) {
        if !stays(last, together) {
            return Err(Unfit(format!(
                "is for neighbours that stay beside one another, {together} at a time"
            )));
        }
        (last.source, last.result) = (last.source / together, last.result / together);
    }
    for (d, line) in lines.iter().rev().enumerate() {
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
    let sizes: Vec<Size> = [op.images].into_iter().chain(lines.iter().map(|line| line.result)).collect();
    let mover = Mover::new(build, params, &sizes)?;
    Ok(Plan::of(mover.step(&constants, &push, vec![Slot::Input(0), Slot::Output(0)])?))
}

/// Neighbouring elements that are moved at once.
fn neighbours(op: &Resize, params: &Params) -> Result<u64, Unfit> {
    if op.interpolation == Interpolation::Nearest { factor(params.get("unit")?, op.dtype) } else { Ok(1) }
}

/// Whether each place of a dimension becomes the same place, in whole units of so many.
fn stays(line: &Line, factor: u64) -> bool {
    let same = line.source.is(line.result) && line.start.is(0.into()) && line.factor.is(line.divisor);
    same && line.source.is_multiple_of(factor)
}
