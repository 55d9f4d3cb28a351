//! Normalizations of groups of channels in images, as exporters take them apart: of each group under other dimensions, then a factor
//! and an added value for each channel, and an activation. They become one operation on the image.

use halite_ops::{
    Operation, Values,
    expression::{Function, Operand},
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    activations::function_of,
    chain::{Chain, replace},
    merge::Reader,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Puts such operations in the place of views and elementwise operations behind normalizations; what is not needed any more goes with
/// the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, Found::write)
}

/// A normalization of an image in the place of a node.
struct Found {
    norm: Norm,
    /// The image, its scale and its bias.
    inputs: Vec<TensorId>,
    /// Sizes of the image.
    sizes: Vec<Size>,
    /// What is left of the node behind it, and which input of that is the normalized image.
    rest: Option<(Reader, usize)>,
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    match &node.op {
        NodeOp::View => viewed(chain, node),
        NodeOp::Operation(Operation::Elementwise(elementwise)) => {
            let reader = Reader::new(elementwise, &node.inputs);
            if !elementwise.strided.is_empty() || reader.program.outputs.len() != 1 {
                return None;
            }
            (0..reader.inputs.len()).find_map(|input| finished(chain, node, &reader, input))
        }
        _ => None,
    }
}

/// Whether it is of groups whose channels come first, and nothing follows it yet.
fn is_of_groups(norm: &Norm) -> bool {
    norm.kind != NormKind::Batch && norm.order.is_none() && !norm.channels_last && norm.activation.is_none()
}

/// A normalization that is seen as an image, as one of this image. One of lines, such as those of tokens, stays.
fn viewed(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let [seen] = node.outputs[..] else { return None };
    let (maker, Operation::Norm(norm)) = chain.only_maker(node.inputs[0])? else { return None };
    let sizes = chain.graph.tensor(seen).sizes();
    let [images, channels, places @ ..] = sizes else { return None };
    if !is_of_groups(norm) || norm.spatial == 1 || places.is_empty() || !channels.is_constant() {
        return None;
    }
    let (channels, spatial) = (channels.value(), places.iter().product::<Size>());
    let groups = match norm.batch.is(*images) {
        true => norm.groups,
        false => {
            let known = norm.batch.is_constant() && images.is_constant();
            let lines = known.then(|| norm.batch.value().checked_mul(norm.groups))??;
            lines.checked_div(images.value()).filter(|_| lines.is_multiple_of(images.value()))?
        }
    };
    let same_type = chain.graph.tensor(seen).element == norm.dtype.into();
    if groups == 0 || !channels.is_multiple_of(groups) || !same_type || !chain.is_plain(norm, &maker.inputs) {
        return None;
    }
    let image = chain.behind_views(maker.inputs[0]);
    // Other groups than those of channels would have other lengths.
    let length = spatial * (channels / groups);
    let fits = chain.graph.tensor(image).sizes() == sizes && norm.lines().length == length;
    let (batch, inputs) = (*images, vec![image]);
    let made = Norm { batch, channels, spatial, groups, scale: false, bias: false, ..norm.clone() };
    fits.then(|| Found { norm: made, inputs, sizes: sizes.to_vec(), rest: None })
}

impl Chain<'_> {
    /// Whether a normalization multiplies by nothing but 1, and adds nothing but 0.
    fn is_plain(&self, norm: &Norm, inputs: &[TensorId]) -> bool {
        let [scale, bias] = norm.channel_inputs().map(|at| inputs.get(at).copied());
        let is_all = |id: Option<TensorId>, value: f64| {
            let bytes = id.and_then(|id| self.graph.tensor(id).constant.as_ref());
            bytes.is_some_and(|bytes| {
                Values::from_bytes(norm.dtype, bytes).floats().iter().all(|own| *own == value)
            })
        };
        (!norm.scale || is_all(scale, 1.0)) && (!norm.bias || is_all(bias, 0.0))
    }
}

