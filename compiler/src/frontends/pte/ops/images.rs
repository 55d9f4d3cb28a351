//! Operators on images: pools, resizing, sampling, shuffling of pixels.

use halite_ops::{
    DType, Operation,
    axis::{Coordinates, Nearest},
    expression::{Function as F, Operand, Scalar},
    pool2d::Pooling,
    resize::{Interpolation, Resize},
};

use halite_sizes::Size;

use super::{Node, Result, Table, unary::number};
use crate::{
    build::{Range, Sliding},
    graph::{TensorId, elements},
};

pub(super) const OPERATORS: Table = &[
    ("aten.max_pool2d.default", max_pool),
    ("aten.max_pool2d_with_indices.default", max_pool_with_places),
    ("aten.avg_pool2d.default", average_pool),
    ("aten.upsample_nearest2d.vec", nearest),
    ("aten.upsample_bilinear2d.vec", bilinear),
    ("aten.pixel_shuffle.default", shuffle),
];

/// Rows and columns from a list of two numbers or one; `other` where it is empty.
fn pair(n: &Node<'_, '_>, i: usize, other: [u64; 2]) -> Result<[u64; 2]> {
    match n.sizes(i)?[..] {
        [] => Ok(other),
        [both] => Ok([both; 2]),
        [rows, columns] => Ok([rows, columns]),
        ref more => Err(n.invalid(format!("argument {i} is {more:?}; rows and columns are expected"))),
    }
}

/// An image, or a batch of them, as a batch; and the dimensions before rows and columns.
pub(super) fn batch(n: &mut Node<'_, '_>, i: usize) -> Result<(TensorId, Vec<u64>)> {
    let x = n.tensor(i)?;
    let dims = n.b().dims(x).to_vec();
    let lead = match dims[..] {
        [channels, _, _] => vec![channels],
        [images, channels, _, _] => vec![images, channels],
        _ => return Err(n.invalid(format!("{dims:?} are no images"))),
    };
    let all = if dims.len() == 3 { [&[1], &dims[..]].concat() } else { dims };
    Ok((n.b().reshape(x, &all)?, lead))
}

/// Images of a batch of one as one image again.
pub(super) fn unbatch(n: &mut Node<'_, '_>, made: TensorId, lead: &[u64]) -> Result<TensorId> {
    let dims = n.b().dims(made).to_vec();
    let result = [lead, &dims[2..]].concat();
    n.b().reshape(made, &result)
}

/// What slides over the images: arguments 1 to 3 are kernel, stride and padding.
fn window(n: &Node<'_, '_>, dilations: [u64; 2]) -> Result<([u64; 2], Sliding)> {
    let kernel = pair(n, 1, [1; 2])?;
    let (strides, pads) = (pair(n, 2, kernel)?, pair(n, 3, [0; 2])?);
    let pads = pads.map(|pad| (pad, pad)).to_vec();
    Ok((kernel, Sliding { strides: strides.to_vec(), dilations: dilations.to_vec(), pads }))
}

/// Arguments: input, kernel, stride, padding, dilation, whether a last window may be incomplete.
fn max_pool_of(n: &mut Node<'_, '_>) -> Result<(TensorId, [u64; 2], Sliding)> {
    let (x, lead) = batch(n, 0)?;
    let (kernel, window) = window(n, pair(n, 4, [1; 2])?)?;
    let ceil = n.flag(5)?;
    let made = n.b().pool(x, Pooling::Max, &kernel, &window, ceil)?;
    Ok((unbatch(n, made, &lead)?, kernel, window))
}

fn max_pool(n: &mut Node<'_, '_>) -> Result<()> {
    let (made, ..) = max_pool_of(n)?;
    n.finish(made)
}

