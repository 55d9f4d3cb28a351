//! Products of one tensor by several weights become one by all of them, side by side: queries, keys and values of attention,
//! gates and what they gate. What reads a part reads it where it lies.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_ops::{
    DType, Operation, block_matmul::BlockMatMul, concat::Concat, copy::StridedCopy, matmul::MatMul,
    quant_matmul::QuantMatMul,
};
use halite_sizes::Size;

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{ElementType, Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Bytes that parts of a tensor begin at a multiple of, so that they can be bound by themselves.
const PART_ALIGNMENT: u64 = halite_abi::BINDING_ALIGNMENT;
/// Most products that become one.
const MOST_PRODUCTS: usize = 16;

/// Joins products; parts of results are slices, which what reads them takes in.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut known = constants_first(graph, region);
    let mut groups: HashMap<Key, Vec<usize>> = HashMap::new();
    let mut order: Vec<Key> = Vec::new();
    for (place, node) in region.nodes.iter().enumerate() {
        watch.check()?;
        let Some(key) = Key::of(node, &known) else { continue };
        let group = groups.entry(key.clone()).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(place);
    }
    let readers = Readers::of(region);
    let mut new: HashMap<usize, Vec<Node>> = HashMap::new();
    for key in order {
        let group = &groups[&key];
        let few = (2..=MOST_PRODUCTS).contains(&group.len());
        if !few || !are_only_here(graph, region, uses, group) || !is_worth_it(region, uses, &readers, group) {
            continue;
        }
        let made = joined(graph, region, group);
        for place in group {
            region.nodes[*place].inputs.iter().for_each(|id| uses.remove(*id));
            new.insert(*place, Vec::new());
        }
        made.iter().flat_map(|node| &node.inputs).for_each(|id| uses.add(*id));
        known.extend(made.iter().flat_map(|node| &node.outputs));
        new.insert(group[0], made);
    }
    let nodes = std::mem::take(&mut region.nodes).into_iter().enumerate();
    region.nodes = nodes.flat_map(|(place, node)| new.remove(&place).unwrap_or_else(|| vec![node])).collect();
    Ok(())
}

/// Brings what is computed of constants alone to the front, and gives these tensors, and those of constants.
fn constants_first(graph: &Graph, region: &mut Region) -> HashSet<TensorId> {
    let mut known = HashSet::new();
    let is_known =
        |known: &HashSet<TensorId>, id: &TensorId| known.contains(id) || graph.tensor(*id).constant.is_some();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for node in region.nodes.drain(..) {
        // What has sizes that are computed on the way stays behind what computes them.
        let fixed = node.outputs.iter().all(|id| graph.tensor(*id).shape.is_constant());
        let plain = fixed && matches!(node.op, NodeOp::Operation(_) | NodeOp::View);
        if plain && !node.inputs.is_empty() && node.inputs.iter().all(|id| is_known(&known, id)) {
            known.extend(node.outputs.iter().copied());
            first.push(node);
        } else {
            rest.push(node);
        }
    }
    first.append(&mut rest);
    region.nodes = first;
    for node in &region.nodes {
        known.extend(node.inputs.iter().copied().filter(|id| graph.tensor(*id).constant.is_some()));
    }
    known
}

/// What products have in common that become one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// What is multiplied, and its scales and zero points.
    left: Vec<TensorId>,
    /// The product, without columns and bias.
    product: Product,
}

impl Key {
    fn of(node: &Node, known: &HashSet<TensorId>) -> Option<Key> {
        let product = Product::of(node)?;
        let one = match &product {
            Product::Matrices(own) => own.rhs_shared || own.batch.is(1.into()),
            Product::Blocks(own) => own.norm.is_none() && own.gate.is_none(),
            Product::Packed(_) => true,
        };
        let places = product.left();
        let right = (0..node.inputs.len()).filter(|place| !places.contains(place));
        let weights = right.into_iter().all(|place| known.contains(&node.inputs[place]));
        let left: Vec<TensorId> = places.iter().map(|place| node.inputs[*place]).collect();
        if !one || !weights || known.contains(&left[0]) || product.residual() || !product.n().is_constant() {
            return None;
        }
        Some(Key { left, product: product.with(0.into(), false) })
    }
}

