//! What front ends read: the bytes of a model's file, and the files beside it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;

use super::files::{Files, ReadFile};
use crate::{CompileError, Control, Stage};

/// A model before it is decoded.
#[derive(Clone)]
pub struct Source {
    /// The model's file.
    pub bytes: Bytes,
    /// Files beside it; none for a model that came as bytes.
    pub(crate) files: Option<Files>,
    /// The name of its file without the folder.
    name: Option<String>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl Source {
    /// A model that is all in these bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Source {
        Source { bytes: bytes.into(), files: None, name: None }
    }

    /// Reads a model's file into memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Source, CompileError> {
        Self::open_with(path, Arc::new(|path: &Path, _| fs::read(path).map(Bytes::from)), &Control::default())
    }

    /// As [`Source::open`], with files read by `read`, which may map them. `read` itself is not interrupted; mapping takes no
    /// time.
    ///
    /// # Errors
    /// As [`Source::open`], and when `control` ends the work.
    pub fn open_with(path: &Path, read: Arc<ReadFile>, control: &Control) -> Result<Source, CompileError> {
        control.check(Stage::Reading)?;
        let bytes = read(path, None)
            .map_err(|source| CompileError::Io { path: path.display().to_string(), source })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Source { bytes, files: Some(Files::beside(path, read)), name })
    }

    /// The name of its file without the folder, if it comes from one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Files that were read beside its own, as far as something has asked for them.
    pub fn files_read(&self) -> Vec<PathBuf> {
        self.files.as_ref().map(Files::read_so_far).unwrap_or_default()
    }
}
