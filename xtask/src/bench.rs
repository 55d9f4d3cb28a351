//! Starting measurements: the comparison with IREE's own runtime, and the kernels.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::{
    shell::{self, cargo, command, repo, say},
    tools,
};

/// What to compare.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// Folder with iree-run-module and iree-benchmark-module (PyPI: iree-base-runtime).
    #[arg(long, required = true)]
    theirs: Option<PathBuf>,
    /// Manifest of modules; see bench/compare.py.
    #[arg(required = true)]
    manifest: Option<PathBuf>,
    /// More arguments for compare.py.
    #[arg(last = true)]
    rest: Vec<String>,
}

#[derive(Subcommand)]
enum What {
    /// Measures the kernel library beside the device's own ceilings.
    Kernels {
        /// Arguments of `bench kernels`, such as --device=vulkan://0 --op matmul:m=512,n=512,k=512.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Measures whether the variants that are chosen are near the fastest on random shapes.
    Choice {
        /// Arguments of `bench choice`, such as --device=vulkan://0 --op conv2d --shapes 50.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Fits the constants of the cost model to what `bench kernels --json` wrote.
    Fit {
        /// Arguments of `bench fit`, such as times.json --set PRODUCTS.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

/// Builds what measures, in release mode, and runs it on the device that the arguments or the environment select.
pub fn run(options: &Options) -> Result<()> {
    match &options.what {
        Some(What::Kernels { rest }) => program("kernels", rest),
        Some(What::Choice { rest }) => program("choice", rest),
        Some(What::Fit { rest }) => program("fit", rest),
        None => compare(options),
    }
}

/// A command of the program `bench`, in release mode.
pub fn program(name: &str, rest: &[String]) -> Result<()> {
    say("building");
    shell::run(&mut cargo(&["build", "--release", "--package", "halite-bench"]))?;
    let program = repo("target/release/bench").to_string_lossy().into_owned();
    shell::run(command(&program, &[name]).args(rest))
}

fn compare(options: &Options) -> Result<()> {
    let theirs = options.theirs.as_ref().context("--theirs names the folder of IREE's programs")?;
    let manifest = options.manifest.as_ref().context("a manifest of modules is needed")?;
    say("building");
    shell::run(&mut cargo(&["build", "--release", "--package", tools::PACKAGE]))?;
    tools::link(&repo("target/release"))?;
    let mut compare = command("python3", &["bench/compare.py"]);
    compare.arg("--ours").arg(repo("target/release")).arg("--theirs").arg(theirs);
    compare.arg(manifest).args(&options.rest);
    shell::run(&mut compare)
}
