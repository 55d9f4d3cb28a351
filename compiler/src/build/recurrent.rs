//! Recurrent networks as one operation: weights laid out for its kernels, and layers on top of each other as one.

use halite_ops::{
    Activation, DType, Op, Operation,
    expression::Function,
    pad::Border,
    recurrent::{BLOCK, Cell, Direction, Recurrent},
};

use halite_sizes::Size;

use super::{Builder, Range, Result};
use crate::graph::{Node, NodeOp, Region, TensorId};

/// Weights of a layer's recurrence from which on layers are worth having in one operation. Smaller layers do all their steps in
/// one workgroup, and what they read is better multiplied for all steps at once.
const MANY_WEIGHTS: u64 = 1 << 16;
/// Most units of such layers: sums of twice as many terms have room in the shared memory of every device.
const MOST_UNITS: u64 = 1536;
/// Views and conversions that are looked through for the layer below.
const MOST_VIEWS: usize = 6;
/// Nodes among which it is looked for.
const MOST_NODES: usize = 64;

/// A layer of a recurrent network, as models give it. Tensors are `f32`; gates come in the order of [`Cell`].
#[derive(Clone, Debug)]
pub struct RecurrentLayer {
    /// What a unit does.
    pub cell: Cell,
    /// The order of steps.
    pub direction: Direction,
    /// The function of a unit.
    pub activation: Activation,
    /// What is read, `[steps, batch, width]`.
    pub x: TensorId,
    /// `[directions, gates * hidden, width]`.
    pub weights: TensorId,
    /// `[directions, gates * hidden, hidden]`.
    pub recurrence: TensorId,
    /// `[directions, gates * hidden]`: what is added to sums from outside.
    pub bias: Option<TensorId>,
    /// `[directions, hidden]`: what a GRU adds before the reset; all GRUs have it.
    pub reset_bias: Option<TensorId>,
    /// `[states, directions, batch, hidden]`.
    pub state: TensorId,
    /// Lengths of sequences, `[batch]` of `i32`.
    pub lengths: Option<TensorId>,
}

/// Layers on top of each other, and their results: what the last layer gives, and the last states of all.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    out: TensorId,
    last: TensorId,
    layers: Vec<RecurrentLayer>,
}

impl Builder {
    /// A recurrent layer: `[steps, directions, batch, hidden]`, and the last state, `[states, directions, batch, hidden]`. Where it
    /// reads all that a large layer of the same kind gives, both become one operation.
    ///
    /// # Errors
    /// Dimensions do not go together.
    pub fn recurrent(&mut self, layer: RecurrentLayer) -> Result<[TensorId; 2]> {
        let is_open = self.is_open(&[layer.x]);
        let below = if is_open { None } else { self.below(&layer) };
        let mut layers = below.as_ref().map_or_else(Vec::new, |stack| stack.layers.clone());
        layers.push(layer);
        let made = self.stacked(&layers)?;
        let count = layers.len() as u64;
        if let Some(below) = below {
            self.last_states.push((below.last, made[1], count - 1));
        }
        if !is_open {
            self.stacks.push(Stack { out: made[0], last: made[1], layers });
        }
        let dims = self.sizes(made[1]).to_vec();
        let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
        if count > 1 {
            ranges[1] = Range { start: (count - 1).into(), step: 1, count: 1.into() };
        }
        Ok([made[0], self.slice(made[1], &ranges)?])
    }

    /// Lets what reads last states of layers read them of the operation that has these layers and more, so that the one with fewer
    /// layers is not needed for them.
    pub(super) fn share_last_states(&mut self) -> Result<()> {
        for (below, last, count) in std::mem::take(&mut self.last_states) {
            let Some((place, readers)) = self.open.last().and_then(|body| copies(body, below, last)) else {
                continue;
            };
            let mut ranges: Vec<Range> = self.dims(last).iter().map(|size| Range::all(*size)).collect();
            ranges[1].count = count;
            let before = self.nodes();
            let part = self.slice(last, &ranges)?;
            let nodes = &mut self.open.last_mut().expect("the body is open").nodes;
            let mut moved: Vec<Node> = nodes.drain(before..).collect();
            for (gone, reader) in readers.iter().enumerate() {
                moved.push(nodes.remove(reader - gone));
            }
            let behind = place + 1 - readers.len();
            nodes.splice(behind..behind, moved);
            let inputs = nodes.iter_mut().flat_map(|node| &mut node.inputs);
            inputs.filter(|id| **id == below).for_each(|id| *id = part);
        }
        Ok(())
    }

