//! Owns the files of a model in memory: its own and those of its weights, what they are known by, and which bytes are whose.
//! Does not own: what they mean (`halite-compiler`).

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use halite_cache::{Digest, InputFile, Store};
use halite_compiler::{Model, ModelFormat};
use parking_lot::Mutex;

use crate::{Limits, LoadMode, Result, source::Loaded};

/// The files of a model, its own first. Clones are the same list.
#[derive(Clone)]
pub(crate) struct Files {
    all: Arc<Mutex<Vec<Arc<ModelFile>>>>,
    mode: LoadMode,
}

/// A file of a model.
pub(crate) struct ModelFile {
    /// Where it is; empty for a model in bytes.
    pub path: PathBuf,
    /// The open file; `None` for bytes and streams.
    pub input: Option<InputFile>,
    /// All of it.
    pub bytes: Bytes,
}

impl ModelFile {
    fn open(path: &Path, mode: LoadMode) -> io::Result<ModelFile> {
        let input = InputFile::open(path).map_err(|error| io::Error::other(error.to_string()))?;
        let bytes = mode.load_from(input.file())?;
        Ok(ModelFile { path: path.to_owned(), input: Some(input), bytes })
    }

    /// What it is known by. `None` when it was written to since it was read: nobody knows what was read then.
    pub fn digest(&self, memo: &Store) -> Option<Digest> {
        match &self.input {
            None => Some(Digest::of(&self.bytes)),
            Some(input) => {
                let digest = input.digest_of(&self.bytes, Some(memo));
                digest.inspect_err(|error| log::warn!("the compiled model is not kept: {error}")).ok()
            }
        }
    }

    /// Whether nobody has written to it since it was read.
    pub fn is_unchanged(&self) -> bool {
        self.input.as_ref().is_none_or(|input| input.check_unchanged().is_ok())
    }

    /// Where in it these bytes are, if they are a part of it.
    fn offset_of(&self, part: &Bytes) -> Option<u64> {
        let (own, part) = (self.bytes.as_ptr_range(), part.as_ptr_range());
        let (own, part) = (own.start.addr()..own.end.addr(), part.start.addr()..part.end.addr());
        (!part.is_empty() && own.start <= part.start && part.end <= own.end)
            .then(|| (part.start - own.start) as u64)
    }
}

impl Files {
    fn new(file: Loaded, mode: LoadMode) -> Files {
        let own = ModelFile { path: file.path.unwrap_or_default(), input: file.input, bytes: file.bytes };
        Files { all: Arc::new(Mutex::new(vec![Arc::new(own)])), mode }
    }

    /// All that were read so far.
    pub fn all(&self) -> Vec<Arc<ModelFile>> {
        self.all.lock().clone()
    }

    /// The bytes of a file; each is read once.
    pub fn read(&self, path: &Path) -> io::Result<Bytes> {
        let mut all = self.all.lock();
        if let Some(known) = all.iter().find(|file| file.path == path) {
            return Ok(known.bytes.clone());
        }
        let file = Arc::new(ModelFile::open(path, self.mode)?);
        let bytes = file.bytes.clone();
        all.push(file);
        Ok(bytes)
    }

    /// The file that these bytes are a part of, by its place, and where in it they begin.
    pub fn locate(&self, part: &Bytes) -> Option<(usize, u64)> {
        let all = self.all.lock();
        all.iter().enumerate().find_map(|(place, file)| Some((place, file.offset_of(part)?)))
    }
}

/// Reads a model whose file is in memory; its weights may be in others beside it.
pub(crate) fn read(file: Loaded, format: ModelFormat, mode: LoadMode, limits: &Limits) -> Result<(Model, Files)> {
    let (name, path, bytes) = (file.name.clone(), file.path.clone(), file.bytes.clone());
    let files = Files::new(file, mode);
    let control = super::control(limits);
    let model = match path {
        Some(path) => {
            let reader = files.clone();
            Model::open_with(&path, format, Arc::new(move |path: &Path| reader.read(path)), &control)
        }
        None => Model::from_bytes(bytes, format, &control),
    };
    let model = model.map_err(|e| super::error(e).while_doing(format!("reading the model '{name}'")))?;
    Ok((model, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_their_files() {
        let bytes = Bytes::from(vec![1u8; 100]);
        let file = Loaded { name: "m".into(), path: None, input: None, bytes: bytes.clone() };
        let files = Files::new(file, LoadMode::Map);
        assert_eq!(files.locate(&bytes.slice(10..20)), Some((0, 10)));
        assert_eq!(files.locate(&Bytes::from(vec![1u8; 10])), None);
        assert_eq!(files.locate(&bytes.slice(5..5)), None);
    }
}
