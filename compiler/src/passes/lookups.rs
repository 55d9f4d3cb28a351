//! What is picked out of a small table one element at a time becomes an elementwise operation, which is then joined with those
//! that compute the indices and those that read what was picked.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{Expression, Function, Operand, Scalar, Type},
    gather::Gather,
};

use super::{Result, Uses};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

/// Most entries of a table: reads of larger ones are far apart, and gain nothing from being in one kernel with arithmetic.
const MOST_ENTRIES: u64 = 4096;

pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let sides = Sides::of(graph, region, uses);
    for node in &mut region.nodes {
        watch.check()?;
        if let Some(looked_up) = looked_up(graph, node, &sides) {
            // Indices come first now; each tensor is read as often as before.
            node.inputs.swap(0, 1);
            node.op = NodeOp::Operation(Operation::Elementwise(looked_up));
        }
    }
    Ok(())
}

/// Tensors that only one elementwise operation makes, or reads, through views too.
struct Sides {
    made: HashSet<TensorId>,
    read: HashSet<TensorId>,
}

impl Sides {
    fn of(graph: &Graph, region: &Region, uses: &Uses) -> Sides {
        let (mut made, mut read) = (HashSet::new(), HashSet::new());
        let alone = |id: &TensorId| uses.count(*id) == 1;
        let mut views: HashMap<TensorId, TensorId> = HashMap::new();
        for node in &region.nodes {
            match &node.op {
                NodeOp::Operation(Operation::Elementwise(_)) => {
                    made.extend(node.outputs.iter().copied().filter(alone));
                    for id in node.inputs.iter().filter(|id| alone(id)) {
                        let mut id = *id;
                        read.insert(id);
                        while let Some(from) = views.get(&id).copied().filter(alone) {
                            read.insert(from);
                            id = from;
                        }
                    }
                }
                NodeOp::View => {
                    let (from, to) = (node.inputs[0], node.outputs[0]);
                    if graph.tensor(from).element == graph.tensor(to).element {
                        views.insert(to, from);
                        if made.contains(&from) && alone(&to) {
                            made.insert(to);
                        }
                    }
                }
                _ => {}
            }
        }
        Sides { made, read }
    }
}

/// The elementwise operation that a node's picking is, where it will be joined with another.
fn looked_up(graph: &Graph, node: &Node, sides: &Sides) -> Option<Elementwise> {
    let NodeOp::Operation(Operation::Gather(gather)) = &node.op else { return None };
    let ([data, indices], [out]) = (&node.inputs[..], &node.outputs[..]) else { return None };
    let small = gather.axis.is_constant() && gather.axis > 0 && gather.axis <= MOST_ENTRIES;
    // Of other types expressions do not keep every bit.
    let exact = !gather.dtype.is_float() || gather.dtype == DType::F32;
    let one_by_one = gather.outer == 1 && gather.inner == 1;
    let known = |id: &TensorId| graph.tensor(*id).constant.is_some();
    if !(small && exact && one_by_one && known(data)) || known(indices) {
        return None;
    }
    if !sides.made.contains(indices) && !sides.read.contains(out) {
        return None;
    }
    let sizes = graph.tensor(*indices).sizes().to_vec();
    let table = (gather.dtype, vec![gather.axis]);
    let made = Elementwise::new([(gather.index, sizes)], program(gather)).with_tables(vec![table]);
    crate::backend::check(&Operation::Elementwise(made.clone())).is_ok().then_some(made)
}

/// Indices below 0 count from the end; those that are out of range give 0.
fn program(gather: &Gather) -> Expression {
    let mut program = Expression::default();
    let number = |value: i64| Operand::Constant(Scalar::Int(value, gather.index));
    let (zero, entries) = (number(0), number(gather.axis.exact() as i64));
    let index = Operand::Input(0);
    let from_end = program.call(Function::Lt, &[index, zero]);
    let added = program.call(Function::Add, &[index, entries]);
    let place = program.call(Function::Select, &[from_end, added, index]);
    let [first, last] = [(Function::Ge, zero), (Function::Lt, entries)]
        .map(|(function, limit)| program.call(function, &[place, limit]));
    let inside = program.call(Function::And, &[first, last]);
    let place = program.cast(Type::Of(DType::I32), place);
    let entry = program.lookup(gather.dtype, place, Operand::Table(0));
    let nothing = if gather.dtype.is_float() { Scalar::Float(0.0) } else { Scalar::Int(0, gather.dtype) };
    let value = program.call(Function::Select, &[inside, entry, Operand::Constant(nothing)]);
    program.store(value, gather.dtype);
    program
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::super::tests::{kernels, optimized};
    use super::*;
    use crate::build::Builder;

    /// What lies one behind indices in a table, with another sign.
    fn picked(index: DType, entry: DType) -> (Graph, Vec<Values>) {
        let mut b = Builder::new();
        let x = b.input("x", index.into(), &[3, 8]).unwrap();
        let values = if entry.is_float() {
            Values::Float((0..7).map(|n| f64::from(n) * 0.5 - 1.0).collect())
        } else {
            Values::Int((0..7).map(|n| n * 13 - 40).collect())
        };
        let table = b.constant("table", entry.into(), &[7], values.to_bytes(entry).into()).unwrap();
        let one = b.constant("one", index.into(), &[1], Values::Int(vec![1]).to_bytes(index).into()).unwrap();
        let place = b.binary(Function::Add, x, one).unwrap();
        let place = b.reshape(place, &[24]).unwrap();
        let found = b.gather(table, place, 0).unwrap();
        let found = b.reshape(found, &[4, 6]).unwrap();
        let y = b.unary(Function::Neg, found).unwrap();
        b.output("y", y);
        // From far below to far behind the table.
        (b.finish().unwrap(), vec![Values::Int((0..24).map(|n| n - 12).collect())])
    }

    #[test]
    fn picking_is_joined_with_what_computes_indices_and_what_reads() {
        for index in [DType::I32, DType::I64] {
            for entry in [DType::F32, DType::I8, DType::U16, DType::I64] {
                let (graph, x) = picked(index, entry);
                let expected = graph.evaluate(&x).unwrap();
                let graph = optimized(graph);
                let [Operation::Elementwise(only)] = kernels(&graph)[..] else { panic!("{graph}") };
                assert_eq!(only.tables.0.len(), 1, "{graph}");
                assert_eq!(graph.evaluate(&x).unwrap(), expected, "{graph}");
            }
        }
    }

    #[test]
    fn picking_alone_and_of_large_tables_stays() {
        let made = |entries: u64, alone: bool| {
            let mut b = Builder::new();
            let x = b.input("x", DType::I32.into(), &[9]).unwrap();
            let bytes = Values::Int((0..entries as i64).collect()).to_bytes(DType::I32);
            let table = b.constant("table", DType::I32.into(), &[entries], bytes.into()).unwrap();
            let place = if alone { x } else { b.unary(Function::Abs, x).unwrap() };
            let y = b.gather(table, place, 0).unwrap();
            b.output("y", y);
            kernels(&optimized(b.finish().unwrap())).into_iter().map(Operation::name).collect::<Vec<_>>()
        };
        assert_eq!(made(MOST_ENTRIES, false), ["elementwise"]);
        assert_eq!(made(MOST_ENTRIES + 1, false), ["elementwise", "gather"]);
        assert_eq!(made(8, true), ["gather"]);
    }
}
