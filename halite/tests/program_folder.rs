//! A folder of ExecuTorch programs, each with sets of inputs and what PyTorch computes of them: how many are right.
//!
//! Set `HALITE_PTE_PROGRAMS` to a folder with a `manifest.jsonl`, such as `conformance/models/export_pte_networks.py` makes;
//! without it, this does nothing. `HALITE_PTE_ONLY` takes those whose names contain a text. The sets of a program run in order on
//! one session. Where a line has `tokens`, the largest numbers have to be at the same places, too, or to be within `spread` of
//! those that are there. Where a set has `places`, its outputs are of those places of the real ones. `HALITE_PTE_TIMES` is how many calls are timed; those are no check. `HALITE_PTE_F16` makes all floats
//! inside halves, on processors too.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common;
use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use halite::{
    Tensor,
    host::{HostTensor, element_to_f64, npy},
};
use serde_json::Value as Json;

/// A line of the manifest.
struct Case {
    folder: PathBuf,
    json: Json,
}

/// What a case came to.
#[derive(Default)]
struct Found {
    /// The largest difference, and the root of the mean square as a part of what is expected.
    most: f64,
    rms: f64,
    /// The largest number that is expected.
    largest: f64,
    compile: Duration,
    call: Option<Duration>,
    versions: usize,
    /// Calls whose largest number is another than the expected one, which is nearly as large.
    other_tokens: usize,
    /// Bytes that the session holds on the device after its calls.
    held: u64,
}

impl Case {
    fn all(folder: &Path) -> Vec<Case> {
        let text = std::fs::read_to_string(folder.join("manifest.jsonl")).unwrap();
        let one = |line| Case { folder: folder.to_owned(), json: serde_json::from_str(line).unwrap() };
        text.lines().map(one).collect()
    }

    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    fn tensors(&self, set: usize, which: &str) -> Vec<Tensor> {
        let read = |path: &Json| {
            let mut file = File::open(self.folder.join(path.as_str().unwrap())).unwrap();
            Tensor::from(npy::read(&mut file).unwrap().unwrap())
        };
        self.json["sets"][set][which].as_array().unwrap().iter().map(read).collect()
    }

    fn run(&self, device: &halite::Device, calls: usize) -> Result<Found, String> {
        let text = |error: halite::Error| format!("refused: {error}").replace('\n', " ");
        let program = self.folder.join(self.json["pte"].as_str().unwrap());
        let mut found = Found::default();
        let (began, before) = (Instant::now(), device.memory().used);
        let mut builder = common::builder(device).model(program);
        if std::env::var_os("HALITE_PTE_F16").is_some() {
            builder = builder.precision(halite::Precision::F16);
        }
        let session = builder.build().map_err(text)?;
        for set in 0..self.json["sets"].as_array().unwrap().len() {
            let outputs = session.run(self.tensors(set, "inputs")).map_err(text)?;
            if set == 0 {
                found.compile = began.elapsed();
            }
            self.compare(set, &outputs, &mut found)?;
        }
        found.versions = session.loaded_versions();
        found.held = device.memory().used.saturating_sub(before);
        for _ in 0..calls {
            let inputs = self.tensors(0, "inputs");
            let began = Instant::now();
            let outputs = session.run(inputs).map_err(text)?;
            // The call has ended when its results can be read.
            outputs
                .iter()
                .filter_map(|(_, value)| value.as_tensor())
                .for_each(|tensor| drop(numbers(tensor)));
            let took = began.elapsed();
            found.call = Some(found.call.map_or(took, |best| best.min(took)));
        }
        Ok(found)
    }

