//! Where models and modules come from: files, bytes, readers.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use bytes::Bytes;
use halite_cache::InputFile;

use crate::{Error, ErrorKind, Result, Stage, cache, options::Limits};

/// How files come into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadMode {
    /// Mapped: pages are read when they are first touched, and weights go from there to the device. The file should not change
    /// while anything made from it lives. If it is cut meanwhile, building the session, or the next call, fails: a handler of
    /// SIGBUS puts zeros in place of what is gone. On other systems than Unix, and beyond 1024 files at a time, files are read.
    #[default]
    Map,
    /// Read at once into memory. Later changes of the file do not matter. A file of weights beside an ONNX model is refused where it has
    /// 64 MiB more than twice what the model uses of it.
    Preload,
}

impl From<LoadMode> for halite_runtime::LoadMode {
    fn from(mode: LoadMode) -> Self {
        match mode {
            LoadMode::Map => halite_runtime::LoadMode::Map,
            LoadMode::Preload => halite_runtime::LoadMode::Preload,
        }
    }
}

/// Where a model or module comes from: a file, bytes, or a reader.
///
/// Functions that take one take paths, vectors and static slices of bytes as well. A model whose weights lie in files beside it has
/// to be given by its path.
///
/// ```no_run
/// use halite::{Session, Source};
///
/// let piped = Source::reader(std::io::stdin()).named("standard input");
/// let session = Session::builder().model(piped).build()?;
/// # Ok::<(), halite::Error>(())
/// ```
pub struct Source(pub(crate) Origin);

pub(crate) enum Origin {
    File(PathBuf),
    Bytes { name: String, bytes: Bytes },
    Reader { name: String, reader: Box<dyn io::Read + Send> },
}

impl Source {
    /// A file.
    pub fn path(path: impl Into<PathBuf>) -> Source {
        Source(Origin::File(path.into()))
    }

    /// Bytes in memory, which stay alive as long as anything made from them.
    pub fn bytes(bytes: impl Into<Bytes>) -> Source {
        Source(Origin::Bytes { name: "model".to_owned(), bytes: bytes.into() })
    }

    /// All that a reader gives; it is read when the session is built.
    pub fn reader(reader: impl io::Read + Send + 'static) -> Source {
        Source(Origin::Reader { name: "model".to_owned(), reader: Box::new(reader) })
    }

    /// A name for messages, where there is no file that has one.
    #[must_use]
    pub fn named(mut self, text: impl Into<String>) -> Source {
        match &mut self.0 {
            Origin::File(_) => {}
            Origin::Bytes { name, .. } | Origin::Reader { name, .. } => *name = text.into(),
        }
        self
    }

    /// Brings it into memory. Pipes and other streams are read once, as a whole. What is empty is no model and no module.
    pub(crate) fn load(self, mode: LoadMode, limits: &Limits) -> Result<Loaded> {
        limits.check(READING)?;
        let loaded = self.read(mode, limits)?;
        match loaded.bytes.is_empty() {
            false => Ok(loaded),
            true => Err(Error::new(ErrorKind::InvalidModel, format!("'{}' is empty", loaded.name))),
        }
    }

    fn read(self, mode: LoadMode, limits: &Limits) -> Result<Loaded> {
        match self.0 {
            Origin::File(path) => {
                let failed = |e: io::Error| Error::file("cannot read", &path, &e);
                // A plain file is known by its content, so it is opened once and stamped first; a stream is what it gives.
                let metadata = std::fs::metadata(&path).map_err(failed)?;
                if halite_runtime::is_device(metadata.file_type()) {
                    return Err(Error::invalid(format!(
                        "'{}' is a device, not a file or a pipe",
                        path.display()
                    )));
                }
                let input = match metadata.is_file() {
                    true => Some(InputFile::open(&path).map_err(|e| cache::error(&e))?),
                    false => None,
                };
                let bytes = match (&input, mode) {
                    (Some(input), LoadMode::Map) => {
                        halite_runtime::LoadMode::Map.load_from(input.file()).map_err(failed)?
                    }
                    (Some(input), LoadMode::Preload) => {
                        read_all(&mut input.file(), Some(input.stamp().length), &path, limits)?
                    }
                    (None, _) => {
                        let stream = path.clone();
                        read_stream(move || std::fs::File::open(stream), &path, limits)?
                    }
                };
                Ok(Loaded { name: path.display().to_string(), path: Some(path), input, bytes })
            }
            Origin::Bytes { name, bytes } => Ok(Loaded { name, path: None, input: None, bytes }),
            Origin::Reader { name, reader } => {
                let bytes = read_stream(move || Ok(reader), Path::new(&name), limits)?;
                Ok(Loaded { name, path: None, input: None, bytes })
            }
        }
    }
}

const READING: &str = "reading the model";
/// Bytes that are read between two looks at the limits.
const CHUNK: u64 = 8 << 20;
/// How often the limits are looked at while a stream gives nothing.
const LOOK: Duration = Duration::from_millis(50);