    /// The layers that a layer can be put on top of.
    fn below(&self, layer: &RecurrentLayer) -> Option<Stack> {
        let [_, rows, hidden] = *self.tensor(layer.recurrence).sizes() else { return None };
        let weights = rows.value().saturating_mul(hidden.value());
        let nodes = &self.open.last()?.nodes;
        let mut id = layer.x;
        for _ in 0..MOST_VIEWS {
            let node = nodes.iter().rev().take(MOST_NODES).find(|node| node.outputs.contains(&id))?;
            if let Some(stack) = self.stacks.iter().find(|stack| stack.out == id) {
                let first = &stack.layers[0];
                let same = first.cell == layer.cell
                    && (first.direction, layer.direction) == (Direction::Forward, Direction::Forward)
                    && first.activation == layer.activation
                    && first.lengths.is_none()
                    && layer.lengths.is_none()
                    && self.tensor(first.state).sizes() == self.tensor(layer.state).sizes();
                let worth = weights > MANY_WEIGHTS && hidden <= MOST_UNITS;
                return (same && worth).then(|| stack.clone());
            }
            // Models with 16 bits round between layers, which the operation does not.
            let is_passed = match &node.op {
                NodeOp::View => true,
                NodeOp::Operation(Operation::Elementwise(plain)) => plain.conversion().is_some(),
                _ => false,
            };
            if !is_passed {
                return None;
            }
            id = node.inputs[0];
        }
        None
    }

    /// The operation of layers on top of each other.
    fn stacked(&mut self, layers: &[RecurrentLayer]) -> Result<[TensorId; 2]> {
        let first = &layers[0];
        let [steps, batch, _] = *self.sizes(first.x) else {
            return Err(self.invalid(format!("{} is no sequence of vectors", self.describe(&[first.x]))));
        };
        let [_, _, hidden] = *self.dims(first.recurrence) else {
            return Err(
                self.invalid(format!("{} are no recurrence weights", self.describe(&[first.recurrence])))
            );
        };
        let op = Recurrent {
            cell: first.cell,
            steps,
            batch,
            hidden,
            layers: layers.len() as u64,
            direction: first.direction,
            activation: first.activation,
            lengths: first.lengths.is_some(),
            dtype: DType::F32,
        };
        let projected = self.projected(first, &op)?;
        let mut inputs = vec![projected];
        self.weights_and_states(layers, &op, &mut inputs)?;
        inputs.extend(first.lengths);
        let outputs = op.outputs();
        let results = [0, 1].map(|index| (DType::F32.into(), outputs[index].dims.to_vec()));
        let made = self.kernel(Operation::Recurrent(op), &inputs, &results)?;
        Ok([made[0], made[1]])
    }

    /// What the steps of the first layer add to its sums.
    fn projected(&mut self, first: &RecurrentLayer, op: &Recurrent) -> Result<TensorId> {
        let [_, _, width] = *self.dims(first.weights) else {
            return Err(self.invalid(format!("{} are no weights", self.describe(&[first.weights]))));
        };
        let (directions, rows) = (op.directions(), op.rows());
        let weights = self.reshape(first.weights, &[directions * rows, width])?;
        let mut projected = self.product(first.x, weights, true)?;
        if let Some(bias) = first.bias {
            let bias = self.reshape(bias, &[directions * rows])?;
            projected = self.binary(Function::Add, projected, bias)?;
        }
        self.reshape_to(projected, &[op.steps, op.batch, directions.into(), rows.into()])
    }

    /// The other inputs, but for lengths.
    fn weights_and_states(
        &mut self,
        layers: &[RecurrentLayer],
        op: &Recurrent,
        inputs: &mut Vec<TensorId>,
    ) -> Result<()> {
        let mut weights = vec![self.weights_in_blocks(op, layers[0].recurrence)?];
        for layer in &layers[1..] {
            let both = self.concat(&[layer.weights, layer.recurrence], 2)?;
            let both = self.weights_in_blocks(op, both)?;
            weights.push(self.reshape(both, &[2, op.blocks(), op.hidden, op.cell.gates(), BLOCK])?);
        }
        let states: Vec<TensorId> = layers.iter().map(|layer| layer.state).collect();
        inputs.extend([self.concat(&weights, 0)?, self.concat(&states, 1)?]);
        if layers.len() == 1 {
            inputs.extend(layers[0].reset_bias);
            return Ok(());
        }
        let first = usize::from(op.cell != Cell::Gru);
        let biases = layers[first..].iter().map(|layer| self.biases(op, layer));
        let biases = biases.collect::<Result<Vec<_>>>()?;
        let all = self.concat(&biases, 0)?;
        inputs.push(match op.cell {
            Cell::Gru => self.reshape(all, &[op.layers, op.cell.gates() + 1, op.hidden])?,
            Cell::Rnn | Cell::Lstm => all,
        });
        Ok(())
    }

