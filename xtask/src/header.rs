//! The chore that makes the C headers: of the driver interface, and of libhalite.

use anyhow::Result;
use clap::Args;

use crate::shell::{self, cargo, repo};

/// What to do with the headers.
#[derive(Args)]
pub struct Options {
    /// Only tell whether the headers are current.
    #[arg(long)]
    pub check: bool,
}

/// Builds the generator if need be and runs it.
pub fn run(options: &Options) -> Result<()> {
    let mut command =
        cargo(&["run", "--quiet", "--locked", "--manifest-path", "plugin/generator/Cargo.toml", "--"]);
    if options.check {
        command.arg("--check");
    }
    shell::run(command.env("CARGO_TARGET_DIR", repo("target/xtask/header")))
}