fn max_pool_with_places(n: &mut Node<'_, '_>) -> Result<()> {
    let (made, kernel, window) = max_pool_of(n)?;
    if !n.wants(1)? {
        return n.finish_list(&[Some(made)]);
    }
    let (x, lead) = batch(n, 0)?;
    let dims = n.b().dims(x).to_vec();
    let result = n.b().dims(made)[lead.len()..].to_vec();
    let places = n.b().max_pool_indices(x, &kernel, &window, &result, false)?;
    // Counted inside of each plane, not over all images.
    let plane = Operand::Constant(Scalar::Int(elements(&dims[2..]) as i64, DType::I64));
    let places = n.b().map(&[places], DType::I64, |p, x| p.call(F::Mod, &[x[0], plane]))?;
    let places = unbatch(n, places, &lead)?;
    n.finish_list(&[Some(made), Some(places)])
}

/// Arguments: input, kernel, stride, padding, whether a last window may be incomplete, whether padding counts, divisor.
fn average_pool(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, lead) = batch(n, 0)?;
    let (kernel, window) = window(n, [1; 2])?;
    let (ceil, padded) = (n.flag(4)?, n.flag(5)?);
    let made = match n.optional_float(6)? {
        Some(divisor) => sum_pool(n, x, kernel, &window, ceil, divisor)?,
        None => {
            let kind = if padded { Pooling::AveragePadded } else { Pooling::Average };
            n.b().pool(x, kind, &kernel, &window, ceil)?
        }
    };
    let made = unbatch(n, made, &lead)?;
    n.finish(made)
}

/// Sums of windows, divided by one number: a convolution of each channel with ones.
fn sum_pool(
    n: &mut Node<'_, '_>,
    x: TensorId,
    kernel: [u64; 2],
    window: &Sliding,
    ceil: bool,
    divisor: f64,
) -> Result<TensorId> {
    // The result has the size that pooling gives, for which the images are padded behind where the last windows end.
    let pooled = n.b().pool(x, Pooling::Max, &kernel, window, ceil)?;
    let (dims, result) = (n.b().dims(x).to_vec(), n.b().dims(pooled).to_vec());
    let mut window = window.clone();
    for d in 0..2 {
        let reach =
            (result[d + 2].saturating_sub(1)).saturating_mul(window.strides[d]).saturating_add(kernel[d]);
        let behind = reach.saturating_sub(dims[d + 2] + window.pads[d].0);
        window.pads[d].1 = behind;
    }
    let wide = n.b().as_f32(x)?;
    let ones = n.b().float(DType::F32, 1.0)?;
    let filter = n.b().expand(ones, &[dims[1], 1, kernel[0], kernel[1]])?;
    let sums = n.b().conv(wide, filter, None, &window, dims[1])?;
    let sums = if n.b().dims(sums) == result {
        sums
    } else {
        // Behind the last window there may be rows or columns that no window reaches.
        let whole: Vec<_> = result.iter().map(|size| Range::all(*size)).collect();
        n.b().slice(sums, &whole)?
    };
    n.b().map(&[sums], DType::F32, |p, x| p.call(F::Div, &[x[0], number(divisor)]))
}

/// Arguments: input, sizes of the result or none, factors or none.
fn nearest(n: &mut Node<'_, '_>) -> Result<()> {
    let like = Resize {
        coordinates: Coordinates::Asymmetric,
        nearest: Nearest::Floor,
        ..Resize::new(1, &[1, 1], &[1, 1], Interpolation::Nearest, DType::F32)
    };
    resize(n, like, 2)
}

/// Arguments: input, sizes of the result or none, whether corners are aligned, factors or none.
fn bilinear(n: &mut Node<'_, '_>) -> Result<()> {
    let coordinates = if n.flag(2)? { Coordinates::AlignCorners } else { Coordinates::HalfPixel };
    let like = Resize { coordinates, ..Resize::new(1, &[1, 1], &[1, 1], Interpolation::Linear, DType::F32) };
    resize(n, like, 3)
}

