//! The tables that the functions of `io_parameters` take: packed little-endian records, one of a key and one of a span for
//! each parameter.

/// Where a key stands in the text of all keys, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// First byte.
    pub offset: u32,
    /// Number of bytes.
    pub length: u32,
}

impl KeyRecord {
    /// Bytes of a record.
    pub const SIZE: usize = 8;

    /// The record as it stands in a table.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        (u64::from(self.offset) | u64::from(self.length) << 32).to_le_bytes()
    }

    /// The record that stands there.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let word = u64::from_le_bytes(*bytes);
        KeyRecord { offset: word as u32, length: (word >> 32) as u32 }
    }
}

/// What is transferred between a parameter and a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRecord {
    /// First byte in the parameter.
    pub parameter_offset: u64,
    /// First byte in the buffer.
    pub buffer_offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl SpanRecord {
    /// Bytes of a record.
    pub const SIZE: usize = 24;

    /// The record as it stands in a table.
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        for (at, word) in [self.parameter_offset, self.buffer_offset, self.length].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The record that stands there.
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        let [parameter_offset, buffer_offset, length] = [0, 8, 16].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        });
        SpanRecord { parameter_offset, buffer_offset, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_little_endian_and_read_back() {
        let key = KeyRecord { offset: 4, length: 0x0102_0304 };
        assert_eq!(key.to_bytes(), [4, 0, 0, 0, 4, 3, 2, 1]);
        assert_eq!(KeyRecord::from_bytes(&key.to_bytes()), key);
        let span = SpanRecord { parameter_offset: 1, buffer_offset: 2, length: u64::MAX };
        assert_eq!(span.to_bytes()[..9], [1, 0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(SpanRecord::from_bytes(&span.to_bytes()), span);
    }
}
