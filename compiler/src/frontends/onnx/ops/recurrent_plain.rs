//! Recurrent networks with the functions that ONNX gives them when a model names none: one operation does all steps.

use halite_ops::{
    Activation as OpActivation, DType,
    expression::Function,
    recurrent::{Cell, Direction},
};

use halite_sizes::Size;

use super::{
    NodeView, Result,
    recurrent_activations::Activation,
    recurrent_network::{Kind, Network},
    recurrent_weights::is_of_bytes,
};
use crate::{
    build::{Builder, Range, RecurrentLayer},
    graph::TensorId,
};

/// Sequences, times units, from which on steps are products of matrices, which other kernels do better.
const MANY_SUMS: u64 = 1 << 17;

/// Units of a layer up to which its steps are together in one dispatch everywhere, however many there are.
const MOST_OPEN: u64 = 256;
/// Units up to which the operation does it at all.
const MOST_UNITS: u64 = 3072;

/// Most steps of layers of so many units that each step is a dispatch.
const MOST_STEPS: u64 = 2048;

/// Whether the operation computes what the node says of `x`, `[steps, batch, width]`.
pub(super) fn is_plain(
    b: &Builder,
    node: &NodeView<'_>,
    network: &Network,
    x: TensorId,
    activations: &[Vec<Activation>],
) -> bool {
    let [steps, batch, _] = *b.sizes(x) else { return false };
    let is_open = !steps.is_constant() || !batch.is_constant();
    // Steps of large layers are dispatches of their own, of which there are as many as steps; data may decide that there is none.
    if steps.is_data() || batch.is_data() || is_open && network.hidden > MOST_OPEN {
        return false;
    }
    let usual: &[&[&str]] = match network.kind {
        Kind::Rnn => &[&["tanh"], &["relu"]],
        Kind::Gru => &[&["sigmoid", "tanh"]],
        Kind::Lstm => &[&["sigmoid", "tanh", "tanh"]],
    };
    let names = |own: &[Activation]| own.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let first = names(&activations[0]);
    let functions = usual.iter().any(|usual| *usual == first)
        && activations.iter().all(|own| names(own) == first && own.iter().all(|one| one.clip.is_none()));
    let reset = network.kind != Kind::Gru || network.linear_before_reset;
    let holes = network.kind == Kind::Lstm && node.optional(7).is_some();
    if !functions || !reset || holes || network.input_forget || is_of_bytes(node) {
        return false;
    }
    let sizes = network.hidden > 0 && steps > 0 && batch > 0;
    let few = batch * (network.kind.gates() * network.hidden) < MANY_SUMS;
    // Shared memory of every device has room for the terms of so many units. Where there are more steps than dispatches may be, a
    // dispatch does several, of few units.
    let longest = if network.hidden <= MOST_OPEN { 1 << 16 } else { MOST_STEPS };
    sizes && few && network.hidden <= MOST_UNITS && steps <= longest
}

/// All outputs `[steps, directions, batch, hidden]`, and the last state `[directions, batch, hidden]`; where there are no cells,
/// `h` stands for them.
pub(super) fn run(
    b: &mut Builder,
    node: &NodeView<'_>,
    network: &Network,
    x: TensorId,
    reverse: &[bool],
    activations: &[Activation],
) -> Result<[TensorId; 3]> {
    let (cell, hidden, directions) = (cell(network.kind), network.hidden, reverse.len() as u64);
    let batch = b.sizes(x)[1];
    let rows = cell.gates() * hidden;
    let direction = match reverse {
        [false] => Direction::Forward,
        [true] => Direction::Reverse,
        _ => Direction::Both,
    };
    let (bias, reset_bias) = biases(b, node, cell, [directions, rows, hidden])?;
    let own = |b: &mut Builder, input: usize| {
        let whole = node.input(input)?;
        b.as_f32(whole)
    };
    let layer = RecurrentLayer {
        cell,
        direction,
        activation: if activations[0].name == "relu" { OpActivation::Relu } else { OpActivation::Tanh },
        x,
        weights: own(b, 1)?,
        recurrence: own(b, 2)?,
        bias,
        reset_bias,
        state: state(b, node, cell, [directions.into(), batch, hidden.into()])?,
        lengths: network.lengths.map(|lengths| b.reshape_to(lengths, &[batch])).transpose()?,
    };
    let [out, last] = b.recurrent(layer)?;
    let dims = [directions.into(), batch, hidden.into()];
    let part = |b: &mut Builder, index: u64| {
        let own = along(b, last, 0, index, 1)?;
        b.reshape_to(own, &dims)
    };
    Ok([out, part(b, 0)?, part(b, cell.states() - 1)?])
}

fn cell(kind: Kind) -> Cell {
    match kind {
        Kind::Rnn => Cell::Rnn,
        Kind::Gru => Cell::Gru,
        Kind::Lstm => Cell::Lstm,
    }
}

/// What is added to sums, `[directions, rows]`, and what a GRU adds before its reset, `[directions, hidden]`.
fn biases(
    b: &mut Builder,
    node: &NodeView<'_>,
    cell: Cell,
    [directions, rows, hidden]: [u64; 3],
) -> Result<(Option<TensorId>, Option<TensorId>)> {
    let is_gru = cell == Cell::Gru;
    let zeros = |b: &mut Builder| {
        let zero = b.float(DType::F32, 0.0)?;
        b.expand(zero, &[directions, hidden])
    };
    let Some(both) = node.optional(3) else {
        return Ok((None, is_gru.then(|| zeros(b)).transpose()?));
    };
    let both = b.as_f32(both)?;
    let both = b.reshape(both, &[directions, 2 * rows])?;
    let (own, other) = (along(b, both, 1, 0, rows)?, along(b, both, 1, rows, rows)?);
    if !is_gru {
        return Ok((Some(b.binary(Function::Add, own, other)?), None));
    }
    let (gates, reset) = (along(b, other, 1, 0, 2 * hidden)?, along(b, other, 1, 2 * hidden, hidden)?);
    let none = zeros(b)?;
    let other = b.concat(&[gates, none], 1)?;
    Ok((Some(b.binary(Function::Add, own, other)?), Some(reset)))
}

/// What is there before the first step, `[states, directions, batch, hidden]`.
fn state(
    b: &mut Builder,
    node: &NodeView<'_>,
    cell: Cell,
    [directions, batch, hidden]: [Size; 3],
) -> Result<TensorId> {
    let batch_first = node.int("layout", 0)? == 1;
    let mut parts = Vec::new();
    for input in (5..7).take(cell.states() as usize) {
        let part = match node.optional(input) {
            Some(given) => {
                let given = b.as_f32(given)?;
                if batch_first { b.transpose(given, &[1, 0, 2])? } else { given }
            }
            None => {
                let zero = b.float(DType::F32, 0.0)?;
                b.expand_to(zero, &[directions, batch, hidden])?
            }
        };
        parts.push(b.reshape_to(part, &[1.into(), directions, batch, hidden])?);
    }
    b.concat(&parts, 0)
}

/// `count` places of an axis.
fn along(b: &mut Builder, x: TensorId, axis: usize, start: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range<Size>> = b.sizes(x).iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: start.into(), step: 1, count: count.into() };
    b.slice(x, &ranges)
}
