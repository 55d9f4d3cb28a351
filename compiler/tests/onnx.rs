//! Small ONNX models, made by `tests/data/make_onnx.py`: sizes, control flow, functions, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use halite_compiler::{
    frontends::onnx::Model,
    graph::{Graph, NodeOp},
    signature::{Bindings, BoundValue},
};
use halite_ops::{DType, Values};

fn model(name: &str) -> Model {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    Model::open(&folder.join(format!("{name}.onnx"))).unwrap()
}

fn floats(values: &[f64]) -> Values {
    Values::Float(values.to_vec())
}

fn run(graph: &Graph, inputs: &[Values]) -> Vec<Vec<f64>> {
    graph.evaluate(inputs).unwrap().iter().map(Values::floats).collect()
}

#[test]
fn open_sizes_are_asked_for_and_decide_shapes() {
    let model = model("symbols");
    assert_eq!(model.inputs()[0].to_string(), "'x' f32[n,4]");
    let error = model.graph(&Bindings::default()).unwrap_err().to_string();
    assert!(error.contains("give n") && error.contains("--dim"), "{error}");
    let mut bindings = Bindings::default();
    bindings.dims.insert("n".into(), 3);
    let graph = model.graph(&bindings).unwrap();
    assert_eq!(graph.tensor(graph.outputs[0].tensor).dims(), [3, 2, 2]);
    let result = run(&graph, &[floats(&[0.0; 12])]);
    assert_eq!(result, [[0.25; 12]]);
}

#[test]
fn a_loop_that_is_known_becomes_what_it_does() {
    let model = model("loops");
    // A number of runs that a call decides is a loop.
    let graph = model.graph(&Bindings::default()).unwrap();
    assert!(graph.body.nodes.iter().any(|node| matches!(node.op, NodeOp::Loop(_))));
    let mut bindings = Bindings::default();
    let bytes = Values::Int(vec![3]).to_bytes(DType::I64).into();
    bindings.values.insert("count".into(), BoundValue { element: DType::I64.into(), dims: vec![], bytes });
    let graph = model.graph(&bindings).unwrap();
    assert!(!graph.body.nodes.iter().any(|node| matches!(node.op, NodeOp::Loop(_))));
    let results = run(&graph, &[Values::Int(vec![3]), floats(&[1.0, -1.0])]);
    assert_eq!(results[0], [8.0, -8.0]);
    assert_eq!(results[1], [2.0, -2.0, 4.0, -4.0, 8.0, -8.0, 7.0, 8.0]);
}

#[test]
fn a_branch_is_taken_when_it_runs() {
    let graph = model("branches").graph(&Bindings::default()).unwrap();
    assert!(matches!(graph.body.nodes[..], [halite_compiler::graph::Node { op: NodeOp::If(_), .. }]));
    let of = |taken: i64| run(&graph, &[Values::Int(vec![taken]), floats(&[1.0, 2.0, 3.0])]);
    assert_eq!(of(1), [[2.0, 4.0, 6.0]]);
    assert_eq!(of(0), [[1.0, 4.0, 9.0]]);
}

#[test]
fn functions_are_put_in_with_their_attributes() {
    let graph = model("functions").graph(&Bindings::default()).unwrap();
    assert_eq!(run(&graph, &[floats(&[2.0, -2.0])]), [[4.0, -2.0]]);
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let error = model("endless").graph(&Bindings::default()).unwrap_err().to_string();
    assert!(error.contains("inside of each other"), "{error}");
}

#[test]
fn tensors_may_lie_beside_the_model() {
    let graph = model("external").graph(&Bindings::default()).unwrap();
    assert_eq!(run(&graph, &[floats(&[10.0, 20.0])]), [[11.0, 22.0]]);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/external.onnx");
    let bytes = std::fs::read(file).unwrap();
    let alone = Model::from_bytes(bytes.clone().into()).unwrap();
    let error = alone.graph(&Bindings::default()).unwrap_err().to_string();
    assert!(error.contains("'external.bin'"), "{error}");
    // The same length, and a way out of the folder.
    let text = String::from_utf8_lossy(&bytes).replace("external.bin", "../ernal.bin");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.onnx"), text.as_bytes()).unwrap();
    let outside = Model::open(&folder.path().join("m.onnx")).and_then(|m| m.graph(&Bindings::default()));
    assert!(outside.unwrap_err().to_string().contains("outside of the model's folder"));
}

