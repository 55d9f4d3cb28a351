//! The compiled kernels and the data of variants, as `build.rs` found them in the crate's folder.

use std::{
    io::Read,
    sync::{LazyLock, Mutex, OnceLock, PoisonError},
};

use flate2::bufread::DeflateDecoder;

use crate::{repeats, words};

/// SPIR-V in the compressed bytes of all builds.
struct Stored {
    name: &'static str,
    /// The group that was compressed together,
    start: u32,
    end: u32,
    /// what is in it before this build, bytes before they were compressed,
    at: u32,
    packed: u32,
    /// and before they were packed.
    size: u32,
}

/// Every build, sorted by name.
static MODULES: &[Stored] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/modules.bin"));

/// (operation, its compressed `variants.json`) of every operation, sorted by name.
pub(crate) static VARIANTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/variants.rs"));

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
    /// The group that was read last, by its start, as far as it was: builds of one operation are often asked for one after the other.
    static LAST: Mutex<(u32, Vec<u8>)> = Mutex::new((0, Vec::new()));
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, end) = (stored.at as usize, (stored.at + stored.packed) as usize);
    if last.0 != stored.start || last.1.len() < end {
        let mut group = DeflateDecoder::new(&COMPRESSED[stored.start as usize..stored.end as usize]);
        *last = (stored.start, repeats::unfold(&mut group, end).expect("build.rs has folded it"));
    }
    words::unpack(&last.1[at..end], stored.size as usize).expect("build.rs has packed it")
}

/// The text of one of [`VARIANTS`].
pub(crate) fn text(compressed: &[u8]) -> String {
    let mut text = String::new();
    DeflateDecoder::new(compressed).read_to_string(&mut text).expect("build.rs has compressed it");
    text
}

/// Names of all builds.
#[cfg(test)]
pub(crate) fn module_names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|stored| stored.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_come_out_as_their_files_are() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("spirv");
        for stored in MODULES {
            let file = std::fs::read(folder.join(format!("{}.spv", stored.name))).unwrap();
            assert!(unpacked(stored) == file, "{}", stored.name);
        }
    }
}
