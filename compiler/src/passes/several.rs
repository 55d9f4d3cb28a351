//! Elementwise operations with several results: what one computes of another's results is computed with them, also where others
//! read them too, as the cells of recurrent networks are.

use std::collections::{HashMap, HashSet};

use halite_ops::{
    Op, Operation,
    elementwise::Elementwise,
    expression::{Expression, Node as Call, Operand, Type},
};
use halite_sizes::Size;

use super::{Result, Uses, merge::are_short};
use crate::{
    control::Watch,
    graph::{Graph, Node, NodeOp, Region, TensorId},
};

pub(super) fn run(graph: &mut Graph, region: &mut Region, uses: &mut Uses, watch: Watch<'_>) -> Result {
    let states = states(graph, region);
    let mut nodes: Vec<Option<Node>> = region.nodes.drain(..).map(Some).collect();
    let mut places: HashMap<TensorId, usize> = HashMap::new();
    for index in 0..nodes.len() {
        watch.check()?;
        let Some(node) = &nodes[index] else { continue };
        let outputs = node.outputs.clone();
        let found = (!outputs.iter().any(|id| states.contains(id)))
            .then(|| node.inputs.iter().find_map(|id| together(*id, index, &nodes, &places, uses, &states)));
        let Some((first, made)) = found.flatten() else {
            places.extend(outputs.into_iter().map(|id| (id, index)));
            continue;
        };
        for old in [first, index] {
            let old = nodes[old].take().expect("both were just looked at");
            old.inputs.iter().for_each(|id| uses.remove(*id));
        }
        made.inputs.iter().for_each(|id| uses.add(*id));
        // What was there alone for the second is computed where that was.
        let place = if made.outputs == outputs { index } else { first };
        places.extend(made.outputs.iter().map(|id| (*id, place)));
        nodes[place] = Some(made);
    }
    region.nodes = nodes.into_iter().flatten().collect();
    Ok(())
}

/// The new values of states, and what they are views of: what computes them alone is written over the old ones.
fn states(graph: &Graph, region: &Region) -> HashSet<TensorId> {
    let mut states: HashSet<TensorId> =
        graph.states.iter().map(|state| graph.state_tensors(state).1).collect();
    for node in region.nodes.iter().rev().filter(|node| matches!(node.op, NodeOp::View)) {
        if states.contains(&node.outputs[0]) {
            states.insert(node.inputs[0]);
        }
    }
    states
}

fn elementwise(node: &Node) -> Option<&Elementwise> {
    match &node.op {
        NodeOp::Operation(Operation::Elementwise(elementwise)) => Some(elementwise),
        _ => None,
    }
}

/// The node that computes a tensor and the one at `second`, which reads it, as one; and the place of the former.
fn together(
    id: TensorId,
    second: usize,
    nodes: &[Option<Node>],
    places: &HashMap<TensorId, usize>,
    uses: &Uses,
    states: &HashSet<TensorId>,
) -> Option<(usize, Node)> {
    let first = *places.get(&id)?;
    let (maker, reader) = (nodes[first].as_ref()?, nodes[second].as_ref()?);
    let (from, to) = (elementwise(maker)?, elementwise(reader)?);
    let same =
        from.dims().len() == to.dims().len() && from.dims().iter().zip(to.dims()).all(|(a, b)| a.is(b));
    // A table is not.
    let dense = |input: usize| {
        to.strides_of(input).is_none() && to.inputs.0.get(input).is_some_and(|(_, own)| *own == to.dims())
    };
    // All that the reader takes from the maker becomes a value at the same place, whichever of its results led here.
    let mut read = (0..reader.inputs.len()).filter(|input| maker.outputs.contains(&reader.inputs[*input]));
    if !same || !read.all(dense) || maker.outputs.iter().any(|id| states.contains(id)) {
        return None;
    }
    let times = reader.inputs.iter().filter(|input| **input == id).count();
    let alone = uses.count(id) == times && maker.outputs.len() == 1;
    // Parts whose places are computed on the way stay behind what computes these.
    let fixed = to.strided.iter().all(|part| {
        part.offset.is_constant()
            && part.source.is_constant()
            && part.strides.iter().all(|step| step.is_constant())
    });
    let before =
        |id: &TensorId| maker.outputs.contains(id) || places.get(id).is_none_or(|place| *place < first);
    let together = alone || fixed && reader.inputs.iter().all(before);
    if together { Some((first, joined(maker, reader, alone)?)) } else { None }
}

