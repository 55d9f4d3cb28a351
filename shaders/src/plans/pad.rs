//! The dispatches of the kernels of `pad`, by template.

use halite_ops::{
    Op, Values,
    pad::{Border, Extent, Pad},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plans::{
        Lower,
        moves::{Mover, factor, narrow_all, six},
    },
};

impl Lower for Pad {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "border" => bordered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// As few dimensions as possible, one at least. Neighbours without borders become one, and with a constant also a
/// dimension with a border and those without inside of it.
fn merged(op: &Pad) -> Vec<Extent> {
    let mut merged: Vec<Extent> = Vec::new();
    for next in op.extents() {
        // By what is known: an open border may be none, which is right in a dimension of its own too.
        let bare = |e: &Extent| e.before.is(0.into()) && e.input.is(e.output);
        let joins = |last: &Extent| bare(&next) && (bare(last) || op.border == Border::Constant);
        match merged.last_mut() {
            Some(last) if joins(last) => {
                let times = |value: Size| value * next.input;
                let Extent { input, output, before } = *last;
                *last = Extent { input: times(input), output: times(output), before: times(before) };
            }
            _ => merged.push(next),
        }
    }
    if merged.is_empty() {
        vec![Extent { input: 1.into(), output: 1.into(), before: 0.into() }]
    } else {
        merged
    }
}

fn bordered(op: &Pad, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let factor = factor(params.get("unit")?, op.dtype)?;
    let mut extents = merged(op);
    let inner = extents.last_mut().expect("there is one at least");
    if factor > 1 {
        let Extent { input, output, before } = *inner;
        let bare = before.is(0.into()) && input.is(output);
        let whole = [input, output].iter().all(|v| v.is_multiple_of(factor))
            && if before < 0 { -before } else { before }.is_multiple_of(factor);
        if !whole || !(bare || op.border == Border::Constant) {
            return Err(Unfit(format!("moves {factor} elements at a time, which borders cut")));
        }
        *inner = Extent {
            input: input / factor,
            output: output / factor,
            before: if before < 0 { -(-before / factor) } else { before / factor },
        };
    }
    let starts: Vec<Size> = extents.iter().map(|e| op.start(e)).collect();
    let inputs: Vec<Size> = extents.iter().map(|e| e.input).collect();
    let sizes: Vec<Size> = extents.iter().map(|e| e.output).collect();
    let mut push: Vec<Size> = six(&inputs).into_iter().chain(six(&starts)).collect();
    let value = Values::Float(vec![op.value.0]).to_bytes(op.dtype);
    let pattern: Vec<u8> = value.iter().copied().cycle().take(16).collect();
    push.extend(pattern.as_chunks::<4>().0.iter().map(|bytes| Size::from(u32::from_le_bytes(*bytes))));
    let mover = Mover::new(build, params, &sizes)?;
    Ok(Plan::of(mover.step(&[op.border as u32], &push, vec![Slot::Input(0), Slot::Output(0)])?))
}
