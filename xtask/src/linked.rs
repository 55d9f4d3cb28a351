//! Libraries for other languages, linked from the crates that tests are built from. Cargo would build such a library for itself, with the
//! features that it alone asks for, and compile all of the engine once more for that. What is shipped is built by cargo.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::shell::{cargo, command, repo};

/// What was linked.
pub struct Linked {
    /// The folder that the libraries are in.
    pub folder: PathBuf,
    /// Their name, without what the system puts before and behind it.
    pub name: String,
    /// What the compiler said.
    pub said: String,
}

/// Links a library of the workspace, not optimized, as these kinds of Rust's compiler (`cdylib,staticlib`), with these flags for it.
pub fn link(library: &str, kinds: &str, flags: &[String]) -> Result<Linked> {
    let built = built(library)?;
    let folder = repo("target/xtask/linked").join(library);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make '{}'", folder.display()))?;
    let source = folder.join("whole.rs");
    fs::write(&source, format!("//! All of a library.\nextern crate {library};\n"))?;
    // The crate has a name of its own: the library's is that of what it is linked from.
    let name = format!("{library}_whole");
    let mut rustc = command("rustc", &["--edition=2024", "--crate-name", &name, "--crate-type", kinds]);
    rustc.arg(&source).arg("--out-dir").arg(&folder).args(flags);
    rustc.arg("--extern").arg(format!("{library}={}", built.display()));
    rustc.arg(format!("-Ldependency={}", repo("target/debug/deps").display()));
    let out = rustc.output().with_context(|| format!("cannot start {rustc:?}"))?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if !out.status.success() {
        bail!("{rustc:?} failed: {}\n{said}", out.status);
    }
    Ok(Linked { folder, name, said })
}

/// Builds all libraries and programs, which is done where tests were; where this library of Rust is.
fn built(library: &str) -> Result<PathBuf> {
    let mut build = cargo(&["build", "--workspace", "--message-format=json-render-diagnostics"]);
    let out = build.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {build:?}"))?;
    ensure!(out.status.success(), "{build:?} failed: {}", out.status);
    let text = String::from_utf8_lossy(&out.stdout);
    let found = text.lines().find_map(|line| artifact(line, library));
    found.with_context(|| format!("cargo tells of no library {library}"))
}

/// The library's file, if a message of cargo tells of it.
fn artifact(line: &str, library: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_library = message["reason"] == "compiler-artifact" && message["target"]["name"] == library;
    let files = message["filenames"].as_array().filter(|_| is_library)?.iter();
    files
        .filter_map(Value::as_str)
        .find(|name| Path::new(name).extension().is_some_and(|e| e == "rlib"))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_what_cargo_says() {
        let line = |name: &str, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"{name}"}},"filenames":["/t/lib{name}.d","{file}"]}}"#
            )
        };
        assert_eq!(
            artifact(&line("halite_c", "/t/libhalite_c.rlib"), "halite_c"),
            Some("/t/libhalite_c.rlib".into())
        );
        assert_eq!(artifact(&line("halite_c", "/t/libhalite_c.rlib"), "halite"), None);
        assert_eq!(artifact(&line("halite", "/t/halite"), "halite"), None, "a program of that name");
        assert_eq!(artifact("not JSON", "halite"), None);
    }
}
