//! Elementwise operations read parts of tensors, and elements in another order, where they lie: no copy makes them dense first.
//! A copy of what one computes is the operation itself, in the copy's order.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation,
    copy::StridedCopy,
    elementwise::{Elementwise, MOST_DIMS},
    expression::Expression,
    strides::{Strides, broadcast_strides},
};
use halite_sizes::Size;

use super::{
    Result, Uses,
    chain::{Chain, replace},
    strides::Strided,
};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Most elements that are read across rows: of more, the copy through shared memory is faster than reads that are far apart.
const MOST_ACROSS: u64 = 1 << 20;
/// Numbers that a kernel is given, which may be open.
const MOST_NUMBERS: usize = 32;

/// Puts copies into the elementwise operations before and behind them; what is not needed any more goes with the next cleaning.
pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    replace(graph, region, uses, watch, copied, |walks, graph, node| {
        let made = walks.into_node(graph, node);
        vec![made.unwrap_or_else(|| node.clone())]
    })?;
    absorb(graph, region, uses, watch)
}

/// An elementwise node that reads an input out of a larger tensor, as a copy of it would be.
pub(crate) fn strided_read(graph: &Graph, node: &Node, input: usize, copy: &StridedCopy) -> Option<Node> {
    let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
    let mut walks = Walks::of(elementwise, &node.inputs);
    // A table is read as it lies.
    (input < walks.inputs.len()).then_some(())?;
    walks.read_behind(input, copy, node.inputs[input])?;
    walks.into_node(graph, node)
}

/// An elementwise operation as walks over its inputs.
#[derive(Clone)]
struct Walks {
    /// Dimensions of the results.
    sizes: Vec<Size>,
    inputs: Vec<Walk>,
    program: Expression,
    /// Tensor, type and dimensions of each table.
    tables: Vec<(TensorId, DType, Vec<Size>)>,
}

/// How an input is read.
#[derive(Clone)]
struct Walk {
    dtype: DType,
    /// Elements of the tensor that is read.
    source: Size,
    /// Where the elements are; its sizes are those of the results.
    seen: Strided,
}

impl Walks {
    fn of(elementwise: &Elementwise, ids: &[TensorId]) -> Walks {
        let sizes = elementwise.dims();
        let (ids, tables) = ids.split_at(elementwise.inputs.0.len());
        let tables = tables.iter().zip(&elementwise.tables.0);
        let tables = tables.map(|(id, (dtype, dims))| (*id, *dtype, dims.clone())).collect();
        let sources = Operation::Elementwise(elementwise.clone()).inputs();
        let inputs = ids.iter().zip(sources).enumerate().map(|(input, (tensor, desc))| {
            let (strides, offset) = elementwise.walk(input);
            let seen = Strided { tensor: *tensor, offset, sizes: sizes.clone(), strides };
            Walk { dtype: desc.dtype, source: desc.elements(), seen }
        });
        Walks { inputs: inputs.collect(), sizes, program: elementwise.program.clone(), tables }
    }

    /// Takes a dimension of the results apart.
    fn part(&mut self, dim: usize, inner: Size) {
        self.sizes.splice(dim..=dim, [self.sizes[dim] / inner, inner]);
        self.inputs.iter_mut().for_each(|walk| walk.seen.part(dim, inner));
    }

    /// Lets an input read the source of the copy that makes what it reads.
    fn read_behind(&mut self, input: usize, copy: &StridedCopy, source: TensorId) -> Option<()> {
        loop {
            let walk = &mut self.inputs[input];
            if let Some(seen) = walk.seen.through(copy, source) {
                (walk.seen, walk.source) = (seen, copy.source);
                return (walk.dtype == copy.dtype && !self.is_across(input)).then_some(());
            }
            let (dim, inner) = walk.seen.parting(copy).filter(|_| self.sizes.len() < MOST_DIMS)?;
            self.part(dim, inner);
        }
    }

