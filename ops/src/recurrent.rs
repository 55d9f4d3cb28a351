//! Recurrent networks: steps over a sequence, each of which multiplies the state that the step before left.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{Activation, DType, Op, TensorDesc, Tolerance, Values};

/// Units whose weights lie together.
pub const BLOCK: u64 = 8;

/// What a unit of a network does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// `h = f(x + Rh)`.
    Rnn,
    /// Gates update, reset, new, as ONNX's `GRU` with `linear_before_reset`: `h = (1 - z) tanh(n + r (Rh + b)) + z h`.
    Gru,
    /// Gates input, output, forget, cell, as ONNX's `LSTM`: `c = f c + i tanh(g)`, `h = o tanh(c)`.
    Lstm,
}

impl Cell {
    /// Sums that a unit has.
    pub fn gates(self) -> u64 {
        match self {
            Cell::Rnn => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }

    /// Tensors that a step hands to the next: `h`, and of an LSTM `c`.
    pub fn states(self) -> u64 {
        1 + u64::from(self == Cell::Lstm)
    }
}

/// In which order sequences are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the first step to the last.
    #[default]
    Forward,
    /// From the last step to the first.
    Reverse,
    /// Both, by two networks beside each other.
    Both,
}

/// A recurrent network. Inputs: what each step adds to the sums of the first layer (products of what is read, and biases), `[steps,
/// batch, directions, gates * hidden]`; the weights of the recurrence, `[directions, hidden / 8, hidden, gates, 8]`: of blocks of
/// eight units, for each term, gate and unit, whatever is there behind the last unit; behind them those of each layer above the
/// first, `[hidden / 8, 2 * hidden, gates, 8]`, whose first terms are the units of the layer below and the others its own; the
/// state before, `[states, layers * directions, batch, hidden]`; of a GRU, `[directions, hidden]` that is added before the reset;
/// with several layers, the biases of the others, `[layers - 1, gates * hidden]`; with several of a GRU, `[layers, 4, hidden]` in
/// place of both: biases of the gates, which nothing reads of the first layer, and what is added before the reset; lengths of
/// sequences, `[batch]`, behind which results are 0 and the state stays. Outputs: `h` of the last layer, `[steps, directions,
/// batch, hidden]`, and the state behind the last step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recurrent {
    /// What a unit does.
    pub cell: Cell,
    /// Steps of a sequence.
    pub steps: Size,
    /// Sequences.
    pub batch: Size,
    /// Units of a layer and direction.
    pub hidden: u64,
    /// Layers on top of each other; several only in one direction.
    #[serde(default = "one")]
    pub layers: u64,
    /// The order of steps.
    #[serde(default)]
    pub direction: Direction,
    /// The function of a unit of an RNN, `tanh` or `relu`; others have `tanh`.
    #[serde(default = "tanh")]
    pub activation: Activation,
    /// Whether sequences have lengths of their own.
    #[serde(default)]
    pub lengths: bool,
    /// Type of all tensors but lengths, `f32` or `f16`. States are kept with 32 bits between steps.
    #[serde(default = "f32")]
    pub dtype: DType,
}

fn one() -> u64 {
    1
}

fn tanh() -> Activation {
    Activation::Tanh
}

fn f32() -> DType {
    DType::F32
}

/// Most steps, sequences and units, and most layers: products of them are numbers of 64 bits.
const MOST: u64 = 1 << 20;
const MOST_LAYERS: u64 = 1 << 10;

impl Recurrent {
    /// Networks beside each other.
    pub fn directions(&self) -> u64 {
        1 + u64::from(self.direction == Direction::Both)
    }

    /// Blocks of units.
    pub fn blocks(&self) -> u64 {
        self.hidden.div_ceil(BLOCK)
    }

    /// Sums of a layer and direction.
    pub fn rows(&self) -> u64 {
        self.cell.gates() * self.hidden
    }

    /// Terms of the sums of a layer.
    pub fn depth(&self, layer: u64) -> u64 {
        self.hidden * if layer > 0 { 2 } else { 1 }
    }

