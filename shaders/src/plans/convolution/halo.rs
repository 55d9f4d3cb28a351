//! Convolutions of one group whose channels lie last, by tiles of the image that lie in shared memory with the halo around them:
//! `halo.comp` says how places are counted.

use halite_ops::{conv2d::Conv2d, convolution::Convolution, window::Layout};
use halite_sizes::Size;

use super::KernelInputs;
use crate::{
    Params, Plan, Step, Unfit,
    plan::{fixed, fixed_groups, groups, module, narrow},
    plans::epilogue::activation_code,
};

/// Channels and filters of a word of 16 bytes, and rows and columns of a matrix.
const WORD: u64 = 8;
const SIDE: u64 = 16;
/// Taps that are written out one after the other.
const MOST_TAPS: u64 = 25;
/// Channels of a place that lie in shared memory at a time, at most.
const MOST_CHANNELS: u64 = 64;

/// A dimension as kernels count it: places of the result, and those between its rows or images.
struct Count {
    places: u64,
    between: u64,
    /// How far taps reach, in places of a plane.
    before: u64,
    behind: u64,
}

impl Count {
    /// That of dimension `d`: 0 for rows, 1 for columns.
    fn of(shape: &Convolution, d: usize) -> Result<Count, Unfit> {
        let w = &shape.window;
        let (input, places) = (fixed("an image", w.input[d])?, fixed("a result", w.output()[d])?);
        let (stride, dilation, pad) = (w.strides[d] as i64, w.dilations[d] as i64, w.pads[d] as i64);
        let reach = |tap: u64| (tap as i64 * dilation - pad).div_euclid(stride);
        let ends = [0, w.kernel[d] - 1].map(reach);
        let (before, behind) = (ends[0].min(0).unsigned_abs(), ends[1].max(0).unsigned_abs());
        if u64::from(places) * w.strides[d] < u64::from(input) {
            return Err(Unfit(
                "wants results as many as places of the image, or as those that strides leave".into(),
            ));
        }
        Ok(Count { places: places.into(), between: before.max(behind), before, behind })
    }

    /// Places, and those between.
    fn pitch(&self) -> u64 {
        self.places + self.between
    }
}

/// How a workgroup's tile lies in shared memory.
struct Tile {
    channels: u64,
    halo: u64,
    before: u64,
    words: u64,
}

impl Tile {
    /// The one with the fewest channels that are none, and of those the one with most at a time, if there is room.
    fn of(shape: &Convolution, [rows, columns]: [&Count; 2], params: &Params) -> Result<Tile, Unfit> {
        let p = |name| params.get(name).map(u64::from);
        let (bm, bn, pieces, shared) = (p("bm")?, p("bn")?, p("pieces")?, p("shared")?);
        let before = rows.before * columns.pitch() + columns.before;
        let halo = bm + before + rows.behind * columns.pitch() + columns.behind;
        let planes = shape.window.strides[0] * shape.window.strides[1];
        let tile = |channels: u64| {
            let image = planes.saturating_mul(halo).saturating_mul(channels / WORD + 1);
            let filters = 2 * channels * (bn / WORD + 1);
            let sums = bm / pieces * (bn / 4 + 1);
            Tile { channels, halo, before, words: image.saturating_add(filters).max(sums) }
        };
        let all = (SIDE..=MOST_CHANNELS).step_by(SIDE as usize).map(tile);
        let fits = all.filter(|tile| tile.words.saturating_mul(16) <= shared);
        fits.min_by_key(|tile| {
            (shape.channels.next_multiple_of(tile.channels), MOST_CHANNELS - tile.channels)
        })
        .ok_or_else(|| Unfit("has no room in shared memory for what its places read".into()))
    }
}