/// A product of activations by weights.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Product {
    Matrices(MatMul),
    Blocks(BlockMatMul),
    Packed(QuantMatMul),
}

impl Product {
    fn of(node: &Node) -> Option<Product> {
        match &node.op {
            NodeOp::Operation(Operation::MatMul(own)) => Some(Product::Matrices(own.clone())),
            NodeOp::Operation(Operation::BlockMatMul(own)) => Some(Product::Blocks(own.clone())),
            NodeOp::Operation(Operation::QuantMatMul(own)) => Some(Product::Packed(own.clone())),
            _ => None,
        }
    }

    /// The same with other columns.
    fn with(&self, n: Size, bias: bool) -> Product {
        match self {
            Product::Matrices(own) => Product::Matrices(MatMul { n, bias, ..own.clone() }),
            Product::Blocks(own) => Product::Blocks(BlockMatMul { n: n.value(), bias, ..own.clone() }),
            Product::Packed(own) => Product::Packed(QuantMatMul { n: n.value(), bias, ..own.clone() }),
        }
    }

    fn operation(self) -> Operation {
        match self {
            Product::Matrices(own) => Operation::MatMul(own),
            Product::Blocks(own) => Operation::BlockMatMul(own),
            Product::Packed(own) => Operation::QuantMatMul(own),
        }
    }

    /// Columns.
    fn n(&self) -> Size {
        match self {
            Product::Matrices(own) => own.n,
            Product::Blocks(own) => own.n.into(),
            Product::Packed(own) => own.n.into(),
        }
    }

    /// Rows of all matrices.
    fn rows(&self) -> Size {
        match self {
            Product::Matrices(own) => own.m * own.batch,
            Product::Blocks(own) => own.m,
            Product::Packed(own) => own.m,
        }
    }

    /// Which input is the bias, if there is one.
    fn bias(&self) -> Option<usize> {
        match self {
            Product::Matrices(own) => own.bias.then_some(2),
            Product::Blocks(own) => own.bias.then_some(own.behind_weights()),
            Product::Packed(own) => own.added_inputs()[0],
        }
    }

    fn residual(&self) -> bool {
        match self {
            Product::Matrices(own) => own.residual,
            Product::Blocks(own) => own.residual,
            Product::Packed(own) => own.residual,
        }
    }

    /// Type of results.
    fn out(&self) -> DType {
        match self {
            Product::Matrices(own) => own.out,
            Product::Blocks(_) => DType::F32,
            Product::Packed(own) => own.out,
        }
    }

    /// Which inputs of weights are the same for all products that can be one: a codebook.
    fn common(&self) -> std::ops::Range<usize> {
        2..if let Product::Blocks(own) = self { own.behind_weights() } else { 2 }
    }

    /// Which inputs are what is multiplied, its scales and its zero points.
    fn left(&self) -> Vec<usize> {
        let more = match self {
            Product::Packed(own) => own.left_inputs(),
            Product::Matrices(_) | Product::Blocks(_) => [None; 2],
        };
        [Some(0)].into_iter().chain(more).flatten().collect()
    }

    /// The inputs that have something for each column: their types, and how they lie: what is outside of columns, and what is
    /// inside of them.
    fn weights(&self) -> Vec<(usize, DType, [Size; 2])> {
        match self {
            Product::Matrices(own) if own.rhs_transposed => vec![(1, own.rhs, [1.into(), own.k])],
            Product::Matrices(own) => vec![(1, own.rhs, [own.k, 1.into()])],
            Product::Blocks(own) => {
                let (dtype, row) = own.format.row(own.k).unwrap_or((DType::U8, 0));
                vec![(1, dtype, [1.into(), row.into()])]
            }
            Product::Packed(own) => {
                let groups = own.k / own.group.max(1);
                let mut parts =
                    vec![(1, DType::U8, own.k * u64::from(own.bits) / 8), (2, own.scales, groups)];
                parts.extend(own.zero_points.then_some((3, DType::U8, groups)));
                parts.into_iter().map(|(place, dtype, row)| (place, dtype, [1.into(), row.into()])).collect()
            }
        }
    }
}

