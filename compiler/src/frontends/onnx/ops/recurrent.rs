//! Recurrent networks: plain ones as one operation, those with other functions, peepholes or bytes step by step over the sequence.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    scatters::Reduction,
};
use halite_sizes::Size;

use super::{
    Import, NodeView, Result,
    recurrent_activations::{Activation, activations, number},
    recurrent_network::{Kind, MOST_STEPS, Network},
    recurrent_plain,
    recurrent_weights::{Matrix, is_of_bytes},
};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("GRU", |b, node| recurrent(b, node, Kind::Gru)),
    ("LSTM", |b, node| recurrent(b, node, Kind::Lstm)),
    ("RNN", |b, node| recurrent(b, node, Kind::Rnn)),
];

pub(super) const MICROSOFT: &[(&str, Import)] =
    &[("DynamicQuantizeLSTM", |b, node| recurrent(b, node, Kind::Lstm))];

/// One direction.
struct Direction {
    reverse: bool,
    activations: Vec<Activation>,
    /// `[gates * hidden, input]`.
    weights: Matrix,
    /// `[gates * hidden, hidden]`.
    recurrence: Matrix,
    /// Both biases, `[2, gates * hidden]`.
    biases: Option<TensorId>,
    /// `[3, hidden]`, by which gates see the cell.
    peepholes: Option<TensorId>,
    state: State,
}

/// The number of a step.
#[derive(Clone, Copy)]
enum Step {
    Known(Operand),
    Computed(TensorId),
}

/// What a step hands to the next, `[batch, hidden]`.
#[derive(Clone, Copy)]
struct State {
    hidden: TensorId,
    cell: TensorId,
}

fn recurrent(b: &mut Builder, node: &NodeView<'_>, kind: Kind) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let element = b.element(x);
    let batch_first = node.int("layout", 0)? == 1;
    let x = if batch_first { b.transpose(x, &[1, 0, 2])? } else { x };
    let x = b.as_f32(x)?;
    let [steps, batch, width] = *b.sizes(x) else {
        return Err(node.invalid(format!("{} is no sequence of vectors", b.describe(&[x]))));
    };
    let width = width.exact();
    let recurrence = b.dims(node.input(2)?).to_vec();
    let [directions, first, last] = recurrence[..] else {
        return Err(node.invalid("the recurrence weights are no matrices"));
    };
    // Bytes lie the other way round.
    let hidden = if is_of_bytes(node) { first } else { last };
    let network = Network {
        kind,
        steps,
        batch,
        width,
        hidden,
        lengths: lengths(b, node, batch, steps)?,
        input_forget: node.flag("input_forget", false)?,
        linear_before_reset: node.flag("linear_before_reset", false)?,
    };
    let reverse = reversed(node, directions)?;
    let activations = activations(node, kind.activations(), reverse.len())?;
    if recurrent_plain::is_plain(b, node, &network, x, &activations) {
        let made = recurrent_plain::run(b, node, &network, x, &reverse, &activations[0])?;
        return results(b, kind, batch_first, made, element);
    }
    if steps.is_constant() && steps > MOST_STEPS {
        return Err(node.unsupported(format!("{steps} steps; there are up to {MOST_STEPS}")));
    }
    let (mut all, mut hiddens, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (reverse, activations)) in reverse.into_iter().zip(activations).enumerate() {
        let direction = direction(b, node, &network, index as u64, reverse, activations)?;
        let (outputs, last) = network.run(b, x, &direction)?;
        let (one, hidden) = (Size::constant(1), Size::from(hidden));
        all.push(b.reshape_to(outputs, &[steps, one, batch, hidden])?);
        hiddens.push(b.reshape_to(last.hidden, &[one, batch, hidden])?);
        cells.push(b.reshape_to(last.cell, &[one, batch, hidden])?);
    }
    let joined = [b.concat(&all, 1)?, b.concat(&hiddens, 0)?, b.concat(&cells, 0)?];
    results(b, kind, batch_first, joined, element)
}

