//! The ONNX models of the shared corpus, compiled and run on their inputs.

use std::{collections::BTreeMap, fs, path::Path};

use halite_compiler::{
    CompileError, CompileOptions, Control, Function, Program, compile, frontends::onnx::Model, graph::Graph,
    passes::optimize, signature::Bindings,
};
use halite_conformance::corpus;
use halite_runtime::{
    HostTensor,
    tensor::{Tolerance, compare, npy},
};

use crate::device::Device;

/// Inputs and what is expected.
type Set = (Vec<HostTensor>, Vec<HostTensor>);

fn read(path: &Path) -> HostTensor {
    npy::read(&mut fs::File::open(path).unwrap()).unwrap().unwrap()
}

/// The sets of a model: `input_0.npy` and `expected_0.npy`, `set1_input_0.npy`, …
fn sets(folder: &Path) -> Vec<Set> {
    let mut sets = Vec::new();
    for prefix in [String::new()].into_iter().chain((1..).map(|i| format!("set{i}_"))) {
        let tensors = |what: &str| {
            let paths = (0..).map(|i| folder.join(format!("{prefix}{what}_{i}.npy")));
            paths.take_while(|path| path.is_file()).map(|path| read(&path)).collect::<Vec<_>>()
        };
        let set = (tensors("input"), tensors("expected"));
        if set.0.is_empty() {
            return sets;
        }
        sets.push(set);
    }
    sets
}

/// A model's graph for inputs of these sizes.
fn graph(model: &Model, inputs: &[HostTensor]) -> Result<Graph, CompileError> {
    let shapes = model.inputs().iter().zip(inputs).map(|(s, t)| (s.name.clone(), t.shape.to_vec())).collect();
    let mut graph = model.graph(&Bindings { shapes, ..Bindings::default() })?;
    optimize(&mut graph)?;
    Ok(graph)
}

#[test]
fn models_of_the_corpus_compute_what_onnx_runtime_computes() {
    let Some(root) = corpus::shared() else {
        eprintln!("SKIPPED: the shared corpus is not beside this checkout");
        return;
    };
    let Some(device) = Device::vulkan() else { return };
    let options = CompileOptions { targets: vec![device.capabilities()], ..CompileOptions::default() };
    let mut count = 0;
    for folder in fs::read_dir(root.join("models")).unwrap().map(|entry| entry.unwrap().path()) {
        let path = folder.join("model.onnx");
        if !path.is_file() {
            continue;
        }
        let (model, sets) = (Model::open(&path).unwrap(), sets(&folder));
        let shapes = |inputs: &[HostTensor]| inputs.iter().map(|t| t.shape.to_vec()).collect::<Vec<_>>();
        let versions: Result<BTreeMap<_, _>, CompileError> =
            sets.iter().map(|(inputs, _)| Ok((shapes(inputs), graph(&model, inputs)?))).collect();
        let versions = match versions {
            Ok(versions) => versions.into_values().collect(),
            Err(unsupported) if unsupported.is_unsupported() => {
                eprintln!("SKIPPED: {}: {unsupported}", path.display());
                continue;
            }
            Err(e) => panic!("{}: {e}", path.display()),
        };
        let functions = vec![Function::new("predict", versions)];
        let program = Program { functions, model: None };
        let compiled = compile(&program, &options, &Control::default()).unwrap();
        let session = device.session(&compiled);
        for (inputs, expected) in &sets {
            let found = device.call_with(&session, "predict", inputs).unwrap();
            assert_eq!(found.len(), expected.len(), "{}", path.display());
            for (found, expected) in found.iter().zip(expected) {
                let tolerance = Tolerance { f32: 1e-3, relative: 1e-3, ..Tolerance::default() };
                compare(found, expected, &tolerance).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            }
        }
        count += sets.len();
    }
    assert!(count >= 6, "the corpus has only {count} sets of inputs");
}
