//! The wire format of protocol buffers: fields of a message, one after the other.

use bytes::Bytes;

type Result<T> = std::result::Result<T, WireError>;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {reason}")]
pub struct WireError {
    /// The message that was being read.
    pub message: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl WireError {
    fn new(message: &'static str, reason: impl Into<String>) -> Self {
        WireError { message, reason: reason.into() }
    }
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// An integer of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// A string, a message, or packed numbers.
    Bytes(Bytes),
}

impl Field {
    /// A signed or unsigned integer.
    ///
    /// # Errors
    /// The field holds something else.
    pub fn int(&self, message: &'static str) -> Result<i64> {
        match self {
            Field::Varint(value) => Ok(*value as i64),
            _ => Err(WireError::new(message, "a field that holds a number holds something else")),
        }
    }

    /// A 32-bit float.
    ///
    /// # Errors
    /// The field holds something else.
    pub fn float(&self, message: &'static str) -> Result<f32> {
        match self {
            Field::Fixed32(bits) => Ok(f32::from_bits(*bits)),
            _ => Err(WireError::new(message, "a field that holds a float holds something else")),
        }
    }

    /// The bytes of a string or message.
    ///
    /// # Errors
    /// The field holds a number.
    pub fn bytes(self, message: &'static str) -> Result<Bytes> {
        match self {
            Field::Bytes(bytes) => Ok(bytes),
            _ => Err(WireError::new(message, "a field that holds text or a message holds a number")),
        }
    }

    /// Text. What is not UTF-8 is replaced: names are compared and shown, nothing else.
    ///
    /// # Errors
    /// The field holds a number.
    pub fn text(self, message: &'static str) -> Result<String> {
        let bytes = self.bytes(message)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Adds one number, or all that are packed.
    ///
    /// # Errors
    /// The field holds something else, or the bytes end within a number.
    pub fn ints(self, message: &'static str, to: &mut Vec<i64>) -> Result<()> {
        match self {
            Field::Bytes(bytes) => {
                let mut reader = Reader::new(message, bytes);
                while !reader.is_at_end() {
                    to.push(reader.varint()? as i64);
                }
            }
            one => to.push(one.int(message)?),
        }
        Ok(())
    }

    /// Adds one float, or all that are packed.
    ///
    /// # Errors
    /// The field holds something else, or the bytes end within a float.
    pub fn floats(self, message: &'static str, to: &mut Vec<f32>) -> Result<()> {
        match self {
            Field::Bytes(bytes) => {
                let (all, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(WireError::new(message, "packed floats end within one"));
                }
                to.extend(all.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            }
            one => to.push(one.float(message)?),
        }
        Ok(())
    }
}

/// Reads a message, field by field.
#[derive(Debug)]
pub struct Reader {
    message: &'static str,
    bytes: Bytes,
    at: usize,
}

impl Reader {
    /// A reader of a message, called `message` in errors.
    pub fn new(message: &'static str, bytes: Bytes) -> Self {
        Reader { message, bytes, at: 0 }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next field and its number; `None` at the end.
    ///
    /// # Errors
    /// The bytes are no field.
    pub fn field(&mut self) -> Result<Option<(u32, Field)>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n != 0);
        let number = number.ok_or_else(|| self.wrong("a field has no valid number"))?;
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            kind => return Err(self.wrong(&format!("field {number} is of kind {kind}, which is not used"))),
        };
        Ok(Some((number, field)))
    }

    /// An integer: seven bits a byte, the lowest first.
    ///
    /// # Errors
    /// The bytes end within it, or it has more than ten.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.wrong("ends within a number"))?;
            self.at += 1;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("a number has more than ten bytes"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let end = self.at + N;
        let bytes = self.bytes.get(self.at..end).and_then(|b| b.try_into().ok());
        self.at = end;
        bytes.ok_or_else(|| self.wrong("ends within a number"))
    }

    fn take(&mut self, length: u64) -> Result<Bytes> {
        let left = self.bytes.len() - self.at;
        let length = usize::try_from(length).ok().filter(|n| *n <= left);
        let length =
            length.ok_or_else(|| self.wrong(&format!("a field is longer than the {left} bytes left")))?;
        let bytes = self.bytes.slice(self.at..self.at + length);
        self.at += length;
        Ok(bytes)
    }

    fn wrong(&self, reason: &str) -> WireError {
        WireError::new(self.message, format!("{reason} (at byte {} of {})", self.at, self.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_each_kind() {
        let bytes = Bytes::from_static(&[0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 0, 0, 0x80, 0x3f]);
        let mut reader = Reader::new("test", bytes);
        assert_eq!(reader.field().unwrap(), Some((1, Field::Varint(150))));
        assert_eq!(reader.field().unwrap(), Some((2, Field::Bytes(Bytes::from_static(b"hi")))));
        assert_eq!(reader.field().unwrap(), Some((3, Field::Fixed32(0x3f80_0000))));
        assert_eq!(reader.field().unwrap(), None);
    }

    #[test]
    fn damage_is_an_error() {
        for bytes in [&[0x08][..], &[0x08, 0xff], &[0x12, 5, 1], &[0x1d, 1], &[0x00], &[0x0b], &[0x09, 1, 2]]
        {
            let mut reader = Reader::new("test", Bytes::copy_from_slice(bytes));
            assert!(reader.field().is_err(), "{bytes:?}");
        }
        let mut reader = Reader::new("test", Bytes::from_static(&[0x08; 1]));
        assert!(reader.field().is_err());
        let mut long = vec![0x08];
        long.extend([0xff; 12]);
        assert!(Reader::new("test", long.into()).field().is_err());
    }
}