    /// Weights that a step reads.
    pub fn weights(&self) -> u64 {
        self.blocks() * self.hidden * self.cell.gates() * BLOCK * self.matrices()
    }

    /// Matrices of `hidden` terms: one for each direction, and two for each layer above the first.
    pub fn matrices(&self) -> u64 {
        self.directions() + 2 * (self.layers - 1)
    }

    /// Index of the biases of the other layers among the inputs.
    pub fn stacked(&self) -> Option<usize> {
        (self.layers > 1).then_some(3)
    }

    /// Index of what a GRU adds before the reset; with several layers it is in the biases.
    pub fn reset_bias(&self) -> Option<usize> {
        (self.cell == Cell::Gru).then_some(3)
    }

    /// Index of the lengths among the inputs.
    pub fn length_input(&self) -> Option<usize> {
        let before = 3 + usize::from(self.cell == Cell::Gru || self.layers > 1);
        self.lengths.then_some(before)
    }

    /// Whether a direction begins at the last step.
    pub fn is_reverse(&self, direction: u64) -> bool {
        match self.direction {
            Direction::Forward => false,
            Direction::Reverse => true,
            Direction::Both => direction == 1,
        }
    }

    /// All `h` of a layer or direction, `[steps, batch, hidden]`, and what it ends with. `below` has those of the layer below.
    fn network<'a>(
        &'a self,
        inputs: &'a [Values],
        index: usize,
        below: Option<&[f64]>,
    ) -> (Vec<f64>, Network<'a>) {
        let [steps, batch] = [self.steps, self.batch].map(Size::exact_usize);
        let [size, rows] = [self.hidden, self.rows()].map(|n| n as usize);
        let (directions, plane) = (self.directions() as usize, batch * size);
        let all = self.layers as usize * directions * plane;
        let before = |part: usize| -> Vec<f64> {
            (0..plane).map(|i| inputs[2].float(part * all + index * plane + i)).collect()
        };
        let cells = if self.cell == Cell::Lstm { before(1) } else { vec![0.0; plane] };
        let mut network = Network { op: self, inputs, index, hidden: before(0), cells };
        let direction = if self.layers > 1 { 0 } else { index };
        let biases = self.stacked().filter(|_| below.is_some());
        let goes_on = |row, step: usize| {
            self.length_input().is_none_or(|lengths| inputs[lengths].int(row) > step as i64)
        };
        let mut own = vec![0.0; steps * plane];
        for turn in 0..steps {
            let step = if self.is_reverse(direction as u64) { steps - 1 - turn } else { turn };
            for row in (0..batch).filter(|row| goes_on(*row, step)) {
                let at = step * plane + row * size;
                let outside = |gate: usize, unit: usize| {
                    let column = gate * size + unit;
                    match biases {
                        Some(biases) if self.cell == Cell::Gru => {
                            inputs[biases].float(index * (rows + size) + column)
                        }
                        Some(biases) => inputs[biases].float((index - 1) * rows + column),
                        None => {
                            let place = (step * batch + row) * directions + direction;
                            inputs[0].float(place * rows + column)
                        }
                    }
                };
                network.step(row, outside, below.map(|below| &below[at..at + size]));
                own[at..at + size].copy_from_slice(&network.hidden[row * size..(row + 1) * size]);
            }
        }
        (own, network)
    }

    fn limited(&self) -> bool {
        let limited = |size: &Size| !size.is_constant() || *size <= MOST;
        self.layers <= MOST_LAYERS && self.hidden <= MOST && [self.steps, self.batch].iter().all(limited)
    }
}

/// Below -100 it is 0 in 32 bits, which decides what it makes of infinities.
fn sigmoid(x: f64) -> f64 {
    if x < -100.0 { 0.0 } else { Activation::Sigmoid.apply(x) }
}

/// A layer or direction of the reference, with what it keeps for all sequences.
struct Network<'a> {
    op: &'a Recurrent,
    inputs: &'a [Values],
    index: usize,
    hidden: Vec<f64>,
    cells: Vec<f64>,
}