    fn compare(&self, set: usize, outputs: &halite::Outputs, found: &mut Found) -> Result<(), String> {
        let bound = |name: &str, other: f64| self.json[name].as_f64().unwrap_or(other);
        let wanted = self.tensors(set, "outputs");
        if outputs.len() != wanted.len() {
            return Err(format!("wrong: {} outputs, {} are expected", outputs.len(), wanted.len()));
        }
        let (mut squares, mut of) = (0.0, 0.0);
        let mut wrong = None;
        let places = self.json["sets"][set]["places"].is_array().then(|| self.tensors(set, "places"));
        for (i, wanted) in wanted.iter().enumerate() {
            if places.is_none() && outputs[i].shape() != wanted.shape() {
                return Err(format!(
                    "wrong: output {i} is {:?} for {:?}",
                    outputs[i].shape(),
                    wanted.shape()
                ));
            }
            let (mut given, wanted) = (numbers(&outputs[i]), numbers(wanted));
            if let Some(places) = &places {
                given = largest_and(&given, &numbers(&places[i]));
            }
            if let (Some(true), Some(own), Some(token)) =
                (self.json["tokens"].as_bool(), largest(&given), largest(&wanted))
                && own != token
            {
                found.other_tokens += 1;
                if wanted[token] - wanted[own] > bound("spread", 0.0) {
                    return Err(format!("wrong: call {set} gives token {own} for {token}"));
                }
            }
            for (a, b) in given.iter().zip(&wanted) {
                let apart = apart(*a, *b);
                found.most = found.most.max(apart);
                found.largest = found.largest.max(if b.is_finite() { b.abs() } else { 0.0 });
                (squares, of) = (squares + apart * apart, of + if b.is_finite() { b * b } else { 0.0 });
                let within = apart <= bound("atol", 1e-3) + bound("rtol", 1e-3) * b.abs();
                if !within && wrong.is_none() {
                    wrong = Some(format!("wrong: output {i} of call {set} has {a} for {b}"));
                }
            }
        }
        found.rms = found.rms.max((squares / f64::max(of, 1e-30)).sqrt());
        match wrong {
            Some(wrong) => Err(format!("{wrong}; {:.2e} at most, rms {:.2e}", found.most, found.rms)),
            None if found.rms > bound("rms", f64::INFINITY) => {
                Err(format!("wrong: rms {:.2e}, {:.2e} is expected at most", found.rms, bound("rms", 0.0)))
            }
            None => Ok(()),
        }
    }
}

/// How far two numbers are apart: not at all where both are NaN or the same infinity.
fn apart(a: f64, b: f64) -> f64 {
    let same = a == b || a.is_nan() && b.is_nan();
    if same { 0.0 } else { (a - b).abs() }
}

/// The numbers at `places`, of which the first is that of the largest one that is expected; where another one is larger than all of
/// them, it stands in the place of the last.
fn largest_and(numbers: &[f64], places: &[f64]) -> Vec<f64> {
    let mut found: Vec<f64> = places.iter().map(|place| numbers[*place as usize]).collect();
    if let (Some(most), Some(last)) = (largest(numbers), found.len().checked_sub(1))
        && !places.contains(&(most as f64))
    {
        found[last] = numbers[most];
    }
    found
}

/// The place of the largest number.
fn largest(numbers: &[f64]) -> Option<usize> {
    (0..numbers.len()).max_by(|a, b| numbers[*a].total_cmp(&numbers[*b]))
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    let host = HostTensor::try_from(tensor).unwrap();
    let count: u64 = host.shape.iter().product();
    (0..count).map(|i| element_to_f64(host.element_type, &host.data, i).unwrap()).collect()
}

#[test]
fn programs_of_a_folder_compute_what_pytorch_computes() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(folder) = std::env::var_os("HALITE_PTE_PROGRAMS").map(PathBuf::from) else {
        println!("SKIPPED: HALITE_PTE_PROGRAMS names no folder");
        return;
    };
    let Some(device) = common::device() else { return };
    let only = variable("HALITE_PTE_ONLY").unwrap_or_default();
    let calls = variable("HALITE_PTE_TIMES").map_or(0, |calls| calls.parse().unwrap());
    let (mut count, mut failures) = (0, Vec::new());
    for case in Case::all(&folder).iter().filter(|case| case.name().contains(&only)) {
        count += 1;
        let result = catch_unwind(AssertUnwindSafe(|| case.run(&device, calls)));
        match result.unwrap_or_else(|_| Err("panicked".to_owned())) {
            Ok(f) => println!(
                "pass {}: {:.2e} of {:.2e}, rms {:.2e}, first call {:?}, {} versions, {} bytes held, {} other tokens, best call {:?}",
                case.name(),
                f.most,
                f.largest,
                f.rms,
                f.compile,
                f.versions,
                f.held,
                f.other_tokens,
                f.call
            ),
            Err(error) => {
                println!("FAIL {}: {error}", case.name());
                failures.push(format!("{}: {error}", case.name()));
            }
        }
    }
    println!("{} of {count} are right", count - failures.len());
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}
