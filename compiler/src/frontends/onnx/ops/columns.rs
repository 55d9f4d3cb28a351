//! Images that columns are made of: blocks that overlap are added up (`Col2Im`).

use halite_ops::{DType, Values, expression::Function, pad::Border};
use halite_sizes::Size;

use super::{Import, NodeView, Result, window::sizes};
use crate::{
    build::{Builder, Range, Sliding},
    graph::{TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] = &[("Col2Im", columns_to_image)];

/// Most elements of a filter that is made while a graph is built.
const MOST_MADE: u64 = 1 << 24;

/// Most steps in a block for which the parts of blocks are added one by one.
const MOST_PARTS: u64 = 8;

/// A dimension of an image that blocks overlap in.
struct Axis {
    /// Elements of the image, and before it.
    image: Size,
    before: u64,
    /// Blocks along it.
    places: Size,
    /// Elements of a block, from one block to the next, and from one element of a block to the next.
    block: u64,
    stride: u64,
    dilation: u64,
}

impl Axis {
    /// Elements from the beginning of the first block to the end of the last.
    fn reach(&self) -> Size {
        (self.places - 1) * Size::from(self.stride) + (self.block - 1) * self.dilation + 1
    }
}

/// One dimension after the other, the last one first: so what is left of each block lies before the places.
fn columns_to_image(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let axes = axes(b, node)?;
    let [images, depth, columns] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} holds no columns", b.describe(&[x]))));
    };
    let blocks: Vec<u64> = axes.iter().map(|axis| axis.block).collect();
    let taps = elements(&blocks);
    let places: Vec<Size> = axes.iter().map(|axis| axis.places).collect();
    if !depth.is_multiple_of(taps) {
        return Err(node.invalid(format!("blocks of {blocks:?} in {}", b.describe(&[x]))));
    }
    if !columns.agrees(places.iter().product::<Size>()) {
        let image: Vec<Size> = axes.iter().map(|axis| axis.image).collect();
        return Err(node.invalid(format!("{columns} columns do not make an image of {image:?}")));
    }
    let (element, channels) = (b.element(x), depth / Size::from(taps));
    let mut own = b.as_f32(x)?;
    let mut behind = Size::constant(1);
    for (d, axis) in axes.iter().enumerate().rev() {
        let outer = images * channels * Size::from(elements(&blocks[..d]));
        let before: Size = places[..d].iter().product();
        own = b.reshape_to(own, &[outer, axis.block.into(), before, axis.places, behind])?;
        own = if axis.dilation == 1 && axis.block.div_ceil(axis.stride) <= MOST_PARTS {
            parts_added(b, own, axis)?
        } else {
            convolved(b, node, own, axis)?
        };
        own = trimmed(b, own, axis)?;
        behind *= axis.image;
    }
    let dims: Vec<Size> = [images, channels].into_iter().chain(axes.iter().map(|axis| axis.image)).collect();
    let made = b.reshape_to(own, &dims)?;
    Ok(vec![b.cast(made, element)?])
}

