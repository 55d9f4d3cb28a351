//! SentencePiece's compiled normalizations: a double array of texts that are replaced (Aoe; Yata's Darts-clone), and the texts
//! in their place, each with a zero behind.

use crate::TextError;

/// Bytes of a text in the place of another.
const LONGEST: usize = 1024;

/// Texts that are replaced by others.
#[derive(Clone, Debug)]
pub(crate) struct Charsmap {
    units: Vec<u32>,
    texts: String,
    /// Bytes of the longest text in the place of another.
    pub longest: usize,
}

impl Charsmap {
    /// Reads one: the size of the array, the array, the texts.
    pub fn read(bytes: &[u8], place: &str) -> Result<Charsmap, TextError> {
        let wrong = |problem: &str| TextError::file(place, problem);
        let (size, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| wrong("ends within its size"))?;
        let size = u32::from_le_bytes(*size) as usize;
        let (units, texts) =
            rest.split_at_checked(size).ok_or_else(|| wrong("ends within the array of a normalization"))?;
        let (units, odd) = units.as_chunks::<4>();
        if !odd.is_empty() || units.is_empty() {
            return Err(wrong("has an array that is not made of units of four bytes"));
        }
        let texts = String::from_utf8(texts.to_vec()).map_err(|_| wrong("has texts that are not UTF-8"))?;
        let longest = texts.split('\0').map(str::len).max().unwrap_or(0);
        if longest > LONGEST {
            return Err(wrong("replaces a text by more than 1024 bytes"));
        }
        Ok(Charsmap { units: units.iter().map(|unit| u32::from_le_bytes(*unit)).collect(), texts, longest })
    }

    /// What texts are replaced by that a text begins with, the shortest first, and the length of each.
    pub fn of<'a, 'b>(&'a self, text: &'b [u8]) -> impl Iterator<Item = (usize, &'a str)> + use<'a, 'b> {
        let unit = |at: usize| self.units.get(at).copied();
        let mut node = unit(0).map(offset);
        let mut length = 0;
        std::iter::from_fn(move || {
            while let Some(at) = node {
                let byte = *text.get(length)?;
                let next = at ^ usize::from(byte);
                let own = unit(next).filter(|unit| unit & 0x8000_00FF == u32::from(byte))?;
                length += 1;
                let base = next ^ offset(own);
                node = Some(base);
                let has_text = own >> 8 & 1 == 1;
                if has_text && let Some(found) = unit(base).and_then(|unit| self.text(unit & 0x7FFF_FFFF)) {
                    return Some((length, found));
                }
            }
            None
        })
    }

    fn text(&self, at: u32) -> Option<&str> {
        self.texts.get(at as usize..)?.split('\0').next()
    }
}

/// How far a unit's children are away.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}
