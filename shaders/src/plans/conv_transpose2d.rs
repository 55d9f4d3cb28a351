//! The dispatches of the kernels of `conv_transpose2d`, by template.

use halite_ops::{Op, conv_transpose2d::ConvTranspose2d};
use halite_sizes::Size;

use crate::{
    Params, Plan, Step, Unfit,
    plan::{fixed_groups, groups, module, narrow},
    plans::{
        Lower,
        conv2d::bindings,
        convolution::lanes_for,
        epilogue::{Added, Epilogue, activation_code},
    },
};

impl Lower for ConvTranspose2d {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "direct" => direct(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// The block of `include/convolution.glsl`.
fn push(op: &ConvTranspose2d) -> Result<Vec<Size>, Unfit> {
    let ([_, all, height, width], [_, filters, rows, columns]) = (op.input, op.filter.map(Size::from));
    let ([_, total, out_height, out_width], channels) = (op.output_dims(), Size::from(op.channels()));
    let one = Size::constant(1);
    for tensor in op.inputs().iter().chain(&op.outputs()) {
        narrow("a number of elements", tensor.elements())?;
    }
    let (pixels, places, taps) = (height * width, out_height * out_width, rows * columns);
    let sizes = [channels, height, width, filters, rows, columns, out_height, out_width];
    let window = op.strides.into_iter().chain(op.dilations).chain([op.pads[0], op.pads[1]]).map(Size::from);
    let weights = [channels * filters * taps, taps, filters * taps, one];
    let steps = [all * pixels, pixels, one].into_iter().chain(weights).chain([total * places, places, one]);
    sizes.into_iter().chain(window).chain(steps).map(|value| narrow("a size", value)).collect()
}

fn direct(op: &ConvTranspose2d, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let p = |name| params.get(name);
    let (channels, pixels, least) = (p("channels")?, p("pixels")?, p("min_filters")?);
    if !Epilogue::of("direct", params).does(false, op.activation) {
        return Err(Unfit(format!("does not know the activation {:?}", op.activation)));
    }
    if op.filter[1] < u64::from(least) {
        return Err(Unfit(format!("wants at least {least} filters in a group, there are {}", op.filter[1])));
    }
    let module = module(build)?;
    let [images, _, rows, columns] = op.output_dims();
    // A workgroup has places that are a stride apart: as many kinds of them as strides multiply to.
    let places = rows.div_ceil(op.strides[0]) * columns.div_ceil(op.strides[1]);
    let lanes = lanes_for(places, pixels, p("lanes")?);
    let kinds = op.strides[0] * op.strides[1];
    let blocks = u64::from(fixed_groups(op.filter[1], channels)?) * op.groups;
    let grid = [
        groups(places, lanes * pixels)?,
        narrow("a number of filters", blocks)?,
        narrow("a number of images and strides", images * kinds)?,
    ];
    let added = Added { bias: op.bias, ..Added::default() };
    let constants = vec![lanes, added.code(), activation_code(op.activation)];
    let (push, bindings) = (push(op)?, bindings(added));
    Ok(Plan::of(Step { module, constants, push, bindings, grid, subgroup_size: 0 }))
}
