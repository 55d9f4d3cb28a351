//! Finding normalizations in graphs that exporters take apart: by the root of the mean of squares, by mean and variance, and of rows to
//! a length of one.

use halite_ops::{
    DType, Operation, Values,
    expression::{Function, Node as Call, Operand, Scalar},
    norm::{Norm, NormKind},
    reduce::{Reduce, ReduceKind},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    merge::Reader,
    tokens::merged,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Puts operations in the place of what multiplies or divides by the root; what is not needed any more goes with the next
/// cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, found, Found::write)
}

/// A normalization in an elementwise node.
struct Found {
    /// The node's expression.
    reader: Reader,
    /// The call that is the normalized value, and its inputs: elements, and root or inverse root.
    call: usize,
    inputs: [usize; 2],
    norm: Norm,
    /// What each normalized value is multiplied by.
    factor: Option<f64>,
    /// What is normalized.
    source: TensorId,
    dims: Vec<Size>,
}

fn found(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let reader = Reader::new(elementwise, &node.inputs);
    let calls = elementwise.program.nodes.iter().enumerate();
    calls.into_iter().find_map(|(call, of)| {
        let (pairs, inverse) = match (of.function, &of.operands[..]) {
            (Function::Mul, [Operand::Input(a), Operand::Input(b)]) => (vec![[*a, *b], [*b, *a]], true),
            (Function::Div, [Operand::Input(a), Operand::Input(b)]) => (vec![[*a, *b]], false),
            _ => return None,
        };
        pairs.into_iter().find_map(|inputs| normalized(chain, &reader, call, inputs, inverse))
    })
}

/// Whether an input times the inverse of a root, or divided by a root, is normalized by it.
fn normalized(
    chain: &Chain<'_>,
    reader: &Reader,
    call: usize,
    inputs: [usize; 2],
    inverse: bool,
) -> Option<Found> {
    let [(x, dtype, dims), (root, ..)] = inputs.map(|input| &reader.inputs[input]);
    let (channels, outer) = dims.split_last()?;
    // A width that is open is no number to normalize by, whether there is a norm or not.
    let channels = channels.is_constant().then(|| channels.value())?;
    let rows: Size = outer.iter().product();
    let per_row = [outer, &[1.into()]].concat();
    let own = &reader.inputs[inputs[1]].2;
    let (root, is_repeated) = match repeated(chain, *root, [rows, channels.into()]) {
        Some(from) => (from, true),
        None => (*root, false),
    };
    let per_row = is_repeated || *own == per_row || own.iter().all(|size| *size == 1) && rows == 1;
    if !dtype.is_small_float() || !per_row {
        return None;
    }
    let of = |norm, source, factor| Found {
        reader: reader.clone(),
        dims: dims.clone(),
        call,
        inputs,
        norm,
        factor,
        source,
    };
    if !inverse && let Some((norm, source)) = unit_length(chain, (*x, root), rows, channels, *dtype) {
        return Some(of(norm, source, Some((channels as f64).sqrt().recip())));
    }
    let (producer, operation) = chain.only_maker(root)?;
    let epsilon = epsilon(operation, inverse)?;
    let squares = mean(chain, producer.inputs[0], rows, channels, *dtype)?;
    let (producer, operation) = chain.only_maker(squares)?;
    let x = chain.behind_views(*x);
    let same = producer.inputs.iter().all(|id| chain.behind_views(*id) == x);
    if !same || !is_square(operation) || chain.graph.tensor(x).count() != dims.iter().product::<Size>() {
        return None;
    }
    let (source, kind) = match centred(chain, x, rows, channels, *dtype) {
        Some(source) => (source, NormKind::Group),
        None => (x, NormKind::Rms),
    };
    Some(of(lines(kind, rows, channels, epsilon, *dtype), source, None))
}

/// What a tensor repeats for each element of a row.
fn repeated(chain: &Chain<'_>, id: TensorId, [rows, columns]: [Size; 2]) -> Option<TensorId> {
    let (node, operation) = chain.only_maker(id)?;
    let Operation::StridedCopy(copy) = operation else { return None };
    let lies = copy.offset == 0 && copy.source == rows;
    (lies && merged(copy) == [(rows, 1.into()), (columns, 0.into())]).then(|| node.inputs[0])
}

/// The normalization of rows, without scale and bias.
fn lines(kind: NormKind, rows: Size, channels: u64, epsilon: f32, dtype: DType) -> Norm {
    Norm::of_lines(kind, rows, channels, epsilon.into(), dtype)
}