impl Network<'_> {
    fn weight(&self, unit: usize, gate: usize, term: usize) -> f64 {
        let op = self.op;
        let layer = if op.layers > 1 { self.index } else { 0 };
        let (gates, depth) = (op.cell.gates() as usize, op.depth(layer as u64) as usize);
        let before = if layer > 0 { 2 * layer - 1 } else { self.index };
        let terms = before * (op.blocks() * op.hidden) as usize + unit / 8 * depth + term;
        self.inputs[1].float((terms * gates + gate) * 8 + unit % 8)
    }

    /// The new `h` and `c` of a unit, by what its gates get from outside, and the terms of its sums.
    fn unit(&self, unit: usize, outside: impl Fn(usize) -> f64, terms: &[f64], state: [f64; 2]) -> [f64; 2] {
        let sum_from = |gate, first: usize, end: usize| -> f64 {
            (first..end).map(|term| terms[term] * self.weight(unit, gate, term)).sum()
        };
        let sum = |gate| sum_from(gate, 0, terms.len());
        let gate = |gate| outside(gate) + sum(gate);
        let [hidden, cell] = state;
        match self.op.cell {
            Cell::Rnn => [self.op.activation.apply(gate(0)), cell],
            Cell::Gru => {
                let (update, reset) = (sigmoid(gate(0)), sigmoid(gate(1)));
                let size = self.op.hidden as usize;
                let place = if self.op.layers > 1 { self.index * 4 + 3 } else { self.index };
                let bias = self.inputs[3].float(place * size + unit);
                let own = terms.len() - size;
                let (below, own) = (sum_from(2, 0, own), sum_from(2, own, terms.len()));
                let new = (outside(2) + below + reset * (own + bias)).tanh();
                [(1.0 - update) * new + update * hidden, cell]
            }
            Cell::Lstm => {
                let cell = sigmoid(gate(2)) * cell + sigmoid(gate(0)) * gate(3).tanh();
                [sigmoid(gate(1)) * cell.tanh(), cell]
            }
        }
    }

    /// A step of a sequence: `outside` for a gate and unit, and the units of the layer below.
    fn step(&mut self, row: usize, outside: impl Fn(usize, usize) -> f64, below: Option<&[f64]>) {
        let size = self.op.hidden as usize;
        let own = row * size..(row + 1) * size;
        let mut terms = below.map_or_else(Vec::new, <[f64]>::to_vec);
        terms.extend(&self.hidden[own.clone()]);
        for unit in 0..size {
            let at = own.start + unit;
            let state = [terms[terms.len() - size + unit], self.cells[at]];
            [self.hidden[at], self.cells[at]] = self.unit(unit, |gate| outside(gate, unit), &terms, state);
        }
    }
}

impl Op for Recurrent {
    fn check(&self) -> Result<(), String> {
        if !matches!(self.dtype, DType::F32 | DType::F16) {
            return Err(format!("elements are f32 or f16, not {}", self.dtype));
        }
        if self.steps.is(0.into()) || self.hidden == 0 || self.layers == 0 {
            return Err("there is a step, a unit and a layer at least".into());
        }
        if !self.limited() {
            return Err(format!("steps, sequences and units are up to {MOST}, layers up to {MOST_LAYERS}"));
        }
        if self.layers > 1 && self.direction != Direction::Forward {
            return Err("several layers go forward".into());
        }
        match (self.cell, self.activation) {
            (Cell::Rnn, Activation::Relu) | (_, Activation::Tanh) => Ok(()),
            (_, other) => Err(format!("units have tanh, those of an RNN perhaps relu, not {other:?}")),
        }
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let (gates, directions) = (self.cell.gates(), self.directions());
        let own = |name, dims: &[u64]| TensorDesc::new(name, self.dtype, dims.iter().copied());
        let projected = [self.steps, self.batch, directions.into(), self.rows().into()];
        let state = [self.cell.states().into(), (self.layers * directions).into(), self.batch];
        let mut inputs = vec![
            TensorDesc::new("projected", self.dtype, projected),
            own("recurrence", &[self.matrices(), self.blocks(), self.hidden, gates, BLOCK]),
            TensorDesc::new("state", self.dtype, state.into_iter().chain([self.hidden.into()])),
        ];
        match (self.cell, self.layers > 1) {
            (Cell::Gru, false) => inputs.push(own("reset_bias", &[directions, self.hidden])),
            (Cell::Gru, true) => inputs.push(own("bias", &[self.layers, gates + 1, self.hidden])),
            (_, true) => inputs.push(own("bias", &[self.layers - 1, self.rows()])),
            (_, false) => {}
        }
        if self.lengths {
            inputs.push(TensorDesc::new("lengths", DType::I32, [self.batch]));
        }
        inputs
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let (networks, hidden) = (self.layers * self.directions(), self.hidden.into());
        let all = [self.steps, self.directions().into(), self.batch, hidden];
        let last = [self.cell.states().into(), networks.into(), self.batch, hidden];
        vec![TensorDesc::new("out", self.dtype, all), TensorDesc::new("last", self.dtype, last)]
    }

