//! Caches with keys and values in one tensor: what is joined part by part and stacked behind that is joined as a whole.
//!
//! Some exporters keep `[2, batch, heads, past, dim]` of a layer and write `present = Stack(Concat(past[0], keys), Concat(past[1], values))`.
//! That is `Concat(past, Stack(keys, values))`, which grows in place, and of which keys and values are parts.

use std::collections::HashMap;

use halite_ops::{Operation, concat::Concat, copy::StridedCopy, moves::dense_strides};
use halite_sizes::Size;

use crate::graph::{Graph, Node, NodeOp, Shape, Tensor, TensorId};

/// Most parts of a stack.
const MOST_PARTS: usize = 16;

/// A stack of parts, to each of which a call adds rows.
struct Stack {
    /// Places of the nodes that join, and of the one that stacks.
    joins: Vec<usize>,
    stack: usize,
    /// The rows that each part gets.
    new: Vec<TensorId>,
    /// The parts with these.
    whole: Vec<TensorId>,
    /// How each part is joined.
    each: Concat,
}

/// Rewrites a tensor that is such a stack over an input, if it is one. `shown` says what each view shows in the end.
pub(super) fn join_whole(
    graph: &mut Graph,
    (past, made): (TensorId, TensorId),
    shown: &HashMap<TensorId, TensorId>,
) {
    let Some(found) = found(graph, (past, made), shown) else { return };
    let nodes = &graph.body.nodes;
    let (location, element) = (nodes[found.stack].location.clone(), graph.tensor(made).element);
    let Concat { outer, sizes, inner, dtype, written: _ } = &found.each;
    let (outer, inner, dtype, parts) = (*outer, *inner, *dtype, Size::from(found.new.len() as u64));
    let (total, added) = (sizes[0] + sizes[1], outer * sizes[1] * inner);
    let name = format!("{} to add", graph.tensor(made).name);
    let shape = Shape::new([parts * outer, sizes[1], inner]);
    let new = graph.add_tensor(Tensor::new(name, element, shape));
    let node = |operation, inputs, output| Node {
        op: NodeOp::Operation(operation),
        inputs,
        outputs: vec![output],
        location: location.clone(),
    };
    let stacked = Concat { sizes: vec![added; found.new.len()], ..Concat::new(1, &[], 1, dtype) };
    let joined = Concat { sizes: sizes.clone(), ..Concat::new(parts * outer, &[], inner, dtype) };
    let mut made_of = vec![
        node(Operation::Concat(stacked), found.new.clone(), new),
        node(Operation::Concat(joined), vec![past, new], made),
    ];
    let dims = vec![outer, total, inner];
    let part = outer * total * inner;
    made_of.extend((0u64..).zip(&found.whole).map(|(index, whole)| {
        let copy = StridedCopy {
            source: parts * part,
            shape: dims.clone(),
            strides: dense_strides(&dims),
            offset: part * Size::from(index),
            dtype,
        };
        node(Operation::StridedCopy(copy), vec![made], *whole)
    }));
    let last = found.joins.iter().copied().max().unwrap_or(found.stack);
    let mut nodes = Vec::with_capacity(graph.body.nodes.len() + 2);
    for (place, node) in std::mem::take(&mut graph.body.nodes).into_iter().enumerate() {
        if !found.joins.contains(&place) && place != found.stack {
            nodes.push(node);
        }
        if place == last {
            nodes.append(&mut made_of);
        }
    }
    graph.body.nodes = nodes;
}

fn found(
    graph: &Graph,
    (past, made): (TensorId, TensorId),
    shown: &HashMap<TensorId, TensorId>,
) -> Option<Stack> {
    let nodes = &graph.body.nodes;
    let root = |id: &TensorId| shown.get(id).copied().unwrap_or(*id);
    let maker = |id: TensorId| nodes.iter().position(|node| node.outputs.contains(&id));
    let stack = maker(made)?;
    let NodeOp::Operation(Operation::Concat(stacked)) = &nodes[stack].op else { return None };
    if nodes[stack].inputs.len() > MOST_PARTS {
        return None;
    }
    let mut found =
        Stack { joins: Vec::new(), stack, new: Vec::new(), whole: Vec::new(), each: stacked.clone() };
    let parts = Size::from(nodes[stack].inputs.len() as u64);
    for (index, part) in (0u64..).zip(&nodes[stack].inputs) {
        let whole = root(part);
        let place = maker(whole)?;
        let NodeOp::Operation(Operation::Concat(join)) = &nodes[place].op else { return None };
        let ([before, new], [rows, _]) = (&nodes[place].inputs[..], &join.sizes[..]) else { return None };
        if index == 0 {
            found.each = join.clone();
        }
        let bytes = join.outer * *rows * join.inner;
        let from = maker(root(before))?;
        let NodeOp::Operation(Operation::StridedCopy(copy)) = &nodes[from].op else { return None };
        let is_part = root(&nodes[from].inputs[0]) == past
            && copy.source.is(parts * bytes)
            && copy.offset.is(bytes * Size::from(index))
            && is_dense(copy, bytes);
        let own = stacked.sizes[index as usize] * stacked.inner;
        let is_stacked = stacked.outer.is(1.into()) && own.is(join.outer * join.total() * join.inner);
        if !is_part || !is_stacked || !is_like(join, &found.each) || found.joins.contains(&place) {
            return None;
        }
        found.joins.push(place);
        found.new.push(*new);
        found.whole.push(whole);
    }
    let last = found.joins.iter().copied().max()?;
    // What reads a part comes behind all of them.
    let is_early = |(place, node): (usize, &Node)| {
        place < last
            && !found.joins.contains(&place)
            && node.reads().iter().any(|id| found.whole.contains(id))
    };
    let early = nodes.iter().enumerate().any(is_early);
    (found.whole.len() > 1 && !early && stack > last).then_some(found)
}

/// Whether a copy takes so many elements that lie behind each other.
fn is_dense(copy: &StridedCopy, elements: Size) -> bool {
    let dense = dense_strides(&copy.shape);
    let mut places = copy.shape.iter().zip(copy.strides.iter().zip(&dense));
    copy.shape.iter().product::<Size>().is(elements)
        && places.all(|(size, (own, dense))| size.is(1.into()) || own.is(*dense))
}

fn is_like(one: &Concat, other: &Concat) -> bool {
    let sizes =
        one.sizes.len() == other.sizes.len() && one.sizes.iter().zip(&other.sizes).all(|(a, b)| a.is(*b));
    sizes && one.outer.is(other.outer) && one.inner.is(other.inner) && one.dtype == other.dtype
}
