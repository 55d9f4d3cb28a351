//! Owns starting the comparison with IREE's own runtime. Does not own the measuring (`conformance/bench/compare.py`).

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::shell::{self, cargo, command, repo, say};

/// What to compare.
#[derive(Args)]
pub struct Options {
    /// Folder with iree-run-module and iree-benchmark-module (PyPI: iree-base-runtime).
    #[arg(long)]
    theirs: PathBuf,
    /// Manifest of modules; see conformance/bench/compare.py.
    manifest: PathBuf,
    /// More arguments for compare.py.
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds the tools and runs the comparison on the Vulkan driver that the environment selects.
pub fn run(options: &Options) -> Result<()> {
    say("building");
    shell::run(&mut cargo(&["build", "--release", "--package", "halite-tools"]))?;
    let mut compare = command("python3", &["conformance/bench/compare.py"]);
    compare.arg("--ours").arg(repo("target/release")).arg("--theirs").arg(&options.theirs);
    compare.arg(&options.manifest).args(&options.rest);
    shell::run(&mut compare)
}