/// The largest least length by which rows are divided that makes no difference where rows have lengths.
const NO_LENGTH: f64 = 1e-9;
/// The longest rows that get a constant factor for each place.
const MOST_FACTORS: u64 = 1 << 16;

/// Rows that are divided by the roots of their sums of squares, or by a number next to nothing where that is more: the normalization by
/// the root of the mean of squares, but for a factor; and what is normalized.
fn unit_length(
    chain: &Chain<'_>,
    (x, length): (TensorId, TensorId),
    rows: Size,
    channels: u64,
    dtype: DType,
) -> Option<(Norm, TensorId)> {
    let (mut producer, mut operation) = chain.only_maker(length)?;
    let mut least = 0.0;
    if let Operation::Elementwise(elementwise) = operation {
        let [call] = &elementwise.program.nodes[..] else { return None };
        least = match (call.function, &call.operands[..]) {
            (Function::Max, [Operand::Input(0), other] | [other, Operand::Input(0)]) => float(other)?,
            _ => return None,
        };
        (producer, operation) = chain.only_maker(producer.inputs[0])?;
    }
    let wanted =
        Reduce { kind: ReduceKind::L2, outer: rows, length: channels.into(), inner: 1.into(), dtype };
    let source = chain.behind_views(producer.inputs[0]);
    let fits = matches!(operation, Operation::Reduce(reduce) if *reduce == wanted)
        && source == chain.behind_views(x)
        && (0.0..NO_LENGTH).contains(&least)
        && (1..=MOST_FACTORS).contains(&channels);
    fits.then(|| {
        let epsilon = (least * least / channels as f64) as f32;
        (lines(NormKind::Rms, rows, channels, epsilon, dtype), source)
    })
}

/// The input of a mean over rows that computes a tensor.
fn mean(chain: &Chain<'_>, id: TensorId, rows: Size, channels: u64, dtype: DType) -> Option<TensorId> {
    let (node, operation) = chain.only_maker(id)?;
    let wanted =
        Reduce { kind: ReduceKind::Mean, outer: rows, length: channels.into(), inner: 1.into(), dtype };
    matches!(operation, Operation::Reduce(reduce) if *reduce == wanted).then(|| node.inputs[0])
}

/// What a tensor was before its means were taken off.
fn centred(chain: &Chain<'_>, x: TensorId, rows: Size, channels: u64, dtype: DType) -> Option<TensorId> {
    let node = chain.producer(x)?;
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let ([call], [from, means]) = (&elementwise.program.nodes[..], &node.inputs[..]) else { return None };
    let plain = call.function == Function::Sub && call.operands == [Operand::Input(0), Operand::Input(1)];
    let source = chain.behind_views(*from);
    let of = mean(chain, *means, rows, channels, dtype)?;
    (plain && chain.behind_views(of) == source).then_some(source)
}

fn float(operand: &Operand) -> Option<f64> {
    if let Operand::Constant(Scalar::Float(value)) = operand { Some(*value) } else { None }
}

/// The number that is added to a mean before its root is taken, or the inverse of the root.
fn epsilon(operation: &Operation, inverse: bool) -> Option<f32> {
    let Operation::Elementwise(elementwise) = operation else { return None };
    let (calls, [_], [output]) =
        (&elementwise.program.nodes[..], &elementwise.inputs.0[..], &elementwise.program.outputs[..])
    else {
        return None;
    };
    let (first, rest) = calls.split_first()?;
    let added = match (first.function, &first.operands[..]) {
        (Function::Add, [Operand::Input(0), other] | [other, Operand::Input(0)]) => float(other)?,
        _ => return None,
    };
    let of = |call: &Call, function, operand| call.function == function && call.operands == [operand];
    let power = |call: &Call, by: f64| {
        call.function == Function::Pow
            && call.operands[0] == Operand::Node(0)
            && float(&call.operands[1]) == Some(by)
    };
    let (sum, root) = (Operand::Node(0), Operand::Node(1));
    let fits = match (rest, inverse) {
        ([call], true) => of(call, Function::Rsqrt, sum) || power(call, -0.5),
        ([call, last], true) => {
            let one = last.function == Function::Div
                && float(&last.operands[0]) == Some(1.0)
                && last.operands[1] == root;
            of(call, Function::Sqrt, sum) && (one || of(last, Function::Reciprocal, root))
        }
        ([call], false) => of(call, Function::Sqrt, sum) || power(call, 0.5),
        _ => false,
    };
    (fits && output.value == Operand::Node(calls.len() - 1)).then_some(added as f32)
}

