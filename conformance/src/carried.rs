//! The models and modules of this repository that the program carries, for machines without the repository.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// Path in the repository, and contents.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// A folder that is laid out as the repository is, with what the program carries. It is removed when this goes.
#[derive(Debug)]
pub struct Carried(TempDir);

impl Carried {
    /// Writes the files to a new folder among the system's temporary ones.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn unpack() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("conformance-").tempdir()?;
        for (name, contents) in FILES {
            let path = folder.path().join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, contents).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(Carried(folder))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn what_is_carried_is_what_the_suites_need() {
        let carried = Carried::unpack().expect("it is written");
        let root = carried.path();
        let folder = root.join("conformance");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for set in ["multi_device", "vmvx"] {
            let names = |folder: &Path| -> Vec<String> {
                corpus::programs(folder, set).expect("well formed").into_iter().map(|p| p.name).collect()
            };
            assert_eq!(names(&folder), names(here), "{set}");
        }
        for file in ["pte/manifest.jsonl", "pte/abs.pte", "soak/digits_local.vmfb"] {
            assert_eq!(fs::read(folder.join(file)).ok(), fs::read(here.join(file)).ok(), "{file}");
        }
        assert!(root.join("demo/digits/sample_3.npy").is_file());
        let path = root.to_owned();
        drop(carried);
        assert!(!path.exists());
    }
}
