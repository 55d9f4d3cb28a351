//! Normalizations of many rows go into the products that read them: kernels on matrix units add rows up while they multiply them.
//! With `c` for the normalized rows' scale times the weights, less the mean of each column, `sum over k of (x[k] - mean) * c[k, j]` is
//! `sum over k of x[k] * c[k, j] - mean * s[j]`, where `s` are the sums of the columns of `c`: next to nothing, since they have no mean
//! but what rounding leaves. So rows whose mean is far from 0 lose little: `docs/results/kernels.md` says how much.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Op, Operation,
    expression::{Function, Operand},
    matmul::MatMul,
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    constants::{Constants, known},
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Fewest rows. Products of fewer are cut in parts, and the dispatch that adds those normalizes rows by itself.
const LEAST_ROWS: u64 = 1024;

/// Most weights of a product: they are computed at load, in 32 bits on the way.
const MOST_WEIGHTS: u64 = 1 << 25;

/// Puts normalizations into all products that read them, if nothing else does and all devices have matrix units.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    if !graph.matrix_units {
        return Ok(());
    }
    let found = found(graph, region, uses);
    if found.is_empty() {
        return Ok(());
    }
    uses.subtract(&Uses::of(region));
    let mut nodes = Vec::with_capacity(region.nodes.len());
    for (place, node) in std::mem::take(&mut region.nodes).into_iter().enumerate() {
        watch.check()?;
        match found.get(&place) {
            Some(rows) => rows.multiply(graph, &mut nodes, node),
            None => nodes.push(node),
        }
    }
    region.nodes = nodes;
    uses.extend(&Uses::of(region));
    Ok(())
}

/// Rows that are normalized.
#[derive(Clone, Debug)]
struct Rows {
    /// The rows before.
    input: TensorId,
    norm: Norm,
    scale: Option<TensorId>,
    bias: Option<TensorId>,
}

impl Rows {
    /// What a node normalizes, if that is rows of 16-bit floats by mean and deviation.
    fn of(graph: &Graph, node: &Node) -> Option<Rows> {
        let NodeOp::Operation(Operation::Norm(norm)) = &node.op else { return None };
        let is_plain = norm.kind == NormKind::Group && norm.is_of_lines();
        let is_many = norm.batch.is_constant() && norm.batch >= LEAST_ROWS;
        let mut rest = node.inputs[1..].iter().copied();
        let scale = if norm.scale { rest.next() } else { None };
        let bias = if norm.bias { rest.next() } else { None };
        let is_constant = |id: Option<TensorId>| id.is_none_or(|id| graph.tensor(id).constant.is_some());
        let fits = is_plain && is_many && norm.dtype == DType::F16;
        (fits && is_constant(scale) && is_constant(bias)).then(|| Rows {
            input: node.inputs[0],
            norm: norm.clone(),
            scale,
            bias,
        })
    }

    /// The product that reads them before they are normalized, if kernels on matrix units are for it.
    fn product(&self, op: &MatMul) -> Option<MatMul> {
        let (k, n) = (self.norm.channels, op.n);
        let is_one = op.rhs_shared || op.batch == 1;
        let halves = [op.lhs, op.rhs, op.out] == [DType::F16; 3];
        let rows = (op.batch * op.m).is(self.norm.batch) && op.k.is(k.into());
        let words = k.is_multiple_of(8) && n.is_constant() && n.is_multiple_of(8);
        let is_plain = op.norm.is_none() && op.lhs_norm.is_none() && op.read.is_none();
        let fits = is_one && halves && rows && words && is_plain && n.exact() * k <= MOST_WEIGHTS;
        let product = MatMul { bias: true, lhs_norm: Some(self.norm.epsilon), ..op.clone() };
        (fits && product.check().is_ok()).then_some(product)
    }

