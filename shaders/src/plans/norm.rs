//! The dispatches of the kernels of `norm`, by template.

use halite_ops::{
    Op,
    line_order::{LineOrder, MOST_LINE_DIMS},
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::{
        Lower,
        epilogue::activation_code,
        lines::{self, Share},
    },
};

impl Lower for Norm {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template == "by_channel" {
            return by_channel(self, build, params);
        }
        if template == "last" {
            return super::norm_last::plan(self, build, params);
        }
        fits(self, params)?;
        if template == "ordered" {
            let share = lines::share(&self.lines(), params)?;
            return Ok(Plan::of(step(self, build, &share, (0, kept(self, params)?), Slot::Output(0))?));
        }
        lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
            let kept = if mode == 0 { kept(self, params)? } else { 0 };
            step(self, build, share, (mode, kept), pieces)
        })
    }
}

/// Fours of a line that each invocation keeps: all of them where they are few, else none.
fn kept(op: &Norm, params: &Params) -> Result<u32, Unfit> {
    let (length, most) = (op.lines().length, params.get("kept").unwrap_or(0));
    // Elements that lie apart are of channels of their own.
    let apart = op.spatial != 1 && params.get("packed").unwrap_or(0) == 0;
    if most == 0 || apart || !length.is_constant() || length.exact() < 4 {
        return all_kept(params, "lines of known length");
    }
    let few = params.get("few_lines").is_ok_and(|few| op.lines().count() < u64::from(few));
    if few && length > u64::from(params.get("few_length")?) {
        return Err(Unfit("is for more lines of this length".into()));
    }
    let fours = length.exact().div_ceil(4 * u64::from(params.get("along")?));
    match u32::try_from(fours).ok().filter(|fours| *fours <= most) {
        Some(fours) => Ok(fours),
        None => all_kept(params, "shorter lines"),
    }
}

/// No four is kept, unless the variant is for lines that are kept.
fn all_kept(params: &Params, wanted: &str) -> Result<u32, Unfit> {
    match params.get("all").unwrap_or(0) {
        0 => Ok(0),
        _ => Err(Unfit(format!("wants {wanted}, which invocations can keep"))),
    }
}

fn step(
    op: &Norm,
    build: &str,
    share: &Share,
    (mode, kept): (u32, u32),
    pieces: Slot,
) -> Result<Step, Unfit> {
    let centered = op.kind == NormKind::Group;
    let runs = kept > 0 && op.spatial != 1;
    let [scale, bias] = op.channel_inputs().map(Slot::Input);
    let per_group = op.channels / op.groups.max(1);
    let mut numbers = vec![
        narrow("groups", op.groups)?,
        narrow("channels", per_group)?,
        narrow("spatial", op.spatial)?,
        op.epsilon.0.to_bits().into(),
    ];
    let flags = [centered, op.scale, op.bias].map(u32::from);
    let mut constants = [&[mode], &flags[..], &[kept, runs.into()]].concat();
    match &op.order {
        Some(order) => numbers.extend(ordered(order, op)?),
        None => constants.push(activation_code(op.activation)),
    }
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&constants),
        push: share.push(&numbers),
        bindings: vec![Slot::Input(0), scale, bias, Slot::Output(0), pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}

/// Sizes of the dimensions of a line's number but the outermost, the first element, strides: the innermost first.
fn ordered(order: &LineOrder, op: &Norm) -> Result<Vec<Size>, Unfit> {
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let padded = |values: &[Size], most: usize, none: u64| {
        let mut values: Vec<Size> = values.iter().rev().copied().collect();
        values.resize(most, none.into());
        values
    };
    // The outermost needs no size: what is left is its place.
    let dims = order.sizes.len();
    let mut sizes = padded(&order.sizes[1..], MOST_LINE_DIMS - 1, 1);
    let (mut from, mut to) =
        (padded(&order.from[..dims], MOST_LINE_DIMS, 0), padded(&order.to[..dims], MOST_LINE_DIMS, 0));
    // Where there are fewer dimensions, the outermost is the last.
    from.swap(dims - 1, MOST_LINE_DIMS - 1);
    to.swap(dims - 1, MOST_LINE_DIMS - 1);
    sizes.push(order.offset);
    sizes.extend(from);
    sizes.extend(to);
    let (read, write) = order.steps();
    sizes.extend([read, write]);
    sizes.into_iter().map(|number| narrow("a place", number)).collect()
}

fn fits(op: &Norm, params: &Params) -> Result<(), Unfit> {
    let takes_order = params.get("ordered").unwrap_or(0) == 1;
    if takes_order != op.order.is_some() {
        return Err(Unfit(
            if takes_order { "is for lines in another order" } else { "is for lines in their order" }.into(),
        ));
    }
    if let Some(order) = op.order.as_ref().filter(|_| params.get("packed").unwrap_or(0) == 1) {
        let whole = |strides: &[Size]| {
            strides
                .split_last()
                .is_some_and(|(last, rest)| *last == 1 && rest.iter().all(|stride| stride.is_multiple_of(4)))
        };
        if !(whole(&order.from) && whole(&order.to) && order.offset.is_multiple_of(4)) {
            return Err(Unfit("takes four neighbouring elements".into()));
        }
    }
    if op.kind == NormKind::Batch {
        return Err(Unfit("is for what has its own mean".into()));
    }
    let packed = params.get("packed").unwrap_or(0) == 1;
    if packed && op.spatial != 1 && !op.spatial.is_multiple_of(4) {
        return Err(Unfit("takes four elements of one channel".into()));
    }
    Ok(())
}

fn by_channel(op: &Norm, build: &str, params: &Params) -> Result<Plan, Unfit> {
    if op.kind != NormKind::Batch {
        return Err(Unfit("is for means that are given".into()));
    }
    let packed = params.get("packed").unwrap_or(0) == 1;
    if packed && !op.elements().is_multiple_of(4) {
        return Err(Unfit("takes a multiple of four elements".into()));
    }
    let lanes = params.get("lanes")?;
    let total = groups(op.elements(), lanes * 4)?;
    let across = total.min(32768);
    let [scale, bias] = op.channel_inputs().map(Slot::Input);
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: vec![lanes, op.scale.into(), op.bias.into()],
        push: vec![
            narrow("a number of elements", op.elements())?,
            narrow("channels", op.channels)?,
            narrow("spatial", op.spatial)?,
            op.epsilon.0.to_bits().into(),
        ],
        bindings: vec![Slot::Input(0), Slot::Input(1), Slot::Input(2), scale, bias, Slot::Output(0)],
        grid: [across, total.div_ceil(across.max(1)), 1.into()],
        subgroup_size: 0,
    }))
}
