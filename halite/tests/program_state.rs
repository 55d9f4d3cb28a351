//! What ExecuTorch programs keep from call to call, and programs for many sizes: calls on one session, against what PyTorch
//! computes.
//!
//! Each folder has a `manifest.jsonl` as `conformance/pte` has. Set `HALITE_PTE_SEQUENCES` to a folder with more programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common;
use std::{
    fs::File,
    path::{Path, PathBuf},
};

use halite::{
    Tensor,
    host::{HostTensor, element_to_f64, npy},
};
use serde_json::Value as Json;

/// A program with what its calls take and give, in order.
struct Sequence {
    folder: PathBuf,
    json: Json,
}

impl Sequence {
    fn all(folder: &Path) -> Vec<Sequence> {
        let text = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
        let one = |line| Sequence { folder: folder.to_owned(), json: serde_json::from_str(line).unwrap() };
        text.lines().map(one).collect()
    }

    fn is_stateful(&self) -> bool {
        self.json["stateful"] == true
    }

    fn is_dynamic(&self) -> bool {
        self.json["group"] == "dynamic"
    }

    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    fn program(&self) -> PathBuf {
        self.folder.join(self.json["pte"].as_str().unwrap())
    }

    fn sets(&self) -> usize {
        self.json["sets"].as_array().unwrap().len()
    }

    fn tensors(&self, set: usize, which: &str) -> Vec<Tensor> {
        let read = |path: &Json| {
            let mut file = File::open(self.folder.join(path.as_str().unwrap())).unwrap();
            Tensor::from(npy::read(&mut file).unwrap().unwrap())
        };
        self.json["sets"][set][which].as_array().unwrap().iter().map(read).collect()
    }

    /// Compares results with what is expected.
    fn compare(&self, set: usize, outputs: &halite::Outputs) -> Result<(), String> {
        let bound = |name: &str| self.json[name].as_f64().unwrap_or(1e-3);
        let wanted = self.tensors(set, "outputs");
        if outputs.len() != wanted.len() {
            return Err(format!("{} outputs, {} are expected", outputs.len(), wanted.len()));
        }
        for (i, wanted) in wanted.iter().enumerate() {
            let (own, wanted) = (numbers(&outputs[i]), numbers(wanted));
            if own.len() != wanted.len() {
                return Err(format!("{} elements, {} are expected", own.len(), wanted.len()));
            }
            let wrong = |(a, b): &(&f64, &f64)| (*a - *b).abs() > bound("atol") + bound("rtol") * b.abs();
            if let Some((a, b)) = own.iter().zip(&wanted).find(|pair| wrong(pair)) {
                return Err(format!("output {i} of call {set} has {a} for {b}"));
            }
            let largest = |all: &[f64]| (0..all.len()).max_by(|a, b| all[*a].total_cmp(&all[*b]));
            if self.json["tokens"] == true && largest(&own) != largest(&wanted) {
                return Err(format!("call {set} gives another token"));
            }
        }
        Ok(())
    }
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    let host = HostTensor::try_from(tensor).unwrap();
    let count: u64 = host.shape.iter().product();
    (0..count).map(|i| element_to_f64(host.element_type, &host.data, i).unwrap()).collect()
}

fn sequences() -> Vec<Sequence> {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/pte"));
    let mut folders: Vec<PathBuf> =
        std::env::var_os("HALITE_PTE_SEQUENCES").map(PathBuf::from).into_iter().collect();
    match corpus.is_dir() {
        true => folders.push(corpus.to_owned()),
        false => eprintln!("SKIPPED: no corpus at {}", corpus.display()),
    }
    folders.iter().flat_map(|folder| Sequence::all(folder)).collect()
}

#[test]
fn calls_of_a_session_continue_one_sequence() {
    let Some(device) = common::device() else { return };
    let mut failures = Vec::new();
    for sequence in sequences().iter().filter(|sequence| sequence.is_stateful()) {
        if let Err(error) = run(sequence, &device) {
            failures.push(format!("{}: {error}", sequence.name()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A program that was exported for sizes within bounds runs for all of them without a word of the caller, and few versions of it
/// are compiled.
#[test]
fn programs_run_for_all_sizes_within_their_bounds() {
    let Some(device) = common::device() else { return };
    let mut failures = Vec::new();
    for sequence in sequences().iter().filter(|sequence| sequence.is_dynamic()) {
        match run(sequence, &device) {
            // Versions of their own: the first sizes, single elements, the bound. Each power of 4 has one or two.
            Ok(versions) if versions * 4 <= sequence.sets() * 3 || sequence.sets() < 8 => {}
            Ok(versions) => failures.push(format!("{}: {versions} versions", sequence.name())),
            Err(error) => failures.push(format!("{}: {error}", sequence.name())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Sizes that data decide (`x.item()`, places where a condition holds) are read while a call is at work: one version is for all.
#[test]
fn sizes_that_data_decide_need_no_other_version() {
    let Some(device) = common::device() else { return };
    let mut failures = Vec::new();
    for sequence in Sequence::all(&common::repo("conformance/pte/data")) {
        match run(&sequence, &device) {
            Ok(1) => {}
            Ok(versions) => failures.push(format!("{}: {versions} versions", sequence.name())),
            Err(error) => failures.push(format!("{}: {error}", sequence.name())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run(sequence: &Sequence, device: &halite::Device) -> Result<usize, String> {
    let text = |error: halite::Error| error.to_string();
    let began = std::time::Instant::now();
    let session = common::builder(device).model(sequence.program()).build().map_err(text)?;
    let keeps = session.default_function().unwrap().info().keeps_state();
    assert_eq!(session.default_function().unwrap().info().is_stateless(), !keeps);
    assert_eq!(keeps, sequence.is_stateful(), "{}", sequence.name());
    let mut memory = Vec::new();
    for set in 0..sequence.sets() {
        let outputs = session.run(sequence.tensors(set, "inputs")).map_err(text)?;
        sequence.compare(set, &outputs)?;
        memory.push(device.memory().used);
    }
    println!(
        "{}: {} calls, {} versions, {:?}, memory {:?}",
        sequence.name(),
        sequence.sets(),
        session.loaded_versions(),
        began.elapsed(),
        (memory.get(memory.len() / 2), memory.last())
    );
    Ok(session.loaded_versions())
}
