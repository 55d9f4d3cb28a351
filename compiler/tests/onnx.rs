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
