//! Constants that multiply or are added to each channel behind a convolution go into its filters and its bias. Detectors write batch normalization
//! so whose statistics stay as they are. Later passes do the same at the end of expressions; of two convolutions that are added, one would keep
//! its factors.

use halite_ops::{
    Activation, Operation,
    elementwise::Elementwise,
    expression::{Function, Operand},
};

use super::{
    Result, Uses,
    linear::{NodeBuilder, each_after, linear_op},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Puts such constants into filters and biases.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    each_after(graph, region, uses, watch, &folded)
}

/// What happens to each channel.
struct Values {
    function: Function,
    /// A value for each channel.
    tensor: TensorId,
}

/// The convolution with such values behind it.
fn folded(graph: &mut Graph, before: &Node, node: &Node) -> Option<Vec<Node>> {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let NodeOp::Operation(mut operation) = before.op.clone() else { return None };
    let own = linear_op(&mut operation)?;
    let is_plain = own.is_convolution() && *own.activation == Activation::None;
    if !is_plain || before.inputs.len() != 2 + usize::from(*own.bias) || !own.values.is_constant() {
        return None;
    }
    let (values, behind, dtype) = (own.values.exact(), own.behind, own.dtype);
    let filters = own.weights()?.clone();
    let found = found(graph, elementwise, (node, before.outputs[0]), [values, behind as u64])?;
    let scales = matches!(found.function, Function::Mul | Function::Div);
    if elementwise.program.outputs[0].dtype != dtype
        || scales && graph.tensor(before.inputs[1]).constant.is_none()
    {
        return None;
    }
    let had_bias = std::mem::replace(own.bias, *own.bias || !scales);
    let has_bias = *own.bias;
    let (mut inputs, mut new, vector) = (before.inputs.clone(), Vec::new(), vec![values]);
    let mut builder = NodeBuilder { graph, new: &mut new, dtype, node };
    if scales {
        let of_filters = [(inputs[1], filters.dims.clone()), (found.tensor, filters.beside)];
        inputs[1] = builder.make(&of_filters, &filters.dims, |p, x| p.call(found.function, x));
    }
    if has_bias {
        let bias = match (had_bias, found.function) {
            (false, Function::Add) => builder.seen(found.tensor, &vector),
            (false, _) => {
                builder.make(&[(found.tensor, vector.clone())], &vector, |p, x| p.call(Function::Neg, x))
            }
            (true, function) => {
                let terms = [inputs[2], found.tensor].map(|id| (id, vector.clone()));
                builder.make(&terms, &vector, |p, x| p.call(function, x))
            }
        };
        inputs.truncate(2);
        inputs.push(bias);
    }
    let (outputs, location) = (node.outputs.clone(), before.location.clone());
    new.push(Node { op: NodeOp::Operation(operation), inputs, outputs, location });
    Some(new)
}

