//! Copies between the channels of images and blocks of places, as `DepthToSpace`, `SpaceToDepth` and PyTorch's `PixelShuffle` make them, which do the
//! same with the channels last.

use halite_ops::{DType, Operation, copy::StridedCopy};
use halite_sizes::Size;

use super::kind::known;
use crate::{
    graph::{Graph, Node},
    passes::{images::Images, tokens::merged},
};

/// Which channels of an image are a block of places of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// All places of the block for one channel come before those for the next one, as in `PixelShuffle`.
    Channels,
    /// All channels of one place come before those of the next one.
    Places,
}

/// A copy from channels to blocks of places, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    within: Within,
    to_places: bool,
    images: Size,
    /// Channels, rows and columns of the image that has few channels.
    channels: Size,
    rows: Size,
    columns: Size,
    /// Rows and columns of a block.
    block: [u64; 2],
}

impl Blocks {
    /// The one that a copy from an image to an image is.
    pub(super) fn of(graph: &Graph, copy: &StridedCopy, node: &Node) -> Option<Blocks> {
        if copy.dtype != DType::F16 || copy.offset != 0 {
            return None;
        }
        let sizes = |id| <[Size; 4]>::try_from(graph.tensor(id).sizes()).ok();
        let (read, written) = (sizes(*node.inputs.first()?)?, sizes(*node.outputs.first()?)?);
        let to_places = known(read[2])? < known(written[2])? || known(read[3])? < known(written[3])?;
        let (deep, wide) = if to_places { (read, written) } else { (written, read) };
        let times = |d: usize| {
            let (few, many) = (known(deep[d])?, known(wide[d])?);
            (few != 0 && many.is_multiple_of(few)).then_some(many / few)
        };
        let block = [times(2)?, times(3)?];
        let fits = deep[0] == wide[0] && deep[1] == wide[1] * (block[0] * block[1]) && block != [1, 1];
        if !fits || wide[1] == 1 {
            return None;
        }
        let [images, channels, rows, columns] = wide;
        let all = [Within::Channels, Within::Places].map(|within| Blocks {
            within,
            to_places,
            images,
            channels,
            rows,
            columns,
            block,
        });
        let lies = merged(copy);
        all.into_iter().find(|blocks| merged(&blocks.copy(false)) == lies)
    }

    /// The copy, with channels first or last.
    fn copy(self, last: bool) -> StridedCopy {
        let Blocks { images, channels, block, .. } = self;
        let [down, right] = block.map(Size::from);
        let (rows, columns, one) = (self.rows / down, self.columns / right, Size::constant(1));
        // Sizes, and distances in the image with many channels and in the one with few: images, rows, rows of a block, columns, columns of
        // a block, channels.
        let sizes = [images, rows, down, columns, right, channels];
        let all = channels * down * right;
        let [row_in, column_in, channel_in] = match self.within {
            Within::Channels => [right, one, down * right],
            Within::Places => [right * channels, channels, one],
        };
        let (places, whole) = (rows * columns, rows * columns * all);
        let (deep, wide) = match last {
            true => (
                [whole, columns * all, row_in, all, column_in, channel_in],
                [whole, columns * all, columns * right * channels, right * channels, channels, one],
            ),
            false => (
                [whole, columns, row_in * places, one, column_in * places, channel_in * places],
                [whole, columns * right * down, columns * right, right, one, places * down * right],
            ),
        };
        // Dimensions as the result has them, from its largest distance to the smallest.
        let order: [usize; 6] = match (self.to_places, last, self.within) {
            (true, false, _) => [0, 5, 1, 2, 3, 4],
            (true, true, _) => [0, 1, 2, 3, 4, 5],
            (false, false, Within::Channels) => [0, 5, 2, 4, 1, 3],
            (false, false, Within::Places) => [0, 2, 4, 5, 1, 3],
            (false, true, Within::Channels) => [0, 1, 3, 5, 2, 4],
            (false, true, Within::Places) => [0, 1, 3, 2, 4, 5],
        };
        let read = if self.to_places { deep } else { wide };
        StridedCopy {
            source: images * whole,
            shape: order.map(|d| sizes[d]).to_vec(),
            strides: order.map(|d| read[d]).to_vec(),
            offset: 0.into(),
            dtype: DType::F16,
        }
    }

