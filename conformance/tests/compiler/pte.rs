//! ExecuTorch programs, compiled and run on the Vulkan device at hand, against what PyTorch computes.

use std::path::{Path, PathBuf};

use halite_conformance::{
    executor::Executor,
    suites::{Stop, models::pte::Export},
};

use crate::{device::Device, options};

/// A folder with more programs, such as conformance/models/export_pte.py makes.
const MORE: &str = "HALITE_PTE_MODELS";

/// The programs of this repository, those of the corpus beside it, and more where a variable names them.
fn exports() -> Vec<Export> {
    let own = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/pte"));
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/pte"));
    let mut folders = vec![own.to_owned(), own.join("xnnpack")];
    folders.extend(std::env::var_os(MORE).map(PathBuf::from));
    if corpus.is_dir() {
        folders.push(corpus.to_owned());
    } else {
        eprintln!("SKIPPED: no corpus at {}", corpus.display());
    }
    folders.iter().flat_map(|folder| Export::all(folder).unwrap()).collect()
}

/// Compiled for everybody and for the CPU devices; in the short form in turns, and every other program only.
#[test]
fn executorch_programs_compute_what_pytorch_computes() {
    let Some(device) = Device::vulkan() else { return };
    let executor: &Executor = device.executor();
    let (mut failures, mut ran) = (Vec::new(), 0);
    let is_thorough = std::env::var_os("HALITE_TEST_THOROUGH").is_some();
    let (exports, options) = (exports(), options());
    let step = if is_thorough { 1 } else { 2 };
    let pairs = (0..).zip(exports.iter().step_by(step)).flat_map(|(place, export)| {
        let either = options.iter().enumerate().filter(move |(index, _)| is_thorough || place % 2 == *index);
        either.map(move |(_, options)| (options, export))
    });
    for (options, export) in pairs {
        for set in 0..export.sets() {
            match export.check(executor, set, options) {
                Ok(()) => ran += 1,
                Err(Stop::Skip(_)) => {}
                Err(stop) => failures.push(format!("{}: {stop}", export.name())),
            }
        }
    }
    assert!(failures.is_empty(), "{} of {ran} fail:\n{}", failures.len(), failures.join("\n"));
    assert!(ran >= if is_thorough { 120 } else { 30 }, "only {ran} ran");
}
