//! What tests share: the fixtures, and damage to them that is the same in every run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::PathBuf;

use halite_spirv::{words_from_bytes, words_to_bytes};

/// Words of one committed kernel.
pub fn fixture(name: &str) -> Vec<u32> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    words_from_bytes(&std::fs::read(&path).expect("a committed fixture")).expect("whole words")
}

/// All committed kernels.
pub fn fixtures() -> Vec<Vec<u32>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let entries = std::fs::read_dir(folder).expect("committed").map(|e| e.expect("entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.iter().filter(|name| name.ends_with(".spv")).map(|name| fixture(name)).collect()
}

/// Small generator with a fixed seed: the same cases in every run.
pub struct Random(pub u64);

impl Random {
    /// A number below this one.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// A kernel with some bytes changed.
pub fn damaged(fixtures: &[Vec<u32>], random: &mut Random) -> Vec<u32> {
    let mut bytes = words_to_bytes(&fixtures[random.below(fixtures.len())]);
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
    }
    words_from_bytes(&bytes).expect("the same length")
}
