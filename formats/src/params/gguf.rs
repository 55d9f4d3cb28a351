//! Reading GGUF: header, key-value pairs (walked, not kept), tensor infos, aligned data.

use super::ggml::ggml_type;
use super::{Entry, Kind, ParamError, Storage, TensorInfo, error::shorten, within};
use bytes::Bytes;

type Result<T> = std::result::Result<T, ParamError>;

pub(super) const MAGIC: &[u8; 4] = b"GGUF";
const KIND: Kind = Kind::Gguf;
const ALIGNMENT_KEY: &str = "general.alignment";
const DEFAULT_ALIGNMENT: u64 = 32;
/// The format's own limit on dimensions.
const MAX_DIMS: u32 = 4;
/// Arrays within arrays.
const MAX_NESTING: u32 = 8;
const TYPE_U32: u32 = 4;
const TYPE_BOOL: u32 = 7;
const TYPE_STRING: u32 = 8;
const TYPE_ARRAY: u32 = 9;

/// Reads forward through the header.
struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8]> {
        let start = within(KIND, self.file.len(), || what.to_owned(), Some(self.at as u64), length)? as usize;
        // Fits: it ends within the file.
        self.at = start + length as usize;
        Ok(&self.file[start..self.at])
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(*self.take(4, what)?.first_chunk().expect("four bytes were taken")))
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(*self.take(8, what)?.first_chunk().expect("eight bytes were taken")))
    }

    fn text(&mut self, what: &str) -> Result<&'a str> {
        let length = self.u64(what)?;
        let at = self.at;
        std::str::from_utf8(self.take(length, what)?).map_err(|_| {
            ParamError::invalid(KIND, what, format!("text of {length} bytes at {at} is not UTF-8"))
        })
    }

    /// Skips a value. Every element takes at least a byte, so that the file's size bounds the work.
    fn skip_value(&mut self, value_type: u32, nesting: u32) -> Result<()> {
        let invalid = |problem: String| Err(ParamError::invalid(KIND, "key-value pair", problem));
        match (scalar_bytes(value_type), value_type) {
            (Some(bytes), _) => self.take(bytes, "value").map(drop),
            // Not checked for UTF-8: nobody reads it.
            (None, TYPE_STRING) => self.u64("string").and_then(|n| self.take(n, "string")).map(drop),
            (None, TYPE_ARRAY) if nesting < MAX_NESTING => {
                let (element, count) = (self.u32("array type")?, self.u64("array length")?);
                if let Some(bytes) = scalar_bytes(element) {
                    return self.take(count.saturating_mul(bytes), "array").map(drop);
                }
                (0..count).try_for_each(|_| self.skip_value(element, nesting + 1))
            }
            (None, TYPE_ARRAY) => invalid(format!("arrays are nested deeper than {MAX_NESTING}")),
            (None, _) => invalid(format!("value type {value_type} at {}; 0 to 12 exist", self.at)),
        }
    }
}

fn scalar_bytes(value_type: u32) -> Option<u64> {
    match value_type {
        0 | 1 | TYPE_BOOL => Some(1),
        2 | 3 => Some(2),
        TYPE_U32 | 5 | 6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

pub(super) fn read(file: &Bytes) -> Result<Vec<Entry>> {
    let mut cursor = Cursor { file, at: 0 };
    let magic = cursor.take(4, "magic")?;
    if magic != MAGIC {
        let problem = format!("\"{}\", expected \"GGUF\"", magic.escape_ascii());
        return Err(ParamError::invalid(KIND, "magic", problem));
    }
    check_version(cursor.u32("version")?)?;
    let tensor_count = cursor.u64("tensor count")?;
    let pair_count = cursor.u64("key-value count")?;
    let mut alignment = DEFAULT_ALIGNMENT;
    for _ in 0..pair_count {
        let key = cursor.text("key")?;
        let value_type = cursor.u32("value type")?;
        if key == ALIGNMENT_KEY && value_type == TYPE_U32 {
            alignment = cursor.u32(ALIGNMENT_KEY)?.into();
        } else {
            cursor.skip_value(value_type, 0)?;
        }
    }
    if !alignment.is_power_of_two() {
        let problem = format!("{alignment} is not a power of two");
        return Err(ParamError::invalid(KIND, ALIGNMENT_KEY, problem));
    }
    // An info takes 24 bytes at least; the vector grows with those that are really there.
    let mut infos = Vec::new();
    for _ in 0..tensor_count {
        infos.push(tensor_info(&mut cursor)?);
    }
    let data_start = (cursor.at as u64).next_multiple_of(alignment);
    infos.into_iter().map(|info| entry(info, alignment, data_start, file.len())).collect()
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
    Err(ParamError::Version { kind: KIND, found: version.to_string(), supported })
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
        return Err(ParamError::invalid(KIND, format!("tensor `{}`", shorten(&name)), problem));
    }
    let dims = (0..rank).map(|_| cursor.u64("tensor dimension")).collect::<Result<_>>()?;
    let type_number = cursor.u32("tensor type")?;
    let offset = cursor.u64("tensor offset")?;
    Ok(Info { name, dims, type_number, offset })
}

fn entry(info: Info, alignment: u64, data_start: u64, file_length: usize) -> Result<Entry> {
    let Info { name, mut dims, type_number, offset } = info;
    let what = || format!("tensor `{}`", shorten(&name));
    let invalid = |problem: String| Err(ParamError::invalid(KIND, what(), problem));
    let Some(element) = ggml_type(type_number) else {
        return invalid(format!(
            "element type {type_number} is not known; update Halite or convert the file"
        ));
    };
    if !dims.first().copied().unwrap_or(1).is_multiple_of(element.block) {
        return invalid(format!(
            "rows of {} elements; {} needs a multiple of {}",
            dims.first().copied().unwrap_or(1),
            element.name,
            element.block
        ));
    }
    let elements = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let Some(length) = elements.and_then(|n| (n / element.block).checked_mul(element.bytes)) else {
        return invalid("its dimensions overflow".to_owned());
    };
    if !offset.is_multiple_of(alignment) {
        return invalid(format!("data offset {offset} is not a multiple of the alignment {alignment}"));
    }
    let offset =
        within(KIND, file_length, || format!("data of {}", what()), data_start.checked_add(offset), length)?;
    dims.reverse();
    let tensor = Some(TensorInfo { dtype: element.name.to_owned(), shape: dims });
    Ok(Entry { name, storage: Storage::Range { offset, length }, metadata: Bytes::new(), tensor })
}