    /// Writes a product of them.
    fn multiply(&self, graph: &mut Graph, nodes: &mut Vec<Node>, node: Node) {
        let NodeOp::Operation(Operation::MatMul(op)) = &node.op else {
            // Only products were found.
            nodes.push(node);
            return;
        };
        let Some(product) = self.product(op) else {
            nodes.push(node);
            return;
        };
        let weights = Weights::of(op, self.norm.channels, node.inputs[1]);
        let mut made = Constants { graph, nodes, node: &node };
        let centered = weights.centered(&mut made, self.scale);
        let own = op.bias.then(|| node.inputs[2]);
        let added = weights.added(&mut made, self.bias, own);
        // Of the weights as they are stored. An elementwise operation on the way would get them before they are rounded.
        let sums = made.sums_of(centered, HALF, weights.lines);
        let bias = made.rows(&[added, sums], HALF, op.n.exact());
        let mut inputs = vec![self.input, centered, bias];
        inputs.extend(&node.inputs[2 + usize::from(op.bias)..]);
        nodes.push(Node { op: NodeOp::Operation(Operation::MatMul(product)), inputs, ..node });
    }
}

const HALF: DType = DType::F16;

/// The right operand of a product.
struct Weights {
    id: TensorId,
    /// Its dimensions, those with which a value for each term and for each column lies beside it, and how sums of columns are taken.
    all: Vec<Size>,
    down: Vec<Size>,
    across: Vec<Size>,
    lines: [Size; 3],
    columns: Size,
    terms: u64,
}

impl Weights {
    fn of(op: &MatMul, terms: u64, id: TensorId) -> Weights {
        let (k, n, one) = (Size::from(terms), op.n, Size::constant(1));
        let (all, down, across, lines) = match op.rhs_transposed {
            true => (vec![n, k], vec![one, k], vec![n, one], [n, k, one]),
            false => (vec![k, n], vec![k, one], vec![one, n], [one, k, n]),
        };
        Weights { id, all, down, across, lines, columns: n, terms }
    }

    /// In 32 bits, times a value for each term.
    fn times(&self, made: &mut Constants<'_>, factors: Option<TensorId>) -> TensorId {
        let mut read = vec![(self.id, HALF, self.all.clone())];
        read.extend(factors.map(|id| (id, HALF, self.down.clone())));
        made.elementwise(&read, DType::F32, &self.all, |p, x| match x {
            [one] => *one,
            _ => p.call(Function::Mul, x),
        })
    }

    /// Times the norm's scale, less the mean of each column.
    fn centered(&self, made: &mut Constants<'_>, scale: Option<TensorId>) -> TensorId {
        let scaled = self.times(made, scale);
        let sums = made.sums(scaled, self.lines);
        let by = Operand::from((self.terms as f32).recip());
        let read = [(scaled, DType::F32, self.all.clone()), (sums, DType::F32, self.across.clone())];
        made.elementwise(&read, HALF, &self.all, |p, x| {
            let mean = p.call(Function::Mul, &[x[1], by]);
            p.call(Function::Sub, &[x[0], mean])
        })
    }

    /// What is added for each column: what the norm's bias becomes, and what was added before.
    fn added(&self, made: &mut Constants<'_>, bias: Option<TensorId>, own: Option<TensorId>) -> TensorId {
        let columns = [self.columns];
        let shift = bias.map(|bias| {
            let terms = self.times(made, Some(bias));
            (made.sums(terms, self.lines), DType::F32, columns.to_vec())
        });
        let own = own.map(|id| (id, HALF, columns.to_vec()));
        let parts: Vec<_> = shift.into_iter().chain(own).collect();
        if parts.is_empty() {
            return made.zeros(HALF, self.columns.exact());
        }
        made.elementwise(&parts, HALF, &columns, |p, x| match x {
            [one] => *one,
            _ => p.call(Function::Add, x),
        })
    }
}

