//! Transposes of rows beside products, such as from images and tokens to tokens and images around attention. A row of a product's
//! result depends on one row of its left operand alone, so that rows may change their order before it or behind it. Attention reads
//! and writes rows in most orders for nothing: an order goes to the side of the product on which attention is. What is left on
//! the other side, such as a normalization before and a sum behind, then joins the product.

use std::collections::{HashMap, HashSet};

use halite_ops::{Operation, attention::Attention, copy::StridedCopy, matmul::MatMul};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    rows::{reordered, starts},
    strides::{Strided, inverse},
    tokens::merged,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, Shape, Tensor, TensorId},
};

/// Most dimensions of what is seen through copies.
const MOST_DIMS: usize = halite_ops::moves::MOST_DIMS;

/// Moves orders of rows over products; what nothing reads any more goes with a later cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let read = read_by_attention(graph, region, uses);
    let find = |chain: &Chain<'_>, node: &Node| {
        // Some nodes, such as those that check sizes, have no result.
        if node.outputs.first().is_some_and(|made| read.contains(made)) {
            return before(chain, node);
        }
        worth(|| behind(chain, node))
    };
    replace(graph, region, uses, watch, find, Found::write)
}

/// What is found for all sizes that matter, and nothing where it was found for fewer.
fn worth<T>(find: impl FnOnce() -> Option<T>) -> Option<T> {
    let mut found = None;
    let is_worth = halite_sizes::is_worth(|| {
        found = find();
        found.is_some()
    });
    found.filter(|_| is_worth)
}

/// An order of rows and a product beside it.
struct Found {
    product: Node,
    operation: MatMul,
    /// What the order, or the product, reads now.
    input: TensorId,
    rows: Order,
    /// Whether rows change their order behind the product from now on.
    goes_behind: bool,
}

/// Another order of rows, each of which stays whole.
struct Order {
    /// Sizes and distances, in rows.
    dims: Vec<(Size, Size)>,
}

impl Order {
    /// The order of rows of so many elements in which a copy brings all of them.
    fn of(copy: &StridedCopy, width: Size) -> Option<Order> {
        inverse(copy)?;
        let mut dims = merged(copy);
        let (size, stride) =
            dims.pop().filter(|(size, stride)| *stride == 1 && size.is_multiple_of(width))?;
        if !dims.iter().all(|(_, stride)| stride.is_multiple_of(width)) {
            return None;
        }
        dims.iter_mut().for_each(|(_, distance)| *distance /= width);
        dims.extend((size != width).then_some((size / width, stride)));
        Some(Order { dims })
    }

    /// The copy that brings rows of so many elements, which a tensor consists of, into this order.
    fn copy(&self, width: Size, source: Size, dtype: halite_ops::DType) -> StridedCopy {
        let (mut shape, mut strides): (Vec<Size>, Vec<Size>) =
            self.dims.iter().map(|(size, distance)| (*size, *distance * width)).unzip();
        shape.push(width);
        strides.push(1.into());
        StridedCopy { source, shape, strides, offset: 0.into(), dtype }
    }
}

/// A product of which each row of the result depends on one row of the left operand, and on nothing else that has rows.
fn plain(node: &Node) -> Option<&MatMul> {
    let NodeOp::Operation(Operation::MatMul(product)) = &node.op else { return None };
    let alone = product.batch == 1 && !product.residual && !product.row_sums && !product.rhs_fragments;
    let whole = product.read.is_none() && product.written.is_none();
    (alone && whole && product.norm.is_none() && product.lhs_norm.is_none()).then_some(product)
}

/// The product that a node is, whose left operand has its rows in another order.
fn before(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let operation = plain(node)?;
    let copied = chain.producer(chain.behind_views(node.inputs[0]))?;
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &copied.op else { return None };
    let rows = Order::of(copy, operation.k).filter(|_| copy.dtype == operation.lhs)?;
    let (product, operation) = (node.clone(), operation.clone());
    Some(Found { product, operation, input: copied.inputs[0], rows, goes_behind: true })
}

/// The product of what attention computes, of whose result a node alone changes the order of rows.
fn behind(chain: &Chain<'_>, node: &Node) -> Option<Found> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    let (product, _) = chain.only_maker(node.inputs[0])?;
    let operation = plain(product)?;
    let rows = Order::of(copy, operation.n).filter(|_| copy.dtype == operation.out)?;
    let input = product.inputs[0];
    let moved = rows.copy(operation.k, operation.m * operation.k, operation.lhs);
    is_written(chain, input, &moved).then(|| {
        let (product, operation) = (product.clone(), operation.clone());
        Found { product, operation, input, rows, goes_behind: false }
    })
}

