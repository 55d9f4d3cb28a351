//! Images whose channels lie last get them first, since that is what the fast convolutions want: TOSA's graphs have them last.
//! The order is changed where images come from and where they go, and not around each operation.

use halite_ops::{Operation, conv2d::Conv2d, conv2d_int8::Conv2dInt8, pool2d::Pool2d, window::Layout};

use super::{
    Result, Uses,
    images::{self, Change, FIRST, Images, Members, Order},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Rows, columns, channels, filters to filters, channels, rows, columns.
const FILTERS: [usize; 4] = [3, 2, 0, 1];
/// A single operation would cost two copies, and gain less.
const LEAST: u64 = 2;

/// Gives images their channels first where that saves more than it costs.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    images::run::<ChannelsFirst>(graph, region, uses, watch)
}

struct ChannelsFirst;

impl Change for ChannelsFirst {
    const NAME: &'static str = "channels-first";
    const ORDER: Order = FIRST;

    fn members(_: &Graph, node: &Node) -> Option<Members> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        if !has_channels_last(&node.op) {
            return None;
        }
        let residual = match operation {
            Operation::Conv2d(op) => node.inputs.last().filter(|_| op.residual),
            _ => None,
        };
        let read = node.inputs.first().into_iter().chain(residual).copied().collect();
        Some(Members { read, written: node.outputs.clone(), gains: 1 })
    }

    fn cost(_: &Graph, _: TensorId) -> u64 {
        1
    }

    /// There are no more copies on the way in and out than convolutions and pools.
    fn is_worth(gains: u64, costs: u64) -> bool {
        gains >= LEAST && gains >= costs
    }

    fn changed(images: &mut Images<'_>, node: &Node) -> Option<()> {
        let NodeOp::Operation(operation) = &node.op else { return None };
        let order = FIRST.there;
        let (operation, inputs) = match operation {
            Operation::Conv2d(op) => {
                let (input, filter) = (op.input, op.filter);
                let changed = Conv2d {
                    input: order.map(|d| input[d]),
                    filter: FILTERS.map(|d| filter[d]),
                    layout: Layout::Nchw,
                    ..op.clone()
                };
                let mut inputs = image_and_filters(images, node);
                if op.residual {
                    let residual = inputs.pop()?;
                    inputs.push(images.in_new_order(residual, &node.location));
                }
                (Operation::Conv2d(changed), inputs)
            }
            Operation::Conv2dInt8(op) => {
                let (input, filter) = (op.input, op.filter);
                let changed = Conv2dInt8 {
                    input: order.map(|d| input[d]),
                    filter: FILTERS.map(|d| filter[d]),
                    layout: Layout::Nchw,
                    ..op.clone()
                };
                (Operation::Conv2dInt8(changed), image_and_filters(images, node))
            }
            Operation::Pool2d(op) => {
                let input = order.map(|d| op.input[d]);
                let changed = Pool2d { input, layout: Layout::Nchw, ..op.clone() };
                (Operation::Pool2d(changed), vec![images.in_new_order(node.inputs[0], &node.location)])
            }
            _ => return None,
        };
        images.push(operation, inputs, node);
        Some(())
    }
}

fn image_and_filters(images: &mut Images<'_>, node: &Node) -> Vec<TensorId> {
    let mut inputs = node.inputs.clone();
    inputs[0] = images.in_new_order(inputs[0], &node.location);
    // Filters may be computed like images.
    images.in_old_order(inputs[1], &node.location);
    inputs[1] = images.turned(inputs[1], FILTERS, &node.location);
    inputs
}

/// Whether it is a convolution or pool of images that have their channels last.
fn has_channels_last(op: &NodeOp) -> bool {
    let NodeOp::Operation(operation) = op else { return false };
    let layout = match operation {
        Operation::Conv2d(op) => op.layout,
        Operation::Conv2dInt8(op) => op.layout,
        Operation::Pool2d(op) => op.layout,
        _ => return false,
    };
    layout == Layout::Nhwc
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function, pool2d::Pooling};

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::{
        build::{Builder, Sliding},
        graph::{TensorId, each_region},
    };

    fn sliding(stride: u64) -> Sliding {
        Sliding { strides: vec![stride; 2], dilations: vec![1; 2], pads: vec![(1, 1), (0, 1)] }
    }

    fn conv(b: &mut Builder, x: TensorId, filter: [u64; 4], groups: u64, seed: u64) -> TensorId {
        let (taps, bias) = (constant(b, &filter, seed), constant(b, &[filter[3]], seed + 1));
        b.conv_nhwc(x, taps, Some(bias), &sliding(1), groups).unwrap()
    }

    #[test]
    fn images_are_turned_once_on_the_way_in_and_once_on_the_way_out() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 7, 6, 5]).unwrap();
        let first = conv(&mut b, x, [3, 2, 5, 6], 1, 1);
        let factors = constant(&mut b, &[6], 9);
        let scaled = b.binary(Function::Mul, first, factors).unwrap();
        let deep = conv(&mut b, scaled, [3, 3, 1, 6], 6, 3);
        let pooled = b.pool_nhwc(deep, Pooling::Max, [2, 3], &sliding(2)).unwrap();
        let all = b.concat(&[pooled, pooled], 3).unwrap();
        b.output("out", all);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        let copies = names.iter().filter(|name| **name == "copy").count();
        assert_eq!(copies, 2, "{names:?}");
        each_region(&graph.body, &mut |region| {
            assert!(!region.nodes.iter().any(|node| has_channels_last(&node.op)));
        });
    }

    #[test]
    fn lists_are_looked_up_in_any_order() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 7, 6, 5]).unwrap();
        let first = conv(&mut b, x, [3, 2, 5, 6], 1, 1);
        let places = b.cast(first, DType::I32).unwrap();
        let list = constant(&mut b, &[40], 7);
        let found = b.gather(list, places, 0).unwrap();
        let second = conv(&mut b, found, [3, 2, 6, 4], 1, 3);
        b.output("out", second);
        let graph = optimized(b.finish().unwrap());
        let names: Vec<_> = kernels(&graph).into_iter().map(Operation::name).collect();
        assert_eq!(names.iter().filter(|name| **name == "copy").count(), 2, "{names:?}");
        each_region(&graph.body, &mut |region| {
            assert!(!region.nodes.iter().any(|node| has_channels_last(&node.op)));
        });
    }

    #[test]
    fn one_operation_alone_stays() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 4, 4, 3]).unwrap();
        let y = conv(&mut b, x, [3, 2, 3, 4], 1, 1);
        b.output("out", y);
        let graph = optimized(b.finish().unwrap());
        assert!(graph.body.nodes.iter().any(|node| has_channels_last(&node.op)));
    }
}