/// What an elementwise node does with a normalized image, as far as the normalization can do it.
fn finished(chain: &Chain<'_>, node: &Node, reader: &Reader, input: usize) -> Option<Found> {
    let (id, dtype, sizes) = reader.inputs[input].clone();
    let (maker, Operation::Norm(norm)) = chain.only_maker(id)? else { return None };
    let [images, channels, places @ ..] = &sizes[..] else { return None };
    let is_image = norm.batch.is(*images)
        && channels.is(norm.channels.into())
        && norm.spatial.is(places.iter().product())
        && norm.spatial != 1;
    if !is_of_groups(norm) || !is_image || dtype != norm.dtype {
        return None;
    }
    let sizes = sizes.clone();
    let mut follower = Follower { reader: reader.clone(), input, norm: norm.clone() };
    let mut inputs = maker.inputs.clone();
    if !norm.scale && !norm.bias {
        inputs.extend(follower.take(Function::Mul));
        follower.norm.scale = inputs.len() > maker.inputs.len();
    }
    if !norm.bias {
        let before = inputs.len();
        inputs.extend(follower.take(Function::Add));
        follower.norm.bias = inputs.len() > before;
    }
    let whole = chain.graph.tensor(node.outputs[0]).element == dtype.into()
        && follower.reader.inputs.len() == 1
        && follower.reader.tables.is_empty();
    let activation = if whole { function_of(&follower.reader) } else { None };
    let Follower { reader, input, mut norm } = follower;
    if let Some(activation) = activation {
        norm.activation = activation;
        return Some(Found { norm, inputs, sizes, rest: None });
    }
    let changed = inputs.len() > maker.inputs.len();
    changed.then_some(Found { norm, inputs, sizes, rest: Some((reader, input)) })
}

/// What an elementwise node does behind a normalization.
struct Follower {
    reader: Reader,
    /// The input that is the normalized image.
    input: usize,
    norm: Norm,
}

impl Follower {
    /// Takes what a function does with the normalized image and a number for each channel out of the expression.
    fn take(&mut self, function: Function) -> Option<TensorId> {
        let (readers, false) = self.reader.readers(self.input) else { return None };
        let [call] = readers[..] else { return None };
        let node = &self.reader.program.nodes[call];
        let own = Operand::Input(self.input);
        let (Function::Mul | Function::Add, [a, b]) = (node.function, &node.operands[..]) else {
            return None;
        };
        let other = if *a == own { *b } else { *a };
        let Operand::Input(other) = other else { return None };
        let (id, dtype, dims) = self.reader.inputs[other].clone();
        // Dimensions begin at the last, and the channels are the second of all.
        let rank = self.reader.inputs[self.input].2.len();
        let place = rank.checked_sub(dims.len()).and_then(|missing| 1usize.checked_sub(missing))?;
        let channels = Size::from(self.norm.channels);
        let is_each = |(at, size): (usize, &Size)| *size == if at == place { channels } else { 1.into() };
        let fits = node.function == function
            && other != self.input
            && dtype == self.norm.dtype
            && dims.iter().enumerate().all(is_each)
            && self.reader.readers(other) == (vec![call], false);
        if !fits {
            return None;
        }
        self.reader.replace_by_input(call, self.input, &[]);
        self.reader.drop_input(other);
        self.input -= usize::from(other < self.input);
        Some(id)
    }
}

