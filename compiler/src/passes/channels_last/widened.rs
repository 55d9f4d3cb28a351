//! Convolutions whose filters are no whole words, such as those that make pictures of three colors or scores of so many classes: with filters of
//! zeros behind, whose results are left out again. Otherwise all before them would be copied to channels first.

use halite_ops::{
    Operation,
    conv2d::Conv2d,
    copy::StridedCopy,
    pad::{Border, Pad},
};
use halite_sizes::Size;

use super::{
    convolutions::{channels_last, like, product},
    kind::Kind,
};
use crate::{
    graph::{Node, NodeOp, Shape, Tensor, TensorId},
    passes::images::Images,
};

/// Filters of whole words.
const WORDS: u64 = 8;

/// The convolution with more filters, if it is one of those whose results can be left out.
pub(super) fn widened(op: &Conv2d) -> Option<(Conv2d, Kind)> {
    let [filters, channels, rows, columns] = op.filter;
    if op.groups != 1 || op.residual || filters.is_multiple_of(WORDS) {
        return None;
    }
    let wide =
        Conv2d { filter: [filters.checked_next_multiple_of(WORDS)?, channels, rows, columns], ..op.clone() };
    let kind = Kind::of(&wide).filter(|kind| matches!(kind, Kind::Product | Kind::Window))?;
    Some((wide, kind))
}

/// The wide convolution in the place of a narrow one, and a copy of the results that are wanted.
pub(super) fn write(images: &mut Images<'_>, (wide, kind): (&Conv2d, Kind), node: &Node) -> Option<()> {
    let [filters, channels, rows, columns] = wide.filter;
    let sizes = <[Size; 4]>::try_from(images.graph.tensor(node.outputs[0]).sizes()).ok()?;
    let narrow = sizes[1];
    let mut inputs = node.inputs.clone();
    let given = [narrow.exact(), channels, rows, columns];
    images.in_old_order(inputs[1], &node.location);
    inputs[1] = zeros_behind(images, node, inputs[1], &given, &wide.filter);
    if wide.bias {
        images.in_old_order(inputs[2], &node.location);
        inputs[2] = zeros_behind(images, node, inputs[2], &given[..1], &[filters]);
    }
    let all = [sizes[0], filters.into(), sizes[2], sizes[3]];
    let tensor = images.graph.tensor(node.outputs[0]);
    let tensor = Tensor::new(tensor.name.clone(), tensor.element, Shape::new(all));
    let made = images.graph.add_tensor(tensor);
    let of_all = Node { inputs, outputs: vec![made], ..node.clone() };
    match kind {
        Kind::Product => product(images, wide, &of_all)?,
        _ => channels_last(images, wide, &of_all)?,
    }
    let made = images.in_new_order(made, &node.location);
    let [count, rows, columns] = [sizes[0], sizes[2], sizes[3]];
    let (from, to) = ([count, rows, columns, filters.into()], [count, rows, columns, narrow]);
    let copy = StridedCopy::slice(&from, &[Size::constant(0); 4], &to, &[1; 4], wide.dtype);
    images.push(Operation::StridedCopy(copy), vec![made], node);
    Some(())
}

/// Weights with zeros behind them up to these sizes; the same where there are none.
pub(super) fn zeros_behind(
    images: &mut Images<'_>,
    node: &Node,
    weights: TensorId,
    given: &[u64],
    wanted: &[u64],
) -> TensorId {
    if given == wanted {
        return weights;
    }
    let pad = Operation::Pad(Pad {
        input: given.iter().map(Size::from).collect(),
        before: vec![0.into(); given.len()],
        after: given.iter().zip(wanted).map(|(given, wanted)| Size::from(wanted - given)).collect(),
        border: Border::Constant,
        value: 0.0.into(),
        dtype: images.graph.tensor(weights).element.storage(),
    });
    let sizes: Vec<Size> = wanted.iter().map(Size::from).collect();
    new(images, node, weights, &sizes, pad, vec![weights])
}

/// A new tensor of the type of another, and the node that computes it.
pub(super) fn new(
    images: &mut Images<'_>,
    node: &Node,
    as_of: TensorId,
    sizes: &[Size],
    operation: Operation,
    inputs: Vec<TensorId>,
) -> TensorId {
    let made = like(images.graph, as_of, sizes);
    let (op, location) = (NodeOp::Operation(operation), node.location.clone());
    images.push_node(Node { op, inputs, outputs: vec![made], location });
    made
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function, pad::Border, window::Layout};

    use super::*;
    use crate::{
        build::{Builder, Sliding},
        passes::tests::{constant, kernels, optimized},
    };

    /// What is left of two convolutions with mirrored borders and one to `filters` filters of as many taps each way, with a bias and `tanh`.
    fn picture(filters: u64, taps: u64) -> Vec<Operation> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[2, 6, 5, 8]).unwrap();
        let mut x = b.transpose(x, &[0, 3, 1, 2]).unwrap();
        for (count, side, seed) in [(16, 3, 1), (16, 3, 2), (filters, taps, 3)] {
            let channels = b.dims(x)[1];
            let around = side as i64 / 2;
            let around = (around, around);
            x = b.pad(x, &[(0, 0), (0, 0), around, around], Border::Reflect, 0.0).unwrap();
            let weights = constant(&mut b, &[count, channels, side, side], seed);
            let bias = constant(&mut b, &[count], seed + 5);
            let (weights, bias) = (b.cast(weights, DType::F16).unwrap(), b.cast(bias, DType::F16).unwrap());
            x = b.conv(x, weights, Some(bias), &Sliding::plain(2), 1).unwrap();
        }
        let y = b.unary(Function::Tanh, x).unwrap();
        let y = b.transpose(y, &[0, 2, 3, 1]).unwrap();
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = true;
        kernels(&optimized(graph)).into_iter().cloned().collect()
    }

    #[test]
    fn filters_that_are_no_whole_words_do_not_end_a_row_of_convolutions() {
        for (filters, taps, products) in [(3, 3, 0), (21, 1, 1), (1, 5, 0), (12, 3, 0)] {
            let all = picture(filters, taps);
            let of = |layout| {
                let has = |op: &&Operation| matches!(op, Operation::Conv2d(op) if op.layout == layout);
                all.iter().filter(has).count()
            };
            assert_eq!([of(Layout::Nhwc), of(Layout::Nchw)], [3 - products, 0], "{filters} {taps} {all:?}");
            let wide = all.iter().any(|op| op.outputs()[0].dims.last().is_some_and(|d| d.is_multiple_of(8)));
            assert!(wide, "{all:?}");
            // Two borders of images, the third one too where there are several taps, and those of weights and the bias.
            let pads = all.iter().filter(|op| op.name() == "pad").count() as u64;
            assert_eq!(pads, 2 + u64::from(taps > 1) + 2, "{filters} {taps} {all:?}");
        }
    }
}
