//! The values of a GGUF file's metadata: scalars as they are, arrays as slices of the file that are read when asked for.

use bytes::Bytes;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer of up to 64 bits.
    Int(i128),
    /// A 32-bit or 64-bit float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String),
    /// Elements of one type.
    Array(Array),
}

/// The type of a value, by its number in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// An integer: whether it has a sign, and its bytes.
    Int(bool, u8),
    /// A float of so many bytes.
    Float(u8),
    /// A byte that is 0 or not.
    Bool,
    /// Length in 8 bytes, and UTF-8.
    Text,
    /// Element type, count, elements.
    Array,
}

impl ValueType {
    pub(super) fn of(number: u32) -> Option<ValueType> {
        Some(match number {
            0 => ValueType::Int(false, 1),
            1 => ValueType::Int(true, 1),
            2 => ValueType::Int(false, 2),
            3 => ValueType::Int(true, 2),
            4 => ValueType::Int(false, 4),
            5 => ValueType::Int(true, 4),
            6 => ValueType::Float(4),
            7 => ValueType::Bool,
            8 => ValueType::Text,
            9 => ValueType::Array,
            10 => ValueType::Int(false, 8),
            11 => ValueType::Int(true, 8),
            12 => ValueType::Float(8),
            _ => return None,
        })
    }

    /// Bytes of a scalar; none for what says its own.
    pub(super) fn bytes(self) -> Option<u64> {
        match self {
            ValueType::Int(_, bytes) | ValueType::Float(bytes) => Some(bytes.into()),
            ValueType::Bool => Some(1),
            ValueType::Text | ValueType::Array => None,
        }
    }

    /// The scalar in these bytes, which are as many as it has.
    pub(super) fn scalar(self, bytes: &[u8]) -> Option<Value> {
        let mut wide = [0u8; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        Some(match self {
            ValueType::Int(false, _) => Value::Int(unsigned.into()),
            ValueType::Int(true, size) => {
                let shift = 64 - 8 * u32::from(size);
                Value::Int((((unsigned << shift) as i64) >> shift).into())
            }
            ValueType::Float(4) => Value::Float(f32::from_bits(unsigned as u32).into()),
            ValueType::Float(_) => Value::Float(f64::from_bits(unsigned)),
            ValueType::Bool => Value::Bool(unsigned != 0),
            ValueType::Text | ValueType::Array => return None,
        })
    }
}

/// Elements of one type, in the bytes of the file. Reading checked that they are all there.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub(super) element: ValueType,
    pub(super) count: u64,
    pub(super) bytes: Bytes,
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Type of the elements.
    pub fn element(&self) -> ValueType {
        self.element
    }

    /// The bytes of each text; nothing where elements are no texts. May be no UTF-8.
    pub fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest: &[u8] = if self.element == ValueType::Text { &self.bytes } else { &[] };
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<8>()?;
            let (text, behind) = behind.split_at_checked(u64::from_le_bytes(*length) as usize)?;
            rest = behind;
            Some(text)
        })
    }

    /// Each scalar; nothing where elements are none.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        let size = self.element.bytes().unwrap_or(0) as usize;
        let bytes: &[u8] = if size == 0 { &[] } else { &self.bytes };
        bytes.chunks_exact(size.max(1)).filter_map(|bytes| self.element.scalar(bytes))
    }
}
