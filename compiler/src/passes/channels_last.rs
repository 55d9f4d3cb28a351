//! Images of 16-bit floats get their channels last where that saves time on devices with matrix units: a convolution is a product of
//! places by filters there, whose rows are runs of whole words, and one of single channels reads neighbouring channels at once. With the
//! channels first, windows lie across words, and a plane of 19 x 19 or 7 x 7 begins anywhere and is read element by element.

mod blocks;
mod convolutions;
mod kind;
mod means;
mod norms;
mod transposed;
mod turns;
mod widened;

use halite_ops::{Operation, pool2d::Pool2d, window::Layout};
use halite_sizes::Size;

use self::{
    blocks::Blocks,
    convolutions::{channels_last, patches, product},
    kind::Kind,
    transposed::Cells,
    turns::Turn,
    widened::widened,
};
use super::{
    Result, Uses,
    images::{self, Change, Images, LAST, Members, Order, resized},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

// What gains and costs are, in picoseconds on an H200 with eight images: `docs/results/kernels.md` has the times.
/// A copy, and each byte that it reads and writes. Tests have a hundredth of the images, as the host computes them.
const COPY: u64 = if cfg!(test) { 26_000 } else { 2_600_000 };
const COPIED: u64 = 2;

/// Gives such images their channels last where that saves more than it costs.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    if !graph.matrix_units {
        return Ok(());
    }
    turns::name_images(graph, region, uses, watch)?;
    images::run::<ChannelsLast>(graph, region, uses, watch)
}

struct ChannelsLast;

impl Change for ChannelsLast {
    const NAME: &'static str = "channels-last";
    const ORDER: Order = LAST;

    fn members(graph: &Graph, node: &Node) -> Option<Members> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let first = || node.inputs.first().copied().into_iter().collect::<Vec<_>>();
        let written = node.outputs.clone();
        match operation {
            Operation::Conv2d(op) => {
                let kind = Kind::of(op).or_else(|| widened(op).map(|(_, kind)| kind))?;
                let residual = node.inputs.last().filter(|_| op.residual).copied();
                let image = if kind == Kind::Patches { Vec::new() } else { first() };
                let read = image.into_iter().chain(residual).collect();
                Some(Members { read, written, gains: kind.gains(op) })
            }
            Operation::ConvTranspose2d(op) => {
                Some(Members { read: first(), written, gains: Cells::of(op)?.gains() })
            }
            Operation::Pool2d(op) if op.layout == Layout::Nchw => {
                Some(Members { read: first(), written, gains: 0 })
            }
            Operation::Resize(op) => {
                resized::channels_last(graph, op, node)?;
                Some(Members { read: first(), written, gains: 0 })
            }
            Operation::Norm(op) => {
                norms::is_of_image(graph, op, node).then(|| Members { read: first(), written, gains: 0 })
            }
            Operation::Reduce(op) => {
                means::of_image(graph, op, node)?;
                Some(Members { read: first(), written: Vec::new(), gains: 0 })
            }
            Operation::StridedCopy(op) => match Turn::of(graph, op, node) {
                Some(turn) => turn.members(node, |image| Self::cost(graph, image)),
                None => Blocks::of(graph, op, node).map(|_| Members { read: first(), written, gains: 0 }),
            },
            _ => None,
        }
    }

    fn cost(graph: &Graph, id: TensorId) -> u64 {
        let tensor = graph.tensor(id);
        let bytes = tensor.count().value().saturating_mul(tensor.element.storage().size());
        COPY.saturating_add(bytes.saturating_mul(2 * COPIED))
    }

    fn is_worth(gains: u64, costs: u64) -> bool {
        gains > costs
    }

    fn changed(images: &mut Images<'_>, node: &Node) -> Option<()> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        match operation {
            Operation::Conv2d(op) => match (Kind::of(op), widened(op)) {
                (Some(Kind::Product), _) => product(images, op, node),
                (Some(Kind::Patches), _) => patches(images, op, node),
                (Some(_), _) => channels_last(images, op, node),
                (None, Some((wide, kind))) => widened::write(images, (&wide, kind), node),
                (None, None) => None,
            },
            Operation::ConvTranspose2d(op) => Cells::of(op)?.write(images, node),
            Operation::Pool2d(op) => {
                let image = image_of(images.graph, op, node)?;
                let input = LAST.there.map(|d| image[d]);
                let changed = Pool2d { input, layout: Layout::Nhwc, ..op.clone() };
                let image = images.in_new_order(node.inputs[0], &node.location);
                images.push(Operation::Pool2d(changed), vec![image], node);
                Some(())
            }
            Operation::Resize(op) => {
                let changed = resized::channels_last(images.graph, op, node)?;
                let image = images.in_new_order(node.inputs[0], &node.location);
                images.push(Operation::Resize(changed), vec![image], node);
                Some(())
            }
            Operation::Norm(op) => norms::changed(images, op, node),
            Operation::Reduce(op) => means::changed(images, op, node),
            Operation::StridedCopy(op) => match Turn::of(images.graph, op, node) {
                Some(turn) => turn.changed(images, node),
                None => Blocks::of(images.graph, op, node)?.changed(images, node),
            },
            _ => None,
        }
    }
}

