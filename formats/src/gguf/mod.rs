//! GGUF files, versions 2 and 3, little-endian: metadata by key, and tensors whose data are parts of the file. Format:
//! ggml's `docs/gguf.md`.

mod cursor;
mod element;
mod error;
mod value;

pub use element::{GgmlType, ggml_type};
pub use error::GgufError;
pub use value::{Array, Value, ValueType};

use std::collections::HashSet;

use bytes::Bytes;

use cursor::Cursor;
use error::{shorten, within};

type Result<T> = std::result::Result<T, GgufError>;

const MAGIC: &[u8; 4] = b"GGUF";
const ALIGNMENT_KEY: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;
/// The format's own limit on dimensions.
const MAX_DIMS: u32 = 4;

/// What is in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Gguf {
    /// Version of the format: 2 or 3.
    pub version: u32,
    /// Keys and values, in the order of the file. Of equal keys the first counts.
    pub metadata: Vec<(String, Value)>,
    /// Tensors, in the order of the file.
    pub tensors: Vec<Tensor>,
}

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub element: GgmlType,
    /// Dimensions, the outermost first.
    pub dims: Vec<u64>,
    /// Where its bytes begin, from the start of the file.
    pub offset: u64,
    /// Its bytes; all of them lie within the file.
    pub length: u64,
}

/// Whether a file begins like one of this format.
pub fn is_gguf(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

impl Gguf {
    /// Reads a file's header. Time and memory are linear in the header's size; arrays and data stay where they are.
    ///
    /// # Errors
    /// The file is no such file, damaged, or of another version.
    pub fn read(file: &Bytes) -> Result<Gguf> {
        let mut cursor = Cursor { file, at: 0 };
        let magic = cursor.take(4, "magic")?;
        if magic != MAGIC {
            let problem = format!("\"{}\", expected \"GGUF\"", magic.escape_ascii());
            return Err(GgufError::invalid("magic", problem));
        }
        let version = cursor.u32("version")?;
        check_version(version)?;
        let tensor_count = cursor.u64("tensor count")?;
        let pair_count = cursor.u64("key-value count")?;
        // A pair takes 13 bytes at least, and an info 24; the vectors grow with those that are really there.
        let (mut metadata, mut known) = (Vec::new(), HashSet::new());
        for _ in 0..pair_count {
            let key = cursor.text("key")?;
            if !known.insert(key) {
                return Err(GgufError::invalid(format!("key {}", shorten(key)), "it is there twice"));
            }
            let value_type = cursor.u32("value type")?;
            metadata.push((key.to_owned(), cursor.value(value_type)?));
        }
        let alignment = alignment(&metadata)?;
        let mut infos = Vec::new();
        for _ in 0..tensor_count {
            infos.push(tensor_info(&mut cursor)?);
        }
        let data_start = (cursor.at as u64).next_multiple_of(alignment);
        let tensors = infos.into_iter().map(|info| tensor(info, alignment, data_start, file.len()));
        Ok(Gguf { version, metadata, tensors: tensors.collect::<Result<_>>()? })
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }
}

fn alignment(metadata: &[(String, Value)]) -> Result<u64> {
    let found = metadata.iter().find(|(key, _)| key == ALIGNMENT_KEY).map(|(_, value)| value);
    let alignment = match found {
        None => DEFAULT_ALIGNMENT.into(),
        Some(Value::Int(alignment)) => *alignment,
        Some(_) => return Err(GgufError::invalid(ALIGNMENT_KEY, "it is no whole number")),
    };
    match u64::try_from(alignment) {
        Ok(number) if number.is_power_of_two() && number <= 1 << 32 => Ok(number),
        _ => {
            let problem = format!("{alignment} is not a power of two");
            Err(GgufError::invalid(ALIGNMENT_KEY, problem))
        }
    }
}

fn check_version(version: u32) -> Result<()> {
    if matches!(version, 2 | 3) {
        return Ok(());
    }
    let big_endian = matches!(version.swap_bytes(), 1..=3);
    let supported = if big_endian {
        "the file is big-endian; convert it to little-endian"
    } else {
        "versions 2 and 3 are; convert the file"
    };
    Err(GgufError::Version { found: version.to_string(), supported })
}

struct Info {
    name: String,
    /// Innermost first, as stored.
    dims: Vec<u64>,
    type_number: u32,
    offset: u64,
}

fn tensor_info(cursor: &mut Cursor<'_>) -> Result<Info> {
    let name = cursor.text("tensor name")?.to_owned();
    let rank = cursor.u32("tensor rank")?;
    if rank > MAX_DIMS {
        let problem = format!("rank {rank}, the limit is {MAX_DIMS}");
        return Err(GgufError::invalid(format!("tensor `{}`", shorten(&name)), problem));
    }
    let dims = (0..rank).map(|_| cursor.u64("tensor dimension")).collect::<Result<_>>()?;
    let type_number = cursor.u32("tensor type")?;
    let offset = cursor.u64("tensor offset")?;
    Ok(Info { name, dims, type_number, offset })
}

fn tensor(info: Info, alignment: u64, data_start: u64, file_length: usize) -> Result<Tensor> {
    let Info { name, mut dims, type_number, offset } = info;
    let what = || format!("tensor `{}`", shorten(&name));
    let invalid = |problem: String| Err(GgufError::invalid(what(), problem));
    let Some(element) = ggml_type(type_number) else {
        return invalid(format!(
            "element type {type_number} is not known; update Halite or convert the file"
        ));
    };
    let row = dims.first().copied().unwrap_or(1);
    if !row.is_multiple_of(element.block) {
        return invalid(format!(
            "rows of {row} elements; {} needs a multiple of {}",
            element.name, element.block
        ));
    }
    let elements = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let Some(length) = elements.and_then(|n| (n / element.block).checked_mul(element.bytes)) else {
        return invalid("its dimensions overflow".to_owned());
    };
    if !offset.is_multiple_of(alignment) {
        return invalid(format!("data offset {offset} is not a multiple of the alignment {alignment}"));
    }
    let start = data_start.checked_add(offset);
    let offset = within(file_length, || format!("data of {}", what()), start, length)?;
    dims.reverse();
    Ok(Tensor { name, element, dims, offset, length })
}