/// All that a reader gives, in pieces, so that an endless one can be stopped.
fn read_all(reader: &mut dyn io::Read, length: Option<u64>, name: &Path, limits: &Limits) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let room = usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX);
    let none = |_| Error::new(ErrorKind::OutOfMemory, format!("no memory for '{}'", name.display()));
    bytes.try_reserve_exact(room).map_err(none)?;
    loop {
        limits.check(READING)?;
        bytes.try_reserve(CHUNK as usize / 8).map_err(none)?;
        let read = io::Read::read_to_end(&mut io::Read::take(&mut *reader, CHUNK), &mut bytes);
        match read.map_err(|e| Error::file("cannot read", name, &e))? {
            0 => return Ok(bytes.into()),
            _ => {
                let done = bytes.len() as u64;
                limits.tell(Stage::Reading, READING, done, length.unwrap_or(done));
            }
        }
    }
}

/// All that a stream gives. It is opened and read on a thread of its own where somebody may end the work: a pipe that nobody writes
/// to, or nobody has opened, would hold up who waits for it. That thread ends with the stream.
fn read_stream<R: io::Read + Send + 'static>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
    name: &Path,
    limits: &Limits,
) -> Result<Bytes> {
    let failed = |e: io::Error| Error::file("cannot read", name, &e);
    if limits.deadline.is_none() && limits.cancel.is_none() {
        return read_all(&mut open().map_err(failed)?, None, name, limits);
    }
    let (sender, pieces) = mpsc::sync_channel(2);
    let reading = move || {
        let mut stream = match open() {
            Ok(stream) => stream,
            Err(error) => return drop(sender.send(Err(error))),
        };
        loop {
            let mut piece = Vec::new();
            let read = io::Read::read_to_end(&mut io::Read::take(&mut stream, CHUNK / 8), &mut piece);
            match read.map(|_| piece) {
                Ok(piece) if piece.is_empty() => return,
                other => {
                    let is_last = other.is_err();
                    if sender.send(other).is_err() || is_last {
                        return;
                    }
                }
            }
        }
    };
    std::thread::Builder::new().name("halite-reader".to_owned()).spawn(reading).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        limits.check(READING)?;
        match pieces.recv_timeout(LOOK) {
            Ok(piece) => {
                let piece = piece.map_err(failed)?;
                let none =
                    |_| Error::new(ErrorKind::OutOfMemory, format!("no memory for '{}'", name.display()));
                bytes.try_reserve(piece.len()).map_err(none)?;
                bytes.extend_from_slice(&piece);
                limits.tell(Stage::Reading, READING, bytes.len() as u64, bytes.len() as u64);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(bytes.into()),
        }
    }
}

/// A source in memory.
pub(crate) struct Loaded {
    /// For messages.
    pub name: String,
    /// The file, if it has a name.
    #[cfg_attr(not(feature = "compiler"), expect(dead_code, reason = "only models have files beside them"))]
    pub path: Option<PathBuf>,
    /// The open file, if it is a plain one.
    pub input: Option<InputFile>,
    /// All of it.
    pub bytes: Bytes,
}

impl Loaded {
    /// Fails when somebody wrote to the file since it was opened.
    pub fn check_unchanged(&self) -> Result<()> {
        let changed = |_| {
            let text = format!("'{}' changed while it was read; open it again", self.name);
            Error::new(ErrorKind::InvalidInput, text)
        };
        self.input.as_ref().map_or(Ok(()), |input| input.check_unchanged().map_err(changed))
    }

    /// The name without folders and extension, for modules.
    #[cfg(feature = "compiler")]
    pub fn stem(&self) -> &str {
        Path::new(&self.name).file_stem().and_then(|stem| stem.to_str()).unwrap_or("model")
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::File(path) => write!(f, "Source({})", path.display()),
            Origin::Bytes { name, bytes } => write!(f, "Source({name}, {} bytes)", bytes.len()),
            Origin::Reader { name, .. } => write!(f, "Source({name}, a reader)"),
        }
    }
}

macro_rules! from_path {
    ($($path:ty),*) => {$(
        impl From<$path> for Source {
            fn from(path: $path) -> Self {
                Source::path(path)
            }
        }
    )*};
}

from_path!(&str, String, &String, &Path, PathBuf, &PathBuf);

impl From<Vec<u8>> for Source {
    fn from(bytes: Vec<u8>) -> Self {
        Source::bytes(bytes)
    }
}

impl From<&'static [u8]> for Source {
    fn from(bytes: &'static [u8]) -> Self {
        Source::bytes(bytes)
    }
}

impl<const N: usize> From<&'static [u8; N]> for Source {
    fn from(bytes: &'static [u8; N]) -> Self {
        Source::bytes(bytes.as_slice())
    }
}

impl From<Bytes> for Source {
    fn from(bytes: Bytes) -> Self {
        Source::bytes(bytes)
    }
}
