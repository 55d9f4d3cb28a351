//! Tensors of ONNX models: their types, and their elements as little-endian bytes wherever they are kept.

use bytes::Bytes;

use super::OnnxError;
use crate::wire::{Field, Reader};

type Result<T> = std::result::Result<T, OnnxError>;

const MESSAGE: &str = "TensorProto";

macro_rules! data_types {
    ($($(#[$doc:meta])* $variant:ident $number:literal $bits:literal $name:literal,)*) => {
        /// Type of the elements of a tensor (`TensorProto.DataType`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum DataType { $($(#[$doc])* $variant,)* }

        impl DataType {
            /// The type with a number.
            pub fn from_number(number: i64) -> Option<DataType> {
                match number { $($number => Some(DataType::$variant),)* _ => None }
            }

            /// Its number.
            pub fn number(self) -> i64 {
                match self { $(DataType::$variant => $number,)* }
            }

            /// Bits of an element; 0 for strings.
            pub fn bits(self) -> u64 {
                match self { $(DataType::$variant => $bits,)* }
            }

            /// Its name in ONNX.
            pub fn name(self) -> &'static str {
                match self { $(DataType::$variant => $name,)* }
            }
        }
    };
}

data_types! {
    /// 32-bit float.
    Float 1 32 "FLOAT",
    /// Unsigned 8-bit integer.
    Uint8 2 8 "UINT8",
    /// Signed 8-bit integer.
    Int8 3 8 "INT8",
    /// Unsigned 16-bit integer.
    Uint16 4 16 "UINT16",
    /// Signed 16-bit integer.
    Int16 5 16 "INT16",
    /// Signed 32-bit integer.
    Int32 6 32 "INT32",
    /// Signed 64-bit integer.
    Int64 7 64 "INT64",
    /// Text.
    String 8 0 "STRING",
    /// A byte of 0 or 1.
    Bool 9 8 "BOOL",
    /// 16-bit float.
    Float16 10 16 "FLOAT16",
    /// 64-bit float.
    Double 11 64 "DOUBLE",
    /// Unsigned 32-bit integer.
    Uint32 12 32 "UINT32",
    /// Unsigned 64-bit integer.
    Uint64 13 64 "UINT64",
    /// Two 32-bit floats.
    Complex64 14 64 "COMPLEX64",
    /// Two 64-bit floats.
    Complex128 15 128 "COMPLEX128",
    /// The upper half of a 32-bit float.
    Bfloat16 16 16 "BFLOAT16",
    /// 8-bit float.
    Float8E4M3Fn 17 8 "FLOAT8E4M3FN",
    /// 8-bit float.
    Float8E4M3Fnuz 18 8 "FLOAT8E4M3FNUZ",
    /// 8-bit float.
    Float8E5M2 19 8 "FLOAT8E5M2",
    /// 8-bit float.
    Float8E5M2Fnuz 20 8 "FLOAT8E5M2FNUZ",
    /// Unsigned 4-bit integer.
    Uint4 21 4 "UINT4",
    /// Signed 4-bit integer.
    Int4 22 4 "INT4",
    /// 4-bit float.
    Float4E2M1 23 4 "FLOAT4E2M1",
    /// Powers of two.
    Float8E8M0 24 8 "FLOAT8E8M0",
    /// Unsigned 2-bit integer.
    Uint2 25 2 "UINT2",
    /// Signed 2-bit integer.
    Int2 26 2 "INT2",
}

impl std::fmt::Display for DataType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Where tensors that are kept outside the model are read.
pub trait ExternalData {
    /// Bytes of a file, from `offset`: `length` of them, or to the end. `location` is relative to the model's folder, and
    /// does not lead out of it.
    ///
    /// # Errors
    /// Why there are no such bytes.
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> std::result::Result<Bytes, String>;
}

/// For models that keep everything themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExternalData;

impl ExternalData for NoExternalData {
    fn read(&self, location: &str, _: u64, _: Option<u64>) -> std::result::Result<Bytes, String> {
        Err(format!("is in the file '{location}', and the model was given without its folder"))
    }
}

/// A tensor: `TensorProto`.
#[derive(Clone, Debug, Default)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Dimensions.
    pub dims: Vec<u64>,
    /// Number of its type; see [`Tensor::data_type`].
    pub type_number: i64,
    raw: Option<Bytes>,
    /// `float_data`, `int32_data`, …, as they come.
    typed: Vec<(u32, Field)>,
    external: Vec<(String, String)>,
    is_external: bool,
}

