//! Copies of some channels of images.

use halite_ops::copy::StridedCopy;
use halite_sizes::Size;

use super::order::{Order, four};
use crate::{
    graph::{Graph, Node},
    passes::tokens::merged,
};

/// Channels of an image that follow each other.
pub(super) struct Slice {
    /// Sizes of the image, in its old order.
    image: [Size; 4],
    /// Sizes of its part.
    part: [Size; 4],
    /// The first channel.
    first: Size,
}

impl Slice {
    /// What a copy takes of an image in the old order; `None` where it is something else.
    pub fn of(order: Order, graph: &Graph, copy: &StridedCopy, node: &Node) -> Option<Slice> {
        let (image, part) = (four(graph, *node.inputs.first()?)?, four(graph, *node.outputs.first()?)?);
        let channels = order.channels;
        let are_known = image.iter().chain(&part).chain([&copy.offset]).all(|size| size.is_constant());
        if !are_known || (0..4).any(|d| d != channels && image[d] != part[d]) {
            return None;
        }
        let of_channel = image[channels + 1..].iter().map(|size| size.value()).product::<u64>();
        let first = copy.offset.value().checked_div(of_channel)?;
        let slice = Slice { image, part, first: first.into() };
        let same = slice.copy([0, 1, 2, 3], copy);
        let is_slice =
            merged(&same) == merged(copy) && same.offset == copy.offset && same.source == copy.source;
        is_slice.then_some(slice)
    }

    /// The copy in another order of the dimensions.
    pub fn copy(&self, order: [usize; 4], like: &StridedCopy) -> StridedCopy {
        let first =
            [0, 1, 2, 3].map(|d| if self.image[d] == self.part[d] { Size::constant(0) } else { self.first });
        let [image, first, part] = [self.image, first, self.part].map(|sizes| order.map(|d| sizes[d]));
        StridedCopy::slice(&image, &first, &part, &[1; 4], like.dtype)
    }
}
