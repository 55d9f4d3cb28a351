//! The dispatches of the kernels of `gather_elements`, by template.

use halite_ops::{Op, gather_elements::GatherElements, moves::dense_strides};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, factor, index_words, narrow_all, six},
    },
};

impl Lower for GatherElements {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "elements" => gathered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn gathered(op: &GatherElements, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    if factor(params.get("unit")?, op.dtype)? != 1 {
        return Err(Unfit("is for elements of another size".into()));
    }
    let sizes = |dims: &[u64]| dims.iter().map(Size::from).collect::<Vec<_>>();
    let mut strides = dense_strides(&sizes(&op.data));
    let axis_stride = std::mem::take(&mut strides[op.axis]);
    let mut push: Vec<Size> = six(&strides).into();
    push.extend([narrow("a dimension", op.data[op.axis])?, axis_stride]);
    let results = sizes(&op.indices);
    let mover = Mover::new(build, params, &results)?;
    let bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Output(0)];
    Ok(Plan::of(mover.step(&[index_words(op.index)], &push, bindings)?))
}