    /// The biases of a layer among others, `[1, gates * hidden]`, and of a GRU behind them what it adds before the reset.
    fn biases(&mut self, op: &Recurrent, layer: &RecurrentLayer) -> Result<TensorId> {
        let gates = match layer.bias {
            Some(bias) => bias,
            None => {
                let zero = self.float(DType::F32, 0.0)?;
                self.expand(zero, &[1, op.rows()])?
            }
        };
        layer.reset_bias.map_or(Ok(gates), |reset| self.concat(&[gates, reset], 1))
    }

    /// `[count, gates * hidden, terms]` as blocks of eight units.
    fn weights_in_blocks(&mut self, op: &Recurrent, weights: TensorId) -> Result<TensorId> {
        let [count, _, terms] = *self.dims(weights) else {
            return Err(self.invalid(format!("{} are no weights", self.describe(&[weights]))));
        };
        let (gates, blocks) = (op.cell.gates(), op.blocks());
        let parts = self.reshape(weights, &[count, gates, op.hidden, terms])?;
        let more = (blocks * BLOCK - op.hidden) as i64;
        let parts = self.pad(parts, &[(0, 0), (0, 0), (0, more), (0, 0)], Border::Constant, 0.0)?;
        let parts = self.reshape(parts, &[count, gates, blocks, BLOCK, terms])?;
        self.transpose(parts, &[0, 2, 4, 1, 3])
    }
}

