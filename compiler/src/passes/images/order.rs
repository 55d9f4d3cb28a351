//! Orders of the dimensions of images.

use halite_sizes::Size;

use crate::graph::{Graph, TensorId};

/// Another order of the four dimensions of images.
#[derive(Clone, Copy, Debug)]
pub(in crate::passes) struct Order {
    /// Which dimension as it was comes at each place.
    pub there: [usize; 4],
    /// The way back.
    pub back: [usize; 4],
    /// Which dimension had the channels.
    pub channels: usize,
}

/// Images whose channels came last get them first.
pub(in crate::passes) const FIRST: Order = Order { there: [0, 3, 1, 2], back: [0, 2, 3, 1], channels: 3 };
/// Images whose channels came first get them last.
pub(in crate::passes) const LAST: Order = Order { there: [0, 2, 3, 1], back: [0, 3, 1, 2], channels: 1 };

/// How an expression over images reads one of its inputs in another order.
pub(in crate::passes) enum Read {
    /// An image.
    Image,
    /// One element.
    One,
    /// With these dimensions, and all elements where they are.
    Lying(Vec<Size>),
}

impl Read {
    /// For an input of these dimensions, of an expression over images; `None` where its elements would have to move.
    pub fn of(own: &[Size], dims: &[Size], order: [usize; 4]) -> Option<Read> {
        if own == dims {
            return Some(Read::Image);
        }
        if own.iter().all(|size| *size == 1) {
            return Some(Read::One);
        }
        let missing = std::iter::repeat_n(Size::constant(1), 4usize.checked_sub(own.len())?);
        let all: Vec<Size> = missing.chain(own.iter().copied()).collect();
        let lies = order.into_iter().filter(|d| all[*d] != 1).is_sorted();
        lies.then(|| Read::Lying(order.map(|d| all[d]).to_vec()))
    }
}

/// The sizes of an image.
pub(super) fn four(graph: &Graph, id: TensorId) -> Option<[Size; 4]> {
    <[Size; 4]>::try_from(graph.tensor(id).sizes()).ok()
}