fn axes(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<Axis>> {
    let image = b.need_sizes(node.input(1)?, "the shape of the image")?;
    let block = b.need_ints(node.input(2)?, "the shape of a block")?;
    let rank = image.len();
    let known: Option<Vec<u64>> = block.iter().map(|v| u64::try_from(*v).ok().filter(|v| *v > 0)).collect();
    let block = known.filter(|block| block.len() == rank && rank > 0);
    let block = block.ok_or_else(|| node.invalid(format!("no blocks of {rank} dimensions are made")))?;
    let (strides, dilations) = (sizes(node, "strides", rank, 1)?, sizes(node, "dilations", rank, 1)?);
    let pads = sizes(node, "pads", 2 * rank, 0)?;
    let axis = |d: usize| {
        let (stride, dilation) = (strides[d].max(1), dilations[d].max(1));
        let reach = dilation.checked_mul(block[d] - 1)?.checked_add(1)?;
        let padded = image[d] + pads[d].checked_add(pads[d + rank])?;
        let fits = image[d] > 0 && (padded - reach) >= 0;
        let places = (padded - reach) / Size::from(stride) + 1;
        fits.then_some(Axis { image: image[d], before: pads[d], places, block: block[d], stride, dilation })
    };
    let axes: Option<Vec<Axis>> = (0..rank).map(axis).collect();
    axes.ok_or_else(|| node.invalid(format!("no blocks of {block:?} make an image of {image:?}")))
}

/// `[outer, block, before, places, behind]` as `[outer, before, reach, behind]`: what each step of a block adds, one by one.
fn parts_added(b: &mut Builder, x: TensorId, axis: &Axis) -> Result<TensorId> {
    let &[outer, _, before, places, behind] = b.sizes(x) else { return Err(b.invalid("no blocks")) };
    let (stride, count) = (axis.stride, axis.block.div_ceil(axis.stride));
    let more = (count * stride - axis.block) as i64;
    let whole = b.pad(x, &[(0, 0), (0, more), (0, 0), (0, 0), (0, 0)], Border::Constant, 0.0)?;
    let apart = b.reshape_to(whole, &[outer, count.into(), stride.into(), before, places, behind])?;
    let apart = b.transpose(apart, &[0, 1, 3, 4, 2, 5])?;
    let mut sum = None;
    for part in 0..count {
        let one = Range { start: Size::from(part), step: 1, count: 1.into() };
        let rest = [before, places, stride.into(), behind].map(Range::all);
        let own = b.slice(apart, &[&[Range::all(outer), one], &rest[..]].concat())?;
        let own = b.reshape_to(own, &[outer, before, places * Size::from(stride), behind])?;
        let (first, last) = ((part * stride) as i64, ((count - 1 - part) * stride) as i64);
        let own = b.pad(own, &[(0, 0), (0, 0), (first, last), (0, 0)], Border::Constant, 0.0)?;
        sum = Some(match sum {
            Some(sum) => b.binary(Function::Add, sum, own)?,
            None => own,
        });
    }
    sum.ok_or_else(|| b.invalid("a sum of nothing"))
}

/// The same by a transposed convolution, whose filters have a single 1.
fn convolved(b: &mut Builder, node: &NodeView<'_>, x: TensorId, axis: &Axis) -> Result<TensorId> {
    let &[outer, _, before, places, behind] = b.sizes(x) else { return Err(b.invalid("no blocks")) };
    let block = axis.block;
    if block.saturating_mul(block) > MOST_MADE {
        return Err(node.unsupported(format!("blocks of {block} elements in steps of {}", axis.stride)));
    }
    let identity = (0..block * block).map(|i| f64::from(u8::from(i / block == i % block))).collect();
    let filter = b.values(DType::F32, &[block, 1, block, 1], &Values::Float(identity))?;
    let sliding =
        Sliding { strides: vec![axis.stride, 1], dilations: vec![axis.dilation, 1], pads: vec![(0, 0); 2] };
    let first = b.transpose(x, &[0, 2, 1, 3, 4])?;
    let images = b.reshape_to(first, &[outer * before, block.into(), places, behind])?;
    let made = b.conv_transpose(images, filter, None, &sliding, &[0; 2], 1)?;
    b.reshape_to(made, &[outer, before, axis.reach(), behind])
}

/// What of the blocks' reach is the image; what no block reaches is 0.
fn trimmed(b: &mut Builder, x: TensorId, axis: &Axis) -> Result<TensorId> {
    let &[outer, before, _, behind] = b.sizes(x) else { return Err(b.invalid("no blocks")) };
    let start = Size::from(axis.before);
    let there = axis.reach() - start;
    let count = there.min(axis.image).max(0);
    let part = Range { start: start.min(axis.reach()), step: 1, count };
    let x = b.slice(x, &[Range::all(outer), Range::all(before), part, Range::all(behind)])?;
    let none = [Size::constant(0); 2];
    b.pad_open(x, &[none, none, [0.into(), axis.image - count], none], Border::Constant, 0.0)
}
