//! Parameter archives: which names a file holds and where their bytes are.

mod error;
mod gguf;
mod irpa;
mod irpa_write;
mod safetensors;

pub use error::ParamError;
pub use irpa_write::{NewEntry, NewStorage, write_irpa};

use bytes::Bytes;
use std::fmt;
use std::path::Path;

/// Format of a parameter archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IREE parameter archive.
    Irpa,
    /// Safetensors.
    Safetensors,
    /// GGUF, versions 2 and 3, little-endian.
    Gguf,
}

impl Kind {
    /// The kind that a file extension names, in any case.
    pub fn from_extension(path: &Path) -> Option<Kind> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "irpa" => Some(Kind::Irpa),
            "safetensors" => Some(Kind::Safetensors),
            "gguf" => Some(Kind::Gguf),
            _ => None,
        }
    }

    /// The kind that the first bytes of a file suggest.
    pub fn from_magic(file: &[u8]) -> Option<Kind> {
        if file.starts_with(irpa::MAGIC) {
            return Some(Kind::Irpa);
        }
        if file.starts_with(gguf::MAGIC) {
            return Some(Kind::Gguf);
        }
        // Safetensors has no magic: eight bytes of header length, then JSON.
        (file.get(8) == Some(&b'{')).then_some(Kind::Safetensors)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Irpa => "irpa",
            Kind::Safetensors => "safetensors",
            Kind::Gguf => "gguf",
        })
    }
}

/// Where a parameter's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Bytes of the file; the range lies within it.
    Range {
        /// From the start of the file.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A repeated pattern, without storage.
    Splat {
        /// 1, 2, 4, 8 or 16 bytes.
        pattern: Bytes,
        /// Bytes in all, a multiple of the pattern.
        length: u64,
    },
}

impl Storage {
    /// Bytes of the parameter.
    pub fn length(&self) -> u64 {
        match self {
            Storage::Range { length, .. } | Storage::Splat { length, .. } => *length,
        }
    }
}

/// Element type and shape, for formats that say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The format's own name of the element type, such as `F32` or `Q4_0`.
    pub dtype: String,
    /// Outermost dimension first.
    pub shape: Vec<u64>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Key that modules ask for.
    pub name: String,
    /// Where its bytes are.
    pub storage: Storage,
    /// Opaque metadata; only `.irpa` has it. A slice of the file.
    pub metadata: Bytes,
    /// Element type and shape; `.irpa` has none.
    pub tensor: Option<TensorInfo>,
}

/// The index of a parameter archive, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Format.
    pub kind: Kind,
    /// Parameters. Names are unique.
    pub entries: Vec<Entry>,
}

impl Archive {
    /// The parameter with this name. Linear; callers with many lookups build a map.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name == name)
    }
}

/// Reads the index of an archive. `path` is used for its extension only; without a known one the first bytes decide.
pub fn read(path: &Path, file: Bytes) -> Result<Archive, ParamError> {
    let magic = Kind::from_magic(&file);
    let kind = match Kind::from_extension(path).or(magic) {
        Some(kind) => kind,
        None => return Err(ParamError::UnknownKind { path: path.display().to_string() }),
    };
    match magic {
        // Safetensors is guessed at only, so that its absence proves nothing.
        Some(found) if found != kind && found != Kind::Safetensors => {
            Err(ParamError::WrongKind { path: path.display().to_string(), expected: kind, found })
        }
        _ => read_as(kind, file),
    }
}

/// Reads the index of an archive of a known kind. Time and memory are linear in the file's size.
pub fn read_as(kind: Kind, file: Bytes) -> Result<Archive, ParamError> {
    let entries = match kind {
        Kind::Irpa => irpa::read(&file)?,
        Kind::Safetensors => safetensors::read(&file)?,
        Kind::Gguf => gguf::read(&file)?,
    };
    let mut names: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
        return Err(ParamError::Duplicate { kind, name: error::shorten(twice[0]) });
    }
    Ok(Archive { kind, entries })
}

/// Checks that a range lies within the file.
fn within(
    kind: Kind,
    file_length: usize,
    what: impl FnOnce() -> String,
    offset: Option<u64>,
    length: u64,
) -> Result<u64, ParamError> {
    let limit = file_length as u64;
    match offset {
        Some(o) if o.checked_add(length).is_some_and(|end| end <= limit) => Ok(o),
        _ => Err(ParamError::OutOfRange {
            kind,
            what: what(),
            offset: offset.unwrap_or(u64::MAX),
            length,
            limit,
        }),
    }
}
