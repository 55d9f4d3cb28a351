//! Weights that are larger than what devices can bind (every one, or those that are compiled for) become parts: a product by them several products, a look-up of rows
//! several look-ups. Parts of a file's bytes stay where they are.

use std::collections::HashMap;

use halite_ops::{
    Activation, DType, Operation,
    concat::Concat,
    copy::StridedCopy,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand, Scalar},
    gather::Gather,
    matmul::MatMul,
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Rows of parts are multiples of this where that fits, so that what they give lies aligned behind each other.
const ROWS: u64 = 64;

/// Replaces those that read larger constants.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let most = graph.most_bound();
    split(graph, region, uses, watch, most)
}

fn split(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>, most: u64) -> Result {
    let mut parts = Parts { most, turned: HashMap::new(), made: HashMap::new() };
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for node in std::mem::take(&mut region.nodes) {
        watch.check()?;
        if let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op {
            parts.note(graph, &node, copy);
        }
        let new = match &node.op {
            NodeOp::Operation(Operation::MatMul(own)) => parts.product(graph, &node, own),
            NodeOp::Operation(Operation::Gather(own)) => parts.rows_by_index(graph, &node, own),
            _ => None,
        };
        let Some(new) = new else {
            nodes.push(node);
            continue;
        };
        new.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
        node.inputs.iter().for_each(|id| uses.remove(*id));
        nodes.extend(new);
    }
    region.nodes = nodes;
    Ok(())
}

/// A part of a matrix's rows: its first row, how many there are, and the constant.
type Part = (u64, u64, TensorId);

/// The parts of constants.
struct Parts {
    most: u64,
    /// Matrices that are other constants with rows and columns exchanged.
    turned: HashMap<TensorId, TensorId>,
    /// Parts by the constant and the rows in one.
    made: HashMap<(TensorId, u64), Vec<Part>>,
}

impl Parts {
    /// Remembers a copy that exchanges rows and columns of a constant.
    fn note(&mut self, graph: &Graph, node: &Node, copy: &StridedCopy) {
        let source = graph.tensor(node.inputs[0]);
        let [rows, columns] = source.sizes() else { return };
        let whole = StridedCopy::transpose(&[*rows, *columns], &[1, 0], copy.dtype);
        if source.constant.is_some() && *copy == whole {
            self.turned.insert(node.outputs[0], node.inputs[0]);
        }
    }

    /// The parts of a constant with so many rows of so many elements; `None` where it needs none, or cannot have them.
    fn of(&mut self, graph: &mut Graph, id: TensorId, [rows, length]: [u64; 2]) -> Option<Vec<Part>> {
        let tensor = graph.tensor(id);
        let (element, bytes) = (tensor.element, tensor.constant.clone()?);
        let row = length.checked_mul(element.storage().size()).filter(|row| *row > 0)?;
        if rows.checked_mul(row) != Some(bytes.len() as u64) || bytes.len() as u64 <= self.most {
            return None;
        }
        // A row that is too large stays.
        let fit = Some(self.most / row).filter(|fit| *fit > 0)?;
        let even = rows.div_ceil(rows.div_ceil(fit));
        let count = Some(even.next_multiple_of(ROWS)).filter(|count| *count <= fit).unwrap_or(even);
        if let Some(made) = self.made.get(&(id, count)) {
            return Some(made.clone());
        }
        let name = tensor.name.clone();
        let firsts = (0..rows).step_by(count as usize);
        let made: Vec<Part> = firsts
            .map(|first| {
                let own = count.min(rows - first);
                let shape = Shape::new([own, length]);
                let mut part = Tensor::new(name.clone(), element, shape);
                part.constant = Some(bytes.slice((first * row) as usize..((first + own) * row) as usize));
                (first, own, graph.add_tensor(part))
            })
            .collect();
        self.made.insert((id, count), made.clone());
        Some(made)
    }

    /// Products by the parts of the right operand.
    fn product(&mut self, graph: &mut Graph, node: &Node, own: &MatMul) -> Option<Vec<Node>> {
        let one = own.rhs_shared || own.batch.is(1.into());
        if !one || !own.lhs.is_float() || !own.n.is_constant() || !own.k.is_constant() {
            return None;
        }
        let right = node.inputs[1];
        let (right, transposed) = match self.turned.get(&right) {
            Some(source) => (*source, !own.rhs_transposed),
            None => (right, own.rhs_transposed),
        };
        let own = MatMul { rhs_transposed: transposed, ..own.clone() };
        let [n, k] = [own.n.value(), own.k.value()];
        let parts = self.of(graph, right, if transposed { [n, k] } else { [k, n] })?;
        let mut make = Maker { graph, new: Vec::new(), like: node };
        match transposed {
            true => make.columns(&own, &parts),
            false => make.terms(&own, &parts),
        }
        Some(make.new)
    }