    /// The copy between images whose channels come last.
    pub(super) fn changed(self, images: &mut Images<'_>, node: &Node) -> Option<()> {
        let image = images.in_new_order(*node.inputs.first()?, &node.location);
        images.push(Operation::StridedCopy(self.copy(true)), vec![image], node);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::window::Layout;

    use super::*;
    use crate::{
        build::{Builder, Sliding},
        graph::TensorId,
        passes::tests::{constant, kernels, optimized},
    };

    /// Sizes of an image whose channels are apart, and the order in which they become places.
    type Apart = ([u64; 6], [usize; 6]);

    fn conv(b: &mut Builder, x: TensorId, filters: u64) -> TensorId {
        let channels = b.dims(x)[1];
        let taps = constant(b, &[filters, channels, 3, 3], filters + channels);
        let taps = b.cast(taps, DType::F16).unwrap();
        let same = Sliding { strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(1, 1); 2] };
        b.conv(x, taps, None, &same, 1).unwrap()
    }

    /// What is left of convolutions before and behind channels that become blocks of places, and back.
    fn between(is_channels: bool, block: [u64; 2], matrix_units: bool) -> Vec<Operation> {
        let ([down, right], [rows, columns], images, channels) = (block, [3, 5], 2, 8);
        let all = channels * down * right;
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[images, rows, columns, 8]).unwrap();
        let x = b.transpose(x, &[0, 3, 1, 2]).unwrap();
        let y = conv(&mut b, x, all);
        let ((split, order), back): (Apart, [usize; 6]) = match is_channels {
            true => {
                (([images, channels, down, right, rows, columns], [0, 1, 4, 2, 5, 3]), [0, 1, 3, 5, 2, 4])
            }
            false => {
                (([images, down, right, channels, rows, columns], [0, 3, 4, 1, 5, 2]), [0, 3, 5, 1, 2, 4])
            }
        };
        let y = b.reshape(y, &split).unwrap();
        let y = b.transpose(y, &order).unwrap();
        let y = b.reshape(y, &[images, channels, rows * down, columns * right]).unwrap();
        let y = conv(&mut b, y, channels);
        let y = b.reshape(y, &[images, channels, rows, down, columns, right]).unwrap();
        let y = b.transpose(y, &back).unwrap();
        let y = b.reshape(y, &[images, all, rows, columns]).unwrap();
        let y = conv(&mut b, y, 8);
        let y = b.transpose(y, &[0, 2, 3, 1]).unwrap();
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = matrix_units;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    #[test]
    fn channels_become_blocks_where_they_lie_last() {
        for (is_channels, block) in [
            (true, [2, 2]),
            (false, [2, 2]),
            (true, [1, 3]),
            (false, [3, 1]),
            (true, [4, 2]),
            (false, [2, 3]),
        ] {
            let all = between(is_channels, block, true);
            let of = |layout| {
                let has = |op: &&Operation| matches!(op, Operation::Conv2d(op) if op.layout == layout);
                all.iter().filter(has).count()
            };
            assert_eq!([of(Layout::Nhwc), of(Layout::Nchw)], [3, 0], "{is_channels} {block:?} {all:?}");
            let copies: Vec<_> = all.iter().filter(|op| op.name() == "copy").collect();
            assert_eq!(copies.len(), 2, "{is_channels} {block:?} {all:?}");
            let others = between(is_channels, block, false);
            assert_eq!(others.iter().filter(|op| op.name() == "copy").count(), 4, "{others:?}");
        }
    }
}
