//! Owns the chore that compiles kernel templates. Does not own the compiler: it is a program of its own workspace, because it
//! is C++ and takes minutes to build.

use anyhow::Result;
use clap::Args;

use crate::shell::{self, cargo};

/// What to do.
#[derive(Args)]
pub struct Options {
    /// Only tell whether the kept kernels are what the templates give.
    #[arg(long)]
    pub check: bool,
    /// Only kernels whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
}

/// Builds the generator if need be and runs it.
pub fn run(options: &Options) -> Result<()> {
    let mut command =
        cargo(&["run", "--release", "--quiet", "--manifest-path", "shaders/generator/Cargo.toml", "--"]);
    if options.check {
        command.arg("--check");
    }
    if let Some(only) = &options.only {
        command.args(["--only", only]);
    }
    shell::run(&mut command)
}
