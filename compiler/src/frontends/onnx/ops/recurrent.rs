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
    recurrent_network::{Kind, Network},
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

/// Steps from which on they are runs of a loop: put in one by one, all of them would have to be compiled.
const MANY_STEPS: u64 = 256;
/// Steps that a run of that loop does: beside them, what the host does for it is little.
const TURN: u64 = 16;

/// The number of a step.
#[derive(Clone, Copy)]
enum Step {
    Known(Operand),
    Computed(TensorId),
}

/// The numbers of some steps, by their places among these.
type Number<'a> = dyn Fn(&mut Builder, u64) -> Result<Step> + 'a;

/// A number that is known.
fn known(step: u64) -> Step {
    Step::Known(Operand::Constant(Scalar::Int(step.cast_signed(), DType::I32)))
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
            let one = [self.steps, 1.into(), self.batch, rows.into()];
            let blocks = b.reshape_to(inputs, &one)?;
            let (made, last) = self.turns(b, blocks, after_reset, direction, direction.state)?;
            let made = b.reshape_to(made, &[self.steps, self.batch, self.hidden.into()])?;
            return Ok((made, last));
        }
        let steps = self.steps.value();
        if steps == 0 {
            let zero = b.float(DType::F32, 0.0)?;
            let none = b.expand_to(zero, &[0.into(), self.batch, self.hidden.into()])?;
            return Ok((none, direction.state));
        }
        if steps >= MANY_STEPS {
            return self.in_turns(b, inputs, after_reset, direction);
        }
        let number = |_: &mut Builder, step: u64| Ok(known(step));
        self.line(b, (inputs, &number), after_reset, direction, direction.state)
    }

    /// Steps one behind the other, as many as there are inputs `[steps, batch, gates * hidden]`: all outputs, and the last state.
    fn line(
        &self,
        b: &mut Builder,
        (inputs, number): (TensorId, &Number<'_>),
        after_reset: Option<TensorId>,
        direction: &Direction,
        mut state: State,
    ) -> Result<(TensorId, State)> {
        let [steps, _, rows] = *b.sizes(inputs) else { return Ok((inputs, state)) };
        let steps = steps.value();
        let mut outputs = vec![state.hidden; steps as usize];
        for step in 0..steps {
            let step = if direction.reverse { steps - 1 - step } else { step };
            let input = part(b, inputs, 0, step, 1)?;
            let input = b.reshape_to(input, &[self.batch, rows])?;
            let next = self.step(b, input, after_reset, direction, state)?;
            let (output, next) = self.within_length(b, &|b| number(b, step), state, next)?;
            outputs[step as usize] = b.reshape_to(output, &self.row())?;
            state = next;
        }
        Ok((b.concat(&outputs, 0)?, state))
    }

    /// The same where there are many: each run of a loop does some of them, and those that are no whole turn stand beside it.
    fn in_turns(
        &self,
        b: &mut Builder,
        inputs: TensorId,
        after_reset: Option<TensorId>,
        direction: &Direction,
    ) -> Result<(TensorId, State)> {
        let (steps, each) = (self.steps.value(), TURN);
        let (turns, rest) = (steps / each, steps % each);
        let mut state = direction.state;
        let mut others = None;
        let mut beside = |b: &mut Builder, state: State| -> Result<State> {
            if rest == 0 {
                return Ok(state);
            }
            let own = part(b, inputs, 0, steps - rest, rest)?;
            let number = |_: &mut Builder, step: u64| Ok(known(steps - rest + step));
            let (outputs, state) = self.line(b, (own, &number), after_reset, direction, state)?;
            others = Some(outputs);
            Ok(state)
        };
        // They are the last by their place.
        if direction.reverse {
            state = beside(b, state)?;
        }
        let whole = part(b, inputs, 0, 0, turns * each)?;
        let rows = b.sizes(whole)[2];
        let blocks = b.reshape_to(whole, &[turns.into(), each.into(), self.batch, rows])?;
        let (made, mut state) = self.turns(b, blocks, after_reset, direction, state)?;
        if !direction.reverse {
            state = beside(b, state)?;
        }
        let made = b.reshape_to(made, &[(turns * each).into(), self.batch, self.hidden.into()])?;
        let all: Vec<TensorId> = [made].into_iter().chain(others).collect();
        Ok((b.concat(&all, 0)?, state))
    }

    /// Runs of a loop over inputs `[turns, steps of a turn, batch, gates * hidden]`; outputs lie in the same way.
    fn turns(
        &self,
        b: &mut Builder,
        blocks: TensorId,
        after_reset: Option<TensorId>,
        direction: &Direction,
        start: State,
    ) -> Result<(TensorId, State)> {
        let [turns, each, ..] = *b.sizes(blocks) else { return Ok((blocks, start)) };
        let zero = b.float(DType::F32, 0.0)?;
        let outputs = b.expand_to(zero, &[turns, each, self.batch, self.hidden.into()])?;
        let last = b.computed(DType::I64, &[], vec![turns - 1])?;
        let made = b.repeat(turns, &[outputs, start.hidden, start.cell], |b, run, carried| {
            let at = match direction.reverse {
                true => b.binary(Function::Sub, last, run)?,
                false => run,
            };
            let state = State { hidden: carried[1], cell: carried[2] };
            let number = |b: &mut Builder, step: u64| {
                let number = |value: u64| Operand::Constant(Scalar::Int(value.cast_signed(), DType::I64));
                let number = b.map(&[at], DType::I64, |p, x| {
                    let first = p.call(Function::Mul, &[x[0], number(each.value())]);
                    p.call(Function::Add, &[first, number(step)])
                })?;
                Ok(Step::Computed(number))
            };
            let block = b.gather(blocks, at, 0)?;
            let (block, next) = self.line(b, (block, &number), after_reset, direction, state)?;
            let row = b.reshape_to(block, &[1.into(), each, self.batch, self.hidden.into()])?;
            let place = b.reshape(at, &[1, 1])?;
            let outputs = b.scatter_nd([carried[0], place, row], Reduction::None)?;
            Ok(vec![outputs, next.hidden, next.cell])
        })?;
        Ok((made[0], State { hidden: made[1], cell: made[2] }))
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

    /// Sequences that have ended give zeros and keep their state.
    fn within_length(
        &self,
        b: &mut Builder,
        at: &dyn Fn(&mut Builder) -> Result<Step>,
        old: State,
        new: State,
    ) -> Result<(TensorId, State)> {
        let Some(lengths) = self.lengths else { return Ok((new.hidden, new)) };
        let goes_on = match at(b)? {
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
