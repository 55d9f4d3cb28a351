//! Compiles the kernel templates, with a program of its own workspace: its compiler is C++ and takes minutes to build.

use anyhow::Result;
use clap::Args;

use crate::shell::{self, cargo};

/// What to do.
#[derive(Args)]
pub struct Options {
    /// Compile everything, write nothing, and tell which kept kernels are not what the templates give.
    #[arg(long)]
    pub check: bool,
    /// Print every build with its template and its definitions.
    #[arg(long, conflicts_with = "check")]
    pub list: bool,
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
    if options.list {
        command.arg("--list");
    }
    if let Some(only) = &options.only {
        command.args(["--only", only]);
    }
    shell::run(&mut command)
}
