//! `RoiAlign`: means and maxima of samples of regions of images, for as many regions as data decide.

use halite_ops::{DType, Values, expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    image::{channels_last, number},
};
use crate::{
    build::{Between, Builder, Outside, Range, SizeOperand},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[("RoiAlign", regions)];

/// Most samples along a dimension that a model may fix.
const MOST_FIXED: i64 = 64;

/// Most samples along a dimension that are taken one by one.
const MOST_APART: u64 = 4;

/// Most samples along a dimension where a region's size decides.
const MOST_ADAPTED: i64 = 1 << 16;

/// What a node says of its regions.
struct Regions {
    /// The regions' corners, `[count, 4]` of `f32`.
    corners: TensorId,
    count: Size,
    scale: f64,
    /// Whether coordinates are those of middles, and regions may be smaller than a place.
    half: bool,
    /// Samples of a bin along a dimension, where regions do not decide.
    samples: Option<u64>,
    /// Whether a bin is the mean of its samples, or the largest.
    mean: bool,
}

/// Samples along one dimension.
struct Along {
    /// Where they are, `[count, bins * samples]` of `f32`.
    at: TensorId,
    /// Samples of a bin.
    samples: Size,
    /// How many of them a region has, `[count, 1]` of `f32`, where regions decide.
    own: Option<TensorId>,
}

impl Regions {
    fn new(b: &mut Builder, node: &NodeView<'_>) -> Result<Self> {
        let samples = match node.int("sampling_ratio", 0)? {
            0 => None,
            samples @ 1..=MOST_FIXED => Some(samples as u64),
            other => return Err(node.unsupported(format!("regions with {other} samples of a bin"))),
        };
        let half = node.since(16)
            && node.string("coordinate_transformation_mode", "half_pixel")? != "output_half_pixel";
        let mean = match node.string("mode", "avg")?.as_str() {
            "avg" => true,
            "max" => false,
            other => return Err(node.invalid(format!("mode '{other}' is none that ONNX has"))),
        };
        let corners = b.as_f32(node.input(1)?)?;
        let scale = f64::from(node.float("spatial_scale", 1.0)?);
        Ok(Regions { corners, count: b.sizes(corners)[0], scale, half, samples, mean })
    }

    /// What makes one number of two samples, or of two places next to one: the largest is that of weighted elements, not of sums.
    fn join(&self) -> Function {
        if self.mean { Function::Add } else { Function::Max }
    }

    /// Where regions begin in a dimension, and how far they reach, in places.
    fn spans(&self, b: &mut Builder, columns: [u64; 2]) -> Result<[TensorId; 2]> {
        let offset = if self.half { 0.5 } else { 0.0 };
        let mut edge = |column: u64| {
            let one = Range { start: column.into(), step: 1, count: 1.into() };
            let own = b.slice(self.corners, &[Range::all(self.count), one])?;
            b.map(&[own], DType::F32, |p, x| {
                let product = p.call(Function::Mul, &[x[0], number(self.scale)]);
                p.call(Function::Sub, &[product, number(offset)])
            })
        };
        let (start, end) = (edge(columns[0])?, edge(columns[1])?);
        let size = b.map(&[start, end], DType::F32, |p, x| {
            let size = p.call(Function::Sub, &[x[1], x[0]]);
            if self.half { size } else { p.call(Function::Max, &[size, number(1.0)]) }
        })?;
        Ok([start, size])
    }

    fn along(&self, b: &mut Builder, columns: [u64; 2], bins: u64) -> Result<Along> {
        let [start, size] = self.spans(b, columns)?;
        let Some(samples) = self.samples else { return self.adapted(b, [start, size], bins) };
        let points = bins.saturating_mul(samples);
        b.countable(points)?;
        // Where samples are, in bins.
        let at = |i: u64| (i / samples) as f64 + ((i % samples) as f64 + 0.5) / samples as f64;
        let at = b.values(DType::F32, &[1, points], &Values::Float((0..points).map(at).collect()))?;
        let at = b.map(&[start, size, at], DType::F32, |p, x| {
            let bin = p.call(Function::Div, &[x[1], number(bins as f64)]);
            let from = p.call(Function::Mul, &[bin, x[2]]);
            p.call(Function::Add, &[x[0], from])
        })?;
        Ok(Along { at, samples: samples.into(), own: None })
    }

    /// As many samples as a bin has places, rounded up: there is room for those of the largest region.
    fn adapted(&self, b: &mut Builder, [start, size]: [TensorId; 2], bins: u64) -> Result<Along> {
        b.countable(bins)?;
        // Devices divide with errors of some units in the last place, which must not make another sample.
        let own = b.map(&[size], DType::F32, |p, x| {
            let bin = p.call(Function::Div, &[x[0], number(bins as f64)]);
            let near = p.call(Function::Round, &[bin]);
            let reach = p.call(Function::Mul, &[near, number(bins as f64)]);
            let is_less = p.call(Function::Lt, &[reach, x[0]]);
            let more = p.call(Function::Add, &[near, number(1.0)]);
            let count = p.call(Function::Select, &[is_less, more, near]);
            p.call(Function::Max, &[count, number(0.0)])
        })?;
        let none = b.values(DType::F32, &[1, 1], &Values::Float(vec![0.0]))?;
        // The largest of no regions is none.
        let all = b.concat(&[own, none], 0)?;
        let most = b.reduce(ReduceKind::Max, all, &[0, 1], false)?;
        let most = b.cast(most, DType::I64)?;
        let read = b.read(most, "the number of samples of a region", 0, MOST_ADAPTED)?;
        let [samples] = read[..] else { return Err(b.invalid("one number of samples is read")) };
        let bin =
            b.values(DType::F32, &[1, bins, 1], &Values::Float((0..bins).map(|i| i as f64).collect()))?;
        let sample = b.line_of_places(DType::F32, samples)?;
        let sample = b.reshape_to(sample, &[1.into(), 1.into(), samples])?;
        let mut deep = |x: TensorId| b.reshape_to(x, &[self.count, 1.into(), 1.into()]);
        let (start, size, each) = (deep(start)?, deep(size)?, deep(own)?);
        let at = b.map(&[start, size, each, bin, sample], DType::F32, |p, x| {
            let width = p.call(Function::Div, &[x[1], number(bins as f64)]);
            // The largest of samples does not change by those that come again; in sums, the others are outside of the image.
            let last = p.call(Function::Sub, &[x[2], number(1.0)]);
            let sample = if self.mean { x[4] } else { p.call(Function::Min, &[x[4], last]) };
            let middle = p.call(Function::Add, &[sample, number(0.5)]);
            let part = p.call(Function::Div, &[middle, x[2]]);
            let place = p.call(Function::Add, &[x[3], part]);
            let from = p.call(Function::Mul, &[width, place]);
            let at = p.call(Function::Add, &[x[0], from]);
            let is_own = p.call(Function::Lt, &[sample, x[2]]);
            let is_any = p.call(Function::Ge, &[x[2], number(1.0)]);
            let is_own = p.call(Function::And, &[is_own, is_any]);
            p.call(Function::Select, &[is_own, at, number(-2.0)])
        })?;
        let at = b.reshape_to(at, &[self.count, samples * bins])?;
        Ok(Along { at, samples, own: Some(own) })
    }
}

/// 1 for samples that are in the image or at most a place outside, else 0: `[count, points, 1]`.
fn inside(b: &mut Builder, at: [TensorId; 2], sizes: [Size; 2]) -> Result<TensorId> {
    let mut all: Option<TensorId> = None;
    for (at, size) in at.into_iter().zip(sizes) {
        let size = SizeOperand::new(b, size, DType::F32)?;
        let mut ids = size.with(at);
        ids.extend(all);
        let others = all.is_some();
        all = Some(b.map(&ids, DType::F32, |p, x| {
            let behind = p.call(Function::Ge, &[x[0], number(-1.0)]);
            let before = p.call(Function::Le, &[x[0], size.operand(x)]);
            let there = p.call(Function::And, &[behind, before]);
            let other = if others { x[x.len() - 1] } else { number(1.0) };
            p.call(Function::Select, &[there, other, number(0.0)])
        })?);
    }
    let all = all.ok_or_else(|| b.invalid("images have two dimensions"))?;
    let dims = [b.sizes(all), &[1.into()]].concat();
    b.reshape_to(all, &dims)
}

fn regions(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, rois, batch) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let dims = b.sizes(x).to_vec();
    let fits = match b.sizes(rois) {
        [count, corners] => corners.agrees(4) && count.agrees(b.tensor(batch).count()),
        _ => false,
    };
    if dims.len() != 4 || !fits {
        return Err(node.invalid(format!("no regions of {}", b.describe(&[x, rois, batch]))));
    }
    let size =
        |name| u64::try_from(node.int(name, 1)?).map_err(|_| node.invalid(format!("{name} is negative")));
    let (rows, columns) = (size("output_height")?, size("output_width")?);
    let (element, regions) = (b.element(x), Regions::new(b, node)?);
    let (down, across) = (regions.along(b, [1, 3], rows)?, regions.along(b, [0, 2], columns)?);
    let bases = b.cast(batch, DType::I32)?;
    let bases = b.reshape_to(bases, &[regions.count, 1.into()])?;
    let images = Images { channels: channels_last(b, x)?, sizes: [dims[2], dims[3]], bases };
    let made = match regions
        .samples
        .filter(|samples| (2..=MOST_APART).contains(samples) && !regions.count.is_constant())
    {
        Some(samples) => images.one_by_one(b, &regions, [&down, &across], samples)?,
        None => {
            let made = images.samples(b, &regions, [down.at, across.at])?;
            let bins = [regions.count, rows.into(), down.samples, columns.into(), across.samples, dims[1]];
            let made = b.reshape_to(made, &bins)?;
            joined(b, made, regions.mean, [down.own, across.own])?
        }
    };
    let made = b.transpose(made, &[0, 3, 1, 2])?;
    Ok(vec![b.cast(made, element)?])
}