/// Whether attention, which computes a tensor, can write it as a copy of it has it.
fn is_written(chain: &Chain<'_>, id: TensorId, copy: &StridedCopy) -> bool {
    let (sizes, strides) = (copy.shape.clone(), copy.strides.clone());
    let mut seen = Strided { tensor: id, offset: copy.offset, sizes, strides };
    while let Some((maker, operation)) = chain.only_maker(seen.tensor) {
        match operation {
            Operation::StridedCopy(next) if next.dtype == copy.dtype => {
                let Some(through) = seen.through_parts(next, maker.inputs[0], MOST_DIMS) else {
                    return false;
                };
                seen = through;
            }
            Operation::Attention(attention) => {
                let plain = attention.out_rows.is_none() && attention.dtype == copy.dtype;
                let whole = seen.copy(copy.source, copy.dtype);
                return plain && reordered(attention, &whole, seen.tensor).is_some();
            }
            _ => return false,
        }
    }
    false
}

/// Results of products of rows in another order that attention alone reads, and can read without the order.
fn read_by_attention(graph: &Graph, region: &Region, uses: &Uses) -> HashSet<TensorId> {
    let (mut producers, mut readers) = (HashMap::new(), HashMap::<TensorId, Vec<usize>>::new());
    for (place, node) in region.nodes.iter().enumerate() {
        producers.extend(node.outputs.iter().map(|id| (*id, place)));
        node.inputs.iter().for_each(|id| readers.entry(*id).or_default().push(place));
    }
    let chain = Chain { graph, nodes: &region.nodes, producers: &producers, uses };
    let is_read = |found: &Found| {
        let mut left = vec![found.product.outputs[0]];
        while let Some(id) = left.pop() {
            let places = readers.get(&id).map_or(&[][..], Vec::as_slice);
            if places.is_empty() || places.len() != uses.count(id) {
                return false;
            }
            for node in places.iter().map(|place| &region.nodes[*place]) {
                match &node.op {
                    NodeOp::View | NodeOp::Operation(Operation::StridedCopy(_)) => left.extend(&node.outputs),
                    NodeOp::Operation(Operation::Attention(attention))
                        if reads(&chain, attention, node, found) => {}
                    _ => return false,
                }
            }
        }
        true
    };
    let found = |node| worth(|| before(&chain, node).filter(is_read));
    region.nodes.iter().filter_map(found).map(|found| found.product.outputs[0]).collect()
}

/// Whether what attention reads of a product's result has its rows whole in the order in which the product gets them then.
fn reads(chain: &Chain<'_>, attention: &Attention, node: &Node, found: &Found) -> bool {
    let of = found.product.outputs[0];
    let MatMul { m, n, out, .. } = found.operation;
    let order = found.rows.copy(n, m * n, out);
    let fits = |start: &Strided| {
        let mut seen = start.clone();
        while seen.tensor != of {
            let Some(Node { op: NodeOp::Operation(Operation::StridedCopy(copy)), inputs, .. }) =
                chain.producer(seen.tensor)
            else {
                // It reads something else here.
                return true;
            };
            let tensor = chain.behind_views(inputs[0]);
            let through = seen.through_parts(copy, tensor, MOST_DIMS).filter(|_| copy.dtype == out);
            let Some(next) = through else { return false };
            seen = next;
        }
        seen.through_parts(&order, of, MOST_DIMS).is_some_and(|seen| is_read(&seen, start, attention))
    };
    out == attention.dtype && starts(chain, attention, &node.inputs).iter().all(fits)
}

/// Whether attention can read rows where they are seen, which began as `start`: a dimension of images and heads is taken apart
/// at most.
fn is_read(seen: &Strided, start: &Strided, attention: &Attention) -> bool {
    let tail = |of: &Strided| of.sizes[of.sizes.len() - 2..].to_vec();
    let parted = seen.sizes.len() - start.sizes.len();
    let together = seen.strides.last().is_some_and(|last| last.is(1.into())) || attention.head_dim == 1;
    let forwards = seen.strides.iter().all(|stride| *stride >= 0);
    let images = parted == 0 || parted == 1 && attention.batch.is(1.into());
    together && forwards && images && tail(seen) == tail(start)
}

