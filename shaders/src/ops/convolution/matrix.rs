//! Owns convolutions as products of matrices: tiles of results by the invocations of a workgroup, or by cooperative
//! matrices, with whole sums or parts of them. Does not own: the shape, or other kernels.

use super::{Convolution, Kernel};
use crate::{
    Params, Plan, Slot, Step, Unfit, library,
    ops::Layout,
    plan::{groups, narrow},
};

/// Results in tiles, a workgroup each.
struct Tiles {
    /// Filters, places and terms of a tile.
    bm: u32,
    bn: u32,
    bk: u32,
    grid: [u32; 3],
    constants: Vec<u32>,
}

impl Tiles {
    fn count(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }
}

impl Convolution {
    /// A product of matrices, tile by tile.
    pub fn gemm(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let p = |name| kernel.params.get(name);
        let (lanes, bm, bn, bk, tm, tn) = (p("lanes")?, p("bm")?, p("bn")?, p("bk")?, p("tm")?, p("tn")?);
        if lanes * tm * tn != bm * bn || bm % tm != 0 || bn % tn != 0 || lanes % bn != 0 {
            return Err(Unfit(format!("has tiles of {bm}x{bn} that {lanes} invocations do not cover")));
        }
        self.at_least(p("min_filters")?)?;
        let [rows, columns] = self.window.output();
        let blocks = u64::from(groups(self.filters, bm)?) * self.groups;
        let grid = [groups(rows * columns, bn)?, narrow("a number of filters", blocks)?, self.images_32()?];
        let [height, width] = self.window.kernel.map(|size| narrow("the kernel", size));
        let last = (self.layout == Layout::Nhwc).into();
        let constants = vec![lanes, bm, bn, bk, tm, tn, height?, width?, last];
        Ok(Plan::of(self.step(kernel, constants, grid)?))
    }

    /// A product of matrices, tile by tile, with cooperative matrices of 16x16x16.
    pub fn matrix(&self, kernel: Kernel<'_>) -> Result<Plan, Unfit> {
        let least = kernel.params.get("min_tiles")?;
        let tiles = self.tiles(kernel.params)?;
        let count = tiles.count();
        if count < u64::from(least) {
            let (bm, bn) = (tiles.bm, tiles.bn);
            return Err(Unfit(format!(
                "wants at least {least} tiles of {bm}x{bn} results, there are {count}"
            )));
        }
        Ok(Plan::of(self.step(kernel, tiles.constants, tiles.grid)?))
    }

    /// [`Self::matrix`] in two steps: parts of sums by as many workgroups as make about `tiles` tiles, and their sum.
    pub fn matrix_cut(&self, kernel: Kernel<'_>, add: &str) -> Result<Plan, Unfit> {
        const ADD_LANES: u32 = 64;
        let (least, wanted) = (kernel.params.get("min_depth")?, kernel.params.get("tiles")?);
        let of = self.tiles(kernel.params)?;
        let tiles = of.count().max(1);
        let Tiles { grid, mut constants, bk, .. } = of;
        let (depth, bk) = (self.depth(), u64::from(bk));
        if depth < u64::from(least) {
            return Err(Unfit(format!("wants at least {least} terms in a sum, there are {depth}")));
        }
        // A part is two steps at least.
        let most = u64::from(wanted).div_ceil(tiles).min(depth / (2 * bk)).max(1);
        let part = depth.div_ceil(most).next_multiple_of(bk);
        let parts = depth.div_ceil(part);
        if parts < 2 {
            return Err(Unfit(format!("shares terms among workgroups, and {tiles} tiles are enough")));
        }
        let (parts, part) = (narrow("parts", parts)?, narrow("a part", part)?);
        let [rows, columns] = self.window.output();
        let filters = self.groups * self.filters;
        let results = self.images * filters * rows * columns;
        narrow("a number of sums", results * u64::from(parts))?;
        constants.extend([parts, part]);
        let add_module = library::module(add).ok_or_else(|| Unfit(format!("has no build '{add}'")))?;
        let (bias, bindings) = (kernel.bindings[2], kernel.bindings.clone());
        let add = Step {
            module: add_module,
            constants: vec![ADD_LANES, kernel.bias.into(), kernel.activation, parts],
            push: vec![
                self.images_32()?,
                narrow("a number of filters", filters)?,
                narrow("a number of places", rows * columns)?,
            ],
            bindings: vec![Slot::Scratch(0), bias, bindings[3]],
            grid: [groups(results, ADD_LANES)?, 1, 1],
            subgroup_size: 0,
        };
        let to_scratch = vec![bindings[0], bindings[1], bindings[2], Slot::Scratch(0)];
        let grid = [grid[0], grid[1], narrow("images and parts", self.images * u64::from(parts))?];
        let sums = self.step(Kernel { bindings: to_scratch, ..kernel }, constants, grid)?;
        Ok(Plan { steps: vec![sums, add], scratch: vec![(results * u64::from(parts) * 4).max(4)] })
    }

    /// How cooperative matrices cover the results.
    fn tiles(&self, params: &Params) -> Result<Tiles, Unfit> {
        let p = |name| params.get(name);
        let (bm, bn, bk, wm, wn, slices) = (p("bm")?, p("bn")?, p("bk")?, p("wm")?, p("wn")?, p("slices")?);
        let lanes = (bm / wm) * (bn / wn) * slices * 32;
        let covered = |rows: u32| (rows * (bk / 8)).is_multiple_of(lanes);
        let whole = [bm % wm, bn % wn, wm % 16, wn % 16, bk % (slices * 16), lanes % bn] == [0; 6];
        if !whole || !covered(bm) || !covered(bn) {
            return Err(Unfit(format!("has tiles of {bm}x{bn}x{bk} that {lanes} invocations do not cover")));
        }
        if self.layout != Layout::Nchw {
            return Err(Unfit("wants channels first".into()));
        }
        self.at_least(p("min_filters")?)?;
        let [rows, columns] = self.window.output();
        let blocks = u64::from(groups(self.filters, bm)?) * self.groups;
        let grid = [groups(rows * columns, bn)?, narrow("a number of filters", blocks)?, self.images_32()?];
        let [height, width] = self.window.kernel.map(|size| narrow("the kernel", size));
        let whole_words = self.depth().is_multiple_of(8).into();
        let shared = (2 * (bm + bn) * (bk / 8 + 1)).max(slices * bm * (bn / 4 + 1));
        let constants = vec![lanes, bm, bn, bk, wm, wn, slices, height?, width?, whole_words, shared];
        Ok(Tiles { bm, bn, bk, grid, constants })
    }
}
