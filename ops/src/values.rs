//! Tensors on the host: description, values, and their bytes.

use half::{bf16, f16};
use halite_sizes::Size;

use crate::{
    DType,
    dtype::{bf16_of, f16_of},
};

/// Type and shape of a dense row-major tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDesc {
    /// What it is, such as `lhs`.
    pub name: &'static str,
    /// Type of its elements.
    pub dtype: DType,
    /// Dimensions, the innermost last; none for a scalar.
    pub dims: Vec<Size>,
}

impl TensorDesc {
    /// A tensor.
    pub fn new<N: Into<Size>>(name: &'static str, dtype: DType, dims: impl IntoIterator<Item = N>) -> Self {
        TensorDesc { name, dtype, dims: dims.into_iter().map(Into::into).collect() }
    }

    /// Number of elements; more than can be allocated when it does not fit.
    pub fn elements(&self) -> Size {
        self.dims.iter().product()
    }

    /// Bytes of its elements, without padding; more than can be allocated when it does not fit.
    pub fn bytes(&self) -> Size {
        self.elements() * self.dtype.size()
    }
}

/// The elements of a tensor as the host computes with them. `f64` holds every value of the float types exactly, `i64`
/// every value of the integer types but `u64`, of whose elements it has the bits: those from `2^63` on are negative.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of a float type.
    Float(Vec<f64>),
    /// Of an integer type.
    Int(Vec<i64>),
}

impl Values {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Values::Float(v) => v.len(),
            Values::Int(v) => v.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element as a float; integers are converted.
    pub fn float(&self, index: usize) -> f64 {
        match self {
            Values::Float(v) => v[index],
            Values::Int(v) => v[index] as f64,
        }
    }

    /// Element as an integer; floats are truncated.
    pub fn int(&self, index: usize) -> i64 {
        match self {
            Values::Float(v) => v[index] as i64,
            Values::Int(v) => v[index],
        }
    }

    /// The elements as floats.
    pub fn floats(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.float(i)).collect()
    }

    /// The largest magnitude of a finite element; 0 when there is none.
    pub fn magnitude(&self) -> f64 {
        let all = (0..self.len()).map(|i| self.float(i).abs());
        all.filter(|v| v.is_finite()).fold(0.0, f64::max)
    }

    /// Little-endian bytes of elements of a type. Floats are rounded to it, integers wrap.
    pub fn to_bytes(&self, dtype: DType) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len() * dtype.size() as usize);
        for i in 0..self.len() {
            match dtype {
                DType::F64 => bytes.extend(self.float(i).to_le_bytes()),
                DType::F32 => bytes.extend((self.float(i) as f32).to_le_bytes()),
                DType::F16 => bytes.extend(f16_of(self.float(i)).to_le_bytes()),
                DType::BF16 => bytes.extend(bf16_of(self.float(i)).to_le_bytes()),
                DType::I8 | DType::U8 => bytes.push(self.int(i) as u8),
                DType::I16 | DType::U16 => bytes.extend((self.int(i) as u16).to_le_bytes()),
                DType::I32 | DType::U32 => bytes.extend((self.int(i) as u32).to_le_bytes()),
                DType::I64 | DType::U64 => bytes.extend(self.int(i).to_le_bytes()),
            }
        }
        bytes
    }

    /// Elements of a type from their little-endian bytes; a rest that is no whole element is left out.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Self {
        fn each<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
        }
        match dtype {
            DType::F64 => Values::Float(each(bytes, f64::from_le_bytes)),
            DType::F32 => Values::Float(each(bytes, |b| f64::from(f32::from_le_bytes(b)))),
            DType::F16 => Values::Float(each(bytes, |b| f16::from_le_bytes(b).to_f64())),
            DType::BF16 => Values::Float(each(bytes, |b| bf16::from_le_bytes(b).to_f64())),
            DType::I8 => Values::Int(each(bytes, |[b]: [u8; 1]| i64::from(b as i8))),
            DType::U8 => Values::Int(each(bytes, |[b]: [u8; 1]| i64::from(b))),
            DType::I16 => Values::Int(each(bytes, |b| i64::from(i16::from_le_bytes(b)))),
            DType::U16 => Values::Int(each(bytes, |b| i64::from(u16::from_le_bytes(b)))),
            DType::I32 => Values::Int(each(bytes, |b| i64::from(i32::from_le_bytes(b)))),
            DType::U32 => Values::Int(each(bytes, |b| i64::from(u32::from_le_bytes(b)))),
            DType::I64 | DType::U64 => Values::Int(each(bytes, i64::from_le_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_back() {
        let floats = Values::Float(vec![0.0, -1.5, 65504.0, f64::INFINITY]);
        for dtype in [DType::F32, DType::F16, DType::F64] {
            assert_eq!(Values::from_bytes(dtype, &floats.to_bytes(dtype)), floats, "{dtype}");
        }
        let ints = Values::Int(vec![0, 1, 127, 3]);
        for dtype in DType::ALL.into_iter().filter(|t| !t.is_float()) {
            let bytes = ints.to_bytes(dtype);
            assert_eq!(bytes.len() as u64, 4 * dtype.size());
            assert_eq!(Values::from_bytes(dtype, &bytes), ints, "{dtype}");
        }
        assert_eq!(Values::from_bytes(DType::I8, &[255]), Values::Int(vec![-1]));
        assert_eq!(Values::from_bytes(DType::I16, &[255, 255]), Values::Int(vec![-1]));
        assert_eq!(Values::from_bytes(DType::U16, &[255, 255]), Values::Int(vec![65535]));
        assert_eq!(Values::from_bytes(DType::U64, &[255; 8]), Values::Int(vec![-1]));
    }
}