    /// Look-ups in the parts of a table.
    fn rows_by_index(&mut self, graph: &mut Graph, node: &Node, own: &Gather) -> Option<Vec<Node>> {
        let fixed = own.axis.is_constant() && own.inner.is_constant() && own.outer.is(1.into());
        if !fixed || own.axis.value() >= 1 << 31 {
            return None;
        }
        let parts = self.of(graph, node.inputs[0], [own.axis.value(), own.inner.value()])?;
        let mut make = Maker { graph, new: Vec::new(), like: node };
        make.look_ups(own, &parts);
        Some(make.new)
    }
}

/// Makes nodes.
struct Maker<'a> {
    graph: &'a mut Graph,
    new: Vec<Node>,
    like: &'a Node,
}

impl Maker<'_> {
    fn node(&mut self, operation: Operation, inputs: Vec<TensorId>, dtype: DType, dims: &[Size]) -> TensorId {
        let name = self.like.location.as_str().to_owned();
        let shape = Shape::new(dims.iter().copied());
        let id = self.graph.add_tensor(Tensor::new(name, ElementType::Of(dtype), shape));
        self.push(operation, inputs, id);
        id
    }

    fn push(&mut self, operation: Operation, inputs: Vec<TensorId>, output: TensorId) {
        let op = NodeOp::Operation(operation);
        self.new.push(Node { op, inputs, outputs: vec![output], ..self.like.clone() });
    }

    /// Some columns of a matrix.
    fn part_of(&mut self, id: TensorId, dtype: DType, dims: [Size; 2], first: u64, count: u64) -> TensorId {
        let [rows, columns] = dims;
        let all = [(rows, columns), (count.into(), 1.into())];
        let (shape, strides) = all.into_iter().filter(|(size, _)| count == 1 || !size.is(1.into())).unzip();
        let copy = StridedCopy { source: rows * columns, shape, strides, offset: first.into(), dtype };
        self.node(Operation::StridedCopy(copy), vec![id], dtype, &[rows, count.into()])
    }

    /// Parts are columns of the result: each has its own, with all that follows sums.
    fn columns(&mut self, own: &MatMul, parts: &[Part]) {
        let (rows, like) = (own.m * own.batch, self.like);
        let mut made = Vec::new();
        for (first, count, part) in parts {
            let mut inputs = vec![like.inputs[0], *part];
            if own.bias {
                let bias = self.part_of(like.inputs[2], own.out, [1.into(), own.n], *first, *count);
                inputs.push(bias);
            }
            if own.residual {
                let residual = like.inputs[2 + usize::from(own.bias)];
                inputs.push(self.part_of(residual, own.out, [rows, own.n], *first, *count));
            }
            let n = Size::from(*count);
            let operation = Operation::MatMul(MatMul { n, ..own.clone() });
            made.push(self.node(operation, inputs, own.out, &[rows, n]));
        }
        let sizes: Vec<u64> = parts.iter().map(|(_, count, _)| *count).collect();
        let concat = Concat::new(rows, &sizes, 1, own.out);
        self.push(Operation::Concat(concat), made, like.outputs[0]);
    }

    /// Parts are terms of the sums: each product adds the sums before it, and the last finishes them, but for what is added behind a
    /// function.
    fn terms(&mut self, own: &MatMul, parts: &[Part]) {
        let (rows, like) = (own.m * own.batch, self.like);
        let added = own.residual.then(|| like.inputs[2 + usize::from(own.bias)]);
        let (mut before, behind) = if own.residual_behind { (None, added) } else { (added, None) };
        for (place, (first, count, part)) in parts.iter().enumerate() {
            let left = self.part_of(like.inputs[0], own.lhs, [rows, own.k], *first, *count);
            let mut inputs = vec![left, *part];
            let bias = own.bias && place == 0;
            inputs.extend(bias.then(|| like.inputs[2]));
            inputs.extend(before);
            let is_last = place + 1 == parts.len();
            let operation = Operation::MatMul(MatMul {
                k: Size::from(*count),
                bias,
                residual: before.is_some(),
                residual_behind: false,
                activation: if is_last { own.activation } else { Activation::None },
                ..own.clone()
            });
            if is_last && behind.is_none() {
                self.push(operation, inputs, like.outputs[0]);
                return;
            }
            before = Some(self.node(operation, inputs, own.out, &[rows, own.n]));
        }
        if let (Some(sums), Some(behind)) = (before, behind) {
            let operation = sum_of_two(own.out, &[rows, own.n]);
            self.push(operation, vec![sums, behind], like.outputs[0]);
        }
    }

    /// Rows of each part, or zeros where another part has the row, and their sums.
    fn look_ups(&mut self, own: &Gather, parts: &[Part]) {
        let like = self.like;
        let dims = [own.indices, own.inner];
        let mut sum = None;
        for (place, (first, count, part)) in parts.iter().enumerate() {
            let indices = self.own_indices(own, *first);
            let operation = Operation::Gather(Gather { axis: Size::from(*count), ..own.clone() });
            let rows = self.node(operation, vec![*part, indices], own.dtype, &dims);
            let Some(before) = sum.replace(rows) else { continue };
            let operation = sum_of_two(own.dtype, &dims);
            match place + 1 == parts.len() {
                true => self.push(operation, vec![before, rows], like.outputs[0]),
                false => sum = Some(self.node(operation, vec![before, rows], own.dtype, &dims)),
            }
        }
    }

    /// Indices of a part that begins at a row; those of rows before it are out of range, so that none counts from the end.
    fn own_indices(&mut self, own: &Gather, first: u64) -> TensorId {
        let int = |value: u64| Operand::Constant(Scalar::Int(value as i64, own.index));
        let mut program = Expression::default();
        let index = Operand::Input(0);
        let from_end = program.call(Function::Lt, &[index, int(0)]);
        let counted = program.call(Function::Add, &[index, int(own.axis.value())]);
        let row = program.call(Function::Select, &[from_end, counted, index]);
        let before = program.call(Function::Lt, &[row, int(first)]);
        let less = program.call(Function::Sub, &[row, int(first)]);
        let value = program.call(Function::Select, &[before, int(i32::MAX as u64), less]);
        program.store(value, own.index);
        let operation = Operation::Elementwise(Elementwise::new([(own.index, vec![own.indices])], program));
        self.node(operation, vec![self.like.inputs[1]], own.index, &[own.indices])
    }
}

