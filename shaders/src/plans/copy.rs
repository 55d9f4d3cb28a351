//! The dispatches of the kernels of `copy`, by template.

use halite_ops::{Op, copy::StridedCopy, moves::dense_strides};
use halite_sizes::Size;

use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{
        Lower,
        moves::{Mover, Walk, factor, narrow_all, six},
    },
};

impl Lower for StridedCopy {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        match template {
            "strided" => strided(self, build, params),
            "transpose" => transposed(self, build, params),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}

fn walk(op: &StridedCopy) -> Walk {
    Walk { sizes: op.shape.clone(), strides: op.strides.clone(), offset: op.offset }.merged()
}

fn strided(op: &StridedCopy, build: &str, params: &Params) -> Result<Plan, Unfit> {
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let walk = walk(op).widened(factor(params.get("unit")?, op.dtype)?)?;
    let mut push = vec![narrow("an offset", walk.offset)?];
    push.extend(six(&walk.strides));
    let mover = Mover::new(build, params, &walk.sizes)?;
    Ok(Plan::of(mover.step(&[], &push, vec![Slot::Input(0), Slot::Output(0)])?))
}

/// Tiles of blocks of as many elements as a word holds; see `transpose.comp`.
fn transposed(op: &StridedCopy, build: &str, params: &Params) -> Result<Plan, Unfit> {
    let unit = params.get("unit")?;
    if factor(unit, op.dtype)? != 1 {
        return Err(Unfit(format!("is for elements of {unit} bytes")));
    }
    let walk = walk(op);
    let result = dense_strides(&walk.sizes);
    let b = walk.sizes.len() - 1;
    let a = walk.strides[..b].iter().position(|stride| *stride == 1);
    let a = a.ok_or_else(|| Unfit("needs a dimension that is innermost in the source only".into()))?;
    let pack = 4 / u64::from(unit);
    let others: Vec<usize> = (0..b).filter(|d| *d != a).rev().collect();
    let batches: Size = others.iter().map(|d| walk.sizes[*d]).product();
    let bent = || Unfit(format!("moves blocks of {pack}x{pack} elements, which do not divide this"));
    let least = 8 * pack;
    if walk.sizes[a] < least || walk.sizes[b] < least || batches > 65535 {
        return Err(Unfit(format!("is for two dimensions of {least} and more, and batches up to 65535")));
    }
    narrow_all(op.inputs().into_iter().chain(op.outputs()))?;
    let word = |value: Size| {
        let distance = if value < 0 { -value } else { value };
        let words = distance / pack;
        let divides = distance.is_multiple_of(pack);
        divides.then_some(if value < 0 { -words } else { words }).ok_or_else(bent)
    };
    let (blocks_a, blocks_b) = (word(walk.sizes[a])?, word(walk.sizes[b])?);
    let (tiles_a, tiles_b) = (blocks_a.div_ceil(tile(unit)), blocks_b.div_ceil(tile(unit)));
    let mut push = vec![blocks_a, blocks_b, tiles_b, word(walk.offset)?];
    push.extend([word(walk.strides[b])?, word(result[a])?]);
    let four =
        |values: Vec<Size>, rest: i64| values.into_iter().chain(std::iter::repeat(rest.into())).take(4);
    push.extend(four(others.iter().map(|d| walk.sizes[*d]).collect(), 1));
    for strides in [&walk.strides, &result] {
        push.extend(four(others.iter().map(|d| word(strides[*d])).collect::<Result<_, _>>()?, 0));
    }
    let grid = [narrow("a number of tiles", tiles_a * tiles_b)?, batches, 1.into()];
    let bindings = vec![Slot::Input(0), Slot::Output(0)];
    Ok(Plan::of(Step {
        module: module(build)?,
        constants: vec![params.get("lanes")?],
        push,
        bindings,
        grid,
        subgroup_size: 0,
    }))
}

/// Blocks along each side of a tile of `transpose.comp`.
fn tile(unit: u32) -> u32 {
    if unit == 1 { 16 } else { 32 }
}
