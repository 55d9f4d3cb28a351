//! Convolutions with groups of few channels on matrix units: 16 filters of one or more groups at a tile of an image.

use halite_ops::{convolution::Convolution, window::Layout};
use halite_sizes::Size;

use super::{KernelInputs, images_32, step};
use crate::{
    Plan, Unfit,
    plan::{fixed, fixed_groups, narrow},
};

/// Filters of a workgroup, and channels of a matrix.
const SIDE: u64 = 16;
/// Subgroups of a workgroup.
const SUBGROUPS: u64 = 4;
/// Places of a matrix.
const SEGMENT: u64 = 8;
/// Channels of 16 bits in a word.
const WORD: u64 = 8;
/// Taps that are written out one after the other.
const MOST_TAPS: u64 = 49;

/// Channels that sixteen filters in a row read at most, with the groups that they are of.
fn channels_read(channels: u64, filters: u64) -> u64 {
    let spanned =
        (0..filters).map(|first| first * SIDE % filters).map(|first| (first + SIDE - 1) / filters + 1);
    spanned.max().unwrap_or(1).saturating_mul(channels)
}

/// Rows and segments of eight places of a workgroup.
fn tile(shape: &Convolution, [rows, columns]: [u64; 2], most_bytes: u64, enough: u64) -> Option<[u64; 2]> {
    let w = &shape.window;
    let segments = columns.div_ceil(SEGMENT);
    let across = segments.div_ceil(4).max(1);
    let segments = segments.div_ceil(across).max(1);
    let filters = (shape.groups * shape.filters).div_ceil(SIDE);
    let bytes = |height: u64| {
        let extent =
            |places: u64, d: usize| (places - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
        let pixels = extent(height, 0).saturating_mul(extent(segments * SEGMENT, 1));
        pixels.saturating_mul(2 * SIDE) + w.kernel[0] * w.kernel[1] * 2 * SIDE * SIDE + SUBGROUPS * 512
    };
    // The taller one reads less around its places; with few workgroups, the device would wait for them.
    let images = if shape.images.is_constant() { shape.images.exact() } else { 1 };
    let busy = |height: u64| rows.div_ceil(height) * across * filters * images >= enough;
    let fits = |height: &u64| bytes(*height) <= most_bytes;
    [8, 4]
        .into_iter()
        .filter(fits)
        .find(|height| *height == 4 || busy(*height))
        .map(|height| [height, segments])
}

/// Sixteen filters at a tile of an image for each workgroup, with the channels first.
pub(in crate::plans) fn grouped(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    if shape.layout != Layout::Nchw {
        return Err(Unfit("wants channels first".into()));
    }
    tiles_of_images(shape, kernel)
}

/// The same with the channels last, in words of eight.
pub(in crate::plans) fn grouped_last(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    if shape.layout != Layout::Nhwc {
        return Err(Unfit("wants channels last".into()));
    }
    let all = [shape.groups.saturating_mul(shape.channels), shape.groups.saturating_mul(shape.filters)];
    if !all.iter().all(|channels| channels.is_multiple_of(WORD)) || !begins_at_words(shape) {
        let (groups, channels, filters) = (shape.groups, shape.channels, shape.filters);
        return Err(Unfit(format!(
            "wants channels and filters in words of {WORD}, not {groups} groups of {channels} and {filters}"
        )));
    }
    tiles_of_images(shape, kernel)
}

/// Whether what each sixteen filters read begins at a whole word.
fn begins_at_words(shape: &Convolution) -> bool {
    let (channels, filters) = (shape.channels, shape.filters.max(1));
    // Sixteen filters either begin with a group, or lie in groups whose channels are whole words.
    channels.is_multiple_of(WORD)
        || (SIDE.is_multiple_of(filters) && (SIDE / filters).saturating_mul(channels).is_multiple_of(WORD))
}

fn tiles_of_images(shape: &Convolution, kernel: KernelInputs<'_>) -> Result<Plan, Unfit> {
    let p = |name| kernel.params.get(name).map(u64::from);
    let (w, (channels, filters)) = (&shape.window, (shape.channels, shape.filters));
    let read = channels_read(channels, filters);
    if shape.groups < 2 || channels < 2 || filters == 0 || read > p("most_channels")? {
        return Err(Unfit(format!(
            "is for groups of few channels, of which 16 filters read {} at most, not {} groups of {channels}",
            p("most_channels")?,
            shape.groups
        )));
    }
    let [height, width] = w.kernel;
    if height * width > MOST_TAPS || height * width == 0 {
        return Err(Unfit(format!("is for kernels of up to {MOST_TAPS} taps, not {height}x{width}")));
    }
    let output = w.output();
    let places = [fixed("rows", output[0])?, fixed("columns", output[1])?].map(u64::from);
    let [rows, segments] = tile(shape, places, p("shared")?, p("enough")?)
        .ok_or_else(|| Unfit("has no room in shared memory for what its places read".into()))?;
    let tiles = places[0].div_ceil(rows) * places[1].div_ceil(segments * SEGMENT);
    let all = shape.groups.saturating_mul(filters);
    let grid =
        [narrow("tiles", Size::from(tiles))?, fixed_groups(all, SIDE as u32)?.into(), images_32(shape)?];
    let numbers = [SUBGROUPS * 32, rows, segments, channels, filters, height, width];
    let numbers = numbers.into_iter().chain(w.strides).chain(w.dilations).chain([read.div_ceil(SIDE)]);
    let constants = numbers.map(|number| fixed("a size", number)).collect::<Result<Vec<u32>, Unfit>>()?;
    Ok(Plan::of(step(shape, kernel, constants, grid)?))
}

#[cfg(test)]
mod tests {
    use halite_ops::Operation;

    use super::*;
    use crate::variants_of;

    fn planned(operation: &str) -> Result<Vec<u32>, Unfit> {
        let operation = Operation::parse(operation).unwrap();
        let variant = variants_of("conv2d").find(|v| v.name == "conv2d.f16.grouped").unwrap();
        variant.plan(&operation).map(|plan| plan.steps[0].constants.clone())
    }

    #[test]
    fn filters_of_several_groups_read_the_channels_of_all() {
        assert_eq!([channels_read(4, 4), channels_read(8, 8), channels_read(16, 16)], [16, 16, 16]);
        assert_eq!([channels_read(32, 32), channels_read(24, 24), channels_read(10, 10)], [32, 48, 30]);
        assert_eq!([channels_read(2, 1), channels_read(12, 6)], [32, 48]);
    }

    #[test]
    fn channels_last_lie_in_whole_words() {
        let of = |input: &str, filter: &str, groups: u64| {
            let text = format!(
                "conv2d:input={input},filter={filter},groups={groups},pads=1x1x1x1,dtype=f16,layout=nhwc"
            );
            let operation = Operation::parse(&text).unwrap();
            let variant = variants_of("conv2d").find(|v| v.name == "conv2d.f16.groupedlast").unwrap();
            variant
                .plan(&operation)
                .map(|plan| [plan.steps[0].constants[4], *plan.steps[0].constants.last().unwrap()])
        };
        assert_eq!(of("8x56x56x160", "3x3x4x160", 40), Ok([4, 1]));
        assert_eq!(of("8x14x14x384", "3x3x32x384", 12), Ok([2, 2]));
        assert_eq!(of("8x14x14x64", "3x3x8x32", 8), Ok([2, 2]), "filters that are fewer");
        for (input, filter, groups) in [
            ("8x14x14x60", "3x3x10x60", 6),
            ("8x14x14x60", "3x3x4x60", 15),
            ("8x14x14x64", "3x3x64x64", 1),
            ("8x14x14x240", "3x3x24x240", 10),
            ("8x14x14x120", "3x3x5x240", 24),
        ] {
            assert!(of(input, filter, groups).is_err(), "{filter}");
        }
    }

    #[test]
    fn tiles_cover_images_and_fit_shared_memory() {
        // (rows, segments, …, blocks)
        let of = |text: &str| planned(text).map(|c| [c[3], c[4], *c.last().unwrap()]);
        let regnet = "conv2d:input=8x320x14x14,filter=320x16x3x3,groups=20,pads=1x1x1x1,dtype=f16";
        assert_eq!(of(regnet), Ok([8, 2, 1]));
        let wide = "conv2d:input=8x128x112x112,filter=128x4x3x3,groups=32,pads=1x1x1x1,strides=2x2,dtype=f16";
        assert_eq!(of(wide), Ok([8, 4, 1]));
        let one = "conv2d:input=1x1024x7x7,filter=1024x32x3x3,groups=32,pads=1x1x1x1,dtype=f16";
        assert_eq!(of(one), Ok([4, 1, 2]));
        assert!(of("conv2d:input=1x64x7x7,filter=64x1x3x3,groups=64,pads=1x1x1x1,dtype=f16").is_err());
        assert!(of("conv2d:input=1x64x7x7,filter=64x64x3x3,groups=1,pads=1x1x1x1,dtype=f16").is_err());
    }
}
