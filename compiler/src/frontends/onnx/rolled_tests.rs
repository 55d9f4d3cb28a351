//! Loops and scans of many runs are nodes of the graph, and compute what their runs one by one do.

use halite_ops::Values;

use super::{
    Model,
    encode::{BOOL, FLOAT, INT64, Message, body, floats, graph, int, ints, model, node, port, tensor},
};
use crate::{
    graph::{Graph, NodeOp},
    signature::Bindings,
};

fn made(nodes: &[Message], constants: &[Message], inputs: &[Message], outputs: &[Message]) -> Graph {
    let bytes = model(&graph(nodes, constants, inputs, outputs), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap()
}

fn loops(graph: &Graph) -> usize {
    graph.body.nodes.iter().filter(|node| matches!(node.op, NodeOp::Loop(_))).count()
}

fn line(count: u64) -> Vec<f64> {
    (0..count).map(|at| ((at * 7 % 11) as f64) - 5.0).collect()
}

/// `n = s / 2 + e`, `f = -n` for each place of `x`.
fn scan(length: i64, reverse: bool) -> Graph {
    let state = |names: [&str; 2]| names.map(|name| port(name, FLOAT, &[1]));
    let nodes = [
        node("Mul", &["s", "half"], &["m"], &[]),
        node("Add", &["m", "e"], &["n"], &[]),
        node("Neg", &["n"], &["f"], &[]),
    ];
    let inner = graph(&nodes, &[], &state(["s", "e"]), &state(["n", "f"]));
    let mut attributes = vec![body("body", &inner), int("num_scan_inputs", 1)];
    if reverse {
        attributes.push(ints("scan_input_directions", &[1]));
        attributes.push(ints("scan_input_axes", &[1]));
        attributes.push(ints("scan_output_directions", &[1]));
        attributes.push(ints("scan_output_axes", &[1]));
    }
    let dims = if reverse { [1, length] } else { [length, 1] };
    let half = tensor("half", FLOAT, &[], &floats([0.5]));
    let ports = [port("z", FLOAT, &[1]), port("x", FLOAT, &dims)];
    let outputs = [port("last", FLOAT, &[1]), port("y", FLOAT, &dims)];
    made(&[node("Scan", &["z", "x"], &["last", "y"], &attributes)], &[half], &ports, &outputs)
}

#[test]
fn a_long_scan_is_a_loop_and_a_short_one_its_steps() {
    assert_eq!(loops(&scan(500, false)), 0);
    // One that is no multiple of what a turn does, in both directions, longer than could be put in step by step.
    for (length, reverse) in [(12_007, false), (4_099, true)] {
        let graph = scan(length, reverse);
        assert_eq!(loops(&graph), 1);
        assert!(graph.body.nodes.len() < 400, "{} nodes", graph.body.nodes.len());
        let x = line(length as u64);
        let mut state = 3.0f32;
        let mut wanted: Vec<f64> = vec![0.0; x.len()];
        for step in 0..x.len() {
            let at = if reverse { x.len() - 1 - step } else { step };
            state = state * 0.5 + x[at] as f32;
            wanted[at] = (-state).into();
        }
        let results = graph.evaluate(&[Values::Float(vec![3.0]), Values::Float(x)]).unwrap();
        assert_eq!(results[0].floats(), [f64::from(state)]);
        assert_eq!(results[1].floats(), wanted);
        assert_eq!(graph.tensor(graph.outputs[1].tensor).elements(), length as u64);
    }
}

/// A loop of so many runs with these nodes, which carries `s` to `n` and gathers `g`.
fn repeated(runs: i64, nodes: &[Message], condition: &str) -> Graph {
    let inputs = [port("i", INT64, &[]), port("c", BOOL, &[]), port("s", FLOAT, &[2])];
    let outputs = [port(condition, BOOL, &[]), port("n", FLOAT, &[2]), port("g", FLOAT, &[2])];
    let inner = graph(nodes, &[], &inputs, &outputs);
    let constants = [
        tensor("t", INT64, &[], &runs.to_le_bytes()),
        tensor("go", BOOL, &[], &[1]),
        tensor("two", INT64, &[], &2i64.to_le_bytes()),
        tensor("many", FLOAT, &[], &floats([1e30])),
    ];
    let looped = node("Loop", &["t", "go", "x"], &["y", "all"], &[body("body", &inner)]);
    let outputs = [port("y", FLOAT, &[2]), port("all", FLOAT, &[runs, 2])];
    made(&[looped], &constants, &[port("x", FLOAT, &[2])], &outputs)
}

fn counted() -> Vec<Message> {
    vec![
        node("Mod", &["i", "two"], &["r"], &[]),
        node("Cast", &["r"], &["f"], &[int("to", FLOAT)]),
        node("Add", &["s", "f"], &["n"], &[]),
        node("Neg", &["n"], &["g"], &[]),
    ]
}

#[test]
fn a_long_loop_knows_the_numbers_of_its_runs() {
    let runs = 4_101;
    let graph = repeated(runs, &counted(), "c");
    assert_eq!(loops(&graph), 1);
    let results = graph.evaluate(&[Values::Float(vec![1.0, -1.0])]).unwrap();
    let sums: Vec<f64> = (0..runs).map(|run| ((run + 1) / 2) as f64).collect();
    let last = sums[sums.len() - 1];
    assert_eq!(results[0].floats(), [1.0 + last, last - 1.0]);
    assert_eq!(results[1].floats(), sums.iter().flat_map(|sum| [-1.0 - sum, 1.0 - sum]).collect::<Vec<_>>());
    assert!(graph.open.is_none());
    // Where a condition may end it, nobody knows how many rows there will be.
    let mut nodes = counted();
    nodes.push(node("ReduceMax", &["n"], &["most"], &[int("keepdims", 0)]));
    nodes.push(node("Less", &["most", "many"], &["c2"], &[]));
    let graph = repeated(runs, &nodes, "c2");
    assert!(graph.open.is_some());
}

#[test]
fn loops_in_long_loops_are_nodes_in_nodes() {
    let inner = graph(
        &[node("Sin", &["u"], &["w"], &[])],
        &[],
        &[port("j", INT64, &[]), port("d", BOOL, &[]), port("u", FLOAT, &[2])],
        &[port("d", BOOL, &[]), port("w", FLOAT, &[2])],
    );
    let nodes =
        [node("Loop", &["t", "go", "s"], &["n"], &[body("body", &inner)]), node("Neg", &["n"], &["g"], &[])];
    // Sixty million runs, one by one.
    let graph = repeated(8_000, &nodes, "c");
    assert_eq!(loops(&graph), 1);
    assert!(graph.body.nodes.len() < 400);
}

#[test]
fn runs_that_draw_random_numbers_draw_others_each_time() {
    let mut nodes = counted();
    nodes.truncate(2);
    nodes.push(node("RandomUniformLike", &["s"], &["u"], &[]));
    nodes.push(node("Add", &["u", "f"], &["m"], &[]));
    nodes.push(node("Add", &["s", "m"], &["n"], &[]));
    nodes.push(node("Neg", &["u"], &["g"], &[]));
    let runs = 1_500;
    let graph = repeated(runs, &nodes, "c");
    let results = graph.evaluate(&[Values::Float(vec![0.0, 0.0])]).unwrap();
    let mut drawn = results[1].floats();
    drawn.sort_by(f64::total_cmp);
    drawn.dedup();
    assert!(drawn.len() > 2 * runs as usize * 9 / 10, "{} of {}", drawn.len(), 2 * runs);
}
