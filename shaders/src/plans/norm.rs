//! The dispatches of the kernels of `norm`, by template.

use halite_ops::norm::{Norm, NormKind};

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{groups, module, narrow},
    plans::{
        Lower,
        lines::{self, Share},
    },
};

impl Lower for Norm {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        if template == "by_channel" {
            return by_channel(self, build, params);
        }
        fits(self, params)?;
        lines::plan(&self.lines(), template, params, 8, |share, mode, pieces| {
            let kept = if mode == 0 { kept(self, params)? } else { 0 };
            step(self, build, share, (mode, kept), pieces)
        })
    }
}

/// Fours of a line that each invocation keeps: all of them where they are few, else none.
fn kept(op: &Norm, params: &Params) -> Result<u32, Unfit> {
    let (length, most) = (op.lines().length, params.get("kept").unwrap_or(0));
    if most == 0 || op.spatial != 1 || !length.is_constant() || length.exact() < 4 {
        return Ok(0);
    }
    let fours = length.exact().div_ceil(4 * u64::from(params.get("along")?));
    Ok(u32::try_from(fours).ok().filter(|fours| *fours <= most).unwrap_or(0))
}

fn step(
    op: &Norm,
    build: &str,
    share: &Share,
    (mode, kept): (u32, u32),
    pieces: Slot,
) -> Result<Step, Unfit> {
    let centered = op.kind == NormKind::Group;
    let [scale, bias] = op.channel_inputs().map(Slot::Input);
    let per_group = op.channels / op.groups.max(1);
    let numbers = [
        narrow("groups", op.groups)?,
        narrow("channels", per_group)?,
        narrow("spatial", op.spatial)?,
        op.epsilon.0.to_bits().into(),
    ];
    Ok(Step {
        module: module(build)?,
        constants: share.constants(&[mode, centered.into(), op.scale.into(), op.bias.into(), kept]),
        push: share.push(&numbers),
        bindings: vec![Slot::Input(0), scale, bias, Slot::Output(0), pieces],
        grid: share.grid(),
        subgroup_size: 0,
    })
}

fn fits(op: &Norm, params: &Params) -> Result<(), Unfit> {
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