/// The sum of two tensors of such dimensions.
fn sum_of_two(dtype: DType, dims: &[Size]) -> Operation {
    let mut program = Expression::default();
    let value = program.call(Function::Add, &[Operand::Input(0), Operand::Input(1)]);
    program.store(value, dtype);
    let shapes = [(dtype, dims.to_vec()), (dtype, dims.to_vec())];
    Operation::Elementwise(Elementwise::new(shapes, program))
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::super::tests::{constant, floats};
    use super::*;
    use crate::{build::Builder, control::Control, control::Stage};

    const F32: ElementType = ElementType::Of(DType::F32);

    /// Takes constants of more than so many bytes apart; the results stay the same. Gives what is left, with no large constant.
    fn apart(graph: Graph, inputs: &[Values], most: u64) -> Vec<Operation> {
        let before = graph.evaluate(inputs).unwrap();
        let mut graph = graph;
        let mut body = std::mem::take(&mut graph.body);
        let mut uses = Uses::of(&body);
        let control = Control::new();
        split(&mut graph, &mut body, &mut uses, control.at(Stage::Optimizing), most).unwrap();
        super::super::clean::run(&mut graph, &mut body, &mut uses, control.at(Stage::Optimizing)).unwrap();
        graph.body = body;
        graph.check().unwrap();
        for (before, after) in before.iter().zip(graph.evaluate(inputs).unwrap()) {
            for (a, b) in before.floats().iter().zip(after.floats()) {
                assert!((a - b).abs() <= 1e-4 * (1.0 + a.abs()), "{a} became {b} in\n{graph}");
            }
        }
        let read = graph.body.nodes.iter().flat_map(|node| &node.inputs);
        let largest = read.filter_map(|id| graph.tensor(*id).constant.as_ref()).map(bytes::Bytes::len).max();
        assert!(largest.is_some_and(|bytes| bytes as u64 <= most), "{largest:?} in\n{graph}");
        let operation = |node: &Node| match &node.op {
            NodeOp::Operation(operation) => Some(operation.clone()),
            _ => None,
        };
        graph.body.nodes.iter().filter_map(operation).collect()
    }

    fn products(left: &[Operation]) -> Vec<&MatMul> {
        let product = |operation: &'_ Operation| matches!(operation, Operation::MatMul(_));
        let own = left.iter().filter(|operation| product(operation));
        own.filter_map(|operation| if let Operation::MatMul(own) = operation { Some(own) } else { None })
            .collect()
    }

    /// A product of `m` rows of 96 by weights for 200 columns, with all that can follow it.
    fn product(m: u64, transposed: bool) -> (Graph, Vec<Values>) {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[m, 96]).unwrap();
        let r = b.input("r", F32, &[m, 200]).unwrap();
        let weights = constant(&mut b, if transposed { &[200, 96] } else { &[96, 200] }, 3);
        let bias = constant(&mut b, &[200], 4);
        let operation = MatMul {
            rhs_transposed: transposed,
            bias: true,
            residual: true,
            activation: Activation::Relu,
            ..MatMul::new(m, 200, 96, DType::F32, DType::F32)
        };
        let y = b.kernel1(Operation::MatMul(operation), &[x, weights, bias, r], F32, &[m, 200]).unwrap();
        b.output("y", y);
        (b.finish().unwrap(), vec![floats(m * 96, 1), floats(m * 200, 2)])
    }

    #[test]
    fn large_weights_become_parts_of_columns_or_of_terms() {
        for m in [1, 5] {
            for transposed in [true, false] {
                let (graph, inputs) = product(m, transposed);
                let left = apart(graph, &inputs, 30_000);
                let parts = products(&left);
                assert_eq!(parts.len(), 3, "{left:?}");
                let joined = left.iter().any(|operation| matches!(operation, Operation::Concat(_)));
                assert_eq!(joined, transposed, "{left:?}");
            }
        }
    }

    #[test]
    fn weights_that_fit_stay_whole() {
        let (graph, inputs) = product(2, true);
        assert_eq!(apart(graph, &inputs, 200 * 96 * 4).len(), 1);
    }

    #[test]
    fn a_table_that_is_turned_for_a_product_has_its_parts_once() {
        let mut b = Builder::new();
        // Too large to be folded.
        let table = constant(&mut b, &[1200, 16], 9);
        let indices = b.input("indices", DType::I64.into(), &[8]).unwrap();
        let rows = b.gather(table, indices, 0).unwrap();
        let turn = StridedCopy::transpose(&[1200, 16].map(Size::from), &[1, 0], DType::F32);
        let turned = b.kernel1(Operation::StridedCopy(turn), &[table], F32, &[16, 1200]).unwrap();
        let y = b.matmul(rows, turned).unwrap();
        b.output("y", y);
        let indices = Values::Int(vec![0, 1199, -1, -1200, 448, 447, 2000, -1201]);
        let left = apart(b.finish().unwrap(), &[indices], 1 << 15);
        let parts = products(&left);
        assert_eq!(parts.iter().map(|own| own.n.value()).collect::<Vec<_>>(), [448, 448, 304], "{left:?}");
        assert!(parts.iter().all(|own| own.rhs_transposed));
        let look_ups = left.iter().filter(|operation| matches!(operation, Operation::Gather(_))).count();
        assert_eq!(look_ups, 3, "{left:?}");
    }

    #[test]
    fn tables_of_bytes_have_parts_too() {
        let mut b = Builder::new();
        let table = Values::Int((0..66_000).map(|i| i * 7 % 256).collect());
        let table = b.values(DType::U8, &[3300, 20], &table).unwrap();
        let indices = b.input("indices", DType::I32.into(), &[4]).unwrap();
        let rows = b.gather(table, indices, 0).unwrap();
        let y = b.cast(rows, DType::F32).unwrap();
        b.output("y", y);
        let left = apart(b.finish().unwrap(), &[Values::Int(vec![0, 3299, -2, 1700])], 1 << 15);
        let look_ups = left.iter().filter(|operation| matches!(operation, Operation::Gather(_))).count();
        assert_eq!(look_ups, 3, "{left:?}");
    }
}
