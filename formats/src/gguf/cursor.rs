//! Reading forward through the header of a GGUF file.

use bytes::Bytes;

use super::{
    Result,
    error::{GgufError, within},
    value::{Array, Value, ValueType},
};

/// Arrays within arrays.
const MAX_NESTING: u32 = 8;

/// A place in a file.
pub(super) struct Cursor<'a> {
    pub file: &'a Bytes,
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, length: u64, what: &str) -> Result<&'a [u8]> {
        let start = within(self.file.len(), || what.to_owned(), Some(self.at as u64), length)? as usize;
        // Fits: it ends within the file.
        self.at = start + length as usize;
        Ok(&self.file[start..self.at])
    }

    pub fn u32(&mut self, what: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(*self.take(4, what)?.first_chunk().expect("four bytes were taken")))
    }

    pub fn u64(&mut self, what: &str) -> Result<u64> {
        Ok(u64::from_le_bytes(*self.take(8, what)?.first_chunk().expect("eight bytes were taken")))
    }

    pub fn text(&mut self, what: &str) -> Result<&'a str> {
        let length = self.u64(what)?;
        let at = self.at;
        std::str::from_utf8(self.take(length, what)?)
            .map_err(|_| GgufError::invalid(what, format!("text of {length} bytes at {at} is not UTF-8")))
    }

    fn value_type(&self, number: u32) -> Result<ValueType> {
        ValueType::of(number).ok_or_else(|| {
            let problem = format!("value type {number} at {}; 0 to 12 exist", self.at);
            GgufError::invalid("key-value pair", problem)
        })
    }

    /// A value of the type with this number. Texts that are no UTF-8 have their wrong bytes replaced.
    pub fn value(&mut self, number: u32) -> Result<Value> {
        let value_type = self.value_type(number)?;
        if let Some(bytes) = value_type.bytes() {
            let taken = self.take(bytes, "value")?;
            return Ok(value_type.scalar(taken).expect("a type with bytes is a scalar"));
        }
        if value_type == ValueType::Text {
            let length = self.u64("string")?;
            return Ok(Value::Text(String::from_utf8_lossy(self.take(length, "string")?).into_owned()));
        }
        let (element, count) = (self.u32("array type")?, self.u64("array length")?);
        let element = self.value_type(element)?;
        let start = self.at;
        self.skip_elements(element, count, 1)?;
        Ok(Value::Array(Array { element, count, bytes: self.file.slice(start..self.at) }))
    }

    /// Skips elements. Each takes at least a byte, so that the file's size bounds the work.
    fn skip_elements(&mut self, element: ValueType, count: u64, nesting: u32) -> Result<()> {
        if let Some(bytes) = element.bytes() {
            return self.take(count.saturating_mul(bytes), "array").map(drop);
        }
        for _ in 0..count {
            if element == ValueType::Text {
                // Not checked for UTF-8: who reads it does.
                let length = self.u64("string")?;
                self.take(length, "string")?;
                continue;
            }
            if nesting >= MAX_NESTING {
                let problem = format!("arrays are nested deeper than {MAX_NESTING}");
                return Err(GgufError::invalid("key-value pair", problem));
            }
            let (inner, count) = (self.u32("array type")?, self.u64("array length")?);
            let inner = self.value_type(inner)?;
            self.skip_elements(inner, count, nesting + 1)?;
        }
        Ok(())
    }
}
