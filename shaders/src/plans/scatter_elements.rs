//! The dispatches of the kernels of `scatter_elements`, by template.

use halite_ops::{Op, moves::dense_strides, scatter_elements::ScatterElements};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Unfit,
    plan::narrow,
    plans::{
        Lower,
        moves::{Mover, factor, index_words, narrow_all, whole_copy},
        scatters::{Claims, check_many, shares, turns},
    },
};

impl Lower for ScatterElements {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "claimed" => claimed(self, build, params),
            "columns" => scattered(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

/// Dimensions but the one that is indexed.
fn others<'a, T: Copy>(op: &ScatterElements, of: &'a [T]) -> impl DoubleEndedIterator<Item = T> + use<'a, T> {
    let axis = op.axis;
    of.iter().enumerate().filter(move |(d, _)| *d != axis).map(|(_, value)| *value)
}

/// What kernels are told of strides: of indices in the other dimensions, of data there; then of indices along this one, its size in the
/// data and its stride there.
fn strides(op: &ScatterElements) -> Result<(Vec<Size>, [Size; 3]), Unfit> {
    let strides = |dims: &[u64]| dense_strides(&dims.iter().map(Size::from).collect::<Vec<_>>());
    let (indices, data) = (strides(&op.indices), strides(&op.data));
    let mut push = Vec::new();
    for strides in [&indices, &data] {
        let wrapped = others(op, strides).rev();
        push.extend(wrapped.chain(std::iter::repeat(0.into())).take(5));
    }
    Ok((push, [indices[op.axis], narrow("a dimension", op.data[op.axis])?, data[op.axis]]))
}

/// Fails for what kernels do not count.
fn check(op: &ScatterElements, params: &Params) -> Result<(), Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    if factor(params.get("unit")?, op.dtype)? != 1 {
        return Err(Unfit("is for elements of another size".into()));
    }
    Ok(())
}

/// All updates at once, behind claims to their places.
fn claimed(op: &ScatterElements, build: &str, params: &Params) -> Result<Plan, Unfit> {
    check(op, params)?;
    let places = Size::from(op.data.iter().product::<u64>());
    check_many(params, op.indices[op.axis].into(), places)?;
    let (mut push, last) = strides(op)?;
    push.extend(last);
    let sizes: Vec<Size> =
        [op.indices[op.axis]].into_iter().chain(others(op, &op.indices)).map(Size::from).collect();
    let claims = Claims { build: "scatter_elements_claim", of: places, push: &push };
    let constants = |clears: bool| [index_words(op.index), clears.into()];
    let mut steps = vec![whole_copy(&op.outputs()[0], Slot::Input(0), Slot::Output(0))?];
    steps.extend(claims.steps(params, &sizes, constants)?);
    let bindings = vec![Slot::Input(1), Slot::Input(2), Slot::Output(0), Slot::Scratch(0)];
    steps.push(Mover::new(build, params, &sizes)?.by_unit().step(&constants(false), &push, bindings)?);
    Ok(Plan::new(steps, vec![claims.bytes()?]).updating())
}

fn scattered(op: &ScatterElements, build: &str, params: &Params) -> Result<Plan, Unfit> {
    check(op, params)?;
    let columns: u64 = others(op, &op.indices).product();
    let along = narrow("a dimension", op.indices[op.axis])?;
    let shares = shares(columns, op.indices[op.axis]);
    let mut sizes = vec![Size::from(shares)];
    sizes.extend(others(op, &op.indices).map(Size::from));
    let (push, [stride, size, of_data]) = strides(op)?;
    let last = [stride, size, of_data, Size::from(shares)];
    let constants = [index_words(op.index), op.reduction as u32];
    let mover = Mover::new(build, params, &sizes)?.by_unit();
    let mut steps = vec![whole_copy(&op.outputs()[0], Slot::Input(0), Slot::Output(0))?];
    for [first, end] in turns(along) {
        let push = [&push[..], &[first, end], &last].concat();
        let bindings = vec![Slot::Input(1), Slot::Input(2), Slot::Output(0)];
        steps.push(mover.clone().step(&constants, &push, bindings)?);
    }
    Ok(Plan::new(steps, Vec::new()).updating())
}