    /// The same results in the order of a copy of them.
    fn in_order_of(self, copy: &StridedCopy) -> Option<Walks> {
        let results = Strided {
            tensor: TensorId(0),
            offset: copy.offset,
            sizes: copy.shape.clone(),
            strides: copy.strides.clone(),
        };
        let mut order = results;
        'again: loop {
            let mut inputs = Vec::with_capacity(self.inputs.len());
            for walk in &self.inputs {
                let (shape, strides) = (self.sizes.clone(), walk.seen.strides.clone());
                let read = StridedCopy {
                    source: walk.source,
                    shape,
                    strides,
                    offset: walk.seen.offset,
                    dtype: walk.dtype,
                };
                let Some(seen) = order.through(&read, walk.seen.tensor) else {
                    let (dim, inner) = order.parting(&read).filter(|_| order.sizes.len() < MOST_DIMS)?;
                    order.part(dim, inner);
                    continue 'again;
                };
                inputs.push(Walk { seen, ..walk.clone() });
            }
            let made = Walks { sizes: order.sizes, inputs, ..self };
            let across = (0..made.inputs.len()).any(|input| made.is_across(input));
            return (!across).then_some(made);
        }
    }

    /// Whether neighbours of many results lie apart in an input.
    fn is_across(&self, input: usize) -> bool {
        let strides = &self.inputs[input].seen.strides;
        let last = self.sizes.iter().zip(strides).rfind(|(size, _)| **size != 1);
        let apart = last.is_some_and(|(_, stride)| !(stride.is(0.into()) || stride.is(1.into())));
        apart && self.sizes.iter().map(|size| size.value()).fold(1, u64::saturating_mul) > MOST_ACROSS
    }

    /// The node with this operation in the place of another; `None` where kernels do not compute it, or only for fixed sizes
    /// that are open.
    fn into_node(self, graph: &Graph, node: &Node) -> Option<Node> {
        let count: Size = self.sizes.iter().product();
        let open = self.sizes.iter().any(|size| !size.is_constant());
        let strides = self.inputs.iter().flat_map(|walk| &walk.seen.strides);
        let numbers = 2
            + 3 * self.sizes.len()
            + self.inputs.len()
            + self.tables.len()
            + strides.filter(|s| !s.is(0.into())).count();
        if open && numbers > MOST_NUMBERS {
            return None;
        }
        let (mut shapes, mut strided, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (input, walk) in self.inputs.iter().enumerate() {
            // Dimensions in which no input goes on are the first's.
            let alone =
                |dim: usize| input == 0 && self.inputs.iter().all(|w| w.seen.strides[dim].is(0.into()));
            let each = self.sizes.iter().zip(&walk.seen.strides).enumerate();
            let own: Vec<Size> = each
                .map(
                    |(dim, (size, stride))| if stride.is(0.into()) && !alone(dim) { 1.into() } else { *size },
                )
                .collect();
            let (offset, walked) = (walk.seen.offset, walk.seen.strides.clone());
            let dense = broadcast_strides(&own, &self.sizes);
            let same = dense.iter().zip(&walked).zip(&own).all(|((a, b), size)| a.is(*b) || *size == 1);
            if !(same && offset.is(0.into()) && walk.source == own.iter().product::<Size>()) {
                strided.push(Strides { input, source: walk.source, offset, strides: walked });
            }
            shapes.push((walk.dtype, own));
            ids.push(walk.seen.tensor);
        }
        ids.extend(self.tables.iter().map(|(id, ..)| *id));
        let tables = self.tables.into_iter().map(|(_, dtype, dims)| (dtype, dims)).collect();
        let operation = Elementwise { strided, ..Elementwise::new(shapes, self.program).with_tables(tables) };
        let fits = operation.dims().iter().product::<Size>() == count
            && node.outputs.iter().all(|id| graph.tensor(*id).count() == count);
        let operation = Operation::Elementwise(operation);
        if !fits || crate::backend::check(&operation).is_err() {
            return None;
        }
        Some(Node { op: NodeOp::Operation(operation), inputs: ids, ..node.clone() })
    }
}

/// The operation whose results a copy reads alone, in the copy's order.
fn copied(chain: &Chain<'_>, node: &Node) -> Option<Walks> {
    let NodeOp::Operation(Operation::StridedCopy(copy)) = &node.op else { return None };
    let (producer, Operation::Elementwise(elementwise)) = chain.only_maker(node.inputs[0])? else {
        return None;
    };
    let [output] = &elementwise.program.outputs[..] else { return None };
    let whole: Size = elementwise.dims().iter().product();
    // What data decide is not promised for the sake of it.
    let fits = whole.is_below(copy.shape.iter().product::<Size>()) == Some(false);
    if output.dtype != copy.dtype || copy.source != whole || !fits {
        return None;
    }
    let made = Walks::of(elementwise, &producer.inputs).in_order_of(copy)?;
    made.clone().into_node(chain.graph, node)?;
    Some(made)
}

/// What reads a tensor.
#[derive(Default)]
struct Readers {
    /// Nodes of the region and their inputs, through views too.
    inputs: Vec<(usize, usize)>,
    /// Whether something else does.
    other: bool,
}

