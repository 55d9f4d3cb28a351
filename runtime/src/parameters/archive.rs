//! How archives get into the index: opening files, turning their entries into parameters.

use std::{fs, path::Path, sync::Arc};

use bytes::Bytes;
use halite_formats::params::{self, Storage};
use halite_hal::{File, FileAccess};

use super::index::{Parameter, ParameterIndex};
use crate::{
    Error, Result,
    mapping::{LoadMode, load_file},
};

impl ParameterIndex {
    /// Adds all entries of an archive file (`.irpa`, `.safetensors`, `.gguf`) under `scope`, which may be empty.
    /// Entries stay where they are: programs read them out of the mapping. Of entries with one name the first added
    /// counts. Returns the number of entries added.
    pub fn add_file(&mut self, scope: &str, path: &Path, mode: LoadMode) -> Result<usize> {
        let bytes = load_file(path, mode).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let file = File::Memory(bytes.clone());
        self.add_archive(scope, path, bytes, &file)
    }

    /// Adds an archive in memory; `name` is for messages, and its extension may tell the format.
    pub fn add_bytes(&mut self, scope: &str, name: &str, bytes: Bytes) -> Result<usize> {
        let file = File::Memory(bytes.clone());
        self.add_archive(scope, Path::new(name), bytes, &file)
    }

    /// Adds an archive whose stored entries programs may also write to (`io_parameters.scatter`). The index of the
    /// file never changes. Entries are read through the file, not a mapping.
    pub fn add_writable_file(&mut self, scope: &str, path: &Path) -> Result<usize> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let handle = fs::File::options().read(true).write(true).open(path).map_err(failed)?;
        let file = File::Handle { file: Arc::new(handle), access: FileAccess::ReadWrite };
        // Only the index is looked at; the mapping goes when this returns.
        let bytes = load_file(path, LoadMode::Map).map_err(failed)?;
        self.add_archive(scope, path, bytes, &file)
    }

    fn add_archive(&mut self, scope: &str, path: &Path, bytes: Bytes, file: &File) -> Result<usize> {
        let name = path.display().to_string();
        let archive = params::read(path, bytes).map_err(|e| Error::Format {
            what: "parameters",
            name: name.clone(),
            reason: e.to_string(),
        })?;
        self.add_source(scope, name);
        let mut added = 0;
        for entry in archive.entries {
            added += usize::from(self.insert(scope, entry.name, parameter(entry.storage, file)));
        }
        Ok(added)
    }
}

fn parameter(storage: Storage, file: &File) -> Parameter {
    match storage {
        Storage::Range { offset, length } => Parameter::Stored { file: file.clone(), offset, length },
        // The pattern is copied, so that it does not keep a whole file alive.
        Storage::Splat { pattern, length } => {
            Parameter::Splat { pattern: Bytes::copy_from_slice(&pattern), length }
        }
    }
}