const FLOATS: u32 = 4;
const INT32S: u32 = 5;
const STRINGS: u32 = 6;
const INT64S: u32 = 7;
const DOUBLES: u32 = 10;
const UINT64S: u32 = 11;

impl Tensor {
    /// Reads a tensor, such as a file of the ONNX backend tests is.
    ///
    /// # Errors
    /// The bytes are no such message.
    pub fn parse(bytes: Bytes) -> Result<Tensor> {
        let mut tensor = Tensor::default();
        let mut dims = Vec::new();
        let mut reader = Reader::new(MESSAGE, bytes);
        while let Some((number, field)) = reader.field()? {
            match number {
                1 => field.ints(MESSAGE, &mut dims)?,
                2 => tensor.type_number = field.int(MESSAGE)?,
                3 => return Err(OnnxError::invalid(MESSAGE, "tensors in segments are not read")),
                FLOATS | INT32S | STRINGS | INT64S | DOUBLES | UINT64S => tensor.typed.push((number, field)),
                8 => tensor.name = field.text(MESSAGE)?,
                9 => tensor.raw = Some(field.bytes(MESSAGE)?),
                13 => tensor.external.push(entry(field.bytes(MESSAGE)?)?),
                14 => tensor.is_external = field.int(MESSAGE)? == 1,
                _ => {}
            }
        }
        let sizes: std::result::Result<Vec<u64>, _> = dims.into_iter().map(u64::try_from).collect();
        tensor.dims = sizes.map_err(|_| tensor.wrong("a dimension is negative"))?;
        Ok(tensor)
    }

    /// Type of its elements.
    ///
    /// # Errors
    /// The number means none that is known.
    pub fn data_type(&self) -> Result<DataType> {
        let number = self.type_number;
        DataType::from_number(number).ok_or_else(|| self.wrong(&format!("{number} is no known type")))
    }

    /// Number of elements; `u64::MAX` when it does not fit.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1u64, |n, d| n.saturating_mul(*d))
    }

    /// Whether the elements lie in the model one by one, not as bytes.
    pub fn is_typed(&self) -> bool {
        self.raw.is_none() && !self.is_external
    }

    /// The file beside the model that has the elements, and which of its bytes they are.
    pub fn file(&self) -> Option<(&str, std::ops::Range<u64>)> {
        let of = |key: &str| self.external.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        let offset = of("offset").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let bits = self.data_type().ok()?.bits().saturating_mul(self.elements());
        let location = of("location").filter(|_| self.is_external)?;
        Some((location, offset..offset.saturating_add(bits.div_ceil(8))))
    }

    /// The elements as little-endian bytes, row-major; types of less than a byte are packed, the first in the low bits.
    /// Slices of the model or of the external file, if they lie there as such.
    ///
    /// # Errors
    /// There are not as many bytes as the type and the dimensions say, or the external file cannot be read.
    pub fn bytes(&self, external: &dyn ExternalData) -> Result<Bytes> {
        let data_type = self.data_type()?;
        let bits = self.elements().checked_mul(data_type.bits()).filter(|bits| *bits < 1 << 60);
        let wants = bits.ok_or_else(|| self.wrong("has more elements than anything holds"))?.div_ceil(8);
        let bytes = if self.is_external {
            self.read_external(external, wants)?
        } else if let Some(raw) = &self.raw {
            raw.clone()
        } else {
            self.typed_bytes(data_type)?
        };
        if data_type == DataType::String {
            return Err(self.wrong("holds text, which has no bytes of one size"));
        }
        if bytes.len() as u64 != wants {
            let reason = format!(
                "has {} bytes of data; {} elements of {data_type} are {wants}",
                bytes.len(),
                self.elements()
            );
            return Err(self.wrong(&reason));
        }
        Ok(bytes)
    }

    /// The elements of a tensor of text.
    ///
    /// # Errors
    /// It is none.
    pub fn strings(&self) -> Result<Vec<Bytes>> {
        let of = |(number, field): &(u32, Field)| {
            if *number == STRINGS { Ok(field.clone().bytes(MESSAGE)?) } else { Err(self.wrong("is no text")) }
        };
        self.typed.iter().map(of).collect()
    }

    fn typed_bytes(&self, data_type: DataType) -> Result<Bytes> {
        if let [(FLOATS | DOUBLES, Field::Bytes(packed))] = &self.typed[..] {
            return Ok(packed.clone());
        }
        let mut bytes = Vec::new();
        for (number, field) in &self.typed {
            match (number, field) {
                (&FLOATS | &DOUBLES, Field::Bytes(packed)) => bytes.extend_from_slice(packed),
                (&FLOATS, Field::Fixed32(bits)) => bytes.extend(bits.to_le_bytes()),
                (&DOUBLES, Field::Fixed64(bits)) => bytes.extend(bits.to_le_bytes()),
                (&INT32S | &INT64S | &UINT64S, field) => {
                    let mut ints = Vec::new();
                    field.clone().ints(MESSAGE, &mut ints)?;
                    let size = (data_type.bits() / 8).clamp(1, 8) as usize;
                    bytes.extend(ints.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)));
                }
                _ => return Err(self.wrong(&format!("field {number} does not hold elements of {data_type}"))),
            }
        }
        Ok(bytes.into())
    }

    fn read_external(&self, external: &dyn ExternalData, wants: u64) -> Result<Bytes> {
        let of = |key: &str| self.external.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        let number = |key: &str| {
            let read = |text: &str| {
                text.parse::<u64>().map_err(|_| self.wrong(&format!("its {key} '{text}' is no number")))
            };
            of(key).map(read).transpose()
        };
        let location =
            of("location").ok_or_else(|| self.wrong("is outside of the model, nobody says where"))?;
        if !is_inside(location) {
            return Err(self.wrong(&format!("is in '{location}', which is outside of the model's folder")));
        }
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let length = length.unwrap_or(wants);
        let read = external.read(location, offset, Some(length));
        read.map_err(|reason| self.wrong(&reason))
    }

    fn wrong(&self, reason: &str) -> OnnxError {
        OnnxError::Tensor { name: self.name.clone(), reason: reason.to_owned() }
    }
}

