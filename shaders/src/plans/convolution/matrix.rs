//! Convolutions as products of matrices: tiles of results by the invocations of a workgroup, or by cooperative matrices,
//! with whole sums or parts of them.

use halite_ops::{convolution::Convolution, window::Layout};
use halite_sizes::Size;

use super::{KernelInputs, at_least, images_32, step};
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{fixed, fixed_groups, groups, module, narrow},
    plans::epilogue::activation_code,
};

/// Results in tiles, a workgroup each.
struct Tiles {
    /// Filters, places and terms of a tile.
    bm: u32,
    bn: u32,
    bk: u32,
    grid: [Size; 3],
    constants: Vec<u32>,
}

impl Tiles {
    fn count(&self) -> u64 {
        self.grid.iter().map(|n| n.value()).product()
    }
}

/// A product of matrices, tile by tile.
pub(in crate::plans) fn gemm(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name);
    let (lanes, bm, bn, bk, tm, tn) = (p("lanes")?, p("bm")?, p("bn")?, p("bk")?, p("tm")?, p("tn")?);
    if lanes * tm * tn != bm * bn || bm % tm != 0 || bn % tn != 0 || lanes % bn != 0 {
        return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
    }
    at_least(shape, p("min_filters")?)?;
    let [rows, columns] = shape.window.output();
    let blocks = u64::from(fixed_groups(shape.filters, bm)?) * shape.groups;
    let grid = [
        groups(rows * columns, bn)?,
        narrow("a number of filters", blocks)?,
        narrow("a number of images", shape.images)?,
    ];
    let [height, width] = shape.window.kernel.map(|size| fixed("the kernel", size));
    let last = (shape.layout == Layout::Nhwc).into();
    let constants = vec![lanes, bm, bn, bk, tm, tn, height?, width?, last];
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

/// A product of matrices, tile by tile, with cooperative matrices of 16x16x16.
pub(in crate::plans) fn matrix(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let most = kernel.params.get("max_filters").unwrap_or(u32::MAX);
    if shape.filters > u64::from(most) {
        return Err(Unfit(format!("is for groups of at most {most} filters, not {}", shape.filters)));
    }
    let least = kernel.params.get("min_places").unwrap_or(0);
    let [rows, columns] = shape.window.output();
    if rows * columns < u64::from(least) {
        return Err(Unfit(format!("is for images of at least {least} places, not {rows}x{columns}")));
    }
    let tiles = matrix_tiles(shape, kernel.params)?;
    whole(shape, kernel, tiles)
}

/// [`matrix`] in two steps: parts of sums, and their sum.
pub(in crate::plans) fn matrix_cut(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    add: &str,
) -> Result<Plan, Unfit> {
    let tiles = matrix_tiles(shape, kernel.params)?;
    cut(shape, kernel, tiles, add)
}

/// A product of matrices, tile by tile, four neighbours at a time, without cooperative matrices.
pub(in crate::plans) fn wide(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let tiles = wide_tiles(shape, kernel.params)?;
    whole(shape, kernel, tiles)
}

/// [`wide`] in two steps: parts of sums, and their sum.
pub(in crate::plans) fn wide_cut(
    shape: &Convolution,
    kernel: KernelInputs<'_>,
    add: &str,
) -> Result<Plan, Unfit> {
    let tiles = wide_tiles(shape, kernel.params)?;
    worth_cutting(shape, kernel.params, &tiles)?;
    cut(shape, kernel, tiles, add)
}

/// How many parts of how many terms make about `tiles` tiles. A part is two steps at least.
fn parts(shape: &Convolution, params: &Params, of: &Tiles) -> Result<(u64, u64), Unfit> {
    let (depth, bk) = (shape.depth(), u64::from(of.bk));
    let wanted = u64::from(params.get("tiles")?).div_ceil(of.count().max(1));
    let most = wanted.min(depth / (2 * bk)).max(1);
    let part = depth.div_ceil(most).next_multiple_of(bk);
    Ok((depth.div_ceil(part), part))
}

