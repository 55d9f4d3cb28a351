//! The files of a model in memory: its own and those of its weights, what they are known by, and which bytes are whose.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use halite_cache::{CacheError, Digest, InputFile, Store};
use halite_compiler::{Model, ModelFormat};
use parking_lot::Mutex;

use crate::{Error, ErrorKind, LoadMode, Result, options::Limits, source::Loaded};

/// The files of a model. Clones are the same list.
#[derive(Clone)]
pub(crate) struct Files {
    all: Arc<Mutex<Vec<Arc<ModelFile>>>>,
    /// The model's folder, links followed, as files beside it are named; `None` for models that are no files.
    folder: Option<PathBuf>,
    mode: LoadMode,
}

/// A file of a model.
struct ModelFile {
    /// As seen from the model's folder; empty for the model itself, `None` for what lies elsewhere.
    name: Option<PathBuf>,
    /// Where it is.
    path: PathBuf,
    /// The open file; `None` for bytes and streams.
    input: Option<InputFile>,
    bytes: Bytes,
    digest: OnceLock<Digest>,
}

impl ModelFile {
    fn open(path: &Path, name: Option<PathBuf>, mode: LoadMode) -> io::Result<ModelFile> {
        let input = InputFile::open(path).map_err(|error| match error {
            CacheError::Io { error, .. } => error,
            other => io::Error::other(other.to_string()),
        })?;
        let bytes = halite_runtime::LoadMode::from(mode).load_from(input.file())?;
        Ok(ModelFile { name, path: path.to_owned(), input: Some(input), bytes, digest: OnceLock::new() })
    }

    fn digest(&self, memo: &Store, limits: &Limits) -> Option<Digest> {
        if let Some(known) = self.digest.get() {
            return Some(*known);
        }
        // What was looked at does not stay in memory: nobody may need it again.
        let goes_on = || {
            halite_runtime::release_pages(&self.bytes);
            limits.goes_on()
        };
        let digest = match &self.input {
            None => Digest::of_while(&self.bytes, &goes_on)?,
            Some(input) => {
                let digest = input.digest_while(&self.bytes, Some(memo), &goes_on);
                digest.inspect_err(|error| log::warn!("the compiled model is not kept: {error}")).ok()??
            }
        };
        Some(*self.digest.get_or_init(|| digest))
    }

    /// Where in it these bytes are, if they are a part of it.
    fn offset_of(&self, part: &Bytes) -> Option<u64> {
        let (own, part) = (self.bytes.as_ptr_range(), part.as_ptr_range());
        let (own, part) = (own.start.addr()..own.end.addr(), part.start.addr()..part.end.addr());
        let inside = !part.is_empty() && own.start <= part.start && part.end <= own.end;
        inside.then(|| (part.start - own.start) as u64)
    }
}

impl Files {
    fn new(file: Loaded, mode: LoadMode) -> Files {
        let path = file.path.unwrap_or_default();
        let folder = fs::canonicalize(&path).ok().and_then(|path| Some(path.parent()?.to_owned()));
        let own = ModelFile {
            name: Some(PathBuf::new()),
            path,
            input: file.input,
            bytes: file.bytes,
            digest: OnceLock::new(),
        };
        Files { all: Arc::new(Mutex::new(vec![Arc::new(own)])), folder, mode }
    }

    fn named(&self, name: &Path) -> Option<Arc<ModelFile>> {
        self.all.lock().iter().find(|file| file.name.as_deref() == Some(name)).cloned()
    }

    /// The bytes of a file; each is read once. The model has a use for so many of them, where that is known.
    fn read(&self, path: &Path, used: Option<u64>) -> io::Result<Bytes> {
        let mut all = self.all.lock();
        if let Some(known) = all.iter().find(|file| file.path == path) {
            return Ok(known.bytes.clone());
        }
        if let Some(used) = used.filter(|_| self.mode == LoadMode::Preload) {
            check_use(fs::metadata(path)?.len(), used)?;
        }
        let inside = |folder: &PathBuf| path.strip_prefix(folder).ok().map(Path::to_owned);
        let name = self.folder.as_ref().and_then(inside);
        let file = Arc::new(ModelFile::open(path, name, self.mode)?);
        let bytes = file.bytes.clone();
        all.push(file);
        Ok(bytes)
    }