/// The nodes of a region that read a tensor.
struct Readers(HashMap<TensorId, Vec<usize>>);

impl Readers {
    fn of(region: &Region) -> Readers {
        let mut readers: HashMap<TensorId, Vec<usize>> = HashMap::new();
        for (place, node) in region.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(place));
        }
        Readers(readers)
    }

    /// Whether all that reads a tensor can read it as a part of another.
    fn take_parts(&self, region: &Region, uses: &Uses, id: TensorId) -> bool {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let Some(places) = self.0.get(&id).filter(|places| places.len() == uses.count(id)) else {
                return false;
            };
            for node in places.iter().map(|place| &region.nodes[*place]) {
                match &node.op {
                    NodeOp::View => open.extend(&node.outputs),
                    NodeOp::Operation(Operation::Elementwise(_) | Operation::StridedCopy(_)) => {}
                    NodeOp::Operation(Operation::Attention(_))
                        if node.inputs.iter().skip(3).all(|own| *own != id) => {}
                    _ => return false,
                }
            }
        }
        true
    }
}

fn product(node: &Node) -> Product {
    Product::of(node).expect("groups are of products")
}

/// Whether devices can bind the weights together, and nothing else reads them, which would have them twice: as tables of
/// embeddings that are the last product's weights, too.
fn are_only_here(graph: &Graph, region: &Region, uses: &Uses, group: &[usize]) -> bool {
    let weights = || group.iter().map(|place| region.nodes[*place].inputs[1]);
    let bytes: Size = weights().map(|id| graph.tensor(id).byte_size()).sum();
    bytes.is_at_most(graph.most_bound()) && weights().all(|id| uses.count(id) == 1)
}

/// Whether fewer products are worth the copies of parts that stay.
fn is_worth_it(region: &Region, uses: &Uses, readers: &Readers, group: &[usize]) -> bool {
    let (mut copies, mut offset) = (0, 0);
    for place in group {
        let node = &region.nodes[*place];
        let own = product(node);
        let one_row = own.rows().is(1.into());
        let bytes = offset * own.out().size();
        // A part of one row is memory of its own.
        let lies_alone = one_row && bytes.is_multiple_of(PART_ALIGNMENT);
        let is_result = region.results.contains(&node.outputs[0]);
        let taken = !is_result && readers.take_parts(region, uses, node.outputs[0]);
        copies += usize::from(!lies_alone && !taken || is_result);
        offset += own.n().value();
    }
    copies + 1 < group.len()
}

/// The one product and its parts.
fn joined(graph: &mut Graph, region: &Region, group: &[usize]) -> Vec<Node> {
    let nodes: Vec<&Node> = group.iter().map(|place| &region.nodes[*place]).collect();
    let first = product(nodes[0]);
    let columns: Vec<Size> = nodes.iter().map(|node| product(node).n()).collect();
    let n: Size = columns.iter().sum();
    let mut make = Maker { graph, new: Vec::new(), like: nodes[0] };
    let mut inputs = vec![nodes[0].inputs[0]];
    for (place, dtype, [outer, inner]) in first.weights() {
        let weights: Vec<TensorId> = nodes.iter().map(|node| node.inputs[place]).collect();
        let dims = if outer == 1 { [n, inner] } else { [outer, n] };
        let packed = matches!(first, Product::Packed(_));
        let known = if packed { make.behind_each_other(&weights, dtype, &dims) } else { None };
        inputs.push(known.unwrap_or_else(|| {
            let concat = Concat { sizes: columns.clone(), ..Concat::new(outer, &[], inner, dtype) };
            make.node(Operation::Concat(concat), weights, dtype, &dims)
        }));
    }
    inputs.extend(first.common().map(|place| nodes[0].inputs[place]));
    inputs.extend(first.left()[1..].iter().map(|place| nodes[0].inputs[*place]));
    let (bias, out) = (nodes.iter().any(|node| product(node).bias().is_some()), first.out());
    if bias {
        let parts = nodes.iter().zip(&columns).map(|(node, n)| match product(node).bias() {
            Some(place) => node.inputs[place],
            None => make.zeros(out, *n),
        });
        let parts = parts.collect();
        let concat = Concat { sizes: columns.clone(), ..Concat::new(1, &[], 1, out) };
        inputs.push(make.node(Operation::Concat(concat), parts, out, &[n]));
    }
    let rows = first.rows();
    let whole = make.node(first.with(n, bias).operation(), inputs, out, &[rows, n]);
    let mut offset = Size::constant(0);
    for (node, columns) in nodes.iter().zip(columns) {
        let dims = [(rows, n), (columns, 1.into())];
        let (shape, strides) = dims.into_iter().filter(|(size, _)| !size.is(1.into())).unzip();
        let mut copy = StridedCopy { source: rows * n, shape, strides, offset, dtype: out };
        if copy.shape.is_empty() {
            (copy.shape, copy.strides) = (vec![1.into()], vec![1.into()]);
        }
        let op = NodeOp::Operation(Operation::StridedCopy(copy));
        make.new.push(Node { op, inputs: vec![whole], ..(*node).clone() });
        offset += columns;
    }
    make.new
}

