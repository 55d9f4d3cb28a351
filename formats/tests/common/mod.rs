//! What the tests of this crate share: the corpus of real files, and seeded noise.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

/// The corpus of real modules, or `None` (said aloud) when it is not beside this checkout.
pub fn corpus() -> Option<PathBuf> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb"));
    if path.is_dir() {
        return Some(path.to_owned());
    }
    eprintln!("SKIPPED: no corpus at {}", path.display());
    None
}

/// All `.vmfb` files below `dir`, sorted.
pub fn modules(dir: &Path) -> Vec<PathBuf> {
    files(dir, "vmfb")
}

/// All files below `dir` with an extension, sorted.
pub fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("the corpus is readable") {
            let path = entry.expect("the corpus is readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The good modules of the corpus: all but `bad/`.
pub fn good_modules(corpus: &Path) -> Vec<PathBuf> {
    let bad = corpus.join("bad");
    modules(corpus).into_iter().filter(|p| !p.starts_with(&bad)).collect()
}

/// Small seeded generator (xorshift64*), so that failures repeat.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
