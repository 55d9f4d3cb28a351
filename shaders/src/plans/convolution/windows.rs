//! Dispatches of `windows.comp`, a product and `windows_back.comp`: convolutions of small images on devices that run on a CPU.
//! Kernels whose invocations have places of their own leave most of them idle there; in the product, invocations have filters.

use halite_ops::{DType, convolution::Convolution, matmul::MatMul, window::Layout};
use halite_sizes::Size;

use super::{KernelInputs, push};
use crate::{
    Params, Plan, Slot, Step, Unfit,
    plan::{module, narrow},
    plans::{epilogue::activation_code, matmul, moves::flat_grid},
};

/// Least filters of a group: as many as the invocations of a workgroup have at once.
const FILTERS: u64 = 16;

/// Least terms of a sum; those of fewer take less time than two more dispatches.
const TERMS: u64 = 32;

/// Places of a patch, and patches of a workgroup of `patches.comp`, which is what serves larger images with kernels of 3x3.
const PATCH: [u64; 2] = [4, 2];
const PATCHES: u64 = 8;

/// Places that a workgroup of `exchange.comp` computes, which is what serves kernels of 1x1.
const POINTS: u64 = 32;

/// Microseconds of the dispatches before and behind the product and of an element that they move, and operations in a microsecond of the
/// product and of `exchange.comp`: read off ten shapes on llvmpipe, two loaded cores.
const MOVES: (f64, f64) = (300.0, 0.05);
const RATES: (f64, f64) = (14e3, 16e3);

/// Most bytes of windows in memory.
const MOST_WINDOWS: u64 = 1 << 26;

/// The plan; `bindings` are image, filters, bias, result and residual.
pub(in crate::plans) fn windows(
    shape: &Convolution,
    dtype: DType,
    kernel: &KernelInputs<'_>,
) -> Result<Plan, Unfit> {
    let [image, filters, bias, result, residual] = kernel.bindings[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    // Products have one bias for all groups. Sums of 16 bits would be rounded before it is added.
    let (mut product, mut added) = (product(shape, dtype, kernel.params)?, kernel.added);
    if shape.groups == 1 {
        product.bias = std::mem::take(&mut added.bias);
    } else if added.bias && dtype != DType::F32 {
        return Err(Unfit("adds no bias to sums of 16 bits of groups".into()));
    }
    let lanes = kernel.params.get("unfold")?;
    let [rows, places] = [product.m, product.m / shape.images];
    let matrices = |columns: Size| rows * columns * shape.groups;
    let bytes = [product.k, product.n].map(|columns| matrices(columns) * dtype.size());
    if !bytes[0].is_at_most(MOST_WINDOWS) {
        return Err(Unfit(format!("writes {} bytes of windows, more than {MOST_WINDOWS}", bytes[0])));
    }
    let mut shape_of = push(shape)?;
    shape_of.truncate(14);
    shape_of[3] = shape.groups.into();
    shape_of.push(narrow("a number of places", rows)?);
    let channels = narrow("a number of windows", matrices(shape.channels.into()))?;
    let before = Step {
        module: module(&format!("conv2d_windows_{dtype}"))?,
        constants: vec![lanes],
        push: shape_of,
        bindings: vec![image, Slot::Scratch(0)],
        grid: flat_grid(channels, lanes)?,
        subgroup_size: 0,
    };
    let results = narrow("a number of results", matrices(product.n))?;
    let after = Step {
        module: module(&format!("conv2d_windows_back_{dtype}"))?,
        constants: vec![lanes, added.code(), activation_code(kernel.activation)],
        push: vec![rows, shape.groups.into(), product.n, narrow("a number of places", places)?],
        bindings: vec![Slot::Scratch(1), bias, result, residual],
        grid: flat_grid(results, lanes)?,
        subgroup_size: 0,
    };
    let mut steps = vec![before];
    steps.extend(multiplied(&product, kernel.build, kernel.params, [filters, bias])?);
    steps.push(after);
    Ok(Plan::new(steps, bytes.map(|bytes| bytes.max(4)).to_vec()))
}

/// The product of windows and filters, if it is worth it.
fn product(shape: &Convolution, dtype: DType, params: &Params) -> Result<MatMul, Unfit> {
    let [rows, columns] = shape.window.output();
    if shape.layout != Layout::Nchw || shape.filters < FILTERS || shape.depth() < TERMS {
        return Err(Unfit(format!(
            "wants channels first, at least {FILTERS} filters in a group, and sums of {TERMS} terms"
        )));
    }
    if !rows.is_constant() || !columns.is_constant() {
        return Err(Unfit("wants rows and columns that are known when it is chosen".into()));
    }
    let places = rows * columns;
    let (points, most) = (shape.window.kernel == [1, 1], most_places(shape, params)?);
    if points && (places > u64::from(params.get("points")?) || !points_pay(shape, places.exact())) {
        return Err(Unfit("takes longer than kernels of 1x1 do for these sizes".into()));
    }
    if !points && places > most {
        return Err(Unfit(format!(
            "is for images of up to {most} places with such kernels, there are {places}"
        )));
    }
    Ok(MatMul {
        batch: shape.groups.into(),
        rhs_transposed: true,
        ..MatMul::new(shape.images * places, shape.filters, shape.depth(), dtype, dtype)
    })
}

/// The most places for which other kernels take longer: of kernels of 3x3, where what patches compute is `patches` times what is there
/// or more, of others up to `places`.
fn most_places(shape: &Convolution, params: &Params) -> Result<Size, Unfit> {
    let (w, [rows, columns]) = (&shape.window, shape.window.output());
    Ok(match (w.kernel, w.strides, w.dilations) {
        ([3, 3], [1, 1] | [2, 2], [1, 1]) => {
            let patches = rows.div_ceil(PATCH[0]) * columns.div_ceil(PATCH[1]);
            let computed = patches.div_ceil(PATCHES) * (PATCHES * PATCH[0] * PATCH[1]);
            (computed - 1) / u64::from(params.get("patches")?.max(1))
        }
        _ => u64::from(params.get("places")?).into(),
    })
}

/// Whether windows of one element, which are copies, take less time than what is computed of places that are not there.
fn points_pay(shape: &Convolution, places: u64) -> bool {
    // Any number of images is right: the example's decides.
    let rows = shape.images.value() as f64 * places as f64 * shape.groups as f64;
    let (terms, filters) = (shape.depth() as f64, shape.filters as f64);
    let operations = 2.0 * rows * terms * filters;
    let there = places as f64 / places.next_multiple_of(POINTS).max(1) as f64;
    MOVES.0 + MOVES.1 * rows * (terms + filters) + operations / RATES.0 < operations / RATES.1 / there
}

/// Its dispatches, from the first scratch buffer to the second.
fn multiplied(
    product: &MatMul,
    build: &str,
    params: &Params,
    [filters, bias]: [Slot; 2],
) -> Result<Vec<Step>, Unfit> {
    let plan = match params.get("exchange")? {
        0 => matmul::rows(product, build, params)?,
        _ => matmul::exchange(product, build, params)?,
    };
    let mut steps = plan.steps;
    for slot in steps.iter_mut().flat_map(|step| &mut step.bindings) {
        *slot = match *slot {
            Slot::Input(0) => Slot::Scratch(0),
            Slot::Output(_) => Slot::Scratch(1),
            Slot::Input(2) => bias,
            // What is not there has the place of the filters.
            _ => filters,
        };
    }
    Ok(steps)
}