/// Refuses parts that save less time than adding them takes. Times are in terms of a sum, which is what a workgroup adds one
/// after the other; `busy` tiles keep the device busy, so that more of them at a time save nothing.
///
/// Fitted to an H200, where a term takes 40 ns, another dispatch with its barrier 100 terms, and 15,000 sums that are
/// written and read again one term: of the convolutions of ResNet-50 and MobileNetV2 this takes the faster way each time.
fn worth_cutting(shape: &Convolution, params: &Params, of: &Tiles) -> Result<(), Unfit> {
    const DISPATCH: f64 = 100.0;
    const SUMS: f64 = 15_000.0;
    let (parts, _) = parts(shape, params, of)?;
    let (parts, tiles) = (parts as f64, of.count().max(1) as f64);
    let faster = parts.min((f64::from(params.get("busy")?) / tiles).max(1.0));
    let saved = shape.depth() as f64 * (1.0 - 1.0 / faster);
    let sums: f64 = shape.output_dims().iter().map(|d| d.as_f64()).product::<f64>() * parts;
    let cost = DISPATCH + sums / SUMS;
    if saved < cost {
        return Err(Unfit(format!(
            "shares terms among workgroups, which saves {saved:.0} terms and costs as much as {cost:.0}"
        )));
    }
    Ok(())
}

/// All terms of a sum in one workgroup, where there are `min_tiles` tiles.
fn whole(shape: &Convolution, kernel: KernelInputs<'_>, tiles: Tiles) -> Result<Plan, Unfit> {
    let (least, count) = (kernel.params.get("min_tiles")?, tiles.count());
    if count < u64::from(least) {
        let (bm, bn) = (tiles.bm, tiles.bn);
        return Err(Unfit(format!("wants at least {least} tiles of {bm}x{bn} results, there are {count}")));
    }
    Ok(Plan::of(step(shape, kernel, tiles.constants, tiles.grid)?))
}

/// Parts of sums by as many workgroups as make about `tiles` tiles, and their sum by the build `add`.
fn cut(shape: &Convolution, kernel: KernelInputs<'_>, of: Tiles, add: &str) -> Result<Plan, Unfit> {
    const ADD_LANES: u32 = 64;
    let (least, depth) = (kernel.params.get("min_depth")?, shape.depth());
    if depth < u64::from(least) {
        return Err(Unfit(format!("wants at least {least} terms in a sum, there are {depth}")));
    }
    let (parts, part) = parts(shape, kernel.params, &of)?;
    if parts < 2 {
        return Err(Unfit(format!("shares terms among workgroups, and {} tiles are enough", of.count())));
    }
    let Tiles { grid, mut constants, .. } = of;
    let (parts, part) = (fixed("parts", parts)?, fixed("a part", part)?);
    let [rows, columns] = shape.window.output();
    let filters = shape.groups * shape.filters;
    let results = shape.images * filters * rows * columns;
    narrow("a number of sums", results * u64::from(parts))?;
    constants.extend([parts, part]);
    let add_module = module(add)?;
    let (bias, bindings) = (kernel.bindings[2], kernel.bindings.clone());
    let add = Step {
        module: add_module,
        constants: vec![ADD_LANES, kernel.added.code(), activation_code(kernel.activation), parts],
        push: vec![
            images_32(shape)?,
            narrow("a number of filters", filters)?,
            narrow("a number of places", rows * columns)?,
        ],
        bindings: vec![Slot::Scratch(0), bias, bindings[3], bindings[4]],
        grid: [groups(results, ADD_LANES)?, 1.into(), 1.into()],
        subgroup_size: 0,
    };
    let to_scratch = vec![bindings[0], bindings[1], bindings[1], Slot::Scratch(0), bindings[1]];
    let grid = [grid[0], grid[1], narrow("images and parts", shape.images * u64::from(parts))?];
    let sums = step(shape, KernelInputs { bindings: to_scratch, ..kernel }, constants, grid)?;
    Ok(Plan::new(vec![sums, add], vec![(results * u64::from(parts) * 4).max(4)]))
}