/// What an operation of two tensors does to each channel of the result of a convolution, of which there are so many, with so many dimensions
/// behind.
fn found(
    graph: &Graph,
    elementwise: &Elementwise,
    (node, image): (&Node, TensorId),
    [values, behind]: [u64; 2],
) -> Option<Values> {
    let program = &elementwise.program;
    let ([call], [output], [_, _]) = (&program.nodes[..], &program.outputs[..], &elementwise.inputs.0[..])
    else {
        return None;
    };
    let (Operand::Node(0), [Operand::Input(left), Operand::Input(right)]) =
        (output.value, &call.operands[..])
    else {
        return None;
    };
    let turns = matches!(call.function, Function::Add | Function::Mul);
    let other = match (node.inputs[*left] == image, node.inputs[*right] == image) {
        (true, false) => *right,
        (false, true) if turns => *left,
        _ => return None,
    };
    if !matches!(call.function, Function::Add | Function::Sub | Function::Mul | Function::Div)
        || !elementwise.strided.is_empty()
        || elementwise.inputs.0[1 - other].1 != elementwise.dims()
    {
        return None;
    }
    let tensor = node.inputs[other];
    let (dtype, dims) = &elementwise.inputs.0[other];
    let channel = elementwise.dims().len().checked_sub(1 + behind as usize)?;
    let lead = elementwise.dims().len().checked_sub(dims.len())?;
    let are_of_channels =
        dims.iter().enumerate().all(|(d, size)| size.is(if d + lead == channel { values } else { 1 }.into()));
    let is_known = graph.tensor(tensor).constant.is_some() && *dtype == output.dtype && lead <= channel;
    (are_of_channels && is_known).then_some(Values { function: call.function, tensor })
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;
    use crate::{
        build::{Builder, Sliding},
        passes::tests::{constant, floats, kernels, optimized},
    };

    fn conv(b: &mut Builder, x: TensorId, filters: u64, bias: bool) -> TensorId {
        let weights = constant(b, &[filters, b.dims(x)[1], 1, 1], filters + u64::from(bias));
        let bias = bias.then(|| constant(b, &[filters], 7));
        b.conv(x, weights, bias, &Sliding::plain(2), 1).unwrap()
    }

    #[test]
    fn both_sides_of_a_sum_take_their_factors() {
        for (functions, with_bias) in [
            ([Function::Mul, Function::Add], false),
            ([Function::Mul, Function::Sub], true),
            ([Function::Div, Function::Sub], false),
            ([Function::Add, Function::Mul], false),
        ] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F32.into(), &[2, 6, 4, 5]).unwrap();
            let mut sides = Vec::new();
            for (seed, inner) in [(1, 8), (2, 7)] {
                // Convolutions of one image would become one.
                let y = conv(&mut b, x, inner, false);
                let y = b.unary(Function::Relu, y).unwrap();
                let mut y = conv(&mut b, y, 9, with_bias);
                for (function, more) in functions.into_iter().zip([3, 5]) {
                    // No divisor is near zero.
                    let values =
                        floats(9, seed + more).floats().iter().map(|value| value.abs() + 0.5).collect();
                    let values =
                        b.values(DType::F32, &[9, 1, 1], &halite_ops::Values::Float(values)).unwrap();
                    y = b.binary(function, y, values).unwrap();
                }
                sides.push(y);
            }
            let y = b.binary(Function::Add, sides[0], sides[1]).unwrap();
            let y = b.unary(Function::Relu, y).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let large: Vec<_> = kernels(&graph).into_iter().filter(|op| op.name() != "conv2d").collect();
            let on_images =
                large.iter().filter(|op| op.outputs()[0].elements().value() >= 2 * 9 * 20).count();
            assert_eq!(on_images, 0, "{functions:?} in {graph}");
        }
    }

    #[test]
    fn values_that_are_not_of_channels_stay() {
        for (dims, function, turned) in [
            (&[4, 5][..], Function::Mul, false),
            (&[2, 9, 1, 1], Function::Add, false),
            (&[9, 1, 1], Function::Sub, true),
        ] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F32.into(), &[2, 6, 4, 5]).unwrap();
            let y = conv(&mut b, x, 9, false);
            let values = constant(&mut b, dims, 3);
            let y =
                if turned { b.binary(function, values, y) } else { b.binary(function, y, values) }.unwrap();
            b.output("y", y);
            let mut graph = b.finish().unwrap();
            let mut body = std::mem::take(&mut graph.body);
            let before = body.nodes.len();
            let mut uses = Uses::of(&body);
            let control = crate::Control::default();
            run(&mut graph, &mut body, &mut uses, control.at(crate::Stage::Optimizing)).unwrap();
            assert_eq!(body.nodes.len(), before, "{dims:?}");
            let is_left = |node: &Node| matches!(node.op, NodeOp::Operation(Operation::Elementwise(_)));
            assert!(body.nodes.iter().any(is_left), "{dims:?}");
        }
    }
}