/// Two nodes as one; the first has no result of its own where the second reads it `alone`.
fn joined(maker: &Node, reader: &Node, alone: bool) -> Option<Node> {
    let (from, to) = (elementwise(maker)?, elementwise(reader)?);
    if !are_short(&[from, to]) {
        return None;
    }
    let mut both = Both { inputs: Vec::new(), tables: Vec::new(), program: Expression::default() };
    let made = both.append(maker, from, None)?;
    let known: HashMap<TensorId, Operand> = maker.outputs.iter().copied().zip(made).collect();
    both.append(reader, to, Some(&known))?;
    let outputs = maker.outputs.iter().chain(&reader.outputs).copied();
    let (program, outputs) = match alone {
        true => (
            Expression { outputs: both.program.outputs[1..].to_vec(), ..both.program.clone() },
            reader.outputs.clone(),
        ),
        false => (both.program.clone(), outputs.collect()),
    };
    let (ids, made) = both.elementwise(program);
    let fits =
        made.dims().iter().product::<Size>() == from.dims().iter().product::<Size>() && made.check().is_ok();
    let operation = Operation::Elementwise(made);
    if !fits || crate::backend::check(&operation).is_err() {
        return None;
    }
    Some(Node { op: NodeOp::Operation(operation), inputs: ids, outputs, ..reader.clone() })
}

/// An input: its tensor, type and dimensions, and where it lies if it is not dense.
type Input = (TensorId, halite_ops::DType, Vec<Size>, Option<halite_ops::strides::Strides>);

/// Two operations in the making of one.
struct Both {
    inputs: Vec<Input>,
    /// Tensor, type and dimensions of each table.
    tables: Vec<(TensorId, halite_ops::DType, Vec<Size>)>,
    program: Expression,
}

impl Both {
    /// Its inputs, and the operation on them that computes `program`.
    fn elementwise(self, program: Expression) -> (Vec<TensorId>, Elementwise) {
        let ids = self.inputs.iter().map(|(id, ..)| *id);
        let ids = ids.chain(self.tables.iter().map(|(id, ..)| *id)).collect();
        let strided = self.inputs.iter().enumerate().filter_map(|(input, (.., strides))| {
            let strides = strides.clone()?;
            Some(halite_ops::strides::Strides { input, ..strides })
        });
        let strided = strided.collect();
        let shapes: Vec<_> = self.inputs.into_iter().map(|(_, dtype, dims, _)| (dtype, dims)).collect();
        let tables = self.tables.into_iter().map(|(_, dtype, dims)| (dtype, dims)).collect();
        (ids, Elementwise { strided, ..Elementwise::new(shapes, program).with_tables(tables) })
    }

    /// Appends what an operation computes; inputs that are `known` have these values. Gives its results as others read them;
    /// `None` where that cannot be said.
    fn append(
        &mut self,
        node: &Node,
        elementwise: &Elementwise,
        known: Option<&HashMap<TensorId, Operand>>,
    ) -> Option<Vec<Operand>> {
        let mut operands = Vec::with_capacity(node.inputs.len());
        for (input, (id, (dtype, dims))) in node.inputs.iter().zip(&elementwise.inputs.0).enumerate() {
            operands.push(match known.and_then(|known| known.get(id)) {
                Some(value) => *value,
                None => self.input(*id, *dtype, dims, elementwise, input),
            });
        }
        let offset = self.program.nodes.len();
        let ids = &node.inputs[operands.len()..];
        let tables: Vec<usize> =
            ids.iter().zip(&elementwise.tables.0).map(|(id, table)| self.table(*id, table)).collect();
        let now = |operand: Operand| match operand {
            Operand::Node(index) => Operand::Node(index + offset),
            Operand::Input(index) => operands[index],
            Operand::Table(index) => Operand::Table(tables[index]),
            constant => constant,
        };
        for call in &elementwise.program.nodes {
            let operands = call.operands.iter().map(|operand| now(*operand)).collect();
            self.program.push(Call { operands, ..call.clone() });
        }
        let types = elementwise.program.types(&elementwise.dtypes()).ok()?;
        let mut results = Vec::new();
        for output in &elementwise.program.outputs {
            let value = now(output.value);
            self.program.store(value, output.dtype);
            results.push(match output.value {
                Operand::Node(index) if types[index] == Type::Bool => None,
                Operand::Constant(_) => None,
                _ => Some(value),
            });
        }
        match known {
            Some(_) => Some(Vec::new()),
            None => results.into_iter().collect(),
        }
    }

