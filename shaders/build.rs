//! Lists what lies in the crate's folders, sorted, so that builds are the same everywhere: every `spirv/*.spv`, and the
//! `variants.json` of every folder in `ops`. A new operation or kernel is found without a line of Rust. The SPIR-V is
//! packed and compressed, to an eleventh of its size, and the variants are compressed, to a sixth.

#[path = "src/repeats.rs"]
mod repeats;
#[path = "src/words.rs"]
mod words;

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};

fn main() {
    println!("cargo::rerun-if-changed=spirv");
    println!("cargo::rerun-if-changed=ops");
    println!("cargo::rerun-if-changed=src/repeats.rs");
    println!("cargo::rerun-if-changed=src/words.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let kernels = names(&root.join("spirv")).filter_map(|file| {
        let name = file.strip_suffix(".spv")?;
        Some((name.to_owned(), root.join("spirv").join(&file)))
    });
    write_compressed("modules", kernels);
    let variants = names(&root.join("ops")).filter_map(|operation| {
        let file = root.join("ops").join(&operation).join("variants.json");
        file.exists().then_some((operation, file))
    });
    write_each("variants.rs", variants);
}

/// Names of what lies in a folder.
fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).expect("the folder is part of the repository");
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// How many bytes are compressed together at most. Neighbours in the list are variants of one kernel and say much the same; to get at
/// one, those before it are unpacked, too.
const TOGETHER: usize = 192 << 10;

/// Writes files, sorted and compressed in groups, one behind the other, and a list of names, their places and sizes.
fn write_compressed(name: &str, files: impl Iterator<Item = (String, PathBuf)>) {
    let mut files: Vec<_> = files.collect();
    files.sort();
    let (mut all, mut text) = (Vec::new(), String::from("&[\n"));
    let mut group: Vec<(String, usize, usize)> = Vec::new();
    let mut bytes = Vec::new();
    for (name, path) in files {
        let plain = fs::read(&path).expect("the file is part of the repository");
        let (chunks, _) = plain.as_chunks();
        let module: Vec<u32> = chunks.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let packed = words::pack(&module).expect("the file is SPIR-V");
        if bytes.len() + packed.len() > TOGETHER {
            text.push_str(&write_group(&mut all, &std::mem::take(&mut group), &std::mem::take(&mut bytes)));
        }
        bytes.extend(&packed);
        group.push((name, packed.len(), plain.len()));
    }
    text.push_str(&write_group(&mut all, &group, &bytes));
    text.push(']');
    put(&format!("{name}.bin"), &all);
    put(&format!("{name}.rs"), text.as_bytes());
}

/// Compresses bytes behind others.
fn compress(all: &mut Vec<u8>, bytes: &[u8]) {
    let mut encoder = DeflateEncoder::new(all, Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish().map(drop)).expect("vectors take all bytes");
}

/// Compresses a group behind others; its part of the list.
fn write_group(all: &mut Vec<u8>, group: &[(String, usize, usize)], bytes: &[u8]) -> String {
    let start = all.len();
    compress(all, &repeats::fold(bytes));
    let end = all.len();
    let mut at = 0;
    let mut line = |(name, packed, size): &(String, usize, usize)| {
        let place = at;
        at += packed;
        format!(
            "    Stored {{ name: {name:?}, start: {start}, end: {end}, at: {place}, packed: {packed}, size: {size} }},\n"
        )
    };
    group.iter().map(&mut line).collect()
}

/// Compresses files, each by itself, and writes a list of names, sorted, and of what lies in them.
fn write_each(name: &str, files: impl Iterator<Item = (String, PathBuf)>) {
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut text = String::from("&[\n");
    for (name, path) in files {
        let mut packed = Vec::new();
        compress(&mut packed, &fs::read(&path).expect("the file is part of the repository"));
        text.push_str(&format!("    ({name:?}, &{packed:?}),\n"));
    }
    text.push(']');
    put(name, text.as_bytes());
}

/// Writes a file into cargo's output folder.
fn put(name: &str, bytes: &[u8]) {
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(name);
    let new = out.with_extension("new");
    // In the place of the former file, not into it: a copy of a build folder may have that in common, by a hard link, and the
    // text names the files of this folder.
    fs::write(&new, bytes)
        .and_then(|()| fs::rename(&new, &out))
        .expect("cargo's output folder can be written");
}
