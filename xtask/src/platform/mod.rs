//! The chore that builds for other systems and runs there what can be run without a machine of that kind: Windows under Wine, 64-bit ARM
//! under qemu. Its table at the end says what ran and what did not.

mod arm64;
mod checks;
mod emulator;
mod windows;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{
    shell::{self, cargo, repo},
    steps::Steps,
    tools,
};

/// Which system, and how much.
#[derive(Args)]
pub struct Options {
    /// The systems
    #[arg(value_enum, required = true)]
    systems: Vec<System>,
    /// Cargo's profile: `dev` builds sooner
    #[arg(long, default_value = "release")]
    profile: String,
    /// Run what was built before
    #[arg(long)]
    without_build: bool,
    /// Only the program and its devices, which takes seconds after the build: no suites, no libhalite
    #[arg(long)]
    short: bool,
}

/// A system beside this one.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum System {
    /// x86_64-pc-windows-gnu, under Wine; with Xvfb also on Vulkan
    Windows,
    /// aarch64-unknown-linux-gnu, under qemu; with Debian's Mesa for it also on Vulkan
    Arm64,
}

/// Builds and runs.
pub fn run(options: &Options) -> Result<()> {
    let mut steps = Steps::begin();
    for system in &options.systems {
        match system {
            System::Windows => windows::run(options, &mut steps),
            System::Arm64 => arm64::run(options, &mut steps),
        }
    }
    steps.finish()
}

/// What a cross build needs.
struct Cross {
    triple: &'static str,
    /// The linker, for cargo.
    linker: (&'static str, String),
    /// What the names of programs end in.
    suffix: &'static str,
}

impl Cross {
    /// Builds the tools' program and the runner of suites.
    fn build(&self, options: &Options) -> Result<()> {
        crate::ci::add_targets(&[self.triple])?;
        let mut build = cargo(&["build", "--profile", &options.profile, "--target", self.triple]);
        build.args(["--package", tools::PACKAGE, "--bin", tools::PROGRAM]);
        if !options.short {
            build.args(["--package", "halite-conformance", "--bin", "conformance"]);
        }
        shell::run(build.env(self.linker.0, &self.linker.1))
    }

    /// A program that was built.
    fn program(&self, options: &Options, name: &str) -> PathBuf {
        let folder = if options.profile == "dev" { "debug" } else { &options.profile };
        repo("target").join(self.triple).join(folder).join(format!("{name}{}", self.suffix))
    }
}