/// What samples are taken of.
struct Images {
    /// `[images, height, width, channels]`.
    channels: TensorId,
    /// Height and width.
    sizes: [Size; 2],
    /// The image of each region, `[count, 1]`.
    bases: TensorId,
}

impl Images {
    /// Samples where coordinates along both dimensions, `[count, down]` and `[count, across]`, meet: `[count, down, across, channels]`.
    fn samples(&self, b: &mut Builder, regions: &Regions, [down, across]: [TensorId; 2]) -> Result<TensorId> {
        let count = regions.count;
        let grid = [count, b.sizes(down)[1], b.sizes(across)[1]];
        let points = grid[1] * grid[2];
        let mut spread = |own: TensorId, dims: [Size; 3]| {
            let own = b.reshape_to(own, &dims)?;
            let own = b.expand_to(own, &grid)?;
            b.reshape_to(own, &[count, points])
        };
        let y = spread(down, [count, grid[1], 1.into()])?;
        let x = spread(across, [count, 1.into(), grid[2]])?;
        let inside = inside(b, [y, x], self.sizes)?;
        let parts =
            b.neighbours(self.channels, &[y, x], Some(self.bases), Between::Linear, Outside::Border)?;
        let Some((first, rest)) = parts.split_first() else {
            return Err(b.invalid("a region without samples"));
        };
        let made = rest.iter().try_fold(*first, |made, part| b.binary(regions.join(), made, *part))?;
        let made = b.binary(Function::Mul, made, inside)?;
        let channels = b.sizes(made)[2];
        b.reshape_to(made, &[count, grid[1], grid[2], channels])
    }