    /// Reads a file by its name as seen from the model's folder, which it must not leave.
    pub fn read_beside(&self, name: &Path) -> io::Result<()> {
        let folder = self.folder.as_deref().ok_or(io::ErrorKind::NotFound)?;
        let path = fs::canonicalize(folder.join(name))?;
        if path != folder.join(name) {
            // A link now, and a file when it was named: what it leads to is for the compiler to judge.
            return Err(io::ErrorKind::NotFound.into());
        }
        self.read(&path, None).map(drop)
    }

    /// Names of the files that were read beside the model's own, in order; `None` when one lies elsewhere.
    pub fn beside(&self) -> Option<Vec<PathBuf>> {
        self.all.lock().iter().skip(1).map(|file| file.name.clone()).collect()
    }

    /// Bytes of a file that was read, by its name.
    pub fn bytes(&self, name: &Path) -> Option<Bytes> {
        self.named(name).map(|file| file.bytes.clone())
    }

    /// What a file that was read is known by; `None` when it was written to since, or the work was ended.
    pub fn digest(&self, name: &Path, memo: &Store, limits: &Limits) -> Option<Digest> {
        self.named(name)?.digest(memo, limits)
    }

    /// Whether nobody has written to them since they were read.
    pub fn are_unchanged(&self) -> bool {
        let unchanged =
            |file: &Arc<ModelFile>| file.input.as_ref().is_none_or(|input| input.check_unchanged().is_ok());
        self.all.lock().iter().all(unchanged)
    }

    /// Fails when somebody wrote to them since they were opened; `model` is for the message.
    pub fn check_unchanged(&self, model: &str) -> Result<()> {
        if self.are_unchanged() {
            return Ok(());
        }
        let text = format!("a file of the model '{model}' changed while it was used; open it again");
        Err(Error::new(ErrorKind::InvalidModel, text))
    }

    /// Lets go of the pages of mapped files, which come back when they are read again.
    pub fn release_pages(&self) {
        self.all.lock().iter().for_each(|file| halite_runtime::release_pages(&file.bytes));
    }

    /// The file that these bytes are a part of, by its place, and where in it they begin.
    pub fn locate(&self, part: &Bytes) -> Option<(usize, u64)> {
        let all = self.all.lock();
        all.iter().enumerate().find_map(|(place, file)| Some((place, file.offset_of(part)?)))
    }
}

/// Bytes that a file which is read into memory as a whole may have besides twice those that are used.
const UNUSED: u64 = 64 << 20;

/// Fails for a file that would be read into memory for a small part of it: its size costs who makes it nothing.
fn check_use(size: u64, used: u64) -> io::Result<()> {
    if size <= used.saturating_mul(2).saturating_add(UNUSED) {
        return Ok(());
    }
    let text = format!(
        "it has {size} bytes, of which the model uses {used}, and would be read into memory as a whole; files that are mapped \
         may have any size (LoadMode::Map, --module_mode=mmap), and so may files that hold this model's weights alone"
    );
    Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
}

/// Reads a model whose file is in memory; its weights may be in others beside it.
pub(crate) fn read(
    file: Loaded,
    format: ModelFormat,
    mode: LoadMode,
    limits: &Limits,
) -> Result<(Model, Files)> {
    let (name, path, bytes) = (file.name.clone(), file.path.clone(), file.bytes.clone());
    let files = Files::new(file, mode);
    let control = super::control(limits);
    let model = match path {
        Some(path) => {
            let reader = files.clone();
            Model::open_with(
                &path,
                format,
                Arc::new(move |path: &Path, used| reader.read(path, used)),
                &control,
            )
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
    fn files_are_not_read_for_a_small_part() {
        assert!(check_use(64 << 20, 0).is_ok() && check_use(1 << 30, 1 << 29).is_ok());
        assert!(check_use(1 << 40, 1 << 41).is_ok() && check_use(u64::MAX, u64::MAX / 2).is_ok());
        let error = check_use(2 << 30, 32).unwrap_err().to_string();
        assert!(error.contains("2147483648 bytes, of which the model uses 32"), "{error}");
    }

    #[test]
    fn parts_are_found_in_their_files() {
        let bytes = Bytes::from(vec![1u8; 100]);
        let file = Loaded { name: "m".into(), path: None, input: None, bytes: bytes.clone() };
        let files = Files::new(file, LoadMode::Map);
        assert_eq!(files.locate(&bytes.slice(10..20)), Some((0, 10)));
        assert_eq!(files.locate(&Bytes::from(vec![1u8; 10])), None);
        assert_eq!(files.locate(&bytes.slice(5..5)), None);
        assert_eq!(files.beside(), Some(Vec::new()));
        assert!(files.are_unchanged());
    }
}
