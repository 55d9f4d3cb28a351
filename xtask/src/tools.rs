//! Owns what the tools' program is called, and the other names that it answers to. Does not own the program.

use std::path::Path;

use anyhow::{Context, Result};

/// The program that runs a model, and the arguments before its flags.
pub const RUN: &[&str] = &["run-module"];
/// The program that lists devices, and the arguments before its flags.
pub const DEVICES: &[&str] = &["list-devices"];
/// All programs of the package.
pub const PROGRAMS: &[&str] =
    &["run-module", "benchmark-module", "compile-module", "dump-module", "kernels", "list-devices"];
/// Names under which the first program of [`PROGRAMS`] is another tool.
pub const LINKS: &[&str] = &[];

/// Gives the first program in a folder its other names, too.
pub fn link(folder: &Path) -> Result<()> {
    let suffix = std::env::consts::EXE_SUFFIX;
    let program = format!("{}{suffix}", PROGRAMS[0]);
    for name in LINKS {
        let path = folder.join(format!("{name}{suffix}"));
        let context = || format!("cannot link '{}' to {program}", path.display());
        if path.symlink_metadata().is_ok() {
            std::fs::remove_file(&path).with_context(context)?;
        }
        symlink(folder, &program, &path).with_context(context)?;
    }
    Ok(())
}

#[cfg(unix)]
fn symlink(_folder: &Path, program: &str, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(program, path)
}

/// Links need rights there that not every user has.
#[cfg(not(unix))]
fn symlink(folder: &Path, program: &str, path: &Path) -> std::io::Result<()> {
    std::fs::copy(folder.join(program), path).map(drop)
}
