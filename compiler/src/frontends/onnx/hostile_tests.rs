//! Short models that ask for work without end: each is refused soon, and told what used the budget.

use super::{
    Model,
    encode::{BOOL, FLOAT, INT64, Message, body, floats, function, graph, int, model, node, port, tensor},
};
use crate::signature::Bindings;

/// The error of a model of some nodes with an input `x` of 4 floats and an output `y`.
fn refused(nodes: &[Message], constants: &[Message], functions: &[Message]) -> String {
    let of = |name: &str| port(name, FLOAT, &[4]);
    let bytes = model(&graph(nodes, constants, &[of("x")], &[of("y")]), functions);
    let error = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err();
    assert!(error.is_unsupported(), "{error}");
    let text = error.to_string();
    assert!(text.contains("so far there are"), "{text}");
    text
}

/// `most` runs, and that a loop runs at all.
fn loop_constants(most: i64) -> [Message; 2] {
    [tensor("t", INT64, &[], &most.to_le_bytes()), tensor("c", BOOL, &[], &[1])]
}

/// A loop in a loop in a loop; the innermost has `inner` as its nodes, from `v0` to `o0`.
fn nested(levels: usize, inner: &[Message]) -> Message {
    let mut made: Option<Message> = None;
    for level in 0..levels {
        let [i, c, v, o] = ["i", "c", "v", "o"].map(|name| format!("{name}{level}"));
        let inputs = [port(&i, INT64, &[]), port(&c, BOOL, &[]), port(&v, FLOAT, &[4])];
        let nodes = match &made {
            None => inner.to_vec(),
            Some(graph) => vec![node("Loop", &["t", "c", &v], &[&o], &[body("body", graph)])],
        };
        let result = if nodes.is_empty() { &v } else { &o };
        made = Some(graph(&nodes, &[], &inputs, &[port(&c, BOOL, &[]), port(result, FLOAT, &[4])]));
    }
    node("Loop", &["t", "c", "x"], &["y"], &[body("body", &made.unwrap())])
}

#[test]
fn loops_in_loops() {
    for levels in [2, 3, 12] {
        let text = refused(&[nested(levels, &[])], &loop_constants(10_000), &[]);
        assert!(text.contains("runs of loops, functions and branches, "), "{text}");
    }
    // Too few to be nodes of the graph, and too deep to be put in run by run.
    let relu = node("Relu", &["v0"], &["o0"], &[]);
    let text = refused(&[nested(5, &[relu])], &loop_constants(30), &[]);
    assert!(text.contains(" operations, "), "{text}");
}

#[test]
fn functions_that_call_each_other_twice() {
    let operator = ["Relu", "Identity"];
    for leaf in operator {
        let mut functions = vec![function("F0", &["a"], &["b"], &[node(leaf, &["a"], &["b"], &[])])];
        for level in 1..40 {
            let of = format!("own:F{}", level - 1);
            let nodes = [node(&of, &["a"], &["m"], &[]), node(&of, &["m"], &["b"], &[])];
            functions.push(function(&format!("F{level}"), &["a"], &["b"], &nodes));
        }
        let nodes = [node("own:F39", &["x"], &["z"], &[]), node("Neg", &["z"], &["y"], &[])];
        let text = refused(&nodes, &[], &functions);
        assert!(text.contains(" nodes imported, "), "{text}");
    }
}

#[test]
fn parts_that_are_joined_count() {
    // Each part is a slice and a copy, as often as it is taken apart and joined again.
    let count = 7_000;
    let (mut nodes, mut last) = (Vec::new(), "x".to_owned());
    for index in 0..4 {
        let (names, joined): (Vec<String>, _) =
            ((0..count).map(|part| format!("p{index}_{part}")).collect(), format!("j{index}"));
        let parts: Vec<&str> = names.iter().map(String::as_str).collect();
        nodes.push(node("Split", &[&last], &parts, &[int("axis", 0), int("num_outputs", count)]));
        nodes.push(node("Concat", &parts, &[&joined], &[int("axis", 0)]));
        last = joined;
    }
    nodes.push(node("Identity", &[&last], &["y"], &[]));
    let of = |name: &str| port(name, FLOAT, &[count]);
    let bytes = model(&graph(&nodes, &[], &[of("x")], &[of("y")]), &[]);
    let error = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err().to_string();
    assert!(error.contains("so far there are") && error.contains(" joined parts"), "{error}");
}

