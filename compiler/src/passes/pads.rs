//! Padding by zeros becomes a part of the convolution that reads it.

use std::collections::HashMap;

use halite_ops::{
    Operation,
    pad::{Border, Pad},
    window::Layout,
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Gives each convolution the padding by zeros before it.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut padded: HashMap<TensorId, (Pad, TensorId)> = HashMap::new();
    for node in &mut region.nodes {
        watch.check()?;
        if let NodeOp::Operation(Operation::Pad(pad)) = &node.op {
            if pad.border == Border::Constant && pad.value.0 == 0.0 {
                padded.insert(node.outputs[0], (pad.clone(), node.inputs[0]));
            }
            continue;
        }
        let Some((pad, source)) = node.inputs.first().and_then(|id| padded.get(id)) else { continue };
        let shapes = [*source, node.inputs[0]].map(|id| graph.tensor(id).sizes());
        let Some(operation) = with_pad(&node.op, pad, shapes) else { continue };
        let mut inputs = node.inputs.clone();
        inputs[0] = *source;
        let new = Node { op: NodeOp::Operation(operation), inputs, ..node.clone() };
        uses.replace(node, &new);
        *node = new;
    }
    Ok(())
}

/// A convolution of what `pad` pads, if it can pad by itself: it multiplies the zeros around its input as it does elements.
/// `shapes` are those of the tensor and of the padded one.
fn with_pad(op: &NodeOp, pad: &Pad, shapes: [&[Size]; 2]) -> Option<Operation> {
    let NodeOp::Operation(operation) = op else { return None };
    let mut operation = operation.clone();
    match &mut operation {
        Operation::Conv2d(conv) => {
            let first = if conv.layout == Layout::Nchw { 2 } else { 1 };
            take_over(&mut conv.pads, &mut conv.input, first, pad, shapes)?;
        }
        Operation::Conv1d(conv) => {
            let first = if conv.layout == Layout::Nchw { 2 } else { 1 };
            take_over(&mut conv.pads, &mut conv.input, first, pad, shapes)?;
        }
        _ => return None,
    }
    operation.check().is_ok().then_some(operation)
}

/// Adds what `pad` puts around to `pads` (in front of the dimensions from `first` on, and then behind them), and makes `input`
/// the shape of the tensor without it. `None` where other dimensions are padded, or something is cut.
fn take_over(
    pads: &mut [u64],
    input: &mut [Size],
    first: usize,
    pad: &Pad,
    [from, to]: [&[Size]; 2],
) -> Option<()> {
    if to != &*input || from.len() != input.len() {
        return None;
    }
    if pad.before.iter().chain(&pad.after).any(|border| !border.is_constant()) {
        return None;
    }
    // An operation joins neighbours without borders, so dimensions are found by what became of their sizes.
    let mut borders = pad
        .before
        .iter()
        .zip(&pad.after)
        .filter(|(before, after)| (**before, **after) != (0.into(), 0.into()));
    let spatial = pads.len() / 2;
    for (axis, _) in from.iter().zip(to).enumerate().filter(|(_, (from, to))| from.value() != to.value()) {
        let (before, after) = borders.next()?;
        let at = axis.checked_sub(first).filter(|at| *at < spatial)?;
        pads[at] += u64::try_from(before.signed_value()).ok()?;
        pads[at + spatial] += u64::try_from(after.signed_value()).ok()?;
    }
    input.copy_from_slice(from);
    borders.next().is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;
    use crate::{
        build::Builder,
        passes::tests::{constant, kernels, optimized},
    };

    /// What is left of a border around an image before a convolution of 3 by 3, which has padding of its own.
    fn left(borders: &[(i64, i64)], border: Border, value: f64) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 2, 6, 5]).unwrap();
        let padded = b.pad(x, borders, border, value).unwrap();
        let dims = b.dims(padded).to_vec();
        let text = format!(
            "conv2d:input=1x{}x{}x{},filter=4x{}x3x3,pads=0x1x0x0",
            dims[1], dims[2], dims[3], dims[1]
        );
        let operation = Operation::parse(&text).unwrap();
        let weights = constant(&mut b, &[4, dims[1], 3, 3], 3);
        let out = operation.outputs()[0].dims.clone();
        let made = b.kernel1(operation, &[padded, weights], DType::F32.into(), &out).unwrap();
        b.output("y", made);
        kernels(&optimized(b.finish().unwrap())).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn zeros_around_images_become_padding() {
        for borders in [[(0, 0), (0, 0), (1, 2), (3, 0)], [(0, 0), (0, 0), (0, 0), (0, 1)]] {
            let [conv] = &left(&borders, Border::Constant, 0.0)[..] else { panic!("{borders:?}") };
            let [rows, columns] = [borders[2], borders[3]];
            let pads = format!("pads={}x{}x{}x{}", rows.0, columns.0 + 1, rows.1, columns.1);
            assert!(conv.contains(&pads) && conv.contains("input=1x2x6x5"), "{conv}");
        }
    }

    #[test]
    fn other_borders_stay() {
        let around = [(0, 0), (0, 0), (1, 1), (1, 1)];
        assert_eq!(left(&around, Border::Constant, 1.0).len(), 2);
        assert_eq!(left(&around, Border::Edge, 0.0).len(), 2);
        assert_eq!(left(&[(0, 0), (1, 0), (1, 1), (1, 1)], Border::Constant, 0.0).len(), 2, "channels");
        assert_eq!(left(&[(0, 0), (0, 0), (-1, 1), (0, 0)], Border::Constant, 0.0).len(), 2, "a row is cut");
    }
}