/// Resizes as `like` says; argument `factors` are sizes of the result by sizes of the input.
fn resize(n: &mut Node<'_, '_>, like: Resize, factors: usize) -> Result<()> {
    let (x, lead) = batch(n, 0)?;
    let dims = n.b().dims(x).to_vec();
    let (sizes, factors) = (n.sizes(1)?, n.floats(factors)?);
    let input = [dims[2], dims[3]];
    let mut resize = like;
    let output = match (&sizes[..], &factors[..]) {
        ([rows, columns], _) => [*rows, *columns],
        ([], [rows, columns]) => {
            let steps = [step(*rows), step(*columns)];
            if let [Some(rows), Some(columns)] = steps {
                resize.step = [rows.0, columns.0].map(Size::from).to_vec();
                resize.step_of = [rows.1, columns.1].map(Size::from).to_vec();
            }
            [(dims[2] as f64 * rows) as u64, (dims[3] as f64 * columns) as u64]
        }
        _ => {
            return Err(n.invalid(format!(
                "the sizes {sizes:?} and factors {factors:?}; there has to be one of them"
            )));
        }
    };
    let element = n.b().element(x);
    let x = if element.is_float() { x } else { n.b().as_f32(x)? };
    let own = n.b().element(x);
    resize.images = elements(&dims[..2]).into();
    (resize.input, resize.output) = (input.map(Size::from).to_vec(), output.map(Size::from).to_vec());
    resize.dtype = own.storage();
    let result = [dims[0], dims[1], output[0], output[1]];
    let made = n.b().kernel1(Operation::Resize(resize), &[x], own, &result)?;
    let made = unbatch(n, made, &lead)?;
    n.finish(made)
}

/// The reciprocal of a factor as a fraction, if it is one of small numbers.
fn step(factor: f64) -> Option<(u64, u64)> {
    (1..=4096u64).map(|q| (q, (factor * q as f64).round())).find_map(|(q, p)| {
        let near = (1.0..1e6).contains(&p) && (factor * q as f64 - p).abs() <= 1e-9 * p;
        near.then_some((q, p as u64))
    })
}

/// Arguments: input, rank >= 3 with channels before rows and columns, and how many pixels a pixel becomes in each direction.
fn shuffle(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, r) = (n.tensor(0)?, n.size(1)?);
    let made = shuffled(n, x, r)?;
    n.finish(made)
}

/// Channels as pixels: each becomes `r` pixels in each direction.
pub(super) fn shuffled(n: &mut Node<'_, '_>, x: TensorId, r: u64) -> Result<TensorId> {
    let dims = n.b().dims(x).to_vec();
    let square = r.checked_mul(r).filter(|square| *square > 0);
    let ([lead @ .., channels, rows, columns], Some(square)) = (&dims[..], square) else {
        return Err(n.invalid(format!("pixels of {dims:?} are shuffled by {r}")));
    };
    if !channels.is_multiple_of(square) {
        return Err(n.invalid(format!("{channels} channels are no multiple of {square}")));
    }
    let (images, channels) = (elements(lead), channels / square);
    let apart = n.b().reshape(x, &[images, channels, r, r, *rows, *columns])?;
    let turned = n.b().transpose(apart, &[0, 1, 4, 2, 5, 3])?;
    n.b().reshape(turned, &[lead, &[channels, rows * r, columns * r]].concat())
}

/// Arguments: images `[n, c, h, w]`, places `[n, y, x, 2]` from -1 to 1 (column, row), interpolation and padding, which are
/// bilinear with the border continued, and whether -1 and 1 are middles of pixels.
pub(super) fn sample(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, grid) = (n.tensor(0)?, n.tensor(1)?);
    let aligned = n.flag(4)?;
    let (images, places) = (n.b().dims(x).to_vec(), n.b().dims(grid).to_vec());
    let ([count, channels, rows, columns], [also, down, across, 2]) = (&images[..], &places[..]) else {
        return Err(n.invalid(format!("images {images:?} are sampled at {places:?}")));
    };
    if count != also || *rows == 0 || *columns == 0 {
        return Err(n.invalid(format!("images {images:?} are sampled at {places:?}")));
    }
    let wide = n.b().as_f32(grid)?;
    let column = coordinate(n, wide, 0, *columns, aligned)?;
    let row = coordinate(n, wide, 1, *rows, aligned)?;
    let flat = n.b().reshape(x, &[*count, *channels, rows * columns])?;
    let mut corners = Vec::new();
    for (low, left) in [(true, true), (true, false), (false, true), (false, false)] {
        let index = corner(n, [row, column], [low, left], [*rows, *columns])?;
        let index = n.b().reshape(index, &[*count, 1, down * across])?;
        let index = n.b().expand(index, &[*count, *channels, down * across])?;
        let picked = n.b().gather_elements(flat, index, 2)?;
        corners.push(n.b().reshape(picked, &[*count, *channels, *down, *across])?);
    }
    let (row, column) = (fraction(n, row)?, fraction(n, column)?);
    let shape = [*count, 1, *down, *across];
    let (row, column) = (n.b().reshape(row, &shape)?, n.b().reshape(column, &shape)?);
    let inputs = [corners[0], corners[1], corners[2], corners[3], row, column];
    let made = n.b().map(&inputs, DType::F32, |p, x| {
        let mut between = |a, b, part| {
            let difference = p.call(F::Sub, &[b, a]);
            let product = p.call(F::Mul, &[difference, part]);
            p.call(F::Add, &[a, product])
        };
        let (upper, lower) = (between(x[0], x[1], x[5]), between(x[2], x[3], x[5]));
        between(upper, lower, x[4])
    })?;
    n.finish(made)
}