#[test]
fn lists_of_lists_of_parts() {
    let count = 60_000;
    let constants =
        [tensor("w", FLOAT, &[count], &floats((0..count).map(|_| 1.0))), tensor("k", INT64, &[], &[0; 8])];
    let keep = [int("keepdims", 0)];
    let mut splits = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for index in 0..100 {
        let (list, part) = (format!("s{index}"), format!("p{index}"));
        splits.push(node("SplitToSequence", &["w"], &[&list], &keep));
        splits.push(node("SequenceAt", &[&list, "k"], &[&part], &[]));
        parts.push(part);
    }
    let all: Vec<&str> = parts.iter().map(String::as_str).chain(["x"]).collect();
    splits.push(node("Sum", &all, &["y"], &[]));
    let text = refused(&splits, &constants, &[]);
    assert!(text.contains(" tensors, "), "{text}");

    let mut inserts = vec![node("SplitToSequence", &["w"], &["s0"], &keep)];
    for index in 0..3000 {
        let [list, next] = [format!("s{index}"), format!("s{}", index + 1)];
        inserts.push(node("SequenceInsert", &[&list, "x"], &[&next], &[]));
    }
    inserts.push(node("SequenceAt", &["s3000", "k"], &["e"], &[]));
    inserts.push(node("Add", &["x", "e"], &["y"], &[]));
    let text = refused(&inserts, &constants, &[]);
    assert!(text.contains(" elements of lists, "), "{text}");
}

#[test]
fn arithmetic_on_constants_and_long_names() {
    let side = 64;
    let matrix = |name: &str| tensor(name, FLOAT, &[side, side], &floats((0..side * side).map(|_| 1.0)));
    let [most, go] = loop_constants(31);
    let constants = [most, go, matrix("a"), matrix("b")];
    let inner = [
        node("MatMul", &["a", "b"], &["m"], &[]),
        node("ReduceMax", &["m"], &["s"], &[int("keepdims", 0)]),
        node("Add", &["v0", "s"], &["o0"], &[]),
    ];
    let text = refused(&[nested(4, &inner)], &constants, &[]);
    assert!(text.contains(" steps of arithmetic on constants"), "{text}");

    let name = "n".repeat(1 << 19);
    let inner = [node("Neg", &["v0"], &[&name], &[]), node("Relu", &[&name], &["o0"], &[])];
    refused(&[nested(2, &inner)], &loop_constants(31), &[]);
}

#[test]
fn a_constant_is_unpacked_once_however_often_a_loop_reads_it() {
    let count = 1 << 18;
    let narrow = tensor("w", 17, &[count], &vec![0x38; count as usize]);
    let constants =
        [narrow, tensor("z", INT64, &[1], &[0; 8]), tensor("four", INT64, &[1], &4i64.to_le_bytes())];
    let [most, go] = loop_constants(500);
    let constants: Vec<Message> = constants.into_iter().chain([most, go]).collect();
    let inner = [
        node("Slice", &["w", "z", "four"], &["s"], &[]),
        node("Cast", &["s"], &["f"], &[int("to", FLOAT)]),
        node("Add", &["v0", "f"], &["o0"], &[]),
    ];
    let of = |name: &str| port(name, FLOAT, &[4]);
    let bytes = model(&graph(&[nested(1, &inner)], &constants, &[of("x")], &[of("y")]), &[]);
    let made = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
    assert_eq!(made.body.nodes.len(), 500);
}

/// The error of a model with an input `x` of 4 floats and an output `y` that is wrong.
fn wrong(nodes: &[Message], constants: &[Message]) -> String {
    let of = |name: &str| port(name, FLOAT, &[4]);
    let bytes = model(&graph(nodes, constants, &[of("x")], &[of("y")]), &[]);
    Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err().to_string()
}

#[test]
fn constant_indices_outside_and_conditions_that_are_none_or_many() {
    for index in [4i64, -5, i64::MAX] {
        let constants = [tensor("i", INT64, &[1], &index.to_le_bytes())];
        for operator in ["Gather", "GatherElements"] {
            let text = wrong(&[node(operator, &["x", "i"], &["y"], &[])], &constants);
            assert!(
                text.contains(&format!("the index {index} lies outside of the dimension 0 of 4")),
                "{text}"
            );
        }
    }
    for count in [0, 5] {
        let constants = [tensor("c", BOOL, &[count], &vec![1; count as usize])];
        let branch = graph(&[node("Relu", &["x"], &["r"], &[])], &[], &[], &[port("r", FLOAT, &[4])]);
        let branches = [body("then_branch", &branch), body("else_branch", &branch)];
        let text = wrong(&[node("If", &["c"], &["y"], &branches)], &constants);
        assert!(text.contains(&format!("{count} conditions; a branch has one")), "{text}");
    }
}

#[test]
fn more_axes_than_dimensions_are_counted_and_not_told() {
    let axes = tensor("a", INT64, &[1 << 17], &vec![0; 8 << 17]);
    let reduced = node("ReduceMean", &["x", "a"], &["y"], &[]);
    let bytes = model(&graph(&[reduced], &[axes], &[port("x", FLOAT, &[4])], &[port("y", FLOAT, &[1])]), &[]);
    let text = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap_err().to_string();
    assert!(text.contains("131072 axes are named of a tensor that has 1") && text.len() < 200, "{text}");
}
