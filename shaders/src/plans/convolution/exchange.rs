//! Dispatches of `exchange.comp`: convolutions of 1x1 and products of matrices on devices that run on a CPU, in equal parts of
//! the filters that there are.

use halite_ops::{convolution::Convolution, window::Layout};

use super::{KernelInputs, PUSHED_FILTERS, divides, images_32, step};
use halite_sizes::Size;

use crate::{
    Plan, Slot, Unfit,
    plan::{fixed, fixed_groups, groups, narrow},
};

/// Places of an invocation.
const PLACES: u32 = 4;

/// An invocation for a part of the filters at four places, with a kernel of 1x1 without padding.
pub(in crate::plans) fn pointwise(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let w = &shape.window;
    if w.kernel != [1, 1] || w.pads != [0; 4] || shape.layout != Layout::Nchw {
        return Err(Unfit("wants channels first, a kernel of 1x1 and no padding".into()));
    }
    let one_place = w.output() == [1, 1] && shape.images == 1 && !kernel.added.residual;
    if one_place && w.input == [1, 1] {
        return places_of_filters(shape, kernel);
    }
    products(shape, kernel, false)
}

/// The same where an image is one place: the filters are the places, of which each has its terms side by side.
fn places_of_filters(shape: &Convolution, mut kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let mut turned = *shape;
    turned.filters = 1;
    turned.window.input = [1, shape.filters].map(Size::from);
    let groups = shape.groups > 1 && kernel.added.bias;
    if groups {
        return products(shape, kernel, false);
    }
    (kernel.added.place_bias, kernel.added.bias) = (kernel.added.bias, false);
    kernel.bindings.swap(0, 1);
    // What is not there has the place of the filters, and nothing reads it.
    if !kernel.added.place_bias {
        kernel.bindings[2] = Slot::Input(1);
    }
    products(&turned, kernel, true)
}

/// Filters of each of the equal parts of all, of which none is more than `most`.
pub(in crate::plans) fn part(filters: u64, most: u32) -> Result<u32, Unfit> {
    let blocks = fixed_groups(filters, most)?;
    fixed("rows", filters.div_ceil(blocks.max(1).into()))
}

/// The plan of one product of a likely number of rows for as many as callers or data decide, in parts of so many.
pub(in crate::plans) fn opened(mut plan: Plan, part: u32, rows: Size) -> Result<Plan, Unfit> {
    for step in &mut plan.steps {
        // Strides over images and groups are of the likely number, and there is one of each.
        step.push[PUSHED_FILTERS] = narrow("a number of rows", rows)?;
        step.grid[1] = groups(rows, part)?;
    }
    Ok(plan)
}

/// A product: filters are rows, places are columns, groups are the batch. With `transposed`, terms of a place lie side by side.
pub(in crate::plans) fn products(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    transposed: bool,
) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    if shape.channels == 0 || shape.filters == 0 {
        return Err(Unfit("wants terms and filters".into()));
    }
    let (lanes, most) = (p("lanes")?, p("rows")?);
    let [height, width] = w.output();
    let pixels = height * width;
    let rows = part(shape.filters, most)?;
    let blocks = shape.filters.div_ceil(rows.into()) * shape.groups;
    let dense = w.strides == [1, 1];
    let quads = dense && !transposed && divides(pixels, PLACES);
    let term_quads = shape.channels.is_multiple_of(4);
    let [least, limit] = kernel.limits();
    let flags = [quads, transposed, term_quads, dense].map(u32::from);
    let constants = [&[lanes, rows][..], &flags, &[least, limit]].concat();
    let grid = [groups(pixels, lanes * PLACES)?, narrow("a number of filters", blocks)?, images_32(shape)?];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}