/// Places by filters.
pub(in crate::plans) fn halo(
    op: &Conv2d,
    shape: &Convolution,
    kernel: KernelInputs<'_>,
) -> Result<Plan, Unfit> {
    let w = &shape.window;
    if shape.layout != Layout::Nhwc || shape.groups != 1 {
        return Err(Unfit("wants channels last and one group".into()));
    }
    if !shape.channels.is_multiple_of(WORD) || !shape.filters.is_multiple_of(WORD) {
        let (channels, filters) = (shape.channels, shape.filters);
        return Err(Unfit(format!(
            "wants channels and filters in eights, there are {channels} and {filters}"
        )));
    }
    let taps = w.kernel[0].saturating_mul(w.kernel[1]);
    if !(2..=MOST_TAPS).contains(&taps) {
        return Err(Unfit(format!("is for kernels of 2 to {MOST_TAPS} taps, not {taps}")));
    }
    let (rows, columns) = (Count::of(shape, 0)?, Count::of(shape, 1)?);
    let tile = Tile::of(shape, [&rows, &columns], kernel.params)?;
    let p = |name| kernel.params.get(name);
    let (bm, bn, wm, wn, pieces) = (p("bm")?, p("bn")?, p("wm")?, p("wn")?, p("pieces")?);
    let number = |value: u64| fixed("a size", value);
    let even = shape.channels.is_multiple_of(tile.channels) && shape.filters.is_multiple_of(u64::from(bn));
    let mut constants = vec![32 * (bm / wm) * (bn / wn), bm, bn, number(tile.channels)?, wm, wn, pieces];
    constants.extend([kernel.added.code(), activation_code(kernel.activation)]);
    let window = w.kernel.into_iter().chain(w.strides).chain(w.dilations).chain([w.pads[0], w.pads[1]]);
    for value in window.chain([tile.halo, tile.before, tile.words]) {
        constants.push(number(value)?);
    }
    constants.push(even.into());
    let places = shape.images * rows.pitch() * columns.pitch();
    narrow("a number of places", places + u64::from(bm) + tile.halo)?;
    let [data, weights, bias, result, residual] = kernel.bindings[..] else {
        return Err(Unfit("has other bindings than convolutions have".into()));
    };
    Ok(Plan::of(Step {
        module: module(kernel.build)?,
        constants,
        push: push(op, shape, [&rows, &columns])?,
        bindings: vec![data, weights, result, bias, residual],
        grid: [groups(places, bm)?, fixed_groups(shape.filters, bn)?.into(), 1.into()],
        subgroup_size: 32,
    }))
}

/// Push constants.
fn push(op: &Conv2d, shape: &Convolution, [rows, columns]: [&Count; 2]) -> Result<Vec<Size>, Unfit> {
    let number = |value: u64| Size::from(value);
    let [height, width] = shape.window.input;
    let (first, words) = op.read.map_or((0, shape.channels), |runs| (runs.offset, runs.pitch));
    let (out_first, quads) = op.written.map_or((0, shape.filters), |runs| (runs.offset, runs.pitch));
    narrow("a number of elements", shape.images * height * width * words + first)?;
    narrow("a number of results", shape.images * rows.places * columns.places * quads + out_first)?;
    let sizes = [
        shape.images,
        height,
        width,
        number(rows.places),
        number(columns.places),
        number(columns.pitch()),
        number(rows.pitch()),
        number(shape.channels / WORD),
        number(shape.filters / WORD),
        number(first / WORD),
        number(words / WORD),
        number(out_first / 4),
        number(quads / 4),
    ];
    sizes.into_iter().map(|size| narrow("a size", size)).collect()
}

#[cfg(test)]
mod tests {
    use halite_ops::Operation;

    use super::*;
    use crate::variants_of;

    /// Bytes of shared memory, and constants from the halo on, with the channels at a time.
    fn planned(operation: &str) -> Result<([u32; 3], u32), Unfit> {
        let operation = Operation::parse(&format!("conv2d:dtype=f16,layout=nhwc,{operation}")).unwrap();
        let variant = variants_of("conv2d").find(|v| v.name == "conv2d.f16.imagehalo128x64").unwrap();
        let plan = variant.plan(&operation)?;
        let constants = &plan.steps[0].constants;
        Ok(([constants[17], constants[18], constants[3]], constants[19] * 16))
    }

    #[test]
    fn tiles_have_what_their_taps_read() {
        let (tile, bytes) = planned("input=8x56x56x64,filter=3x3x64x64,pads=1x1x1x1").unwrap();
        assert_eq!(tile, [128 + 2 * 58, 58, 32]);
        assert!(bytes <= 49_152);
        // Strides divide the image into four planes, of which taps reach one place before.
        let (tile, _) = planned("input=8x56x56x64,filter=3x3x64x64,strides=2x2,pads=1x1x1x1").unwrap();
        assert_eq!(tile[..2], [128 + 30, 30]);
        let (tile, _) = planned("input=8x56x56x64,filter=2x2x64x64,strides=2x2").unwrap();
        assert_eq!(tile[..2], [128, 0]);
    }

    #[test]
    fn others_are_refused() {
        for operation in [
            "input=8x56x56x64,filter=3x3x64x64",
            "input=8x56x56x64,filter=1x1x64x64",
            "input=8x56x56x60,filter=3x3x60x64,pads=1x1x1x1",
            "input=8x56x4000x64,filter=3x3x64x64,pads=1x1x1x1",
        ] {
            assert!(planned(operation).is_err(), "{operation}");
        }
    }
}