    /// The number of a table, which is added when it is not there.
    fn table(&mut self, id: TensorId, (dtype, dims): &(halite_ops::DType, Vec<Size>)) -> usize {
        let wanted = (id, *dtype, dims.clone());
        self.tables.iter().position(|own| *own == wanted).unwrap_or_else(|| {
            self.tables.push(wanted);
            self.tables.len() - 1
        })
    }

    fn input(
        &mut self,
        id: TensorId,
        dtype: halite_ops::DType,
        dims: &[Size],
        elementwise: &Elementwise,
        input: usize,
    ) -> Operand {
        let strides =
            elementwise.strides_of(input).map(|own| halite_ops::strides::Strides { input: 0, ..own.clone() });
        let wanted = (id, dtype, dims.to_vec(), strides);
        let at = self.inputs.iter().position(|own| *own == wanted).unwrap_or_else(|| {
            self.inputs.push(wanted);
            self.inputs.len() - 1
        });
        Operand::Input(at)
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Function};

    use super::super::tests::{floats, kernels, optimized};
    use super::*;
    use crate::build::{Builder, Range};

    const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);

    #[test]
    fn cells_and_what_is_computed_of_them_are_one_kernel() {
        let mut b = Builder::new();
        let [x, gate] = ["x", "gate"].map(|name| b.input(name, F32, &[3, 8]).unwrap());
        let cell = b.unary(Function::Exp, x).unwrap();
        let tanh = b.unary(Function::Tanh, cell).unwrap();
        let hidden = b.binary(Function::Mul, tanh, gate).unwrap();
        b.output("cell", cell);
        b.output("hidden", hidden);
        let graph = optimized(b.finish().unwrap());
        let [Operation::Elementwise(only)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert_eq!(only.program.outputs.len(), 2, "{graph}");
    }

    #[test]
    fn results_that_are_read_in_another_order_stay_apart() {
        let made = || {
            let mut b = Builder::new();
            let x = b.input("x", F32, &[3, 8]).unwrap();
            let cell = b.unary(Function::Exp, x).unwrap();
            let tanh = b.unary(Function::Tanh, cell).unwrap();
            let backwards = Range { start: 7, step: -1, count: 8 };
            let turned = b.slice(tanh, &[Range::all(3), backwards]).unwrap();
            let sum = b.binary(Function::Add, cell, turned).unwrap();
            for (name, id) in [("cell", cell), ("tanh", tanh), ("sum", sum)] {
                b.output(name, id);
            }
            b.finish().unwrap()
        };
        let x = [floats(24, 1)];
        let graph = optimized(made());
        assert_eq!(kernels(&graph).len(), 2, "{graph}");
        assert_eq!(graph.evaluate(&x).unwrap(), made().evaluate(&x).unwrap());
    }

    #[test]
    fn what_reads_something_later_stays_apart() {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[3, 8]).unwrap();
        let cell = b.unary(Function::Exp, x).unwrap();
        let later = b.softmax(cell, 1, false).unwrap();
        let y = b.binary(Function::Add, cell, later).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        assert_eq!(kernels(&graph).len(), 3, "{graph}");
    }
}