/// Makes nodes.
struct Maker<'a> {
    graph: &'a mut Graph,
    new: Vec<Node>,
    like: &'a Node,
}

impl Maker<'_> {
    fn tensor(&mut self, dtype: DType, dims: &[Size]) -> TensorId {
        let name = self.like.location.as_str().to_owned();
        self.graph.add_tensor(Tensor::new(name, ElementType::Of(dtype), Shape::new(dims.iter().copied())))
    }

    fn node(&mut self, operation: Operation, inputs: Vec<TensorId>, dtype: DType, dims: &[Size]) -> TensorId {
        let id = self.tensor(dtype, dims);
        let op = NodeOp::Operation(operation);
        self.new.push(Node { op, inputs, outputs: vec![id], location: self.like.location.clone() });
        id
    }

    /// Constants as one constant. So versions of a model have the same bytes and share them on the device; what is joined there
    /// when a version is loaded is its own.
    fn behind_each_other(&mut self, parts: &[TensorId], dtype: DType, dims: &[Size]) -> Option<TensorId> {
        let mut bytes = Vec::new();
        for part in parts {
            bytes.extend_from_slice(self.graph.tensor(*part).constant.as_ref()?);
        }
        let id = self.tensor(dtype, dims);
        self.graph.tensors[id.index()].constant = Some(Bytes::from(bytes));
        Some(id)
    }

    /// What is added where nothing is.
    fn zeros(&mut self, dtype: DType, count: Size) -> TensorId {
        let id = self.tensor(dtype, &[count]);
        let bytes = count.exact_usize() * dtype.size() as usize;
        self.graph.tensors[id.index()].constant = Some(Bytes::from(vec![0; bytes]));
        id
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::super::tests::{constant, kernels, optimized};
    use super::*;
    use crate::build::Builder;

    const F32: ElementType = ElementType::Of(DType::F32);

    fn product_of(b: &mut Builder, x: TensorId, n: u64, seed: u64, bias: bool) -> TensorId {
        let rows = b.dims(x)[1];
        let weights = constant(b, &[12, n], seed);
        let op = Operation::MatMul(MatMul::new(rows, n, 12u64, DType::F32, DType::F32));
        let y = b.kernel1(op, &[x, weights], F32, &[1, rows, n]).unwrap();
        let added = constant(b, &[n], seed + 1);
        if bias { b.binary(Function::Add, y, added).unwrap() } else { y }
    }

    fn names(graph: &Graph) -> Vec<&'static str> {
        let mut known: HashSet<TensorId> = HashSet::new();
        let mut names = Vec::new();
        for node in &graph.body.nodes {
            let constant = |id: &TensorId| known.contains(id) || graph.tensor(*id).constant.is_some();
            if node.inputs.iter().all(constant) {
                known.extend(node.outputs.iter().copied());
            } else if let NodeOp::Operation(operation) = &node.op {
                names.push(operation.name());
            }
        }
        names
    }

    #[test]
    fn gate_and_gated_are_one_product() {
        for (rows, bias) in [(1, false), (5, true)] {
            let mut b = Builder::new();
            let x = b.input("x", F32, &[1, rows, 12]).unwrap();
            let gate = product_of(&mut b, x, 8, 1, bias);
            let up = product_of(&mut b, x, 8, 5, false);
            let gate = b.unary(Function::Silu, gate).unwrap();
            // The activation alone would be the product's own.
            let y = b.binary(Function::Mul, gate, up).unwrap();
            b.output("y", y);
            let graph = optimized(b.finish().unwrap());
            assert_eq!(names(&graph), ["matmul", "elementwise"], "{graph}");
        }
    }

    #[test]
    fn products_of_one_row_of_codes_are_one_by_constants() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 2, 32]).unwrap();
        let codes = crate::build::Codes { range: (-128, 127), element: DType::I8.into(), zero_first: false };
        let mut sides = Vec::new();
        for (turn, n) in [3u64, 5].into_iter().enumerate() {
            let packed: Vec<i64> = (0..n as i64 * 16).map(|i| (i * 37 + turn as i64) % 256).collect();
            let packed = b.values(DType::U8, &[n, 16], &halite_ops::Values::Int(packed)).unwrap();
            let scales = constant(&mut b, &[n, 1], 7 + turn as u64);
            let weights =
                crate::build::QuantWeights { packed, bits: 4, length: 32, scales, zeros: None, group: 32 };
            let choice = crate::build::Choice::Whole(1e-9);
            let [scales, zeros] = b.choose_affine(x, &[2], choice, codes).unwrap();
            let codes = b.quantize_affine(x, scales, Some(zeros), codes).unwrap();
            let rows = crate::build::QuantRows { codes, scales, zeros: Some(zeros) };
            let mut made = b.quant_product_of_rows(&rows, &weights).unwrap();
            if turn == 1 {
                let bias = constant(&mut b, &[n], 11);
                made = b.binary(Function::Add, made, bias).unwrap();
            }
            // No activation that the product would have itself.
            sides.push(b.unary(Function::Exp, made).unwrap());
        }
        b.output("p", sides[0]);
        b.output("q", sides[1]);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["line_codes", "quant_matmul", "elementwise", "elementwise"], "{graph}");
    }

    #[test]
    fn parts_that_nothing_reads_where_they_lie_stay_products() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 5, 12]).unwrap();
        let (p, q) = (product_of(&mut b, x, 8, 1, false), product_of(&mut b, x, 7, 5, false));
        b.output("p", p);
        b.output("q", q);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(kernels(&graph).len(), 2, "{graph}");
    }

    /// The products by two tables of weights, the first of which may give a row, too.
    fn products(rows: u64, columns: u64, is_table: bool) -> usize {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, columns]).unwrap();
        let index = b.input("index", ElementType::Of(DType::I32), &[1]).unwrap();
        let weights = |b: &mut Builder, name: &str, byte: u8| {
            let bytes = Bytes::from(vec![byte; (rows * columns * 2) as usize]);
            b.row_matrix(name, crate::build::RowFormat::Floats(DType::F16), [rows, columns], &bytes).unwrap()
        };
        let (one, two) = (weights(&mut b, "one", 0x3C), weights(&mut b, "two", 0x3A));
        let (p, q) = (b.row_product(x, &one).unwrap(), b.row_product(x, &two).unwrap());
        let made = b.binary(Function::Mul, p, q).unwrap();
        b.output("made", made);
        if is_table {
            let row = b.rows_by_index(&one, index).unwrap();
            b.output("row", row);
        }
        let graph = optimized(b.finish().unwrap());
        names(&graph).iter().filter(|name| **name == "block_matmul").count()
    }

    #[test]
    fn weights_stay_where_others_read_them_or_devices_could_not_bind_them() {
        assert_eq!(products(64, 32, false), 1);
        assert_eq!(products(64, 32, true), 2);
        // Each is 96 MiB: seconds of converting, for a sum.
        if std::env::var_os("HALITE_TEST_THOROUGH").is_some() {
            assert_eq!(products(1536, 1 << 15, false), 2);
        }
    }
}
