//! Owns the list of compiled kernels: every `spirv/*.spv` by name, sorted, so that builds are the same everywhere.

use std::{env, fs, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=spirv");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("spirv");
    let entries = fs::read_dir(&folder).expect("the folder of compiled kernels is part of the repository");
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".spv").map(str::to_owned))
        .collect();
    names.sort();
    let mut text = String::from("&[\n");
    for name in names {
        let path = folder.join(format!("{name}.spv"));
        text.push_str(&format!("    ({name:?}, include_bytes!({path:?})),\n"));
    }
    text.push(']');
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("modules.rs");
    let new = out.with_extension("new");
    // In the place of the former file, not into it: a copy of a build folder may have that in common, by a hard link, and the
    // text names the kernels of this folder.
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, &out))
        .expect("cargo's output folder can be written");
}
