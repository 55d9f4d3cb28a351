//! Holds what ARCHITECTURE.md and CONTRIBUTING.md promise and no compiler checks: which crate depends on which, which crates of others
//! are used, where unsafe code and the Vulkan binding may be, how long files and functions are, how many circles of files there
//! are, whether links in the documentation lead somewhere. Reads sources, pages and manifests; compiles nothing.
#![forbid(unsafe_code)]

mod api;
mod arrows;
mod circles;
mod dependencies;
mod digest;
mod lengths;
mod limits;
mod links;
mod programs;
mod published;
mod shipped;
mod sources;
mod text;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use serde_json::Value;

/// Root of the repository.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    // Cargo tells it when it runs something, too: a copy of a build folder has the names of the first checkout in it.
    let now = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).filter(|folder| folder.ends_with("xtask"));
    ROOT.get_or_init(|| {
        let folder = now.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        folder.parent().expect("xtask lies in a folder of the repository").to_path_buf()
    })
}

/// A crate of the workspace.
struct Package {
    name: String,
    /// Its folder, below the root: `drivers/vulkan`.
    folder: String,
    /// All crates that it depends on other than for its own tests, with their names on the registry.
    dependencies: Vec<String>,
    /// The roots of its library and its programs, below that of the repository.
    roots: Vec<PathBuf>,
}

/// What cargo knows of the workspace.
fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(root());
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

/// All crates of the workspace, as cargo knows them.
fn packages() -> Vec<Package> {
    let packages: Vec<Package> = list(&metadata()["packages"]).iter().map(package).collect();
    assert!(packages.len() > 10, "only {} crates were found: the search is broken", packages.len());
    packages
}

fn package(value: &Value) -> Package {
    let manifest = below(&value["manifest_path"]);
    let dependencies = list(&value["dependencies"]).iter().filter(|d| d["kind"] != "dev");
    let product = |target: &&Value| {
        list(&target["kind"]).iter().any(|kind| ["lib", "rlib", "cdylib", "bin"].iter().any(|k| kind == k))
    };
    Package {
        name: text(&value["name"]),
        folder: manifest
            .parent()
            .expect("a manifest lies in a folder")
            .display()
            .to_string()
            .replace('\\', "/"),
        dependencies: dependencies.map(|d| text(&d["name"])).collect(),
        roots: list(&value["targets"]).iter().filter(product).map(|t| below(&t["src_path"])).collect(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("cargo writes a list here")
}

fn text(value: &Value) -> String {
    value.as_str().expect("cargo writes a text here").to_owned()
}

/// A path of cargo's below the root.
fn below(value: &Value) -> PathBuf {
    let path = PathBuf::from(text(value));
    path.strip_prefix(root()).expect("crates of the workspace are in the repository").to_owned()
}
