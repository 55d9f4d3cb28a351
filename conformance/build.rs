//! Writes a table of the models and modules that the program carries, so that it is all that a machine needs.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// Folders of this repository, and the endings of the files that are carried.
const FOLDERS: [&str; 7] = [
    "conformance/pte",
    "conformance/vgf",
    "conformance/multi_device",
    "conformance/vmvx",
    "conformance/soak",
    "conformance/tests/data/onnx",
    "demo/digits",
];
const ENDINGS: [&str; 8] = ["jsonl", "npy", "onnx", "pb", "pte", "tosa", "vgf", "vmfb"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("..");
    let mut files = Vec::new();
    for folder in FOLDERS {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        table.push_str(&format!("    ({name:?}, include_bytes!({:?})),\n", path.display().to_string()));
    }
    table.push_str("]\n");
    let target = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("carried.rs");
    fs::write(target, table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) {
            files.push(path);
        }
    }
    Ok(())
}