/// Where in an image of `size` pixels the places are, the last dimension of which is `of`: from 0 to `size - 1`.
fn coordinate(n: &mut Node<'_, '_>, grid: TensorId, of: u64, size: u64, aligned: bool) -> Result<TensorId> {
    let place = unbounded_coordinate(n, grid, of, size, aligned)?;
    let last = size as f64 - 1.0;
    n.b().map(&[place], DType::F32, |p, x| p.call(F::Clip, &[x[0], number(0.0), number(last)]))
}

/// The same for places that may be outside of the image.
pub(super) fn unbounded_coordinate(
    n: &mut Node<'_, '_>,
    grid: TensorId,
    of: u64,
    size: u64,
    aligned: bool,
) -> Result<TensorId> {
    let dims = n.b().dims(grid).to_vec();
    let mut ranges: Vec<_> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[3] = Range { start: of, step: 1, count: 1 };
    let part = n.b().slice(grid, &ranges)?;
    let part = n.b().reshape(part, &dims[..3])?;
    let last = size as f64 - 1.0;
    let scale = if aligned { last / 2.0 } else { size as f64 / 2.0 };
    n.b().map(&[part], DType::F32, |p, x| {
        let scaled = p.call(F::Mul, &[x[0], number(scale)]);
        p.call(F::Add, &[scaled, number(last / 2.0)])
    })
}

/// Index of the pixel before (`low`, `left`) or behind places, in a flat image.
fn corner(
    n: &mut Node<'_, '_>,
    places: [TensorId; 2],
    before: [bool; 2],
    sizes: [u64; 2],
) -> Result<TensorId> {
    n.b().map(&places, DType::I32, |p, x| {
        let mut whole = |value, before: bool, size: u64| {
            let floor = p.call(F::Floor, &[value]);
            if before {
                return floor;
            }
            let next = p.call(F::Add, &[floor, number(1.0)]);
            p.call(F::Min, &[next, number(size as f64 - 1.0)])
        };
        let row = whole(x[0], before[0], sizes[0]);
        let column = whole(x[1], before[1], sizes[1]);
        let integer = halite_ops::expression::Type::Of(DType::I32);
        let (row, column) = (p.cast(integer, row), p.cast(integer, column));
        let width = Operand::Constant(Scalar::Int(sizes[1] as i64, DType::I32));
        let start = p.call(F::Mul, &[row, width]);
        p.call(F::Add, &[start, column])
    })
}

/// How far behind the pixel before a place is.
fn fraction(n: &mut Node<'_, '_>, place: TensorId) -> Result<TensorId> {
    n.b().map(&[place], DType::F32, |p, x| {
        let floor = p.call(F::Floor, &[x[0]]);
        p.call(F::Sub, &[x[0], floor])
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn factors_become_fractions() {
        let of = super::step;
        assert_eq!([of(2.0), of(0.5), of(1.5), of(1.0 / 3.0)], [(1, 2), (2, 1), (2, 3), (3, 1)].map(Some));
        assert_eq!([of(std::f64::consts::PI * 1.000_01), of(0.0), of(f64::NAN)], [None; 3]);
    }
}