impl Found {
    /// The nodes in the place of the one that was found, which compute the same.
    fn write(self, graph: &mut Graph, node: &Node) -> Vec<Node> {
        let Found { product, operation, input, rows, goes_behind } = self;
        let MatMul { m, n, k, lhs, out, .. } = operation;
        let (width, dtype) = if goes_behind { (n, out) } else { (k, lhs) };
        let like = if goes_behind { product.outputs[0] } else { input };
        let tensor =
            Tensor::new(graph.tensor(like).name.clone(), graph.tensor(like).element, Shape::new([m, width]));
        let between = graph.add_tensor(tensor);
        let copy = |from, to| Node {
            op: NodeOp::Operation(Operation::StridedCopy(rows.copy(width, m * width, dtype))),
            inputs: vec![from],
            outputs: vec![to],
            location: node.location.clone(),
        };
        let multiplied = |from, to| {
            let inputs = std::iter::once(from).chain(product.inputs[1..].iter().copied()).collect();
            Node { inputs, outputs: vec![to], ..product.clone() }
        };
        let result = node.outputs[0];
        if goes_behind {
            vec![multiplied(input, between), copy(between, result)]
        } else {
            vec![copy(input, between), multiplied(between, result)]
        }
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function};

    use super::{
        super::tests::{constant, kernels, optimized},
        *,
    };
    use crate::build::{Builder, Range};

    /// Heads of the third part of rows of a product that lie as tokens, images, parts and heads.
    fn heads(b: &mut Builder, x: TensorId, part: u64) -> TensorId {
        let [tokens, images, width] = b.dims(x)[..] else { panic!() };
        let ranges = [
            Range::all(tokens),
            Range::all(images),
            Range { start: part * (width / 3), step: 1, count: width / 3 },
        ];
        let part = b.slice(x, &ranges).unwrap();
        let part = b.reshape(part, &[tokens, images * 2, width / 6]).unwrap();
        let turned = b.transpose(part, &[1, 0, 2]).unwrap();
        b.reshape(turned, &[images, 2, tokens, width / 6]).unwrap()
    }

    /// Attention between two products, with tokens before images there alone, added to what it is of. Names of the operations.
    /// The product before attention is read by another one too, or not.
    fn names(is_read: bool) -> Vec<String> {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[3, 5, 8]).unwrap();
        let (before, behind) = (constant(&mut b, &[8, 24], 1), constant(&mut b, &[8, 8], 2));
        let turned = b.transpose(x, &[1, 0, 2]).unwrap();
        let packed = b.matmul(turned, before).unwrap();
        let [q, k, v] = [0, 1, 2].map(|part| heads(&mut b, packed, part));
        let attention =
            Operation::Attention(Attention { batch: 3.into(), ..Attention::new(2, 5, 5, 4, DType::F32) });
        let y = b.kernel1(attention, &[q, k, v], DType::F32.into(), &[3, 2, 5, 4]).unwrap();
        let y = b.transpose(y, &[2, 0, 1, 3]).unwrap();
        let y = b.reshape(y, &[15, 8]).unwrap();
        let y = b.matmul(y, behind).unwrap();
        let y = b.reshape(y, &[5, 3, 8]).unwrap();
        let y = b.transpose(y, &[1, 0, 2]).unwrap();
        let y = b.binary(Function::Add, x, y).unwrap();
        b.output("y", y);
        if is_read {
            b.output("packed", packed);
        }
        let graph = optimized(b.finish().unwrap());
        let name = |operation: &Operation| match operation {
            Operation::MatMul(product) => format!("product {}", product.residual),
            other => other.name().to_owned(),
        };
        kernels(&graph).into_iter().map(name).collect()
    }

    #[test]
    fn attention_takes_the_orders_of_rows_beside_its_products() {
        assert_eq!(names(false), ["product false", "attention", "product true"]);
    }

    #[test]
    fn an_order_that_others_read_stays() {
        assert_eq!(names(true), ["copy", "product false", "attention", "product true"]);
    }

    #[test]
    fn orders_are_those_of_whole_rows() {
        let sizes = |of: &[u64]| -> Vec<Size> { of.iter().map(Size::from).collect() };
        let turned = |order: &[usize]| StridedCopy::transpose(&sizes(&[5, 3, 8]), order, DType::F32);
        let order = |copy: &StridedCopy, width: u64| {
            Order::of(copy, width.into())
                .map(|order| order.copy(2.into(), (copy.source / width) * Size::from(2), DType::F32))
        };
        let moved = order(&turned(&[1, 0, 2]), 8).unwrap();
        assert_eq!((&moved.shape, &moved.strides), (&sizes(&[3, 5, 2]), &sizes(&[2, 6, 1])));
        // Half a row is a row here.
        assert_eq!(order(&turned(&[1, 0, 2]), 4).unwrap().shape, sizes(&[3, 5, 2, 2]));
        assert!(order(&turned(&[1, 0, 2]), 16).is_none());
        assert!(order(&turned(&[0, 2, 1]), 8).is_none());
        let slice =
            StridedCopy::slice(&sizes(&[5, 8]), &sizes(&[1, 0]), &sizes(&[4, 8]), &[1, 1], DType::F32);
        assert!(order(&slice, 8).is_none());
    }
}
