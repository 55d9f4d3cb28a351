//! The command `worker`, and the flags that it shares with `run`: what cases are made from, and where they run.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use clap::Args;
use halite_conformance::{
    carried::Carried,
    run::{self, Target},
    suites::{Runner, Settings, named},
};
use halite_testing::drivers;
use halite_tools::logger;

/// What cases are made from.
#[derive(Args)]
pub struct CaseFlags {
    /// Option for the driver, as `name=value`.
    #[arg(long = "option")]
    options: Vec<String>,
    /// Driver plug-in: a manifest, a library, or a folder of manifests. Replaces a linked driver of its name.
    #[arg(long = "driver-path", alias = "driver_path", value_name = "PATH")]
    driver_path: Vec<PathBuf>,
    /// Run under parts of the Khronos validation layer (as the Vulkan driver's option `validation` names them); any message
    /// of it fails the case, and so does a recording that lacks a barrier.
    #[arg(long, value_name = "PARTS", num_args = 0..=1, require_equals = true, default_missing_value = "sync")]
    validate: Option<String>,
    /// Suites, as a comma list; all of them without it.
    #[arg(long = "suite", value_delimiter = ',')]
    pub suites: Vec<String>,
    /// First seed of random cases and inputs.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of random graphs of operations.
    #[arg(long, default_value_t = 20)]
    pub rounds: u64,
    /// Longest time that one case may take, in seconds.
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Folder of modules of the original's compiler; by default the one beside the checkout.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Folder with this repository's models and modules, laid out as the repository is; by default where the program was
    /// built, or else what the program carries.
    #[arg(long, value_name = "DIR")]
    repository: Option<PathBuf>,
    /// Folder of node tests of the `onnx` package (`backend/test/data/node`), which join the suite `models`.
    #[arg(long, value_name = "DIR")]
    onnx_tests: Option<PathBuf>,
    /// Folder of more ExecuTorch programs with what PyTorch computes of them, such as `export_pte.py` makes; they join the
    /// suite `models`.
    #[arg(long, value_name = "DIR")]
    pte_models: Option<PathBuf>,
    /// Folder of more VGF and TOSA files with what the TOSA reference model computes of them, such as `export_vgf.py` makes;
    /// they join the suite `models`.
    #[arg(long, value_name = "DIR")]
    vgf_models: Option<PathBuf>,
}

/// What cases are made from, and the files for as long as this is there.
pub struct Sources {
    pub settings: Settings,
    _carried: Option<Carried>,
}

impl CaseFlags {
    /// A device.
    pub fn target(&self, uri: &str) -> Target {
        Target {
            uri: uri.to_owned(),
            options: drivers::parse_options(&self.options),
            driver_paths: self.driver_path.clone(),
            validate: self.validate.clone(),
        }
    }

    /// What cases are made from.
    pub fn sources(&self) -> Result<Sources> {
        let found = Settings::at_hand();
        let mut settings = Settings {
            seed: self.seed,
            rounds: self.rounds,
            corpus: self.corpus.clone().or(found.corpus),
            repository: self.repository.clone().or(found.repository),
            onnx_tests: self.onnx_tests.clone(),
            pte_models: self.pte_models.clone(),
            vgf_models: self.vgf_models.clone(),
        };
        let mut carried = None;
        if settings.repository.is_none() {
            let files = Carried::unpack()?;
            settings.repository = Some(files.path().to_owned());
            carried = Some(files);
        }
        Ok(Sources { settings, _carried: carried })
    }

    /// Longest time of a case.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }

    /// Whether and how cases are validated.
    pub fn validate(&self) -> Option<&str> {
        self.validate.as_deref()
    }
}

/// Flags of the command.
#[derive(Args)]
pub struct Flags {
    /// Device URI.
    #[arg(long)]
    device: String,
    #[command(flatten)]
    cases: CaseFlags,
}

/// Runs the cases that standard input names, and tells on standard output what came of each.
pub fn run(flags: &Flags) -> Result<bool> {
    let runner = Runner::new(flags.cases.target(&flags.device).opener(), flags.cases.limit())
        .watched(Arc::new(logger::take_validation_texts));
    let suites = named(&flags.cases.suites)?;
    let sources = flags.cases.sources()?;
    run::serve(&runner, &suites, &sources.settings, io::stdin().lock(), io::stdout())?;
    Ok(true)
}
