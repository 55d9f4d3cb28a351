//! Gets tools that the Python Package Index carries ready to run, in the versions of `tools.txt`, whose digests pip compares.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::shell::{command, exists, output, repo, say};

/// The versions and digests, in pip's form.
const WANTED: &str = "xtask/tools.txt";
/// Where the tools are put: below it is `bin`.
const FOLDER: &str = "target/xtask/tools";
/// A copy of what was wanted when the tools were put there.
const STAMP: &str = "installed.txt";

/// The spelling checker.
pub fn typos() -> Result<PathBuf> {
    tool(&repo(WANTED), &repo(FOLDER), "typos")
}

/// A tool of the list; all of it is installed unless that was done before.
fn tool(wanted: &Path, folder: &Path, name: &str) -> Result<PathBuf> {
    let list = fs::read_to_string(wanted).with_context(|| format!("{}", wanted.display()))?;
    let stamp = folder.join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == list) {
        return Ok(program(folder, name));
    }
    if !exists("python3") {
        bail!("there is no python3, whose pip installs {name}");
    }
    say(&format!("installing the tools of {WANTED}"));
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    let mut pip = command("python3", &["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--target"]).arg(folder);
    output(pip.arg("--requirement").arg(wanted)).with_context(|| format!("pip did not install {name}"))?;
    let program = program(folder, name);
    output(&mut command(&program.to_string_lossy(), &["--version"]))?;
    // Last, so that what is there is whole.
    fs::write(stamp, list)?;
    Ok(program)
}

fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_installed_is_not_installed_again() {
        let folder = std::env::temp_dir().join(format!("halite-prebuilt-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let wanted = folder.join("wanted.txt");
        fs::write(&wanted, "a list").unwrap();
        fs::write(folder.join(STAMP), "a list").unwrap();
        assert_eq!(tool(&wanted, &folder, "typos").unwrap(), program(&folder, "typos"));
        assert!(tool(&folder.join("none.txt"), &folder, "typos").is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