/// How cooperative matrices cover the results.
fn matrix_tiles(shape: &Convolution, params: &Params) -> Result<Tiles, Unfit> {
    let p = |name| params.get(name);
    let (bm, bn, bk, wm, wn, slices) = (p("bm")?, p("bn")?, p("bk")?, p("wm")?, p("wn")?, p("slices")?);
    let lanes = (bm / wm) * (bn / wn) * slices * 32;
    let covered = |rows: u32| (rows * (bk / 8)).is_multiple_of(lanes);
    let whole = [bm % wm, bn % wn, wm % 16, wn % 16, bk % (slices * 16), lanes % bn] == [0; 6];
    if !whole || !covered(bm) || !covered(bn) {
        return Err(Unfit(format!("has tiles of {bm}x{bn}x{bk} that {lanes} invocations do not cover")));
    }
    let (grid, [height, width]) = tiled(shape, params)?;
    let whole_words = shape.depth().is_multiple_of(8).into();
    let shared = (2 * (bm + bn) * (bk / 8 + 1)).max(slices * bm * (bn / 4 + 1));
    let constants = vec![lanes, bm, bn, bk, wm, wn, slices, height, width, whole_words, shared];
    Ok(Tiles { bm, bn, bk, grid, constants })
}

/// How quads in registers cover the results.
fn wide_tiles(shape: &Convolution, params: &Params) -> Result<Tiles, Unfit> {
    let p = |name| params.get(name);
    let (bm, bn, bk, tm, tn) = (p("bm")?, p("bn")?, p("bk")?, p("tm")?, p("tn")?);
    let lanes = (bm / tm) * (bn / tn);
    let covered = |rows: u32| (rows * bk / 4).is_multiple_of(lanes);
    let whole = [bm % tm, bn % tn, tm % 4, tn % 4, bk % 4, lanes % bn] == [0; 6];
    if !whole || !covered(bm) || !covered(bn) {
        return Err(Unfit(format!("has tiles of {bm}x{bn}x{bk} that {lanes} invocations do not cover")));
    }
    let (grid, [height, width]) = tiled(shape, params)?;
    let quads = shape.depth().is_multiple_of(4).into();
    let constants = vec![lanes, bm, bn, bk, tm, tn, height, width, quads];
    Ok(Tiles { bm, bn, bk, grid, constants })
}

/// Workgroups for tiles of `bm` filters and `bn` places, and the size of the kernel.
fn tiled(shape: &Convolution, params: &Params) -> Result<([Size; 3], [u32; 2]), Unfit> {
    if shape.layout != Layout::Nchw {
        return Err(Unfit("wants channels first".into()));
    }
    at_least(shape, params.get("min_filters")?)?;
    let [rows, columns] = shape.window.output();
    let blocks = u64::from(fixed_groups(shape.filters, params.get("bm")?)?) * shape.groups;
    let places = groups(rows * columns, params.get("bn")?)?;
    let [height, width] = shape.window.kernel;
    let kernel = [fixed("the kernel", height)?, fixed("the kernel", width)?];
    Ok(([places, narrow("a number of filters", blocks)?, images_32(shape)?], kernel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variants_of;
    use halite_ops::Operation;

    /// What a variant makes of a convolution of `channels` by `filters` at `side` x `side` places.
    fn plan(variant: &str, channels: u64, filters: u64, kernel: u64, side: u64) -> Result<Plan, Unfit> {
        let pad = kernel / 2;
        let operation = format!(
            "conv2d:input=1x{channels}x{side}x{side},filter={filters}x{channels}x{kernel}x{kernel},pads={pad}x{pad}x{pad}x{pad}"
        );
        let operation = Operation::parse(&operation).unwrap();
        variants_of("conv2d").find(|v| v.name == variant).unwrap().plan(&operation)
    }

    #[test]
    fn workgroups_share_long_sums_of_few_results() {
        let cut = |channels, filters, kernel, side| {
            plan("conv2d.f32.wide32x64cut", channels, filters, kernel, side)
        };
        let long = cut(512, 512, 3, 7).unwrap();
        assert_eq!(long.steps.len(), 2, "the sums of parts, and their sum");
        assert_eq!(long.steps[0].grid, [1, 16, 32]);
        assert!(cut(192, 64, 1, 14).is_ok());
        // Many results keep the device busy without; short sums end before another dispatch would begin.
        for (channels, filters, kernel, side) in [(256, 512, 1, 28), (256, 64, 1, 56), (96, 576, 1, 14)] {
            let refused = cut(channels, filters, kernel, side).unwrap_err().to_string();
            assert!(refused.contains("saves"), "{refused}");
            assert_eq!(plan("conv2d.f32.wide32x64", channels, filters, kernel, side).unwrap().steps.len(), 1);
        }
    }
}
