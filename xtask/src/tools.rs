//! What the tools' program is called, and how it gets its other names.

use std::path::Path;

use anyhow::Result;

use crate::shell::{self, command};

/// The program.
pub const PROGRAM: &str = "halite";
/// Its package.
pub const PACKAGE: &str = "halite-tools";
/// Runs a model.
pub const RUN: &str = "run";
/// Lists devices.
pub const DEVICES: &str = "devices";

/// Has the program in a folder make links to itself under its old names, such as `run-module`.
pub fn link(folder: &Path) -> Result<()> {
    let program = folder.join(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX));
    let (program, folder) = (program.to_string_lossy(), folder.to_string_lossy());
    shell::run(&mut command(&program, &["links", &folder]))
}
