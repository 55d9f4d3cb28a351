//! ExecuTorch programs, compiled and run on the Vulkan device at hand, against what PyTorch computes.

use std::path::{Path, PathBuf};

use halite::{HostTensor, tensor::npy};
use halite_compiler::{
    CompileError, CompileOptions, Program, compile,
    graph::Graph,
    passes::optimize,
    pte::Model,
    signature::{Bindings, BoundValue},
};
use halite_shaders::Values;
use serde_json::Value as Json;

use crate::{device::Device, options};

struct Case {
    folder: PathBuf,
    json: Json,
}

impl Case {
    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    fn arrays(&self, paths: &Json) -> Vec<HostTensor> {
        let read = |path: &Json| {
            let mut file = std::fs::File::open(self.folder.join(path.as_str().unwrap())).unwrap();
            npy::read(&mut file).unwrap().unwrap()
        };
        paths.as_array().unwrap().iter().map(read).collect()
    }

    fn bound(&self, name: &str) -> f64 {
        self.json[name].as_f64().unwrap()
    }
}

/// A folder with more programs, such as conformance/models/export_pte.py makes.
const MORE: &str = "HALITE_PTE_MODELS";

/// The programs of this repository, those of the corpus beside it, and more where a variable names them.
fn cases() -> Vec<Case> {
    let own = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/pte"));
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/pte"));
    let mut folders = vec![own.to_owned()];
    folders.extend(std::env::var_os(MORE).map(PathBuf::from));
    if corpus.is_dir() {
        folders.push(corpus.to_owned());
    } else {
        eprintln!("SKIPPED: no corpus at {}", corpus.display());
    }
    let of = |folder: &PathBuf| {
        let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
        let case = |line| Case { folder: folder.clone(), json: serde_json::from_str(line).unwrap() };
        manifest.lines().map(case).collect::<Vec<_>>()
    };
    folders.iter().flat_map(of).collect()
}

/// The graph for the inputs at hand; none for what the front end refuses, which its own tests look at.
fn graph(model: &Model, inputs: &[HostTensor]) -> Option<Graph> {
    let signatures = model.inputs("forward").unwrap();
    let mut bindings = Bindings::default();
    for (signature, input) in signatures.iter().zip(inputs) {
        bindings.shapes.insert(signature.name.clone(), input.shape.to_vec());
    }
    let wanted = match model.graph("forward", &bindings) {
        Err(CompileError::NeedsValues { inputs, .. }) => inputs,
        other => return other.ok(),
    };
    for (signature, input) in signatures.iter().zip(inputs).filter(|(s, _)| wanted.contains(&s.name)) {
        let element = signature.element.unwrap();
        let value = BoundValue { element, dims: input.shape.to_vec(), bytes: input.data.clone().into() };
        bindings.values.insert(signature.name.clone(), value);
    }
    model.graph("forward", &bindings).ok()
}

/// The largest difference, or where one is larger than the case allows.
fn compare(case: &Case, found: &Values, wanted: &Values) -> Result<f64, String> {
    assert_eq!(found.len(), wanted.len(), "{}", case.name());
    let mut largest = 0.0f64;
    for i in 0..found.len() {
        let (a, b) = (found.float(i), wanted.float(i));
        let off = if a == b || a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() };
        // What is no number is near nothing.
        if off.is_nan() || off > case.bound("atol") + case.bound("rtol") * b.abs() {
            return Err(format!("element {i} is {a}, not {b}"));
        }
        largest = largest.max(off);
    }
    Ok(largest)
}

fn run(device: &Device, case: &Case, set: &Json, options: &CompileOptions) -> Option<Result<f64, String>> {
    let model = Model::open(&case.folder.join(case.json["pte"].as_str().unwrap())).unwrap();
    let (inputs, outputs) = (case.arrays(&set["inputs"]), case.arrays(&set["outputs"]));
    let mut graph = graph(&model, &inputs)?;
    if let Err(error) = optimize(&mut graph) {
        return Some(Err(error.to_string()));
    }
    let values = |port: &halite_compiler::graph::Port, tensor: &HostTensor| {
        Values::from_bytes(graph.tensor(port.tensor).element.storage(), &tensor.data)
    };
    let arguments: Vec<_> = graph.inputs.iter().zip(&inputs).map(|(port, t)| values(port, t)).collect();
    let module = match compile(&Program::of("forward", graph.clone()), options, &mut |_| ()) {
        Ok(module) => module,
        Err(error) => return Some(Err(error.to_string())),
    };
    let found = match device.run(&module, "forward", &graph, &arguments) {
        Ok(found) => found,
        Err(error) => return Some(Err(error.to_string())),
    };
    let each = graph.outputs.iter().zip(&outputs).zip(&found);
    let all = each.map(|((port, wanted), found)| compare(case, found, &values(port, wanted)));
    Some(all.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().fold(0.0, f64::max)))
}

#[test]
fn executorch_programs_compute_what_pytorch_computes() {
    let Some(device) = Device::vulkan() else { return };
    let (mut failures, mut ran) = (Vec::new(), 0);
    for (options, case) in options().iter().flat_map(|o| cases().into_iter().map(move |case| (o, case))) {
        for set in case.json["sets"].as_array().unwrap() {
            match run(&device, &case, set, options) {
                None => {}
                Some(Ok(largest)) => {
                    println!("{}: off by {largest:.2e}", case.name());
                    ran += 1;
                }
                Some(Err(reason)) => failures.push(format!("{}: {reason}", case.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} of {ran} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(ran >= 120, "only {ran} ran");
}