/// The node's outputs, of all outputs `[steps, directions, batch, hidden]` and the last state `[directions, batch, hidden]`.
fn results(
    b: &mut Builder,
    kind: Kind,
    batch_first: bool,
    joined: [TensorId; 3],
    element: ElementType,
) -> Result<Vec<TensorId>> {
    let orders: [&[usize]; 3] = [&[2, 0, 1, 3], &[1, 0, 2], &[1, 0, 2]];
    let mut results = Vec::new();
    for (made, order) in joined.into_iter().zip(orders).take(if kind == Kind::Lstm { 3 } else { 2 }) {
        let made = if batch_first { b.transpose(made, order)? } else { made };
        results.push(b.cast(made, element)?);
    }
    Ok(results)
}

/// For each direction, whether it goes backwards.
fn reversed(node: &NodeView<'_>, directions: u64) -> Result<Vec<bool>> {
    let reverse = match node.string("direction", "forward")?.as_str() {
        "forward" => vec![false],
        "reverse" => vec![true],
        "bidirectional" => vec![false, true],
        other => return Err(node.invalid(format!("direction '{other}' is none that ONNX has"))),
    };
    if reverse.len() as u64 != directions {
        return Err(node.invalid(format!("weights for {directions} directions, not {}", reverse.len())));
    }
    Ok(reverse)
}

fn lengths(b: &mut Builder, node: &NodeView<'_>, batch: Size, steps: Size) -> Result<Option<TensorId>> {
    let Some(lengths) = node.optional(4) else { return Ok(None) };
    if b.size_values(lengths).is_some_and(|all| all.iter().all(|length| length.is(steps))) {
        return Ok(None);
    }
    let lengths = b.cast(lengths, DType::I32)?;
    b.reshape_to(lengths, &[batch, 1.into()]).map(Some)
}

fn direction(
    b: &mut Builder,
    node: &NodeView<'_>,
    network: &Network,
    index: u64,
    reverse: bool,
    activations: Vec<Activation>,
) -> Result<Direction> {
    let rows = network.kind.gates() * network.hidden;
    let batch_first = node.int("layout", 0)? == 1;
    let mut part = |input: usize, dims: &[Size]| -> Result<Option<TensorId>> {
        let Some(whole) = node.optional(input) else { return Ok(None) };
        let whole = b.as_f32(whole)?;
        let whole =
            if batch_first && matches!(input, 5 | 6) { b.transpose(whole, &[1, 0, 2])? } else { whole };
        let mut ranges: Vec<Range<Size>> = b.sizes(whole).iter().map(|size| Range::all(*size)).collect();
        if let Some(first) = ranges.first_mut() {
            *first = Range { start: index.into(), step: 1, count: 1.into() };
        }
        let own = b.slice(whole, &ranges)?;
        b.reshape_to(own, dims).map(Some)
    };
    let biases = part(3, &[2.into(), rows.into()])?;
    let peepholes =
        if network.kind == Kind::Lstm { part(7, &[3.into(), network.hidden.into()])? } else { None };
    let state = [network.batch, network.hidden.into()];
    let (hidden, cell) = (part(5, &state)?, if network.kind == Kind::Lstm { part(6, &state)? } else { None });
    let recurrence = Matrix::of(b, node, 2, index, [rows, network.hidden])?;
    let weights = Matrix::of(b, node, 1, index, [rows, network.width])?;
    let zero = b.float(DType::F32, 0.0)?;
    let zeros = b.expand_to(zero, &state)?;
    let state = State { hidden: hidden.unwrap_or(zeros), cell: cell.unwrap_or(zeros) };
    Ok(Direction { reverse, activations, weights, recurrence, biases, peepholes, state })
}

impl Network {
    /// All outputs `[steps, batch, hidden]`, and the last state.
    fn run(&self, b: &mut Builder, x: TensorId, direction: &Direction) -> Result<(TensorId, State)> {
        let rows = self.kind.gates() * self.hidden;
        let mut inputs = direction.weights.product(b, x)?;
        let mut after_reset = None;
        if let Some(biases) = direction.biases {
            let [own, other] = [0, 1].map(|i| part(b, biases, 0, i, 1));
            let (own, other) = (b.reshape(own?, &[rows])?, b.reshape(other?, &[rows])?);
            inputs = b.binary(Function::Add, inputs, own)?;
            if self.kind == Kind::Gru && self.linear_before_reset {
                after_reset = Some(other);
            } else {
                inputs = b.binary(Function::Add, inputs, other)?;
            }
        }
        if !self.steps.is_constant() {
            return self.in_loop(b, inputs, after_reset, direction);
        }
        let steps = self.steps.value();
        let mut state = direction.state;
        let mut outputs = vec![state.hidden; steps as usize];
        for step in 0..steps {
            let step = if direction.reverse { steps - 1 - step } else { step };
            let input = part(b, inputs, 0, step, 1)?;
            let input = b.reshape_to(input, &[self.batch, rows.into()])?;
            let next = self.step(b, input, after_reset, direction, state)?;
            let at = Operand::Constant(Scalar::Int(step as i64, DType::I32));
            let (output, next) = self.within_length(b, Step::Known(at), state, next)?;
            outputs[step as usize] = b.reshape_to(output, &self.row())?;
            state = next;
        }
        if outputs.is_empty() {
            let zero = b.float(DType::F32, 0.0)?;
            let none = b.expand_to(zero, &[0.into(), self.batch, self.hidden.into()])?;
            return Ok((none, state));
        }
        Ok((b.concat(&outputs, 0)?, state))
    }