/// The rows of each product that is such a one, by its place in the region.
fn found(graph: &Graph, region: &Region, uses: &Uses) -> HashMap<usize, Rows> {
    let known = known(graph, region);
    let is_known = |id: &TensorId| graph.tensor(*id).constant.is_some() || known.contains(id);
    let mut readers: HashMap<TensorId, Vec<usize>> = HashMap::new();
    for (place, node) in region.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(place));
    }
    let mut found = HashMap::new();
    for node in &region.nodes {
        let Some(rows) = Rows::of(graph, node) else { continue };
        let Some(products) = products(region, &readers, uses, node.outputs[0]) else { continue };
        let goes = |place: &usize| match &region.nodes[*place].op {
            NodeOp::Operation(Operation::MatMul(op)) => {
                let inputs = &region.nodes[*place].inputs;
                rows.product(op).is_some() && inputs[1..2 + usize::from(op.bias)].iter().all(is_known)
            }
            _ => false,
        };
        if !products.is_empty() && products.iter().all(goes) {
            found.extend(products.into_iter().map(|place| (place, rows.clone())));
        }
    }
    found
}

/// Where the nodes are that read a tensor, or a view of it, as their first input; `None` where something reads it otherwise, or they
/// read it once more.
fn products(
    region: &Region,
    readers: &HashMap<TensorId, Vec<usize>>,
    uses: &Uses,
    tensor: TensorId,
) -> Option<HashSet<usize>> {
    let (mut open, mut found) = (vec![tensor], HashSet::new());
    while let Some(id) = open.pop() {
        let places = readers.get(&id).map_or(&[][..], Vec::as_slice);
        if places.len() != uses.count(id) {
            return None;
        }
        for place in places {
            let node = &region.nodes[*place];
            match node.op {
                NodeOp::View => open.push(node.outputs[0]),
                _ if node.inputs[0] == id && !node.inputs[1..].contains(&id) => {
                    found.insert(*place);
                }
                _ => return None,
            }
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::{Builder, Normalization};

    /// How many norms are left, and products with and without normalized rows, of rows that a product reads, and perhaps a sum.
    fn operations(rows: u64, matrix_units: bool, is_added: bool) -> [usize; 3] {
        operations_of(rows, matrix_units, is_added, true)
    }

    /// The same, perhaps with nothing that is added by the norm and behind the product.
    fn operations_of(rows: u64, matrix_units: bool, is_added: bool, has_bias: bool) -> [usize; 3] {
        let mut b = Builder::new();
        let x = b.input("x", DType::F16.into(), &[2, rows / 2, 16]).unwrap();
        let half = |b: &mut Builder, dims: &[u64], seed| {
            let id = constant(b, dims, seed);
            b.cast(id, DType::F16).unwrap()
        };
        let (scale, bias) = (half(&mut b, &[16], 1), half(&mut b, &[16], 2));
        let norm = Normalization { kind: NormKind::Group, first: 2, end: 3, groups: 1, epsilon: 1e-5 };
        let normed = b.normalize(x, Some(scale), has_bias.then_some(bias), norm).unwrap();
        let weights = half(&mut b, &[16, 16], 3);
        let mut y = b.matmul(normed, weights).unwrap();
        let added = half(&mut b, &[16], 4);
        if has_bias {
            y = b.binary(Function::Add, y, added).unwrap();
        }
        if is_added {
            y = b.binary(Function::Add, y, normed).unwrap();
        }
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        graph.matrix_units = matrix_units;
        let graph = optimized(graph);
        let all = kernels(&graph);
        let count = |wanted: &dyn Fn(&Operation) -> bool| all.iter().filter(|op| wanted(op)).count();
        [
            count(&|op| matches!(op, Operation::Norm(_))),
            count(&|op| matches!(op, Operation::MatMul(op) if op.lhs_norm.is_some())),
            count(&|op| matches!(op, Operation::MatMul(op) if op.lhs_norm.is_none())),
        ]
    }

    #[test]
    fn norms_of_many_rows_go_into_products() {
        assert_eq!(operations(1024, true, false), [0, 1, 0]);
        assert_eq!(operations_of(1024, true, false, false), [0, 1, 0], "nothing is added");
    }

    #[test]
    fn others_stay() {
        assert_eq!(operations(1024, false, false), [1, 0, 1], "no matrix units");
        assert_eq!(operations(512, true, false), [1, 0, 1], "few rows");
        assert_eq!(operations(1024, true, true), [1, 0, 1], "something else reads them");
    }
}
