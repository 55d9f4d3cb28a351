//! Lists what lies in the crate's folders, sorted, so that builds are the same everywhere: every `spirv/*.spv`, and the
//! `variants.json` of every folder in `ops`. A new operation or kernel is found without a line of Rust.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=spirv");
    println!("cargo::rerun-if-changed=ops");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let kernels = names(&root.join("spirv")).filter_map(|file| {
        let name = file.strip_suffix(".spv")?;
        Some((name.to_owned(), root.join("spirv").join(&file)))
    });
    write("modules.rs", "include_bytes", kernels);
    let variants = names(&root.join("ops")).filter_map(|operation| {
        let file = root.join("ops").join(&operation).join("variants.json");
        file.exists().then_some((operation, file))
    });
    write("variants.rs", "include_str", variants);
}

/// Names of what lies in a folder.
fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).expect("the folder is part of the repository");
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Writes a list of names, sorted, and of what is included for each.
fn write(name: &str, include: &str, files: impl Iterator<Item = (String, PathBuf)>) {
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut text = String::from("&[\n");
    for (name, path) in files {
        text.push_str(&format!("    ({name:?}, {include}!({path:?})),\n"));
    }
    text.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(name);
    let new = out.with_extension("new");
    // In the place of the former file, not into it: a copy of a build folder may have that in common, by a hard link, and the
    // text names the files of this folder.
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, &out))
        .expect("cargo's output folder can be written");
}