    /// What a step gives, `[1, batch, hidden]`.
    fn row(&self) -> [Size; 3] {
        [1.into(), self.batch, self.hidden.into()]
    }

    fn step(
        &self,
        b: &mut Builder,
        input: TensorId,
        after_reset: Option<TensorId>,
        direction: &Direction,
        state: State,
    ) -> Result<State> {
        match self.kind {
            Kind::Rnn => self.rnn(b, input, direction, state),
            Kind::Gru => self.gru(b, input, after_reset, direction, state),
            Kind::Lstm => self.lstm(b, input, direction, state),
        }
    }

    /// The same as runs of a loop, each of which writes its row of the outputs.
    fn in_loop(
        &self,
        b: &mut Builder,
        inputs: TensorId,
        after_reset: Option<TensorId>,
        direction: &Direction,
    ) -> Result<(TensorId, State)> {
        let zero = b.float(DType::F32, 0.0)?;
        let outputs = b.expand_to(zero, &[self.steps, self.batch, self.hidden.into()])?;
        let last = b.computed(DType::I64, &[], vec![self.steps - 1])?;
        let start = direction.state;
        let made = b.repeat(self.steps, &[outputs, start.hidden, start.cell], |b, run, carried| {
            let at = match direction.reverse {
                true => b.binary(Function::Sub, last, run)?,
                false => run,
            };
            let state = State { hidden: carried[1], cell: carried[2] };
            let input = b.gather(inputs, at, 0)?;
            let next = self.step(b, input, after_reset, direction, state)?;
            let (output, next) = self.within_length(b, Step::Computed(at), state, next)?;
            let (row, place) = (b.reshape_to(output, &self.row())?, b.reshape(at, &[1, 1])?);
            let outputs = b.scatter_nd([carried[0], place, row], Reduction::None)?;
            Ok(vec![outputs, next.hidden, next.cell])
        })?;
        Ok((made[0], State { hidden: made[1], cell: made[2] }))
    }

    /// Sequences that have ended give zeros and keep their state.
    fn within_length(&self, b: &mut Builder, at: Step, old: State, new: State) -> Result<(TensorId, State)> {
        let Some(lengths) = self.lengths else { return Ok((new.hidden, new)) };
        let goes_on = match at {
            Step::Known(at) => {
                b.map(&[lengths], ElementType::Bool, |p, x| p.call(Function::Gt, &[x[0], at]))?
            }
            Step::Computed(at) => {
                let at = b.cast(at, DType::I32)?;
                b.compare(Function::Gt, lengths, at)?
            }
        };
        let zero = b.float(DType::F32, 0.0)?;
        let output = b.select(goes_on, new.hidden, zero)?;
        let hidden = b.select(goes_on, new.hidden, old.hidden)?;
        let cell = b.select(goes_on, new.cell, old.cell)?;
        Ok((output, State { hidden, cell }))
    }

    /// A gate's part of `[batch, gates * hidden]`.
    fn gate(&self, b: &mut Builder, all: TensorId, index: u64) -> Result<TensorId> {
        part(b, all, 1, index * self.hidden, self.hidden)
    }

    fn rnn(&self, b: &mut Builder, input: TensorId, of: &Direction, state: State) -> Result<State> {
        let own = of.recurrence.product(b, state.hidden)?;
        let hidden = b.map(&[input, own], DType::F32, |p, x| {
            let sum = p.call(Function::Add, x);
            of.activations[0].apply(p, sum)
        })?;
        Ok(State { hidden, ..state })
    }