    fn types(&mut self) -> Vec<&mut DType> {
        vec![&mut self.dtype]
    }

    fn signature(&self) -> String {
        self.dtype.to_string()
    }

    fn flops(&self) -> f64 {
        let units = self.steps.as_f64() * self.batch.as_f64() * self.rows() as f64;
        let terms = self.directions() * self.hidden + (self.layers - 1) * 2 * self.hidden;
        units * terms as f64 * 2.0
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        let (steps, size) = (self.steps.exact_usize(), self.hidden as usize);
        let (directions, networks) = (self.directions() as usize, self.layers * self.directions());
        let plane = self.batch.exact_usize() * size;
        let all = networks as usize * plane;
        let mut out = vec![0.0; steps * directions * plane];
        let mut last = vec![0.0; all * self.cell.states() as usize];
        let mut below: Option<Vec<f64>> = None;
        for index in 0..networks as usize {
            let (own, network) = self.network(inputs, index, below.as_deref());
            let direction = if self.layers > 1 { 0 } else { index };
            if self.layers == 1 || index + 1 == self.layers as usize {
                for step in 0..steps {
                    let to = (step * directions + direction) * plane;
                    out[to..to + plane].copy_from_slice(&own[step * plane..(step + 1) * plane]);
                }
            }
            for (part, values) in [&network.hidden, &network.cells].into_iter().enumerate() {
                if part < self.cell.states() as usize {
                    let to = part * all + index * plane;
                    last[to..to + plane].copy_from_slice(values);
                }
            }
            below = (self.layers > 1).then_some(own);
        }
        [out, last]
            .map(|values| Values::Float(values.into_iter().map(|v| self.dtype.round(v)).collect()))
            .into()
    }

