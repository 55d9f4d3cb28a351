//! The compiled kernels and the data of variants, as `build.rs` found them in the crate's folder.

use std::{
    io::Read,
    sync::{LazyLock, OnceLock},
};

use flate2::read::DeflateDecoder;

/// SPIR-V in the compressed bytes of all builds.
struct Stored {
    name: &'static str,
    start: usize,
    end: usize,
    size: usize,
}

/// Every build, sorted by name.
static MODULES: &[Stored] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/modules.bin"));

/// (operation, `variants.json`) of every operation, sorted by name.
pub(crate) static VARIANTS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/variants.rs"));

/// A build by name. Its code is unpacked when it is asked for first, and kept.
pub(crate) fn module(name: &str) -> Option<crate::Module> {
    static UNPACKED: LazyLock<Vec<OnceLock<Vec<u8>>>> =
        LazyLock::new(|| MODULES.iter().map(|_| OnceLock::new()).collect());
    let index = MODULES.binary_search_by(|stored| stored.name.cmp(name)).ok()?;
    let stored = &MODULES[index];
    let bytes = UNPACKED[index].get_or_init(|| unpacked(stored));
    Some(crate::Module::Compiled { name: stored.name, bytes })
}

fn unpacked(stored: &Stored) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(stored.size);
    let packed = &COMPRESSED[stored.start..stored.end];
    DeflateDecoder::new(packed).read_to_end(&mut bytes).expect("build.rs has packed it");
    bytes
}

/// Names of all builds.
#[cfg(test)]
pub(crate) fn module_names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|stored| stored.name)
}
