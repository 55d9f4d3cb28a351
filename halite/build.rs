//! The digest of what compiles models: part of the names of modules in the cache, so that another compiler finds none of an older
//! one's.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

/// What decides which module comes out of a model; the lock file has the versions of outside crates.
const SOURCES: [&str; 16] = [
    "Cargo.lock",
    "abi/src",
    "halite/src",
    "compiler/src",
    "shaders/src",
    "shaders/ops",
    "shaders/spirv",
    "shaders/tuning.json",
    "spirv/src",
    "targets/src",
    "targets/data",
    "facts/src",
    "formats/src",
    "ops/src",
    "sizes/src",
    "vm/src",
];

fn main() -> io::Result<()> {
    // Asked when it runs: a build folder that was copied with its sources is that of another place.
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let root = manifest.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    for source in SOURCES {
        let path = root.join(source);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, &mut files)?;
        }
    }
    files.sort();
    let mut hasher = Sha256::new();
    // Where the sources are elsewhere, the version has to do.
    hasher.update(env!("CARGO_PKG_VERSION"));
    for file in files {
        hasher.update(file.strip_prefix(&root).unwrap_or(&file).as_os_str().as_encoded_bytes());
        hasher.update(fs::read(&file)?);
    }
    let digest: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=HALITE_COMPILER_DIGEST={digest}");
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