/// Where `last` is defined, and the copies and views before that place that make something of `below`; none where another node before it
/// reads that.
fn copies(body: &Region, below: TensorId, last: TensorId) -> Option<(usize, Vec<usize>)> {
    let place = body.nodes.iter().position(|node| node.outputs.contains(&last))?;
    let (mut readers, mut reached) = (Vec::new(), vec![below]);
    for (reader, node) in body.nodes[..=place].iter().enumerate() {
        // Bodies name what they read themselves.
        if matches!(node.op, NodeOp::If(_) | NodeOp::Loop(_)) {
            return None;
        }
        if node.inputs.iter().any(|id| reached.contains(id)) {
            let copies = matches!(node.op, NodeOp::View | NodeOp::Operation(Operation::StridedCopy(_)));
            readers.push(reader);
            reached.extend(copies.then_some(&node.outputs)?);
        }
    }
    Some((place, readers))
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::*;
    use crate::graph::{ElementType, Graph};

    const F32: ElementType = ElementType::Of(DType::F32);

    fn layer(b: &mut Builder, cell: Cell, x: TensorId, hidden: u64) -> RecurrentLayer {
        let width = b.dims(x)[2];
        let rows = cell.gates() * hidden;
        let zero = b.float(DType::F32, 0.0).unwrap();
        let input = |b: &mut Builder, dims: &[u64]| {
            let name = format!("w{}", b.graph.inputs.len());
            b.input(&name, F32, dims).unwrap()
        };
        let (weights, recurrence) = (input(b, &[1, rows, width]), input(b, &[1, rows, hidden]));
        let bias = Some(input(b, &[1, rows]));
        let reset_bias = (cell == Cell::Gru).then(|| input(b, &[1, hidden]));
        RecurrentLayer {
            cell,
            direction: Direction::Forward,
            activation: Activation::Tanh,
            x,
            weights,
            recurrence,
            bias,
            reset_bias,
            state: b.expand(zero, &[cell.states(), 1, 3, hidden]).unwrap(),
            lengths: None,
        }
    }

    /// What else of the first layer is read.
    #[derive(Clone, Copy, PartialEq)]
    enum Shown {
        Nothing,
        Last,
        All,
    }

    /// What two layers give, and their last states, by the references of operations; `apart` keeps them two operations.
    fn values_of_two(cell: Cell, hidden: u64, apart: bool) -> Vec<Vec<f64>> {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 3, 4]).unwrap();
        let first = layer(&mut b, cell, x, hidden);
        let [out, below] = b.recurrent(first).unwrap();
        let below = b.reshape(below, &[cell.states(), 3, hidden]).unwrap();
        let mut flat = b.reshape(out, &[2, 3, hidden]).unwrap();
        if apart {
            let zero = b.float(DType::F32, 0.0).unwrap();
            flat = b.binary(Function::Add, flat, zero).unwrap();
        }
        let second = layer(&mut b, cell, flat, hidden);
        let [y, last] = b.recurrent(second).unwrap();
        for (name, id) in [("y", y), ("last", last), ("last below", below)] {
            b.output(name, id);
        }
        let graph = b.finish().unwrap();
        let mut seed = 7u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            DType::F32.round(((seed >> 40) as f64 / f64::from(1 << 23) - 1.0) / 12.0)
        };
        let elements = graph.inputs.iter().map(|port| graph.tensor(port.tensor).count().exact());
        let inputs: Vec<Values> =
            elements.map(|count| Values::Float((0..count).map(|_| random()).collect())).collect();
        graph.evaluate(&inputs).unwrap().iter().map(Values::floats).collect()
    }

    #[test]
    fn layers_on_top_of_each_other_give_what_they_give_alone() {
        for cell in [Cell::Lstm, Cell::Gru] {
            let [one, two] = [false, true].map(|apart| values_of_two(cell, 152, apart));
            for (one, two) in one.iter().zip(&two) {
                assert!(one.iter().any(|value| value.abs() > 1e-3));
                let off = one.iter().zip(two).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(one.len() == two.len() && off < 1e-6, "{cell:?}: {off}");
            }
        }
    }

    /// The networks that are left of two layers on top of each other.
    fn of_two(cell: Cell, hidden: u64, shown: Shown) -> (Graph, Vec<Recurrent>) {
        of_two_by(cell, hidden, shown, DType::F32)
    }

    /// The same, of a model that has this type between layers.
    fn of_two_by(cell: Cell, hidden: u64, shown: Shown, between: DType) -> (Graph, Vec<Recurrent>) {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[5, 3, 16]).unwrap();
        let first = layer(&mut b, cell, x, hidden);
        let [out, below] = b.recurrent(first).unwrap();
        let below = b.reshape(below, &[cell.states(), 3, hidden]).unwrap();
        let flat = b.cast(out, between).unwrap();
        let flat = b.reshape(flat, &[5, 3, hidden]).unwrap();
        let flat = b.cast(flat, DType::F32).unwrap();
        let second = layer(&mut b, cell, flat, hidden);
        let [y, last] = b.recurrent(second).unwrap();
        assert_eq!(b.dims(y), [5, 1, 3, hidden]);
        assert_eq!(b.dims(last), [cell.states(), 1, 3, hidden]);
        b.output("y", y);
        b.output("last", last);
        match shown {
            Shown::Nothing => {}
            Shown::Last => b.output("last below", below),
            Shown::All => b.output("below", out),
        }
        let mut graph = b.finish().unwrap();
        crate::passes::optimize(&mut graph).unwrap();
        let networks = graph.body.nodes.iter().filter_map(|node| match &node.op {
            NodeOp::Operation(Operation::Recurrent(op)) => Some(op.clone()),
            _ => None,
        });
        let networks = networks.collect();
        (graph, networks)
    }

    #[test]
    fn large_layers_on_top_of_each_other_are_one_operation() {
        let (graph, networks) = of_two(Cell::Lstm, 136, Shown::Nothing);
        assert_eq!(networks.iter().map(|op| op.layers).collect::<Vec<_>>(), [2], "{graph}");
        let layers = |cell, hidden, shown| -> Vec<u64> {
            of_two(cell, hidden, shown).1.iter().map(|op| op.layers).collect()
        };
        assert_eq!(layers(Cell::Lstm, 32, Shown::Nothing), [1, 1]);
        assert_eq!(layers(Cell::Gru, 160, Shown::Nothing), [2]);
        assert_eq!(layers(Cell::Lstm, 136, Shown::All), [1, 2], "what else reads the first is computed, too");
        assert_eq!(layers(Cell::Lstm, 136, Shown::Last), [2], "all last states are there");
        assert_eq!(layers(Cell::Gru, 160, Shown::Last), [2]);
        let (graph, networks) = of_two_by(Cell::Lstm, 136, Shown::Nothing, DType::F16);
        assert_eq!(networks.iter().map(|op| op.layers).collect::<Vec<_>>(), [2], "{graph}");
    }
}
