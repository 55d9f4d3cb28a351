//! Recurrent layers of many steps are loops of turns, and compute what steps one behind the other do.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT32, floats, graph, int, model, node, port, tensor, text},
};
use crate::{
    graph::{Graph, NodeOp},
    signature::Bindings,
};

const GATES: [f32; 3] = [0.9, -0.4, 1.1];
const RECURRENCE: [f32; 3] = [0.3, 0.7, -0.8];
const BIAS: [f32; 3] = [0.1, -0.2, 0.05];

/// A GRU of one unit whose gate comes before the product, over two sequences of these lengths.
fn gru(steps: i64, direction: &str, lengths: [i32; 2]) -> Graph {
    let both: Vec<f32> = BIAS.into_iter().chain([0.0; 3]).collect();
    let constants = [
        tensor("w", FLOAT, &[1, 3, 1], &floats(GATES)),
        tensor("r", FLOAT, &[1, 3, 1], &floats(RECURRENCE)),
        tensor("b", FLOAT, &[1, 6], &floats(both)),
        tensor("n", INT32, &[2], &lengths.map(i32::to_le_bytes).concat()),
    ];
    let inputs = ["x", "w", "r", "b", "n", "h"];
    let layer = node("GRU", &inputs, &["y", "last"], &[int("hidden_size", 1), text("direction", direction)]);
    let ports = [port("x", FLOAT, &[steps, 2, 1]), port("h", FLOAT, &[1, 2, 1])];
    let outputs = [port("y", FLOAT, &[steps, 1, 2, 1]), port("last", FLOAT, &[1, 2, 1])];
    let bytes = model(&graph(&[layer], &constants, &ports, &outputs), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap()
}

fn next(x: f64, h: f64) -> f64 {
    let gate = |index: usize, h: f64| {
        f64::from(GATES[index]) * x + f64::from(RECURRENCE[index]) * h + f64::from(BIAS[index])
    };
    let bend = |sum: f64| 1.0 / (1.0 + (-sum).exp());
    let (update, reset) = (bend(gate(0, h)), bend(gate(1, h)));
    (1.0 - update) * gate(2, reset * h).tanh() + update * h
}

fn line(count: u64) -> Vec<f64> {
    (0..count).map(|at| ((at * 7 % 11) as f64) / 4.0 - 1.0).collect()
}

#[test]
fn many_steps_are_turns_of_a_loop_and_few_stand_by_themselves() {
    // More than were compiled when each was put in, with and without a rest that is no whole turn; one in which a sequence ends
    // in the rest, and one in which both end within turns.
    let cases = [
        (100, "forward", [100, 20], 0),
        (4_103, "forward", [4_101, 37], 1),
        (4_103, "reverse", [4_103, 4_097], 1),
        (512, "reverse", [400, 16], 1),
    ];
    for (steps, direction, lengths, loops) in cases {
        let graph = gru(steps, direction, lengths);
        let found = graph.body.nodes.iter().filter(|node| matches!(node.op, NodeOp::Loop(_))).count();
        assert_eq!(found, loops);
        if loops > 0 {
            assert!(graph.body.nodes.len() < 400, "{} nodes", graph.body.nodes.len());
        }
        let (x, start) = (line(2 * steps as u64), [0.25, -0.5]);
        let mut wanted = vec![0.0; x.len()];
        let mut last = start;
        for (sequence, length) in lengths.into_iter().enumerate() {
            for step in 0..length as usize {
                let step = if direction == "reverse" { length as usize - 1 - step } else { step };
                last[sequence] = next(x[2 * step + sequence], last[sequence]);
                wanted[2 * step + sequence] = last[sequence];
            }
        }
        let results = graph.evaluate(&[Values::Float(x), Values::Float(start.to_vec())]).unwrap();
        let near = |own: &[f64], wanted: &[f64]| {
            own.len() == wanted.len() && own.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5)
        };
        assert!(near(&results[0].floats(), &wanted), "{steps} {direction}");
        assert!(near(&results[1].floats(), &last), "{steps} {direction}: {:?} {last:?}", results[1].floats());
    }
}
