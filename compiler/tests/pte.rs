//! ExecuTorch programs: graphs of real exports, computed on the host, against what PyTorch computes.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::path::{Path, PathBuf};

use crate::common::{Array, compare};
use halite_compiler::{
    CompileError,
    frontends::{SourceModel as _, pte::Model},
    signature::{Bindings, BoundValue, Dim},
};
use serde_json::Value as Json;

struct Case {
    folder: PathBuf,
    json: Json,
}

impl Case {
    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    fn model(&self) -> Model {
        Model::open(&self.folder.join(self.json["pte"].as_str().unwrap())).unwrap()
    }

    fn arrays(&self, paths: &Json) -> Vec<Array> {
        paths
            .as_array()
            .unwrap()
            .iter()
            .map(|path| Array::read(&self.folder.join(path.as_str().unwrap())))
            .collect()
    }
}

/// Programs of a folder with a manifest.
fn cases(folder: &Path) -> Vec<Case> {
    let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
    let case = |line: &str| Case { folder: folder.to_owned(), json: serde_json::from_str(line).unwrap() };
    manifest.lines().map(case).collect()
}

/// The corpus of real programs; none (said aloud) when it is not beside this checkout.
fn corpus() -> Vec<Case> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/pte"));
    if !folder.is_dir() {
        eprintln!("SKIPPED: no corpus at {}", folder.display());
        return Vec::new();
    }
    cases(folder)
}

/// Sizes of the inputs at hand, and values of those that sizes depend on.
fn bindings(model: &Model, inputs: &[Array], wanted: &[String]) -> Bindings {
    let mut bindings = Bindings::default();
    for (signature, array) in model.inputs("forward").unwrap().iter().zip(inputs) {
        assert_eq!(signature.element, Some(array.element), "{signature}");
        bindings.shapes.insert(signature.name.clone(), array.dims.clone());
        if wanted.contains(&signature.name) {
            let (element, dims, bytes) = (array.element, array.dims.clone(), array.bytes.clone().into());
            bindings.values.insert(signature.name.clone(), BoundValue { element, dims, bytes });
        }
    }
    bindings
}

/// Computes a set of inputs on the host and gives the largest difference; `None` for programs that keep state from call to
/// call, which the tests of sessions run.
fn run(case: &Case, model: &Model, set: &Json) -> Result<Option<f64>, String> {
    let (inputs, outputs) = (case.arrays(&set["inputs"]), case.arrays(&set["outputs"]));
    let graph = match model.graph("forward", &bindings(model, &inputs, &[])) {
        Err(CompileError::NeedsValues { inputs: wanted, .. }) if !wanted.is_empty() => {
            model.graph("forward", &bindings(model, &inputs, &wanted))
        }
        other => other,
    };
    let graph = graph.map_err(|e| e.to_string())?;
    if !model.kept("forward").map_err(|e| e.to_string())?.is_empty() {
        return Ok(None);
    }
    let values: Vec<_> = inputs.iter().map(Array::values).collect();
    let found = graph.evaluate(&values).map_err(|e| e.to_string())?;
    let bound = |name: &str| case.json[name].as_f64().unwrap();
    let mut largest = 0.0f64;
    for ((found, wanted), port) in found.iter().zip(&outputs).zip(&graph.outputs) {
        let tensor = graph.tensor(port.tensor);
        if (tensor.element, tensor.dims()) != (wanted.element, &wanted.dims[..]) {
            return Err(format!("{} is {}{:?}", port.name, tensor.element, tensor.dims()));
        }
        largest = largest.max(compare(found, &wanted.values(), bound("atol"), bound("rtol"))?);
    }
    if found.len() == outputs.len() { Ok(Some(largest)) } else { Err(format!("{} outputs", found.len())) }
}

/// Runs every set of every case that keeps no state; how many there were.
fn run_all(cases: &[Case]) -> usize {
    let (mut failures, mut ran) = (Vec::new(), 0);
    for case in cases {
        let model = case.model();
        for set in case.json["sets"].as_array().unwrap() {
            match run(case, &model, set) {
                Ok(Some(largest)) => {
                    println!("{}: off by {largest:.2e}", case.name());
                    ran += 1;
                }
                Ok(None) => println!("{}: keeps state", case.name()),
                Err(reason) => failures.push(format!("{}: {reason}", case.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    ran
}

#[test]
fn programs_of_the_corpus_compute_what_pytorch_computes() {
    let cases = corpus();
    let ran = run_all(&cases);
    assert!(cases.is_empty() || ran >= 95, "only {ran} ran");
}

/// More programs, in folders with a manifest that a variable names, such as those of conformance/models/export_pte.py.
#[test]
fn named_programs_compute_what_pytorch_computes() {
    let Some(folder) = std::env::var_os("HALITE_PTE_MODELS") else {
        eprintln!("SKIPPED: HALITE_PTE_MODELS names no folder");
        return;
    };
    let cases = cases(Path::new(&folder));
    assert!(run_all(&cases) > 0);
}

#[test]
fn single_operators_compute_what_pytorch_computes() {
    let cases = cases(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/pte")));
    assert_eq!(run_all(&cases), cases.len());
}

#[test]
fn programs_of_xnnpack_compute_what_pytorch_computes() {
    let cases = cases(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/pte/xnnpack")));
    assert_eq!(run_all(&cases), cases.len());
}

/// Small seeded generator (xorshift64*), so that failures repeat.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Rounds of damage for each program: a few in the short form, more with a variable, for a search.
fn rounds() -> usize {
    let usual = if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 25 } else { 5 };
    std::env::var("HALITE_DAMAGE_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap())
}

#[test]
fn damaged_programs_do_no_harm() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let (mut built, mut refused) = (0, 0);
    let folders = ["/../conformance/pte", "/../conformance/pte/xnnpack"];
    let folders = folders.map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder[1..]));
    for case in folders.iter().flat_map(|folder| cases(folder)) {
        let whole = std::fs::read(case.folder.join(case.json["pte"].as_str().unwrap())).unwrap();
        for _ in 0..rounds() {
            let mut file = whole.clone();
            for _ in 0..=noise.below(4) {
                let at = noise.below(file.len());
                // Small numbers, which indices and sizes mostly are, and extremes.
                file[at] = [noise.next() as u8, noise.below(16) as u8, 0, 0xFF, 0x7F, 0x80][noise.below(6)];
            }
            let Ok(model) = Model::parse(file.into()) else { continue };
            let Ok(inputs) = model.inputs("forward") else { continue };
            let known = |dims: &Vec<Dim>| {
                dims.iter().map(|dim| if let Dim::Known(size) = dim { *size } else { 3 }).collect::<Vec<_>>()
            };
            let shapes = inputs.iter().map(|input| (input.name.clone(), known(input.dims.as_ref().unwrap())));
            match model.graph("forward", &Bindings { shapes: shapes.collect(), ..Bindings::default() }) {
                Ok(_) => built += 1,
                Err(_) => refused += 1,
            }
        }
    }
    println!("{built} were built, {refused} were refused");
    assert!(built > 0 && refused > 0);
}