/// Sizes of the image that a pool reads, whose channels may be images for it.
fn image_of(graph: &Graph, op: &Pool2d, node: &Node) -> Option<[Size; 4]> {
    let sizes = <[Size; 4]>::try_from(graph.tensor(*node.inputs.first()?).sizes()).ok()?;
    let [images, channels, rows, columns] = op.input;
    let same = rows.is(sizes[2]) && columns.is(sizes[3]) && (images * channels).is(sizes[0] * sizes[1]);
    (op.layout == Layout::Nchw && same).then_some(sizes)
}

#[cfg(test)]
mod tests {
    use halite_ops::{
        DType,
        axis::{Coordinates, Nearest},
        conv2d::Conv2d,
        expression::Function,
        pool2d::Pooling,
        reduce::ReduceKind,
        resize::Interpolation,
    };

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, Placement, ResizedAxis, Resizing, Sliding};

    /// So many that copies are worth it with few channels, which are computed soon.
    const IMAGES: u64 = 20;

    /// A convolution of 16-bit floats with a bias, whose windows have zeros around them.
    fn conv(b: &mut Builder, x: TensorId, filter: [u64; 4], groups: u64, stride: u64) -> TensorId {
        let taps = constant(b, &filter, filter[0] + filter[2]);
        let bias = constant(b, &[filter[0]], filter[1]);
        let (taps, bias) = (b.cast(taps, DType::F16).unwrap(), b.cast(bias, DType::F16).unwrap());
        let around = (filter[2] / 2, filter[2] / 2);
        let sliding = Sliding { strides: vec![stride; 2], dilations: vec![1; 2], pads: vec![around; 2] };
        b.conv(x, taps, Some(bias), &sliding, groups).unwrap()
    }

    /// Operations of two separable convolutions over `side` x `side` places, with the image added, and factors of a mean for each channel.
    fn operations(side: u64, matrix_units: bool) -> Vec<Operation> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[IMAGES, 8, side, side]).unwrap();
        let mut y = x;
        for _ in 0..2 {
            y = b.unary(Function::Relu, y).unwrap();
            y = conv(&mut b, y, [8, 1, 3, 3], 8, 1);
            y = conv(&mut b, y, [8, 8, 1, 1], 1, 1);
        }
        y = b.binary(Function::Add, y, x).unwrap();
        let mean = b.reduce(ReduceKind::Mean, y, &[2, 3], true).unwrap();
        y = b.binary(Function::Mul, y, mean).unwrap();
        y = conv(&mut b, y, [16, 8, 1, 1], 1, 1);
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = matrix_units;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    fn count(operations: &[Operation], name: &str) -> usize {
        operations.iter().filter(|operation| operation.name() == name).count()
    }

    #[test]
    fn patches_of_pictures_become_rows_of_products() {
        for (filter, joined) in [([24, 3, 16, 16], true), ([16, 3, 32, 32], false)] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F16.into(), &[2, 3, 192, 195]).unwrap();
            let taps = constant(&mut b, &filter, 3);
            let taps = b.cast(taps, DType::F16).unwrap();
            let sliding =
                Sliding { strides: vec![filter[2]; 2], dilations: vec![1; 2], pads: vec![(0, 0); 2] };
            let y = b.conv(x, taps, None, &sliding, 1).unwrap();
            let y = b.transpose(y, &[0, 2, 3, 1]).unwrap();
            b.output("y", y);
            let mut graph = b.finish().unwrap();
            graph.matrix_units = true;
            let graph = optimized(graph);
            let all = kernels(&graph);
            // Large filters are rounded first.
            let [.., Operation::StridedCopy(_), Operation::MatMul(op)] = all[..] else {
                panic!("a copy and a product: {graph}")
            };
            assert_eq!(op.batch == 2, joined, "{op:?}");
            assert!(!all.iter().any(|op| matches!(op, Operation::Conv2d(_))), "{graph}");
        }
    }

    #[test]
    fn planes_of_odd_sizes_get_their_channels_last() {
        let all = operations(5, true);
        let names: Vec<_> = all.iter().map(Operation::name).collect();
        assert_eq!(
            [count(&all, "matmul"), count(&all, "conv2d"), count(&all, "copy")],
            [3, 2, 2],
            "{names:?}"
        );
        let last = |operation: &Operation| {
            !matches!(operation, Operation::Conv2d(op) if op.layout == Layout::Nchw)
                && !matches!(operation, Operation::Reduce(op) if !op.inner.is(8.into()))
        };
        assert!(all.iter().all(last), "{all:?}");
    }

    #[test]
    fn pools_and_concatenations_join_them() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[IMAGES, 8, 7, 7]).unwrap();
        let first = conv(&mut b, x, [16, 8, 1, 1], 1, 1);
        let sliding = Sliding { strides: vec![2; 2], dilations: vec![1; 2], pads: vec![(0, 1); 2] };
        let pools = [Pooling::Max, Pooling::Average]
            .map(|kind| b.pool(first, kind, &[2, 2], &sliding, false).unwrap());
        let joined = b.concat(&pools, 1).unwrap();
        let more = b.pool(joined, Pooling::Max, &[3, 3], &sliding, true).unwrap();
        let deep = conv(&mut b, first, [16, 1, 3, 3], 16, 2);
        let flat = conv(&mut b, first, [8, 16, 1, 1], 1, 1);
        let again = (0..3).fold(flat, |x, _| conv(&mut b, x, [8, 8, 1, 1], 1, 1));
        for (name, id) in [("more", more), ("deep", deep), ("again", again)] {
            b.output(name, id);
        }
        let mut graph = b.finish().unwrap();
        graph.matrix_units = true;
        let all: Vec<Operation> = kernels(&optimized(graph)).into_iter().cloned().collect();
        assert_eq!([count(&all, "matmul"), count(&all, "pool2d"), count(&all, "concat")], [5, 3, 1]);
        assert!(
            !all.iter().any(|op| matches!(op, Operation::Pool2d(op) if op.layout == Layout::Nchw)),
            "{all:?}"
        );
    }

    #[test]
    fn resized_images_join_them() {
        let resized = |interpolation, coordinates| {
            let mut b = Builder::new();
            let x = b.input("x", DType::F16.into(), &[IMAGES, 8, 3, 3]).unwrap();
            let small = (0..6).fold(x, |x, _| conv(&mut b, x, [8, 8, 1, 1], 1, 1));
            let axis = |axis| ResizedAxis { axis, size: 5, scale: 5.0 / 3.0, part: (0.0, 1.0) };
            let how = Resizing {
                interpolation,
                placement: Placement::Plain(coordinates),
                nearest: Nearest::Floor,
                cubic: -0.75,
                exclude_outside: false,
                antialias: false,
                extrapolation: 0.0,
            };
            let large = b.resize(small, &[axis(2), axis(3)], &how).unwrap();
            let again = conv(&mut b, large, [8, 8, 1, 1], 1, 1);
            let y = b.reduce(ReduceKind::Mean, again, &[2, 3], true).unwrap();
            b.output("y", y);
            let mut graph = b.finish().unwrap();
            graph.matrix_units = true;
            let all: Vec<Operation> = kernels(&optimized(graph)).into_iter().cloned().collect();
            let dims = all.iter().find_map(|op| match op {
                Operation::Resize(op) => Some(op.input.len()),
                _ => None,
            });
            (dims, count(&all, "copy"))
        };
        assert_eq!(resized(Interpolation::Nearest, Coordinates::Asymmetric), (Some(3), 1));
        assert_eq!(resized(Interpolation::Linear, Coordinates::AlignCorners), (Some(3), 1));
        assert_eq!(resized(Interpolation::Linear, Coordinates::HalfPixel), (Some(3), 1));
        // Sixty-four neighbours instead of sixteen.
        assert_eq!(resized(Interpolation::Cubic, Coordinates::HalfPixel).0, Some(2));
    }

    #[test]
    fn windows_join_them_over_any_planes() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[IMAGES, 8, 5, 5]).unwrap();
        let first = (0..4).fold(x, |x, _| conv(&mut b, x, [8, 8, 1, 1], 1, 1));
        let plain = |b: &mut Builder, x, filter: [u64; 4]| {
            let taps = constant(b, &filter, 5);
            let taps = b.cast(taps, DType::F16).unwrap();
            b.conv(x, taps, None, &Sliding::plain(2), 1).unwrap()
        };
        let window = plain(&mut b, first, [8, 8, 2, 2]);
        let whole_words = conv(&mut b, window, [8, 8, 1, 1], 1, 1);
        let strided = conv(&mut b, whole_words, [16, 8, 3, 3], 1, 2);
        // What covers the image is a product anyway, and this one has filters that are no whole words.
        let covered = plain(&mut b, strided, [8, 16, 2, 2]);
        let odd = conv(&mut b, first, [12, 8, 3, 3], 1, 1);
        for (name, id) in [("covered", covered), ("odd", odd)] {
            b.output(name, id);
        }
        let mut graph = b.finish().unwrap();
        graph.matrix_units = true;
        let all: Vec<Operation> = kernels(&optimized(graph)).into_iter().cloned().collect();
        let of = |layout| {
            let has = |op: &&Operation| matches!(op, Operation::Conv2d(op) if op.layout == layout);
            all.iter().filter(has).count()
        };
        assert_eq!([of(Layout::Nhwc), of(Layout::Nchw), count(&all, "matmul")], [2, 1, 6], "{all:?}");
    }

    #[test]
    fn groups_of_enough_channels_are_windows() {
        let kind = |groups, of_group| {
            let channels = groups * of_group;
            let op = Conv2d::new([8, channels, 14, 14], [channels, of_group, 3, 3], DType::F16);
            Kind::of(&Conv2d { groups, ..op })
        };
        assert_eq!(kind(12, 32), Some(Kind::Window));
        assert_eq!(kind(12, 28), None);
        assert_eq!([kind(12, 16), kind(40, 4), kind(16, 2)], [Some(Kind::FewChannels); 3]);
        // Channels that are no whole words, and groups that begin inside of words.
        assert_eq!([kind(3, 4), kind(8, 6), kind(16, 10)], [None; 3]);
        assert_eq!(kind(12, 1), Some(Kind::SingleChannels));
        assert_eq!(kind(1, 8), Some(Kind::Window));
        let picture = |filter: [u64; 4]| Kind::of(&Conv2d::new([8, filter[1], 32, 32], filter, DType::F16));
        assert_eq!([picture([64, 3, 7, 7]), picture([24, 1, 3, 3])], [Some(Kind::Picture); 2]);
        assert_eq!([picture([20, 3, 7, 7]), picture([768, 3, 16, 16])], [None; 2]);
    }

    #[test]
    fn others_keep_them_first() {
        // A plane of whole words, and devices without matrix units.
        for (side, matrix_units) in [(4, true), (5, false)] {
            let all = operations(side, matrix_units);
            assert_eq!([count(&all, "matmul"), count(&all, "conv2d"), count(&all, "copy")], [0, 5, 0]);
        }
    }
}
