//! What a suite is and which there are.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use halite_abi::format;
use halite_hal::DeviceInfo;

use super::{Case, hal, kernels, models, modules, vm};

/// What cases are made from, beside the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where random numbers begin.
    pub seed: u64,
    /// Number of random graphs of operations.
    pub rounds: u64,
    /// Folder of modules that the original's compiler made.
    pub corpus: Option<PathBuf>,
    /// Folder that is laid out as this repository is: `conformance/pte`, `demo/digits` and so on.
    pub repository: Option<PathBuf>,
    /// Folder of node tests of the `onnx` package.
    pub onnx_tests: Option<PathBuf>,
    /// Folder of more ExecuTorch programs, with a manifest.
    pub pte_models: Option<PathBuf>,
    /// Folder of more VGF and TOSA files, with a manifest.
    pub vgf_models: Option<PathBuf>,
}

impl Settings {
    /// Numbers that begin at 1, and the folders that are found where this crate was built.
    pub fn at_hand() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        Settings {
            seed: 1,
            rounds: 20,
            corpus: crate::corpus::shared(),
            repository: root.join("conformance/pte/manifest.jsonl").is_file().then_some(root),
            onnx_tests: None,
            pte_models: None,
            vgf_models: None,
        }
    }
}

/// What a suite has for a device.
#[derive(Debug, Default)]
pub struct Offer {
    /// Its cases, in order.
    pub cases: Vec<Case>,
    /// What it would have but for something that is missing, and what: told aloud, and in reports.
    pub left_out: Vec<String>,
}

impl Offer {
    /// These cases, and nothing left out.
    pub fn of(cases: Vec<Case>) -> Self {
        Offer { cases, left_out: Vec::new() }
    }

    /// Nothing, and why.
    pub fn nothing(why: impl Into<String>) -> Self {
        Offer { cases: Vec::new(), left_out: vec![why.into()] }
    }
}

/// A list of cases under one name.
pub trait Suite: Send + Sync {
    /// What names of its cases begin with.
    fn name(&self) -> &'static str;

    /// In one line, what it is about.
    fn about(&self) -> &'static str;

    /// Its cases for a device: the same ones in the same order for the same settings and device.
    ///
    /// # Errors
    /// Files that are there cannot be read.
    fn offer(&self, settings: &Settings, device: &DeviceInfo) -> Result<Offer>;
}

struct Hal;

impl Suite for Hal {
    fn name(&self) -> &'static str {
        "hal"
    }

    fn about(&self) -> &'static str {
        "what every device must do: memory, transfers, recordings, dispatches, semaphores, queues, files"
    }

    fn offer(&self, settings: &Settings, _: &DeviceInfo) -> Result<Offer> {
        Ok(Offer::of(hal::cases(settings.seed, settings.rounds)))
    }
}

struct Vm;

impl Suite for Vm {
    fn name(&self) -> &'static str {
        "vm"
    }

    fn about(&self) -> &'static str {
        "every operation of the VM, from assembled programs and from functions that the original's compiler made"
    }

    fn offer(&self, settings: &Settings, _: &DeviceInfo) -> Result<Offer> {
        let mut offer = Offer::of(vm::cases(settings.seed));
        match &settings.corpus {
            Some(corpus) => offer.cases.extend(vm::recorded_cases(corpus)?),
            None => offer.left_out.push("there is no corpus of modules; name one with --corpus".to_owned()),
        }
        Ok(offer)
    }
}

struct Modules;

impl Suite for Modules {
    fn name(&self) -> &'static str {
        "modules"
    }

    fn about(&self) -> &'static str {
        "compiled modules, with the results that the original computed"
    }

    fn offer(&self, settings: &Settings, device: &DeviceInfo) -> Result<Offer> {
        modules::offer(settings, device)
    }
}

struct Models;

impl Suite for Models {
    fn name(&self) -> &'static str {
        "models"
    }

    fn about(&self) -> &'static str {
        "programs and models through the compiler, with the results of the operations' references, PyTorch or ONNX Runtime"
    }

    fn offer(&self, settings: &Settings, device: &DeviceInfo) -> Result<Offer> {
        models::offer(settings, device)
    }
}

struct Kernels;

impl Suite for Kernels {
    fn name(&self) -> &'static str {
        "kernels"
    }

    fn about(&self) -> &'static str {
        "every variant of the kernel library against its reference on the processor"
    }

    fn offer(&self, settings: &Settings, device: &DeviceInfo) -> Result<Offer> {
        Ok(match takes_spirv(device) {
            true => Offer::of(kernels::cases(settings.seed, "")),
            false => Offer::nothing("the device takes no SPIR-V"),
        })
    }
}

/// Whether a device takes Vulkan's kernels.
pub fn takes_spirv(device: &DeviceInfo) -> bool {
    device.executable_formats.iter().any(|format| format == format::VULKAN_SPIRV)
}

/// All suites, in the order in which they are run.
pub fn all() -> Vec<Box<dyn Suite>> {
    vec![Box::new(Hal), Box::new(Vm), Box::new(Modules), Box::new(Models), Box::new(Kernels)]
}

/// The suites of these names, in the usual order; all of them for no name.
///
/// # Errors
/// There is no suite of a name.
pub fn named(names: &[String]) -> Result<Vec<Box<dyn Suite>>> {
    let mut suites = all();
    let known: Vec<_> = suites.iter().map(|suite| suite.name()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no suite '{unknown}'; there are {}", known.join(", "));
    }
    suites.retain(|suite| names.is_empty() || names.iter().any(|name| name == suite.name()));
    Ok(suites)
}