/// Whether a relative path stays below where it begins, on every system.
fn is_inside(location: &str) -> bool {
    let plain = |part: &str| part != ".." && !part.contains(':');
    !location.is_empty()
        && !location.starts_with(['/', '\\'])
        && !location.contains('\0')
        && location.split(['/', '\\']).all(plain)
}

/// A key and its value: `StringStringEntryProto`.
fn entry(bytes: Bytes) -> Result<(String, String)> {
    const MESSAGE: &str = "StringStringEntryProto";
    let (mut key, mut value) = (String::new(), String::new());
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        match number {
            1 => key = field.text(MESSAGE)?,
            2 => value = field.text(MESSAGE)?,
            _ => {}
        }
    }
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(bytes: &'static [u8]) -> Tensor {
        Tensor::parse(Bytes::from_static(bytes)).unwrap()
    }

    #[test]
    fn elements_wherever_they_are() {
        // dims [2], UINT16, int32_data packed.
        let packed = tensor(&[0x0a, 1, 2, 0x10, 4, 0x2a, 3, 1, 0x80, 2]);
        assert_eq!(packed.bytes(&NoExternalData).unwrap(), [1, 0, 0, 1][..]);
        // The same, not packed.
        let single = tensor(&[0x08, 2, 0x10, 4, 0x28, 1, 0x28, 0x80, 2]);
        assert_eq!(single.bytes(&NoExternalData).unwrap(), [1, 0, 0, 1][..]);
        let raw = tensor(&[0x08, 2, 0x10, 2, 0x4a, 2, 7, 8]);
        assert_eq!(raw.bytes(&NoExternalData).unwrap(), [7, 8][..]);
        assert!(tensor(&[0x08, 3, 0x10, 2, 0x4a, 2, 7, 8]).bytes(&NoExternalData).is_err());
    }

    #[test]
    fn external_data_stay_in_the_folder() {
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "c:\\x", "\\x", "a\\..\\x"] {
            assert!(!is_inside(bad), "{bad}");
        }
        assert!(is_inside("weights.bin") && is_inside("data/weights..bin"));
    }
}
