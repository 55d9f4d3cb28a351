//! Owns the order of checks. Does not own the tests: they are cargo's.

use std::{path::Path, process::Command};

use anyhow::Result;
use clap::Args;

use crate::{
    header, plugins,
    setup::{self, Icd},
    shell::{self, cargo, repo, say},
};

/// What to test.
#[derive(Args, Default)]
pub struct Options {
    /// Only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
}

/// Packages whose tests talk to a device: they run once per Vulkan driver.
const DEVICE_PACKAGES: [&str; 5] =
    ["halite-vulkan", "halite-runtime", "halite", "halite-tools", "halite-conformance"];

/// Tests of the tools that run once more with drivers that are all plug-ins.
const PLUGIN_TESTS: [&str; 4] = ["linked", "plugins", "cli", "devices"];

/// Sets up and runs all tests; those that need a device once per driver.
pub fn run(options: &Options) -> Result<()> {
    say("set-up");
    let icds = setup::everything()?;
    let filter: Vec<&str> = options.filter.as_deref().into_iter().collect();
    say("tests without a device");
    let mut args = vec!["test", "--workspace", "--all-targets"];
    for package in DEVICE_PACKAGES {
        args.extend(["--exclude", package]);
    }
    shell::run(cargo(&args).arg("--").args(&filter))?;
    shell::run(&mut cargo(&["test", "--workspace", "--doc"]))?;
    with_plugins(icds.first(), &filter)?;
    let swiftshader = icds.iter().find_map(|icd| icd.library.as_deref());
    for icd in &icds {
        on_device(icd, swiftshader, &filter)?;
    }
    match swiftshader {
        Some(library) => without_loader(library, &filter)?,
        None => println!("SKIPPED: no SwiftShader, so no test ran without Vulkan's loader"),
    }
    if icds.is_empty() {
        println!("SKIPPED: no Vulkan driver is there, so no device test ran");
    }
    Ok(())
}

/// Tools without linked drivers find them as plug-ins. Before the tests on devices, which leave the usual tools behind.
fn with_plugins(icd: Option<&Icd>, filter: &[&str]) -> Result<()> {
    let drivers = repo("target/xtask/drivers");
    plugins::install(false, &drivers)?;
    say("tests of the tools with plug-ins only");
    let mut args = vec!["test", "--package", "halite-tools", "--no-default-features"];
    for test in PLUGIN_TESTS {
        args.extend(["--test", test]);
    }
    let mut command = cargo(&args);
    command.env("HALITE_DRIVER_PATH", &drivers);
    if let Some(icd) = icd {
        choose(&mut command, icd);
    }
    shell::run(command.arg("--").args(filter))
}

/// Vulkan's loader, old or new, sees this driver only.
fn choose(command: &mut Command, icd: &Icd) {
    command.env("VK_DRIVER_FILES", &icd.manifest).env("VK_ICD_FILENAMES", &icd.manifest);
}

fn on_device(icd: &Icd, swiftshader: Option<&Path>, filter: &[&str]) -> Result<()> {
    say(&format!("tests on {}", icd.name));
    let mut args = vec!["test", "--all-targets"];
    for package in DEVICE_PACKAGES {
        args.extend(["--package", package]);
    }
    let mut command = cargo(&args);
    choose(&mut command, icd);
    command.env("HALITE_TEST_DEVICE", icd.name);
    if let Some(library) = swiftshader {
        command.env("HALITE_SWIFTSHADER", library);
    }
    shell::run(command.arg("--").args(filter))
}

/// The driver's own tests once more, on a driver's library that is loaded directly.
fn without_loader(library: &Path, filter: &[&str]) -> Result<()> {
    say("tests on swiftshader, without Vulkan's loader");
    let mut command = cargo(&["test", "--package", "halite-vulkan", "--test", "*"]);
    command.env("HALITE_TEST_ICD", library).env("HALITE_SWIFTSHADER", library);
    command.env_remove("VK_DRIVER_FILES").env_remove("VK_ICD_FILENAMES");
    shell::run(command.arg("--").args(filter))
}

/// Everything that must pass before a change lands.
pub fn ci() -> Result<()> {
    say("format");
    shell::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    say("lints");
    shell::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    let without_drivers = ["clippy", "--package", "halite-tools", "--no-default-features", "--all-targets"];
    shell::run(cargo(&without_drivers).args(["--", "-D", "warnings"]))?;
    say("C header of the driver interface");
    header::run(&header::Options { check: true })?;
    say("documentation");
    shell::run(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(&Options::default())
}