impl Found {
    /// The normalization, and what is left of the node.
    fn write(self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let Found { norm, inputs, sizes, rest } = self;
        let (dtype, location) = (norm.dtype, node.location.clone());
        let op = NodeOp::Operation(Operation::Norm(norm));
        let Some((mut rest, input)) = rest else {
            return vec![Node { op, inputs, outputs: node.outputs.clone(), location }];
        };
        let made = graph.add_tensor(Tensor::new(location.as_str(), dtype.into(), Shape::new(&sizes)));
        rest.inputs[input].0 = made;
        let (rest, ids) = rest.into_operation();
        let rest = Node { op: NodeOp::Operation(Operation::Elementwise(rest)), inputs: ids, ..node.clone() };
        vec![Node { op, inputs, outputs: vec![made], location }, rest]
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{Activation, DType};

    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::{Builder, Normalization};

    /// A normalization of groups as instance normalization under other dimensions, with so many numbers each for scale and bias.
    fn groups(b: &mut Builder, x: TensorId, groups: u64, values: [f64; 2]) -> TensorId {
        let dims = b.dims(x).to_vec();
        let of = |b: &mut Builder, value: f64| {
            let values = Values::Float(vec![value; groups as usize]);
            b.values(DType::F32, &[groups], &values).unwrap()
        };
        let [scale, bias] = values.map(|value| of(b, value));
        let length = dims[1..].iter().product::<u64>() / groups;
        let lines = b.reshape(x, &[dims[0], groups, length]).unwrap();
        let norm = Normalization { kind: NormKind::Group, first: 1, end: 2, groups, epsilon: 1e-5 };
        let made = b.normalize(lines, Some(scale), Some(bias), norm).unwrap();
        b.reshape(made, &dims).unwrap()
    }

    fn norms(graph: &Graph) -> Vec<Norm> {
        let all = kernels(graph).into_iter();
        all.filter_map(|op| if let Operation::Norm(norm) = op { Some(norm.clone()) } else { None }).collect()
    }

    fn each(b: &mut Builder, function: Function, x: TensorId, dims: &[u64], seed: u64) -> TensorId {
        let values = constant(b, dims, seed);
        b.binary(function, x, values).unwrap()
    }

    #[test]
    fn groups_of_images_take_what_is_done_with_each_channel() {
        for (function, activation) in [
            (Function::Silu, Activation::Silu),
            (Function::Relu, Activation::Relu),
            (Function::Gelu, Activation::Gelu),
        ] {
            let mut b = Builder::new();
            let x = b.input("x", DType::F32.into(), &[2, 6, 5, 4]).unwrap();
            let mut y = groups(&mut b, x, 3, [1.0, 0.0]);
            y = each(&mut b, Function::Mul, y, &[6, 1, 1], 3);
            y = each(&mut b, Function::Add, y, &[1, 6, 1, 1], 5);
            let y = b.unary(function, y).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
            assert_eq!(kernels(&graph).len(), 1, "{graph}");
            assert_eq!((norm.channels, norm.groups, norm.spatial), (6, 3, 20.into()), "{graph}");
            assert_eq!((norm.scale, norm.bias, norm.activation), (true, true, activation), "{graph}");
        }
    }

    #[test]
    fn what_is_not_for_each_channel_stays_behind() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 6, 5, 4]).unwrap();
        let mut y = groups(&mut b, x, 2, [1.0, 0.0]);
        y = each(&mut b, Function::Mul, y, &[6, 1, 1], 3);
        y = each(&mut b, Function::Add, y, &[5, 4], 5);
        let y = b.binary(Function::Add, y, x).unwrap();
        let y = b.unary(Function::Relu, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
        assert_eq!((norm.scale, norm.bias, norm.activation), (true, false, Activation::None), "{graph}");
        assert_eq!(kernels(&graph).len(), 2, "{graph}");
    }

    #[test]
    fn values_of_groups_that_do_something_stay() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 6, 5, 4]).unwrap();
        let y = groups(&mut b, x, 3, [2.0, 0.0]);
        let y = each(&mut b, Function::Mul, y, &[6, 1, 1], 3);
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
        assert_eq!((norm.channels, norm.groups), (3, 3), "{graph}");
    }

    #[test]
    fn lines_of_tokens_stay_what_they_are() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 6, 20]).unwrap();
        let norm = Normalization { kind: NormKind::Group, first: 2, end: 3, groups: 1, epsilon: 1e-5 };
        let y = b.normalize(x, None, None, norm).unwrap();
        let y = b.reshape(y, &[2, 6, 5, 4]).unwrap();
        let y = b.unary(Function::Relu, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
        assert_eq!((norm.groups, norm.spatial, norm.activation), (1, 1.into(), Activation::None), "{graph}");
    }
}