#[test]
fn sizes_beyond_reason_are_refused() {
    for (name, reason) in [("crop", "-9223372036854775808"), ("enlarge", "resizing 1 places to 16777217")] {
        let error = model(name).graph(&Bindings::default()).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn damaged_models_are_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["symbols", "loops", "branches", "functions"] {
        let bytes = std::fs::read(folder.join(format!("{name}.onnx"))).unwrap();
        for end in (0..bytes.len()).step_by(7) {
            let mut bindings = Bindings::default();
            bindings.dims.insert("n".into(), 2);
            if let Ok(model) = Model::from_bytes(bytes[..end].to_vec().into()) {
                drop(model.graph(&bindings));
            }
        }
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] = damaged[place].wrapping_add(1);
            if let Ok(model) = Model::from_bytes(damaged.into()) {
                drop(model.graph(&Bindings::default()));
            }
        }
    }
}

/// Two sequences, of which the second has a token less, go through both nodes of `windows`, so many tokens at a time.
fn through_windows(room: usize, steps: &[usize]) {
    let graphs = |length: usize, held: usize| {
        let mut bindings = Bindings::default();
        bindings.dims.extend([("length".into(), length as u64), ("room".into(), held as u64)]);
        model("windows").graph(&bindings).unwrap()
    };
    let none = |rows: usize| vec![0.0; 2 * rows * 16];
    let (mut all, mut some) = ([none(16), none(16)], [none(room), none(room)]);
    let (mut total, mut held) = (0, room);
    for &length in steps {
        total += length;
        let qkv: Vec<f64> =
            (0..2 * length * 64).map(|i| ((i * 37 + total * 11) % 101) as f64 / 25.0 - 2.0).collect();
        let counts = [total as i64 - 1, total as i64 - 2];
        let mut inputs = vec![floats(&qkv), Values::Int(counts.to_vec()), Values::Int(vec![total as i64])];
        inputs.extend(all.iter().chain(&some).map(|rows| floats(rows)));
        let mut out = run(&graphs(length, held), &inputs).into_iter();
        let mut next = || out.next().unwrap();
        let (y_all, own_all) = (next(), [next(), next()]);
        let (y_some, own_some) = (next(), [next(), next()]);
        held = own_some[0].len() / 32;
        for sequence in 0..2 {
            let after = total - sequence;
            let (first, valid) = (sequence * length * 32, length.min(after) * 32);
            let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
            let row = first..first + valid;
            assert!(near(&y_all[row.clone()], &y_some[row]), "{room} rows, {steps:?}: {total} tokens");
            // A cache with more rows than the window lets go of as many at once, and one.
            let at_once = held - 4 + 1;
            let stay = after - after.saturating_sub(4) / at_once * at_once;
            for (whole, kept) in own_all.iter().zip(&own_some) {
                let last = &whole[(sequence * 16 + after - stay) * 16..(sequence * 16 + after) * 16];
                let kept = &kept[sequence * held * 16..(sequence * held + stay) * 16];
                assert!(
                    stay <= held && near(last, kept),
                    "{room} rows, {steps:?}: {total} tokens, {stay} stay"
                );
            }
        }
        (all, some) = (own_all, own_some);
    }
}

#[test]
fn caches_that_hold_a_window_alone_give_what_whole_ones_do() {
    for room in [4, 6, 9] {
        through_windows(room, &[3, 1, 1, 1, 1, 1, 1, 1, 1]);
        through_windows(room, &[9, 1, 2, 3, 1]);
    }
    // A cache that holds nothing yet gets as many rows as a query sees.
    through_windows(0, &[2, 1, 1, 7, 1]);
}

/// Against plain loops, which give what ONNX Runtime 1.32 gives for a batch that lies between rows and columns.
#[test]
fn products_take_a_batch_behind_rows() {
    let mut bindings = Bindings::default();
    bindings.dims.insert("n".into(), 2);
    let graph = model("batches").graph(&bindings).unwrap();
    let counted =
        |count: usize, by: usize| -> Vec<f64> { (0..count).map(|i| (i * by % 11) as f64 - 5.0).collect() };
    let (x, y, u, v) = (counted(48, 7), counted(80, 5), counted(48, 3), counted(80, 4));
    let out = run(&graph, &[floats(&x), floats(&y), floats(&u), floats(&v)]);
    let sum = |of: &dyn Fn(usize) -> f64| (0..4).map(of).sum::<f64>();
    let places = || (0..4).flat_map(|batch| (0..15).map(move |at| (batch, at / 5, at % 5)));
    let straight = places()
        .map(|(batch, row, column)| sum(&|k| x[(row * 4 + batch) * 4 + k] * y[(k * 4 + batch) * 5 + column]));
    let turned = places().map(|(batch, row, column)| {
        0.5 * sum(&|k| u[(k * 4 + batch) * 3 + row] * v[(column * 4 + batch) * 4 + k])
    });
    assert_eq!(out, [straight.collect::<Vec<f64>>(), turned.collect()]);
}
