//! Convolutions.

use super::{Node, Result, Table, unary::limit};
use crate::{build::Sliding, graph::TensorId};

pub(super) const OPERATORS: Table = &[
    ("aten.convolution.default", |n| convolution(n, None)),
    ("conv_with_clamp.default", |n| convolution(n, Some([9, 10]))),
    ("et_vk.conv_with_clamp.default", |n| convolution(n, Some([9, 10]))),
    ("et_vk.conv2d_gemm.default", |n| convolution(n, None)),
    ("et_vk.conv1d_dw.default", signal),
    ("et_vk.conv1d_pw.default", signal),
];

/// A list with an entry for each of `rank` dimensions, or one for all.
pub(super) fn each(n: &Node<'_, '_>, i: usize, rank: usize) -> Result<Vec<u64>> {
    let sizes = n.sizes(i)?;
    match sizes[..] {
        [one] => Ok(vec![one; rank]),
        _ if sizes.len() == rank => Ok(sizes),
        _ => Err(n.invalid(format!("argument {i} is {sizes:?} for {rank} dimensions"))),
    }
}

/// Number of dimensions that are convolved.
fn spatial(n: &mut Node<'_, '_>, x: TensorId) -> Result<usize> {
    let rank = n.b().rank(x);
    match rank.checked_sub(2) {
        Some(spatial) if spatial > 0 => Ok(spatial),
        _ => {
            let what = n.b().describe(&[x]);
            Err(n.invalid(format!("a convolution of {what}")))
        }
    }
}

/// How a window slides, by arguments: strides, padding, dilations.
pub(super) fn sliding(
    n: &Node<'_, '_>,
    rank: usize,
    [stride, padding, dilation]: [usize; 3],
) -> Result<Sliding> {
    let pads = each(n, padding, rank)?;
    Ok(Sliding {
        strides: each(n, stride, rank)?,
        dilations: each(n, dilation, rank)?,
        pads: pads.into_iter().map(|pad| (pad, pad)).collect(),
    })
}

/// Arguments: input, weights, bias, stride, padding, dilation, transposed, output padding, groups, and where there are
/// bounds of the result, `bounds` of it.
fn convolution(n: &mut Node<'_, '_>, bounds: Option<[usize; 2]>) -> Result<()> {
    let (x, weight, bias) = (n.tensor(0)?, n.tensor(1)?, n.optional(2)?);
    let rank = spatial(n, x)?;
    let (window, groups) = (sliding(n, rank, [3, 4, 5])?, n.size(8)?);
    let made = if n.flag(6)? {
        let more = each(n, 7, rank)?;
        n.b().conv_transpose(x, weight, bias, &window, &more, groups)?
    } else {
        n.b().conv(x, weight, bias, &window, groups)?
    };
    finish_limited(n, made, bounds)
}

/// Convolutions of signals that the delegate has operators of its own for: input, weights, bias, stride, padding, dilation,
/// groups, bounds.
fn signal(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, weight, bias) = (n.tensor(0)?, n.tensor(1)?, n.optional(2)?);
    let rank = spatial(n, x)?;
    let (window, groups) = (sliding(n, rank, [3, 4, 5])?, n.size(6)?);
    let made = n.b().conv(x, weight, bias, &window, groups)?;
    finish_limited(n, made, Some([7, 8]))
}

fn finish_limited(n: &mut Node<'_, '_>, made: TensorId, bounds: Option<[usize; 2]>) -> Result<()> {
    let made = match bounds {
        Some([least, most]) => {
            let (least, most) = (n.optional_float(least)?, n.optional_float(most)?);
            limit(n, made, least, most)?
        }
        None => made,
    };
    n.finish(made)
}