    /// The bins of regions, the samples of each by one after the other: of regions whose number is not known, all samples may be more than
    /// a device binds.
    fn one_by_one(
        &self,
        b: &mut Builder,
        regions: &Regions,
        along: [&Along; 2],
        samples: u64,
    ) -> Result<TensorId> {
        let mut all: Option<TensorId> = None;
        for place in 0..samples * samples {
            let mut at = [along[0].at; 2];
            for ((at, own), start) in at.iter_mut().zip(along).zip([place / samples, place % samples]) {
                let bins = b.sizes(own.at)[1] / samples;
                let each = Range { start: start.into(), step: samples as i64, count: bins };
                *at = b.slice(own.at, &[Range::all(regions.count), each])?;
            }
            let made = self.samples(b, regions, at)?;
            all = Some(match all {
                Some(all) => b.binary(regions.join(), all, made)?,
                None => made,
            });
        }
        let all = all.ok_or_else(|| b.invalid("a bin without samples"))?;
        if !regions.mean {
            return Ok(all);
        }
        let share = 1.0 / (samples * samples) as f64;
        b.map(&[all], DType::F32, |p, x| p.call(Function::Mul, &[x[0], number(share)]))
    }
}

/// Samples `[count, rows, samples, columns, samples, channels]` of each bin as one number.
fn joined(b: &mut Builder, made: TensorId, mean: bool, own: [Option<TensorId>; 2]) -> Result<TensorId> {
    let ([Some(down), Some(across)], true) = (own, mean) else {
        let kind = if mean { ReduceKind::Mean } else { ReduceKind::Max };
        return b.reduce(kind, made, &[2, 4], false);
    };
    let (count, one) = (b.sizes(made)[0], Size::constant(1));
    let each = b.binary(Function::Mul, down, across)?;
    let each = b.reshape_to(each, &[count, one, one, one])?;
    // What is none of a region's samples is 0.
    let made = b.reduce(ReduceKind::Sum, made, &[2, 4], false)?;
    b.map(&[made, each], DType::F32, |p, x| {
        let count = p.call(Function::Max, &[x[1], number(1.0)]);
        p.call(Function::Div, &[x[0], count])
    })
}