/// Whether an operation squares what it reads.
fn is_square(operation: &Operation) -> bool {
    let Operation::Elementwise(elementwise) = operation else { return false };
    let [call] = &elementwise.program.nodes[..] else { return false };
    match (call.function, &call.operands[..]) {
        (Function::Pow, [Operand::Input(0), by]) => elementwise.inputs.0.len() == 1 && float(by) == Some(2.0),
        (Function::Mul, [Operand::Input(a), Operand::Input(b)]) => {
            a == b || elementwise.inputs.0.len() == 2 && elementwise.inputs.0[*a] == elementwise.inputs.0[*b]
        }
        _ => false,
    }
}

impl Found {
    /// The normalization, and what is left of the node.
    fn write(mut self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let dtype = self.norm.dtype;
        let shape = Shape::new(&self.dims);
        let made = graph.add_tensor(Tensor::new(node.location.as_str(), dtype.into(), shape));
        let mut own = self.reader.inputs.len();
        self.reader.inputs.push((made, dtype, self.dims.clone()));
        self.reader.replace_by_input(self.call, own, &[]);
        let mut unread = self.inputs.to_vec();
        unread.sort_unstable();
        unread.dedup();
        for input in unread.into_iter().rev() {
            if self.reader.readers(input) == (Vec::new(), false) {
                self.reader.drop_input(input);
                own -= 1;
            }
        }
        let mut inputs = vec![self.source];
        let scale = match self.factor {
            Some(factor) => Some(self.everywhere(graph, factor)),
            None => self.take(Function::Mul, &mut own),
        };
        if let Some(scale) = scale {
            inputs.push(scale);
            self.norm.scale = true;
        }
        // Kernels are tested with what is added to centred values only.
        let centred = self.norm.kind == NormKind::Group;
        if let Some(bias) = if centred { self.take(Function::Add, &mut own) } else { None } {
            inputs.push(bias);
            self.norm.bias = true;
        }
        let location = node.location.clone();
        let op = NodeOp::Operation(Operation::Norm(self.norm));
        let only = self.reader.program.nodes.is_empty() && self.reader.inputs.len() == 1;
        if only && graph.tensor(node.outputs[0]).element == dtype.into() {
            return vec![Node { op, inputs, outputs: node.outputs.clone(), location }];
        }
        let (rest, ids) = self.reader.into_operation();
        let rest = Node { op: NodeOp::Operation(Operation::Elementwise(rest)), inputs: ids, ..node.clone() };
        vec![Node { op, inputs, outputs: vec![made], location }, rest]
    }

    /// A constant with a factor for each channel.
    fn everywhere(&self, graph: &mut Graph, factor: f64) -> TensorId {
        let Norm { channels, dtype, .. } = self.norm;
        let mut tensor = Tensor::new("length", dtype.into(), Shape::new([channels]));
        tensor.constant = Some(Values::Float(vec![factor; channels as usize]).to_bytes(dtype).into());
        graph.add_tensor(tensor)
    }

    /// Takes what a function does with the normalized value and a number for each channel out of the expression.
    fn take(&mut self, function: Function, own: &mut usize) -> Option<TensorId> {
        let (readers, false) = self.reader.readers(*own) else { return None };
        let [call] = readers[..] else { return None };
        let node = &self.reader.program.nodes[call];
        let other = node.operands.iter().find(|operand| **operand != Operand::Input(*own))?;
        let Operand::Input(other) = *other else { return None };
        let (id, dtype, dims) = self.reader.inputs[other].clone();
        let per_channel = dims.last().is_some_and(|last| *last == self.norm.channels)
            && dims.iter().product::<Size>() == self.norm.channels;
        let alone = self.reader.readers(other) == (vec![call], false);
        if node.function != function || dtype != self.norm.dtype || !per_channel || !alone {
            return None;
        }
        self.reader.replace_by_input(call, *own, &[]);
        self.reader.drop_input(other);
        *own -= usize::from(other < *own);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::Builder;

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    /// Names of the operations of rows that are divided by their lengths, or by a number where that is more.
    fn of_lengths(least: Option<f64>, is_repeated: bool) -> Vec<&'static str> {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 3, 40]).unwrap();
        let mut length = b.reduce(ReduceKind::L2, x, &[2], true).unwrap();
        if let Some(least) = least {
            let least = float(&mut b, least);
            length = b.binary(Function::Max, length, least).unwrap();
        }
        if is_repeated {
            length = b.expand(length, &[2, 3, 40]).unwrap();
        }
        let y = b.binary(Function::Div, x, length).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        kernels(&graph).into_iter().map(Operation::name).collect()
    }

