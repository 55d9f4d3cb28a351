//! Gradients that ExecuTorch's portable library computes: of convolutions and of pools.

use halite_ops::{Values, reduce::ReduceKind, scatters::Reduction};

use super::{Node, Result, Table, conv::sliding};
use crate::{
    build::{Range, Sliding},
    graph::TensorId,
};

pub(super) const OPERATORS: Table = &[
    ("aten.convolution_backward.default", of_convolution),
    ("aten.max_pool2d_with_indices_backward.default", of_pool),
    ("aten.max_pool2d_with_indices_backward.grad_input", of_pool),
];

/// A convolution whose gradients are taken.
struct Convolved {
    slopes: TensorId,
    window: Sliding,
    groups: u64,
    /// Sizes of the input, the result, and the filter.
    given: Vec<u64>,
    made: Vec<u64>,
    taps: Vec<u64>,
}

/// Arguments: the gradient of the result, input, filter, sizes of the bias, stride, padding, dilation, whether it was a transposed
/// one, output padding, groups, which results are wanted. Results: the gradients of input, filter and bias.
fn of_convolution(n: &mut Node<'_, '_>) -> Result<()> {
    let [slopes, x, filter] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let [given, made, taps] = [x, slopes, filter].map(|tensor| n.b().dims(tensor).to_vec());
    let rank = given.len().saturating_sub(2);
    if rank == 0 || n.flag(7)? {
        return Err(n.unsupported("gradients of transposed convolutions"));
    }
    let (window, groups) = (sliding(n, rank, [4, 5, 6])?, n.size(9)?);
    let fits = made.len() == given.len() && taps.len() == given.len() && made[0] == given[0];
    if !fits || groups == 0 || taps[1].checked_mul(groups) != Some(given[1]) || made[1] != taps[0] {
        return Err(n.invalid(format!("{made:?} is no gradient of {given:?} by {taps:?} in {groups} groups")));
    }
    let convolved = Convolved { slopes, window, groups, given, made, taps };
    let mut all = [None; 3];
    if n.wants(0)? {
        all[0] = Some(of_input(n, &convolved, filter)?);
    }
    if n.wants(1)? {
        all[1] = Some(of_filter(n, &convolved, x)?);
    }
    if n.wants(2)? {
        let axes: Vec<usize> = (0..rank + 2).filter(|axis| *axis != 1).collect();
        all[2] = Some(n.b().reduce(ReduceKind::Sum, slopes, &axes, false)?);
    }
    n.finish_list(&all)
}

/// The transposed convolution, with what the result had no place for behind it.
fn of_input(n: &mut Node<'_, '_>, c: &Convolved, filter: TensorId) -> Result<TensorId> {
    let mut more = Vec::new();
    for (axis, (given, made)) in c.given[2..].iter().zip(&c.made[2..]).enumerate() {
        let (stride, dilation) = (c.window.strides[axis], c.window.dilations[axis]);
        let reach = i128::from(made.saturating_sub(1)) * i128::from(stride)
            + i128::from(c.taps[axis + 2].saturating_sub(1)) * i128::from(dilation)
            + 1;
        let pads = i128::from(c.window.pads[axis].0) + i128::from(c.window.pads[axis].1);
        let rest = i128::from(*given) - (reach - pads);
        let rest = u64::try_from(rest).ok().filter(|rest| *rest < stride.max(1));
        more.push(rest.ok_or_else(|| {
            n.invalid(format!("{:?} is not what a convolution of {:?} gives", c.made, c.given))
        })?);
    }
    n.b().conv_transpose(c.slopes, filter, None, &c.window, &more, c.groups)
}

/// A convolution of the input by the gradient, images and channels exchanged: what was a step between places is one between taps.
fn of_filter(n: &mut Node<'_, '_>, c: &Convolved, x: TensorId) -> Result<TensorId> {
    let rank = c.given.len() - 2;
    let (images, each) = (c.given[0], c.taps[1]);
    let rest = |dims: &[u64]| dims[2..].to_vec();
    let places = |first: [usize; 3]| first.into_iter().chain(3..rank + 3).collect::<Vec<_>>();
    // The input as images for the channels of a group, channels for groups and images.
    let parts = [vec![images, c.groups, each], rest(&c.given)].concat();
    let own = n.b().reshape(x, &parts)?;
    let own = n.b().transpose(own, &places([2, 1, 0]))?;
    let own = n.b().reshape(own, &[vec![each, c.groups * images], rest(&c.given)].concat())?;
    let order: Vec<usize> = [1, 0].into_iter().chain(2..rank + 2).collect();
    let slopes = n.b().transpose(c.slopes, &order)?;
    let window = Sliding {
        strides: c.window.dilations.clone(),
        dilations: c.window.strides.clone(),
        pads: c.window.pads.clone(),
    };
    let made = n.b().conv(own, slopes, None, &window, c.groups)?;
    // Where strides left a rest there are more taps than the filter has.
    let mut ranges = vec![Range::all(each), Range::all(c.taps[0])];
    ranges.extend(c.taps[2..].iter().map(|count| Range { start: 0, step: 1, count: *count }));
    let made = n.b().slice(made, &ranges)?;
    n.b().transpose(made, &order)
}

/// Arguments: the gradient of the result, input, kernel, stride, padding, dilation, whether sizes are rounded up, and for each place of
/// the result which of the input it was. The result is the gradient of the input.
fn of_pool(n: &mut Node<'_, '_>) -> Result<()> {
    let [slopes, x, places] = [n.tensor(0)?, n.tensor(1)?, n.tensor(7)?];
    let (given, made) = (n.b().dims(x).to_vec(), n.b().dims(slopes).to_vec());
    let Some(lead) = given.len().checked_sub(2).filter(|lead| made.len() == lead + 2) else {
        return Err(n.invalid(format!("{made:?} is no gradient of {given:?}")));
    };
    let lines = |dims: &[u64]| [dims[..lead].iter().product::<u64>(), dims[lead..].iter().product::<u64>()];
    let element = n.b().element(slopes);
    let zero = n.b().values(element, &[], &Values::Float(vec![0.0]))?;
    let zeros = n.b().expand(zero, &lines(&given))?;
    let slopes = n.b().reshape(slopes, &lines(&made))?;
    let places = n.b().reshape(places, &lines(&made))?;
    let all = n.b().scatter_elements([zeros, places, slopes], 1, Reduction::Add)?;
    let all = n.b().reshape(all, &given)?;
    n.finish(all)
}