    fn gru(
        &self,
        b: &mut Builder,
        input: TensorId,
        after_reset: Option<TensorId>,
        of: &Direction,
        state: State,
    ) -> Result<State> {
        let [f, g] = [&of.activations[0], &of.activations[1]];
        let (size, all) = (self.hidden, of.recurrence.values);
        let (gates, last) = (part(b, all, 0, 0, 2 * size)?, part(b, all, 0, 2 * size, size)?);
        let mut own = b.product(state.hidden, gates, true)?;
        if let Some(bias) = after_reset {
            let bias = part(b, bias, 0, 0, 2 * size)?;
            own = b.binary(Function::Add, own, bias)?;
        }
        let gate = |b: &mut Builder, index: u64| {
            let parts = [self.gate(b, input, index)?, self.gate(b, own, index)?];
            b.map(&parts, DType::F32, |p, x| {
                let sum = p.call(Function::Add, x);
                f.apply(p, sum)
            })
        };
        let (update, reset) = (gate(b, 0)?, gate(b, 1)?);
        let new = self.gate(b, input, 2)?;
        let own = if self.linear_before_reset {
            let mut own = b.product(state.hidden, last, true)?;
            if let Some(bias) = after_reset {
                let bias = part(b, bias, 0, 2 * size, size)?;
                own = b.binary(Function::Add, own, bias)?;
            }
            b.binary(Function::Mul, reset, own)?
        } else {
            let kept = b.binary(Function::Mul, reset, state.hidden)?;
            b.product(kept, last, true)?
        };
        let hidden = b.map(&[new, own, update, state.hidden], DType::F32, |p, x| {
            let sum = p.call(Function::Add, &x[..2]);
            let new = g.apply(p, sum);
            let rest = p.call(Function::Sub, &[number(1.0), x[2]]);
            let new = p.call(Function::Mul, &[rest, new]);
            let old = p.call(Function::Mul, &[x[2], x[3]]);
            p.call(Function::Add, &[new, old])
        })?;
        Ok(State { hidden, ..state })
    }

    fn lstm(&self, b: &mut Builder, input: TensorId, of: &Direction, state: State) -> Result<State> {
        let [f, g, h] = [&of.activations[0], &of.activations[1], &of.activations[2]];
        let sums = of.recurrence.product_and(b, state.hidden, input)?;
        // Input, output, forget, cell.
        let gates = [0, 1, 2, 3].map(|index| self.gate(b, sums, index));
        let [i, o, forget, c] = gates;
        let (mut i, mut o, mut forget, c) = (i?, o?, forget?, c?);
        let seen = |b: &mut Builder, gate: TensorId, index: u64, cell: TensorId| {
            let Some(all) = of.peepholes else { return Ok(gate) };
            let hole = part(b, all, 0, index, 1)?;
            b.map(&[gate, hole, cell], DType::F32, |p, x| {
                let product = p.call(Function::Mul, &[x[1], x[2]]);
                p.call(Function::Add, &[x[0], product])
            })
        };
        i = seen(b, i, 0, state.cell)?;
        forget = seen(b, forget, 2, state.cell)?;
        let cell = b.map(&[i, forget, c, state.cell], DType::F32, |p, x| {
            let i = f.apply(p, x[0]);
            let forget =
                if self.input_forget { p.call(Function::Sub, &[number(1.0), i]) } else { f.apply(p, x[1]) };
            let new = g.apply(p, x[2]);
            let new = p.call(Function::Mul, &[i, new]);
            let old = p.call(Function::Mul, &[forget, x[3]]);
            p.call(Function::Add, &[old, new])
        })?;
        o = seen(b, o, 1, cell)?;
        let hidden = b.map(&[o, cell], DType::F32, |p, x| {
            let o = f.apply(p, x[0]);
            // The cell itself has no limit.
            let bent = h.unlimited().apply(p, x[1]);
            p.call(Function::Mul, &[o, bent])
        })?;
        Ok(State { hidden, cell })
    }
}

/// `count` places of an axis.
fn part(b: &mut Builder, x: TensorId, axis: usize, start: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().map(|size| Range::all(*size)).collect();
    if let Some(range) = ranges.get_mut(axis) {
        *range = Range { start: start.into(), step: 1, count: count.into() };
    }
    b.slice(x, &ranges)
}
