//! Operators on images that the delegate lacks and ExecuTorch's portable kernels have: pools of a given size, resizing without
//! aliasing, sampling in any mode.

use halite_ops::{
    DType, Values,
    axis::{Coordinates, Nearest},
    expression::Function as F,
    pool2d::Pooling,
    resize::Interpolation,
};

use super::{
    Node, Result, Table,
    images::{self, batch, unbatch, unbounded_coordinate},
};
use crate::{
    build::{Between, Outside, Placement, ResizedAxis, Resizing, Sliding},
    graph::TensorId,
};

pub(super) const OPERATORS: Table = &[
    ("aten._adaptive_avg_pool2d.default", pool_to),
    ("aten.grid_sampler_2d.default", sample),
    ("aten._upsample_bilinear2d_aa.default", |n| smooth(n, 3)),
    ("aten._upsample_bilinear2d_aa.vec", |n| smooth(n, 3)),
];

/// Arguments: images, rows and columns of the result. Each place is the mean of its part of the image.
fn pool_to(n: &mut Node<'_, '_>) -> Result<()> {
    let ((x, lead), sizes) = (batch(n, 0)?, n.sizes(1)?);
    let dims = n.b().dims(x).to_vec();
    let ([down, across], [_, _, rows, columns]) = (&sizes[..], &dims[..]) else {
        return Err(n.invalid(format!("a pool of {dims:?} to {sizes:?}")));
    };
    if [*down, *across, *rows, *columns].contains(&0) {
        return Err(n.invalid(format!("a pool of {dims:?} to {sizes:?}")));
    }
    let made = if rows.is_multiple_of(*down) && columns.is_multiple_of(*across) {
        let kernel = [rows / down, columns / across];
        let sliding = Sliding { strides: kernel.to_vec(), ..Sliding::plain(2) };
        n.b().pool(x, Pooling::Average, &kernel, &sliding, false)?
    } else {
        // Means of parts that differ in size: products with the shares of rows and columns.
        let wide = n.b().as_f32(x)?;
        let (columns, rows) = (shares(n, *columns, *across)?, shares(n, *rows, *down)?);
        let made = n.b().product(wide, columns, true)?;
        let turned = n.b().swap_last(made)?;
        let made = n.b().product(turned, rows, true)?;
        n.b().swap_last(made)?
    };
    let made = unbatch(n, made, &lead)?;
    n.finish(made)
}

/// How much each of `size` places counts in each of `parts` means: `[parts, size]`.
fn shares(n: &mut Node<'_, '_>, size: u64, parts: u64) -> Result<TensorId> {
    n.b().countable(size.saturating_mul(parts))?;
    let mut all = vec![0.0; (size * parts) as usize];
    for part in 0..parts {
        let (start, end) = (part * size / parts, ((part + 1) * size).div_ceil(parts));
        let row = (part * size) as usize;
        all[row + start as usize..row + end as usize].fill(1.0 / (end - start) as f64);
    }
    n.b().values(DType::F32, &[parts, size], &Values::Float(all))
}

/// Arguments: images, sizes of the result or none, whether corners are aligned, and from `factors` on factors: a list, or one
/// each for rows and columns.
fn smooth(n: &mut Node<'_, '_>, factors: usize) -> Result<()> {
    let ((x, lead), sizes, aligned) = (batch(n, 0)?, n.sizes(1)?, n.flag(2)?);
    let dims = n.b().dims(x).to_vec();
    let told: Vec<f64> = match n.floats(factors) {
        Ok(list) => list,
        Err(_) => {
            [n.optional_float(factors)?, n.optional_float(factors + 1)?].into_iter().flatten().collect()
        }
    };
    let mut axes = Vec::new();
    for (d, own) in dims[2..].iter().enumerate() {
        let factor = told.get(d).copied();
        let size = match (sizes.get(d), factor) {
            (Some(size), _) => *size,
            (None, Some(factor)) => (*own as f64 * factor) as u64,
            (None, None) => return Err(n.invalid("neither sizes nor factors of the result")),
        };
        let scale = match aligned {
            true => corner_scale(size, *own),
            false => factor.unwrap_or(size as f64 / *own as f64),
        };
        axes.push(ResizedAxis { axis: d + 2, size, scale, part: (0.0, 1.0) });
    }
    let how = Resizing {
        interpolation: Interpolation::Linear,
        placement: Placement::Plain(Coordinates::HalfPixel),
        nearest: Nearest::Floor,
        cubic: -0.75,
        exclude_outside: true,
        antialias: true,
        extrapolation: 0.0,
    };
    let made = n.b().resize(x, &axes, &how)?;
    let made = unbatch(n, made, &lead)?;
    n.finish(made)
}

/// Where corners are aligned PyTorch still takes middles of pixels, by the distances of corners: those of one place are all at its
/// first.
fn corner_scale(size: u64, own: u64) -> f64 {
    const FIRST: f64 = 1e9;
    match (size, own) {
        (same, other) if same == other => 1.0,
        (0 | 1, _) | (_, 0 | 1) => FIRST,
        (size, own) => (size - 1) as f64 / (own - 1) as f64,
    }
}

/// Arguments: images `[n, c, h, w]`, places `[n, y, x, 2]` (column, row) from -1 to 1, interpolation, padding, whether -1 and 1
/// are middles of pixels.
fn sample(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, grid, aligned) = (n.tensor(0)?, n.tensor(1)?, n.flag(4)?);
    let (mode, padding) = (n.int(2)?, n.int(3)?);
    if (mode, padding) == (0, 1) {
        return images::sample(n);
    }
    let between = match mode {
        0 => Between::Linear,
        1 => Between::Nearest,
        2 => Between::Cubic,
        other => return Err(n.invalid(format!("interpolation {other}; there are 0 to 2"))),
    };
    let outside = match padding {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Mirror { middle: aligned },
        other => return Err(n.invalid(format!("padding {other}; there are 0 to 2"))),
    };
    let (images, places) = (n.b().dims(x).to_vec(), n.b().dims(grid).to_vec());
    let ([count, channels, rows, columns], [_, down, across, 2]) = (&images[..], &places[..]) else {
        return Err(n.invalid(format!("images {images:?} are sampled at {places:?}")));
    };
    let grid = n.b().as_f32(grid)?;
    let row = unbounded_coordinate(n, grid, 1, *rows, aligned)?;
    let column = unbounded_coordinate(n, grid, 0, *columns, aligned)?;
    let places = [*count, down * across];
    let (row, column) = (n.b().reshape(row, &places)?, n.b().reshape(column, &places)?);
    let last = n.b().transpose(x, &[0, 2, 3, 1])?;
    let around = n.b().neighbours(last, &[row, column], None, between, outside)?;
    let mut sum = around[0];
    for next in &around[1..] {
        sum = n.b().binary(F::Add, sum, *next)?;
    }
    let made = n.b().reshape(sum, &[*count, *down, *across, *channels])?;
    let made = n.b().transpose(made, &[0, 3, 1, 2])?;
    n.finish(made)
}
