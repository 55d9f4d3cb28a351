//! What convolutions are with the channels last, and what that gains.

use halite_ops::{DType, Op, conv2d::Conv2d, window::Layout};
use halite_sizes::Size;

/// Places of a word: planes of a multiple of these begin at whole words.
const WORD: u64 = 4;
/// Channels that products read at once.
const CHANNELS: u64 = 8;
/// Most taps, each way, of kernels for 16-bit floats that read single channels.
const MOST_TAPS: u64 = 7;
/// Most taps of products over images.
const MOST_WINDOW: u64 = 32;

/// Of each byte that a product of one tap reads and writes, where planes begin anywhere, and where they begin at whole words.
const ANYWHERE: u64 = 3;
const AT_WORDS_TENTHS: u64 = 3;
/// Of a million arithmetic operations of larger windows, and of those in groups.
const WINDOW: u64 = 1_800;
const GROUPED: u64 = 16_000;
/// Of each byte that groups of few channels read and write.
const FEW_CHANNELS: u64 = 2;
/// What kernels for such groups take, in `convolution/grouped.rs` of the kernel library: channels and filters of a matrix that groups share, most
/// channels that the filters of one read, and most taps.
const SHARED: u64 = 16;
const MOST_SHARED: u64 = 32;
const MOST_SHARED_TAPS: u64 = 49;
/// Of each byte that convolutions of few channels write.
const PICTURES: u64 = 2;
/// Most terms of the sums of such convolutions, in `convolution/few.rs` of the kernel library.
const MOST_TERMS: u64 = 256;
/// Channels and filters of a group for which tiles have room; fewer leave most of a tile empty.
const OF_GROUP: u64 = 24;

/// What a convolution is with the channels last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One tap of all channels: a product of places by filters.
    Product,
    /// A filter for each channel.
    SingleChannels,
    /// Several taps, or strides, of all channels: a product over the image.
    Window,
    /// Groups of few channels, several of which share a matrix.
    FewChannels,
    /// All of few channels, as pictures have them.
    Picture,
    /// Parts of pictures beside one another, such as those that become tokens: a product of copies of them by filters. The picture
    /// keeps its channels first.
    Patches,
}

impl Kind {
    /// The one of a convolution with its channels first, if it may get them last.
    pub(super) fn of(op: &Conv2d) -> Option<Kind> {
        let [_, channels, rows, columns] = op.input;
        let channels = known(channels)?;
        let places = known(rows)?.checked_mul(known(columns)?)?;
        // Filters that cover their images become products by themselves.
        let is_covered = op.shape().is_ok_and(|shape| shape.is_product());
        if op.layout != Layout::Nchw || op.dtype != DType::F16 || places == 1 || is_covered {
            return None;
        }
        let [filters, of_group, ..] = op.filter;
        let kernel = [op.filter[2], op.filter[3]];
        let filters_of_group = filters.checked_div(op.groups)?;
        let in_words = of_group.is_multiple_of(CHANNELS) && filters_of_group.is_multiple_of(CHANNELS);
        if in_words && (op.groups == 1 || of_group.min(filters_of_group) >= OF_GROUP) {
            let is_product = kernel == [1, 1] && op.strides == [1, 1] && op.pads == [0; 4];
            let fits = kernel[0].saturating_mul(kernel[1]) <= MOST_WINDOW;
            return match is_product && op.groups == 1 {
                true => Some(Kind::Product),
                false => fits.then_some(Kind::Window),
            };
        }
        let terms = of_group.saturating_mul(kernel[0]).saturating_mul(kernel[1]);
        if op.groups == 1 && of_group < CHANNELS && filters.is_multiple_of(CHANNELS) && terms <= MOST_TERMS {
            return Some(Kind::Picture);
        }
        if is_of_patches(op) && of_group < CHANNELS {
            return Some(Kind::Patches);
        }
        if is_of_few_channels(op, filters_of_group) {
            return Some(Kind::FewChannels);
        }
        let is_single = of_group == 1 && filters == channels && op.groups == channels;
        let is_known =
            kernel.iter().all(|taps| *taps <= MOST_TAPS) && op.dilations == [1, 1] && op.strides[1] <= 2;
        (is_single && is_known && channels.is_multiple_of(4)).then_some(Kind::SingleChannels)
    }

    /// Picoseconds that it gains. One of single channels gains a fifth of what a product of so many bytes does.
    pub(super) fn gains(self, op: &Conv2d) -> u64 {
        let [images, channels, rows, columns] = op.input.map(Size::value);
        let places = rows.saturating_mul(columns);
        let all = channels.saturating_add(op.filter[0]).saturating_mul(images).saturating_mul(places);
        let bytes = all.saturating_mul(op.dtype.size());
        let begins_anywhere = !places.is_multiple_of(WORD);
        match self {
            Kind::Product if begins_anywhere => bytes.saturating_mul(ANYWHERE),
            Kind::Product => bytes.saturating_mul(AT_WORDS_TENTHS) / 10,
            Kind::SingleChannels if begins_anywhere => bytes.saturating_mul(ANYWHERE) / 5,
            Kind::SingleChannels => 0,
            Kind::FewChannels => bytes.saturating_mul(FEW_CHANNELS),
            Kind::Picture | Kind::Patches => {
                let written: u64 = op.outputs().iter().map(|made| made.elements().value()).sum();
                written.saturating_mul(op.dtype.size()).saturating_mul(PICTURES)
            }
            // A number as large as that is no less than any cost.
            Kind::Window => {
                ((op.flops() / 1e6) as u64).saturating_mul(if op.groups == 1 { WINDOW } else { GROUPED })
            }
        }
    }
}

/// Whether each place of the image is read once at most, and products of all terms read whole words.
fn is_of_patches(op: &Conv2d) -> bool {
    let [filters, channels, rows, columns] = op.filter;
    let terms = channels.saturating_mul(rows).saturating_mul(columns);
    let beside = [rows, columns] == op.strides && op.dilations == [1, 1] && op.pads == [0; 4];
    op.groups == 1 && beside && filters.is_multiple_of(CHANNELS) && terms.is_multiple_of(CHANNELS)
}

/// Whether sixteen filters at a time read few channels, which begin at whole words.
fn is_of_few_channels(op: &Conv2d, filters: u64) -> bool {
    let [all_filters, channels, rows, columns] = op.filter;
    if op.groups < 2 || channels < 2 || filters == 0 {
        return false;
    }
    let in_words =
        channels.saturating_mul(op.groups).is_multiple_of(CHANNELS) && all_filters.is_multiple_of(CHANNELS);
    let begins_at_words = channels.is_multiple_of(CHANNELS)
        || SHARED.is_multiple_of(filters)
            && (SHARED / filters).saturating_mul(channels).is_multiple_of(CHANNELS);
    // Two groups more than those that fit: sixteen filters may begin and end inside of one.
    let read = (SHARED / filters).saturating_add(2 * u64::from(!SHARED.is_multiple_of(filters))).max(1);
    in_words
        && begins_at_words
        && read.saturating_mul(channels) <= MOST_SHARED
        && rows.saturating_mul(columns) <= MOST_SHARED_TAPS
}

/// A size that does not depend on inputs.
pub(super) fn known(size: Size) -> Option<u64> {
    size.is_constant().then(|| size.value())
}