/// Lets elementwise operations read what copies read, where nothing else needs the copy.
fn absorb(graph: &Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let mut shown: HashMap<TensorId, TensorId> = HashMap::new();
    let mut readers: HashMap<TensorId, Readers> = HashMap::new();
    let root = |shown: &HashMap<TensorId, TensorId>, id: TensorId| shown.get(&id).copied().unwrap_or(id);
    // How often tensors are read here, to tell what inner regions and results read.
    let mut here: HashMap<TensorId, usize> = HashMap::new();
    for (place, node) in region.nodes.iter().enumerate() {
        watch.check()?;
        node.inputs.iter().for_each(|id| *here.entry(*id).or_default() += 1);
        if let (NodeOp::View, [from], [to]) = (&node.op, &node.inputs[..], &node.outputs[..])
            && graph.tensor(*from).element == graph.tensor(*to).element
        {
            shown.insert(*to, root(&shown, *from));
            continue;
        }
        for (input, id) in node.inputs.iter().enumerate() {
            let of = readers.entry(root(&shown, *id)).or_default();
            of.inputs.push((place, input));
            of.other |= !matches!(node.op, NodeOp::Operation(Operation::Elementwise(_)));
        }
    }
    for (id, count) in &here {
        readers.entry(root(&shown, *id)).or_default().other |= uses.count(*id) != *count;
    }
    // Results that are views of what nothing else reads.
    for id in &region.results {
        readers.entry(root(&shown, *id)).or_default().other = true;
    }
    for place in 0..region.nodes.len() {
        watch.check()?;
        let NodeOp::Operation(Operation::StridedCopy(copy)) = &region.nodes[place].op else { continue };
        let (copy, node) = (copy.clone(), &region.nodes[place]);
        let Some(of) = readers.get(&node.outputs[0]).filter(|of| !of.other) else { continue };
        let source = root(&shown, node.inputs[0]);
        let Some(new) = with_source(graph, region, of, &copy, source) else { continue };
        for (reader, made) in new {
            uses.replace(&region.nodes[reader], &made);
            region.nodes[reader] = made;
        }
    }
    Ok(())
}

/// The readers of a copy as readers of its source, if all can be that.
fn with_source(
    graph: &Graph,
    region: &Region,
    readers: &Readers,
    copy: &StridedCopy,
    source: TensorId,
) -> Option<Vec<(usize, Node)>> {
    let mut new: Vec<(usize, Node)> = Vec::new();
    for (place, input) in &readers.inputs {
        let node = match new.iter().position(|(reader, _)| reader == place) {
            Some(at) => new.remove(at).1,
            None => region.nodes[*place].clone(),
        };
        let NodeOp::Operation(Operation::Elementwise(elementwise)) = &node.op else { return None };
        let mut walks = Walks::of(elementwise, &node.inputs);
        // A table is read as it lies.
        (*input < walks.inputs.len()).then_some(())?;
        walks.read_behind(*input, copy, source)?;
        new.push((*place, walks.into_node(graph, &node)?));
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::Function;

    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::{Builder, Range};

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    fn names(graph: &Graph) -> Vec<&'static str> {
        kernels(graph).into_iter().map(Operation::name).collect()
    }

    fn part(start: u64, count: u64) -> Range {
        Range { start, step: 1, count }
    }

    #[test]
    fn gates_are_read_where_they_lie() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 3, 12]).unwrap();
        let gates =
            [0, 4, 8].map(|start| b.slice(x, &[Range::all(2), Range::all(3), part(start, 4)]).unwrap());
        let gate = b.unary(Function::Sigmoid, gates[0]).unwrap();
        let y = b.binary(Function::Mul, gate, gates[1]).unwrap();
        let y = b.binary(Function::Add, y, gates[2]).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["elementwise"], "{graph}");
    }

    #[test]
    fn transposes_before_and_behind_are_read_through() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 6, 5]).unwrap();
        let z = b.input("z", F32, &[1, 5, 6]).unwrap();
        let turned = b.transpose(x, &[0, 2, 1]).unwrap();
        let flat = b.reshape(turned, &[2, 30]).unwrap();
        let other = b.reshape(z, &[30]).unwrap();
        let sum = b.binary(Function::Add, flat, other).unwrap();
        let sum = b.reshape(sum, &[2, 5, 2, 3]).unwrap();
        let y = b.transpose(sum, &[2, 0, 3, 1]).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["elementwise"], "{graph}");
    }

    #[test]
    fn copies_that_something_else_reads_stay() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[4, 6]).unwrap();
        let turned = b.transpose(x, &[1, 0]).unwrap();
        let y = b.unary(Function::Exp, turned).unwrap();
        b.output("y", y);
        b.output("turned", turned);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["copy", "elementwise"], "{graph}");
        let NodeOp::Operation(Operation::Elementwise(op)) = &graph.body.nodes.last().unwrap().op else {
            panic!()
        };
        assert!(op.strided.is_empty());
    }

    #[test]
    fn repeated_results_are_computed_once() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[4, 1]).unwrap();
        let y = b.unary(Function::Exp, x).unwrap();
        let y = b.expand(y, &[4, 6]).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(names(&graph), ["elementwise", "copy"], "{graph}");
    }
}
