//! Builds test programs, and reads what cargo says of them.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::cargo;

/// A test program: the tests of one target of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// Name of the package.
    pub package: String,
    /// Name of the target.
    pub target: String,
    /// Kind of the target, in cargo's words: `lib`, `test`, `bin`, `example`, `bench`.
    pub kind: String,
    /// Its source, below the package's folder.
    pub source: String,
    /// The folder of the package, in which its tests run.
    pub folder: PathBuf,
    /// The program.
    pub path: PathBuf,
}

impl Binary {
    /// How cargo is told to run these tests.
    pub fn selection(&self) -> String {
        let target = match self.kind.as_str() {
            "test" | "bin" | "example" | "bench" => format!("--{} {}", self.kind, self.target),
            _ => "--lib".to_owned(),
        };
        format!("-p {} {target}", self.package)
    }
}

/// What a build left.
pub struct Built {
    /// The test programs, in the order of their packages and names.
    pub binaries: Vec<Binary>,
    /// Whether everything was built.
    pub whole: bool,
}

/// Builds with these arguments of cargo, as much as can be built: what does not compile keeps only what needs it from being
/// tested.
pub fn build(args: &[&str]) -> Result<Built> {
    let mut command = cargo(args);
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let output = child.wait_with_output()?;
    let mut binaries: Vec<Binary> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(binary)
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    binaries.sort_by(|a, b| (&a.package, &a.kind, &a.target).cmp(&(&b.package, &b.kind, &b.target)));
    if binaries.is_empty() {
        bail!("{command:?} built no test program: {}", output.status);
    }
    Ok(Built { binaries, whole: output.status.success() })
}

/// The test program that a message of cargo tells of, if it does.
fn binary(line: &str) -> Result<Option<Binary>> {
    let message: Value = serde_json::from_str(line).with_context(|| format!("cargo's message {line}"))?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let Some(path) = message["executable"].as_str().filter(|_| is_test) else { return Ok(None) };
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo's message has another form");
    let manifest = PathBuf::from(text(&message["manifest_path"])?);
    let folder = manifest.parent().context("a manifest lies in a folder")?.to_owned();
    let source = PathBuf::from(text(&message["target"]["src_path"])?);
    let source = source.strip_prefix(&folder).unwrap_or(&source).display().to_string();
    let target = &message["target"];
    Ok(Some(Binary {
        package: package(&text(&message["package_id"])?),
        target: text(&target["name"])?,
        kind: text(&target["kind"][0])?,
        source,
        folder,
        path: path.into(),
    }))
}

/// The name in a package's id: `…/vm#halite-vm@0.1.0`, or `…/halite#0.1.0` where the folder has the package's name.
fn package(id: &str) -> String {
    let (place, name) = id.rsplit_once('#').unwrap_or(("", id));
    match name.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next().unwrap_or(place).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_are_in_their_ids() {
        assert_eq!(package("path+file:///r/vm#halite-vm@0.1.0"), "halite-vm");
        assert_eq!(package("path+file:///r/halite#0.1.0"), "halite");
    }

    #[test]
    fn messages_tell_of_test_programs() {
        let message = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///r/vm#halite-vm@0.1.0","manifest_path":"/r/vm/Cargo.toml",
                "target":{{"kind":["test"],"name":"corpus","src_path":"/r/vm/tests/corpus.rs"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = binary(&message(true, r#""/r/target/debug/deps/corpus-1""#)).unwrap().unwrap();
        assert_eq!((found.source.as_str(), &found.folder), ("tests/corpus.rs", &"/r/vm".into()));
        assert_eq!(found.selection(), "-p halite-vm --test corpus");
        assert_eq!(binary(&message(false, r#""/r/target/debug/corpus""#)).unwrap(), None);
        assert_eq!(binary(&message(true, "null")).unwrap(), None);
        assert_eq!(binary(r#"{"reason":"build-finished","success":false}"#).unwrap(), None);
        assert!(binary("warning: no JSON").is_err());
    }
}
