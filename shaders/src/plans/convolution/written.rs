//! Dispatches of `written.comp`, `depthwise_written.comp` and `depthwise_rows.comp`: convolutions of bytes on SwiftShader, in code without
//! short loops, or with loops that read each word once.

use halite_ops::{convolution::Convolution, window::Layout};

use super::{
    KernelInputs, divides, images_32, mostly_there,
    spans::{EXACT, counted, in_one_row},
    step,
};
use crate::{
    Plan, Unfit,
    plan::{fixed, fixed_groups, groups, narrow},
};

/// Filters and neighbours of an invocation.
const FILTERS: u32 = 8;
const ACROSS: u32 = 8;

/// An invocation for eight filters at eight neighbours.
pub(in crate::plans) fn written(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let (lanes, columns, stride, aligned) = (p("lanes")?, p("kernel")?, p("stride")?, p("aligned")?);
    if shape.layout != Layout::Nchw || shape.channels == 0 || w.kernel[0] == 0 {
        return Err(Unfit("wants channels first, and a term in a sum".into()));
    }
    counted(shape)?;
    let points = columns == 1;
    if points {
        let plain = (w.kernel, w.strides, w.pads) == ([1, 1], [1, 1], [0; 4]);
        if !plain || !shape.channels.is_multiple_of(4) {
            return Err(Unfit(
                "wants a kernel of 1x1 without strides and padding, and quads of channels".into(),
            ));
        }
    } else if (w.kernel[1], w.strides[1], w.dilations[1]) != (columns.into(), stride.into(), 1) {
        return Err(Unfit(format!("wants {columns} columns with strides of {stride} and no dilation")));
    }
    mostly_there(shape, FILTERS)?;
    let shape = &if points { in_one_row(shape) } else { *shape };
    let [rows, columns] = shape.window.output();
    let quads = divides(columns, 4);
    if aligned == 1 && !quads {
        return Err(Unfit("wants quads of places".into()));
    }
    let terms = if points { 4 } else { 3 };
    let blocks = u64::from(fixed_groups(shape.filters, FILTERS)?) * shape.groups;
    let places = rows * columns.div_ceil(u64::from(ACROSS));
    let grid = [groups(places, lanes)?, narrow("a number of filters", blocks)?, images_32(shape)?];
    let constants = vec![lanes, EXACT as u32 / terms, unsigned.into(), quads.into()];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// An invocation for four rows of four neighbours of a filter over one channel, with a kernel of 3x3.
pub(in crate::plans) fn depthwise(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let (lanes, stride) = (p("lanes")?, p("stride")?);
    let window = (w.kernel, w.strides, w.dilations) == ([3, 3], [stride.into(); 2], [1, 1]);
    if !window || shape.channels != 1 || shape.layout != Layout::Nchw {
        return Err(Unfit(format!(
            "wants channels first, one channel in a group, a kernel of 3x3 with strides of {stride} and no dilation"
        )));
    }
    counted(shape)?;
    let [rows, columns] = w.output();
    let filters = narrow("a number of filters", shape.groups * shape.filters)?;
    let places = rows.div_ceil(4u64) * columns.div_ceil(4u64);
    let grid = [groups(places, lanes)?, filters, images_32(shape)?];
    let constants = vec![lanes, unsigned.into(), divides(columns, 4).into()];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// An invocation for four neighbours of a row of a filter over one channel, with a kernel of any size.
pub(in crate::plans) fn depthwise_rows(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    unsigned: bool,
) -> Result<Plan, Unfit> {
    let (p, w) = (|name| kernel.params.get(name), &shape.window);
    let (lanes, stride) = (p("lanes")?, u64::from(p("stride")?));
    if shape.channels != 1 || shape.layout != Layout::Nchw || w.dilations[1] != 1 {
        return Err(Unfit("wants channels first, one channel in a group, and no dilation of columns".into()));
    }
    counted(shape)?;
    let [rows, columns] = w.output();
    // A single column has no next one.
    if w.strides[1] != stride && !(stride == 1 && columns == 1) {
        return Err(Unfit(format!("wants strides of {stride}")));
    }
    let [height, width] = w.kernel.map(|size| fixed("the kernel", size));
    let (height, width) = (height?, width?);
    if u64::from(width) > EXACT {
        return Err(Unfit(format!("adds up to {EXACT} columns as floats, the kernel has {width}")));
    }
    let places = rows * columns.div_ceil(4u64) * shape.groups * shape.filters;
    narrow("a number of places", places)?;
    let grid = [groups(places, lanes)?, 1.into(), images_32(shape)?];
    let constants = vec![lanes, height, width, divides(columns, 4).into(), unsigned.into()];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}