    /// Sums of each step are off, and what they make is a term of the next: errors grow with the steps, as weights of networks
    /// let signals neither grow nor vanish.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let largest = magnitudes.iter().take(3).fold(1.0f64, |most, own| most.max(*own));
        let terms = self.depth(self.layers - 1) + 1;
        let sum = Tolerance::of_sum(terms, largest * largest, DType::F32, self.dtype);
        let steps = self.steps.as_f64() + self.layers as f64;
        Tolerance {
            absolute: sum.absolute * 4.0 * steps + 16.0 * DType::F32.epsilon(),
            relative: sum.relative + 32.0 * DType::F32.epsilon(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Recurrent {
        let Ok(crate::Operation::Recurrent(op)) = crate::Operation::parse(text) else { panic!("{text}") };
        assert_eq!(op.check(), Ok(()));
        op
    }

    /// Weights of one unit: a gate each in the first place of its eight.
    fn weights(gates: &[f64]) -> Values {
        Values::Float(gates.iter().flat_map(|own| [*own, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]).collect())
    }

    #[test]
    fn a_unit_of_an_lstm_keeps_its_cell() {
        let op = parsed("recurrent:cell=lstm,steps=2,batch=1,hidden=1");
        let (recurrence, gates) = ([0.1, -0.2, 0.3, 0.4], [0.5, 0.6, -0.7, 0.8]);
        let x = Values::Float(gates.iter().chain(&gates).copied().collect());
        let made = op.reference(&[x, weights(&recurrence), Values::Float(vec![0.25, -0.5])]);
        let (mut h, mut c) = (0.25f64, -0.5f64);
        let mut all = Vec::new();
        for _ in 0..2 {
            let sum: Vec<f64> = (0..4).map(|g| gates[g] + recurrence[g] * h).collect();
            c = sigmoid(sum[2]) * c + sigmoid(sum[0]) * sum[3].tanh();
            h = sigmoid(sum[1]) * c.tanh();
            all.push(DType::F32.round(h));
        }
        assert_eq!(made[0].floats(), all);
        assert_eq!(made[1].floats(), [DType::F32.round(h), DType::F32.round(c)]);
    }

    #[test]
    fn sequences_end_and_directions_meet() {
        let op =
            parsed("recurrent:cell=rnn,steps=3,batch=2,hidden=1,direction=both,activation=relu,lengths=true");
        // Each step adds 1 to what was there; the second sequence has one step.
        let x = Values::Float(vec![1.0; 12]);
        let r = Values::Float([1.0; 16].to_vec());
        let made = op.reference(&[x, r, Values::Float(vec![0.0, 10.0, 20.0, 30.0]), Values::Int(vec![3, 1])]);
        // [steps, directions, batch].
        assert_eq!(made[0].floats(), [1.0, 11.0, 23.0, 31.0, 2.0, 0.0, 22.0, 0.0, 3.0, 0.0, 21.0, 0.0]);
        assert_eq!(made[1].floats(), [3.0, 11.0, 23.0, 31.0]);
    }

    #[test]
    fn what_a_gru_reads_of_the_layer_below_goes_past_the_reset() {
        let op = parsed("recurrent:cell=gru,steps=1,batch=1,hidden=1,layers=2");
        let below = [0.1, -0.2, 0.3];
        let (upper, own) = ([0.4, 0.5, -0.6], [0.7, -0.8, 0.9]);
        let weights = weights(&[below, upper, own].concat());
        let (x, before) = ([0.2, 0.3, 0.4], [0.5, -0.25]);
        // Nothing reads the first three.
        let biases = [[9.0, 9.0, 9.0, 0.15], [0.05, -0.1, 0.2, 0.35]];
        let inputs = [&x[..], &before, &biases.concat()].map(|values| Values::Float(values.to_vec()));
        let [x_values, state, biases_values] = inputs;
        let made = op.reference(&[x_values, weights, state, biases_values]);
        let step = |outside: [f64; 3], own: [f64; 3], bias: f64, h: f64| {
            let (update, reset) = (sigmoid(outside[0] + own[0] * h), sigmoid(outside[1] + own[1] * h));
            (1.0 - update) * (outside[2] + reset * (own[2] * h + bias)).tanh() + update * h
        };
        let first = step(x, below, biases[0][3], before[0]);
        let outside = [0, 1, 2].map(|gate| biases[1][gate] + upper[gate] * first);
        let second = step(outside, own, biases[1][3], before[1]);
        assert_eq!(made[1].floats(), [DType::F32.round(first), DType::F32.round(second)]);
    }

    #[test]
    fn a_layer_reads_the_one_below() {
        let op = parsed("recurrent:cell=rnn,steps=2,batch=1,hidden=1,layers=2,activation=relu");
        let inputs =
            [Values::Float(vec![1.0, 1.0]), weights(&[1.0, 2.0, 1.0]), Values::Float(vec![0.0, 5.0])];
        let made = op.reference(&[&inputs[..], &[Values::Float(vec![100.0])]].concat());
        // Below: 1, 2. Above: 100 + 2 * 1 + 5, 100 + 2 * 2 + 107.
        assert_eq!(made[0].floats(), [107.0, 211.0]);
        assert_eq!(made[1].floats(), [2.0, 211.0]);
        assert!(Recurrent { direction: Direction::Both, ..op.clone() }.check().is_err());
        assert!(Recurrent { steps: 0.into(), ..op }.check().is_err());
    }
}