    #[test]
    fn rows_of_length_one_are_normalized() {
        for is_repeated in [false, true] {
            assert_eq!(of_lengths(Some(1e-12), is_repeated), ["norm"]);
            assert_eq!(of_lengths(None, is_repeated), ["norm"]);
            // Here it makes a difference: lengths, and all the rest.
            assert_eq!(of_lengths(Some(0.5), is_repeated), ["reduce", "elementwise"]);
        }
    }

    fn float(b: &mut Builder, value: f64) -> TensorId {
        b.float(DType::F32, value).unwrap()
    }

    fn binary(b: &mut Builder, function: Function, x: TensorId, y: TensorId) -> TensorId {
        b.binary(function, x, y).unwrap()
    }

    /// `1 / root` or `root` of the mean of squares of `x`.
    fn root(b: &mut Builder, x: TensorId, inverse: bool) -> TensorId {
        let two = float(b, 2.0);
        let squares = binary(b, Function::Pow, x, two);
        let mean = b.reduce(ReduceKind::Mean, squares, &[2], true).unwrap();
        let small = float(b, 1e-3);
        let sum = binary(b, Function::Add, mean, small);
        let root = b.unary(Function::Sqrt, sum).unwrap();
        let one = float(b, 1.0);
        if inverse { binary(b, Function::Div, one, root) } else { root }
    }

    fn norms(graph: &Graph) -> Vec<Norm> {
        let kernels = kernels(graph);
        kernels
            .into_iter()
            .filter_map(|op| if let Operation::Norm(norm) = op { Some(norm.clone()) } else { None })
            .collect()
    }

    #[test]
    fn roots_of_mean_squares() {
        for rows in [1, 5] {
            let mut b = Builder::new();
            let x = b.input("x", F32, &[1, rows, 12]).unwrap();
            let inverse = root(&mut b, x, true);
            let y = binary(&mut b, Function::Mul, x, inverse);
            let weight = constant(&mut b, &[12], 3);
            let y = binary(&mut b, Function::Mul, weight, y);
            let y = binary(&mut b, Function::Add, y, x);
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
            assert_eq!(
                (norm.kind, norm.batch, norm.scale, norm.bias),
                (NormKind::Rms, rows.into(), true, false),
                "{graph}"
            );
            // The residual is left.
            assert_eq!(kernels(&graph).len(), 2, "{graph}");
        }
    }

    #[test]
    fn means_and_variances() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 3, 12]).unwrap();
        let means = b.reduce(ReduceKind::Mean, x, &[2], true).unwrap();
        let centred = binary(&mut b, Function::Sub, x, means);
        let root = root(&mut b, centred, false);
        let y = binary(&mut b, Function::Div, centred, root);
        let (weight, bias) = (constant(&mut b, &[12], 3), constant(&mut b, &[1, 12], 5));
        let y = binary(&mut b, Function::Mul, y, weight);
        let y = binary(&mut b, Function::Add, y, bias);
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [norm] = &norms(&graph)[..] else { panic!("{graph}") };
        assert_eq!(
            (norm.kind, norm.batch, norm.scale, norm.bias),
            (NormKind::Group, 6.into(), true, true),
            "{graph}"
        );
        assert_eq!(kernels(&graph).len(), 1, "{graph}");
    }

    #[test]
    fn other_roots_stay() {
        let mut b = Builder::new();
        let (x, z) = (b.input("x", F32, &[1, 4, 12]).unwrap(), b.input("z", F32, &[1, 4, 12]).unwrap());
        let inverse = root(&mut b, x, true);
        // Not what the squares are of, and not along the rows.
        let y = binary(&mut b, Function::Mul, z, inverse);
        b.output("y", y);
        let column = b.transpose(inverse, &[0, 2, 1]).unwrap();
        let square = b
            .slice(
                x,
                &[
                    crate::build::Range::all(1),
                    crate::build::Range::all(4),
                    crate::build::Range { start: 0, step: 1, count: 4 },
                ],
            )
            .unwrap();
        let turned = binary(&mut b, Function::Mul, square, column);
        b.output("turned", turned);
        let graph = optimized(b.finish().unwrap());
        assert!(norms(&graph).is_empty(), "{graph}");
    }
}
