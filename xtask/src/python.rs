//! Environments of Python for chores, with packages that are fetched once.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell::{self, command, output, repo};

/// Oldest Python that the package takes: (3, 9).
const OLDEST: (u32, u32) = (3, 9);
/// Names that Python goes by.
const NAMES: [&str; 2] = ["python3", "python"];

/// A Python of this machine that is new enough.
pub fn find() -> Result<String> {
    let mut seen = Vec::new();
    for name in NAMES {
        match output(&mut command(name, &["-c", "import sys; print(*sys.version_info[:2])"])) {
            Ok(text) if version(&text).is_some_and(|version| version >= OLDEST) => return Ok(name.to_owned()),
            Ok(text) => seen.push(format!("{name} is {}", text.trim().replace(' ', "."))),
            Err(_) => seen.push(format!("there is no {name}")),
        }
    }
    anyhow::bail!("Python {}.{} or newer is needed; {}", OLDEST.0, OLDEST.1, seen.join(", "))
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The program `python` of the environment in a folder below `target/xtask`, which is made and filled with packages if need be.
pub fn environment(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = repo("target/xtask").join(name);
    let filled = folder.join("filled");
    let wanted = packages.join("\n");
    let python = program(&folder, "python");
    if std::fs::read_to_string(&filled).is_ok_and(|there| there == wanted) && python.exists() {
        return Ok(python);
    }
    let folder_text = folder.to_string_lossy();
    shell::run(&mut command(&find()?, &["-m", "venv", "--clear", &folder_text]))
        .context("no environment can be made; on Debian the package python3-venv is missing")?;
    install(&python, packages)?;
    std::fs::write(filled, wanted)?;
    Ok(python)
}

/// Installs packages, by name or as files, into the environment of a Python.
pub fn install(python: &Path, packages: &[&str]) -> Result<()> {
    let mut pip = command(&python.to_string_lossy(), &["-m", "pip", "install", "--quiet"]);
    shell::run(pip.arg("--disable-pip-version-check").args(packages))
}

/// A program in an environment.
pub fn program(environment: &Path, name: &str) -> PathBuf {
    let folder = if cfg!(windows) { "Scripts" } else { "bin" };
    environment.join(folder).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Puts the extension module that cargo built into the package's sources, so that `PYTHONPATH=python` finds it.
pub fn place_extension(built: &Path) -> Result<()> {
    let name = format!("{}_halite{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = built.join(&name);
    ensure!(library.exists(), "{} is not there", library.display());
    let ending = if cfg!(windows) { "pyd" } else { "abi3.so" };
    let place = repo("python/halite").join(format!("_halite.{ending}"));
    // A program that has the old one loaded keeps it.
    if place.exists() {
        std::fs::remove_file(&place)?;
    }
    std::fs::copy(&library, &place).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("3 9\n"), Some((3, 9)));
        assert!(version("3 12").unwrap() > OLDEST && version("2 7").unwrap() < OLDEST);
        assert_eq!(version("3.12"), None);
    }
}
