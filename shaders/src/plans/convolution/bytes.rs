//! Convolutions of bytes by dot products of four terms, and of one channel in each group.

use halite_ops::{convolution::Convolution, window::Layout};
use halite_sizes::{Size, is_worth};

use super::{KernelInputs, at_least, images_32, step};
use crate::{
    Plan, Unfit,
    plan::{fixed, fixed_groups, groups, narrow},
};

/// Tiles of results, a workgroup each; parts of it share the terms.
pub(in crate::plans) fn dots(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (bm, bn, kw, tm, slices) = (p("bm")?, p("bn")?, p("kw")?, p("tm")?, p("slices")?);
    let team = bm / tm * (bn / 4);
    let whole = [bm % tm, tm % 4, bn % 4, bm * kw % team, kw * (bn / 4) % team] == [0; 5];
    if !whole {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {team} invocations do not cover")));
    }
    channels_first(shape)?;
    at_least(shape, p("min_filters")?)?;
    if shape.depth() == 0 {
        return Err(Unfit("wants a term in a sum".into()));
    }
    let places = places(shape);
    let blocks = u64::from(fixed_groups(shape.filters, bm)?) * shape.groups;
    let grid: [Size; 3] = [groups(places, bn)?, narrow("a number of filters", blocks)?, images_32(shape)?];
    let (least, tiles) = (p("min_tiles")?, grid.iter().map(|n| n.as_f64()).product::<f64>());
    if tiles < least.into() {
        return Err(Unfit(format!("wants at least {least} tiles of {bm}x{bn} results, there are {tiles}")));
    }
    let w = &shape.window;
    let quads = is_worth(|| places.is_multiple_of(4));
    let plain = (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]);
    let sums = if slices > 1 { slices * tm * team } else { 0 };
    let shared = (slices * kw * (bm + bn) / 4).max(sums);
    let [height, width] = w.kernel.map(|size| fixed("the kernel", size));
    let words = shape.depth().is_multiple_of(4);
    let mut constants = vec![slices * team, bm, bn, kw, tm, slices, height?, width?];
    constants.extend([unsigned, plain && quads, words, quads].map(u32::from));
    constants.push(shared);
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// An invocation for four places of a filter whose group has one channel.
pub(in crate::plans) fn depthwise(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    if shape.channels != 1 {
        return Err(Unfit(format!("wants one channel in a group, there are {}", shape.channels)));
    }
    channels_first(shape)?;
    let places = places(shape);
    let filters = narrow("a number of filters", shape.groups * shape.filters)?;
    let quads = places.div_ceil(4u64);
    let lanes = super::lanes_for(quads, 1, kernel.params.get("lanes")?);
    let grid: [Size; 3] = [groups(quads, lanes)?, filters, images_32(shape)?];
    let [height, width] = shape.window.kernel.map(|size| fixed("the kernel", size));
    let whole = is_worth(|| places.is_multiple_of(4));
    let constants = vec![lanes, height?, width?, whole.into(), unsigned.into()];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// Places of a result.
fn places(shape: &Convolution) -> Size {
    shape.window.output().into_iter().product()
}

fn channels_first(shape: &Convolution) -> Result<(), Unfit> {
    match shape.layout {
        Layout::Nchw => Ok(()),
        Layout::Nhwc => Err(Unfit("wants channels first".into())),
    }
}
