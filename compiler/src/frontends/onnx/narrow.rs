//! Element types of less than a byte and of 8-bit floats, which graphs do not have: tensors of them are *held* in the next
//! wider type (`i8`, `u8`, `f32`), with values of the narrow type only. Inputs and outputs of the function are held so, too.
//!
//! Operators that only move elements keep the type; conversions and quantization know it; all others are refused.

use bytes::Bytes;
use halite_formats::onnx::DataType;
use halite_ops::{
    DType, Values,
    expression::{Expression, Function, Operand, Scalar},
};

use super::{Result, e8m0};
use crate::{
    build::Builder,
    control::Watch,
    graph::{ElementType, TensorId},
};

/// Operators whose outputs have the elements of their first input, moved.
const MOVES: &[&str] = &[
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

/// Elements that are unpacked between two looks at whether to go on.
const CHUNK: usize = 1 << 18;

/// Whether an operator gives elements of its first input as they are.
pub(super) fn is_move(op_type: &str) -> bool {
    MOVES.contains(&op_type)
}

/// Whether an operator gives texts of its first input as they are. `Concat` does not: texts of two lists have no places in one.
pub(super) fn is_move_of_texts(op_type: &str) -> bool {
    op_type == "ArrayFeatureExtractor" || op_type != "Concat" && is_move(op_type)
}

/// Whether values have to say that their elements have this type, because another one holds them.
pub(super) fn is_tagged(data_type: DataType) -> bool {
    data_type == DataType::String || held_in(data_type).is_some()
}

/// The type that holds a narrow one; none for types that are not narrow, or not supported.
pub(crate) fn held_in(data_type: DataType) -> Option<ElementType> {
    Some(ElementType::Of(match data_type {
        DataType::Int4 | DataType::Int2 => DType::I8,
        DataType::Uint4 | DataType::Uint2 => DType::U8,
        DataType::Float8E8M0 => DType::F32,
        _ => {
            Float::of(data_type)?;
            DType::F32
        }
    }))
}

/// A narrow float type.
#[derive(Clone, Copy, Debug)]
struct Float {
    /// Bits of the fraction.
    fraction: i32,
    /// Exponent of the smallest normal number.
    least: i32,
    /// The largest number.
    most: f32,
    /// What is too large, where it does not become the largest number.
    beyond: f32,
    /// Which codes are no numbers.
    code: Code,
}

/// Which codes are no numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Code {
    /// All codes are numbers.
    All,
    /// The largest of both signs is NaN.
    LastNan,
    /// As IEEE 754: the largest exponent is for infinity and NaN.
    Ieee,
    /// Minus zero is NaN.
    MinusZeroNan,
}

impl Float {
    fn of(data_type: DataType) -> Option<Float> {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let float = |fraction, least, most, beyond, code| Some(Float { fraction, least, most, beyond, code });
        match data_type {
            DataType::Float8E4M3Fn => float(3, -6, 448.0, nan, Code::LastNan),
            DataType::Float8E4M3Fnuz => float(3, -7, 240.0, nan, Code::MinusZeroNan),
            DataType::Float8E5M2 => float(2, -14, 57344.0, inf, Code::Ieee),
            DataType::Float8E5M2Fnuz => float(2, -15, 57344.0, nan, Code::MinusZeroNan),
            DataType::Float4E2M1 => float(1, 0, 6.0, 6.0, Code::All),
            _ => None,
        }
    }

    /// The number of a code of `bits` bits.
    fn decode(self, code: u8, bits: u32) -> f32 {
        let sign = if code >> (bits - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let rest = i32::from(code & ((1u16 << (bits - 1)) - 1) as u8);
        let (exponent, fraction) = (rest >> self.fraction, rest & ((1 << self.fraction) - 1));
        let last = (1 << (bits - 1)) - 1;
        let last_exponent = last >> self.fraction;
        match self.code {
            Code::LastNan if rest == last => return f32::NAN,
            Code::MinusZeroNan if rest == 0 && sign < 0.0 => return f32::NAN,
            Code::Ieee if exponent == last_exponent && fraction == 0 => return sign * f32::INFINITY,
            Code::Ieee if exponent == last_exponent => return f32::NAN,
            _ => {}
        }
        let (whole, power) = match exponent {
            0 => (fraction, self.least),
            _ => (fraction + (1 << self.fraction), self.least + exponent - 1),
        };
        sign * whole as f32 * f32::powi(2.0, power - self.fraction)
    }

    /// The nearest number, ties to even.
    fn round(self, p: &mut Expression, x: Operand, saturates: bool) -> Operand {
        let least = f32::powi(2.0, self.least);
        let size = p.call(Function::Abs, &[x]);
        // The largest power of two that is not above, and not below that of the smallest normal number.
        let mut power: Operand = least.into();
        for step in [16, 8, 4, 2, 1] {
            let next = p.call(Function::Mul, &[power, f32::powi(2.0, step).into()]);
            let reached = p.call(Function::Ge, &[size, next]);
            power = p.call(Function::Select, &[reached, next, power]);
        }
        let unit = p.call(Function::Mul, &[power, f32::powi(2.0, -self.fraction).into()]);
        let units = p.call(Function::Div, &[x, unit]);
        let whole = p.call(Function::Round, &[units]);
        let rounded = p.call(Function::Mul, &[whole, unit]);
        let beyond = if saturates { self.most } else { self.beyond };
        let negative = p.call(Function::Lt, &[x, 0f32.into()]);
        let beyond = p.call(Function::Select, &[negative, (-beyond).into(), beyond.into()]);
        let new_size = p.call(Function::Abs, &[rounded]);
        // Infinity was rounded to NaN.
        let large = p.call(Function::Gt, &[new_size, self.most.into()]);
        let endless = p.call(Function::IsInf, &[x]);
        let large = p.call(Function::Or, &[large, endless]);
        let limited = p.call(Function::Select, &[large, beyond, rounded]);
        if self.code != Code::All {
            return self.without_minus_zero(p, limited, x);
        }
        let nan = p.call(Function::IsNan, &[x]);
        p.call(Function::Select, &[nan, 0f32.into(), limited])
    }

    /// NaN stays NaN, and where minus zero means something else there is one zero.
    fn without_minus_zero(self, p: &mut Expression, value: Operand, x: Operand) -> Operand {
        let nan = p.call(Function::IsNan, &[x]);
        let value = p.call(Function::Select, &[nan, x, value]);
        if self.code != Code::MinusZeroNan {
            return value;
        }
        let zero = p.call(Function::Eq, &[value, 0f32.into()]);
        p.call(Function::Select, &[zero, 0f32.into(), value])
    }
}

/// The elements of a narrow type, as the type that holds them has them; none for other types. `bytes` are packed, the first
/// in the low bits.
pub(super) fn unpack(
    data_type: DataType,
    count: u64,
    bytes: &[u8],
    watch: Watch<'_>,
) -> Result<Option<Bytes>> {
    let (Some(held), Ok(count)) = (held_in(data_type), usize::try_from(count)) else { return Ok(None) };
    let bits = data_type.bits() as u32;
    let each = (8 / bits) as usize;
    let mask = ((1u16 << bits) - 1) as u8;
    let code = |index: usize| bytes[index / each] >> (index % each * bits as usize) & mask;
    let mut unpacked = Vec::new();
    for start in (0..count).step_by(CHUNK) {
        watch.check()?;
        let codes = (start..count.min(start + CHUNK)).map(code);
        let values = match (Float::of(data_type), data_type) {
            (None, DataType::Float8E8M0) => {
                Values::Float(codes.map(|code| e8m0::decode(code).into()).collect())
            }
            (Some(float), _) => Values::Float(codes.map(|code| float.decode(code, bits).into()).collect()),
            (None, DataType::Int4 | DataType::Int2) => {
                let top = 1i64 << (bits - 1);
                Values::Int(codes.map(|code| (i64::from(code) ^ top) - top).collect())
            }
            _ => Values::Int(codes.map(i64::from).collect()),
        };
        unpacked.extend(values.to_bytes(held.storage()));
    }
    Ok(Some(unpacked.into()))
}

/// Elements of any type as those of a narrow one: floats are rounded, and become the largest number or what the type has
/// for it when they are too large; integers wrap.
pub(super) fn cast(b: &mut Builder, tensor: TensorId, to: DataType, saturates: bool) -> Result<TensorId> {
    if let Some(float) = Float::of(to) {
        let tensor = b.as_f32(tensor)?;
        return b.map(&[tensor], DType::F32, |p, x| float.round(p, x[0], saturates));
    }
    let bits = to.bits() as i64;
    let is_signed = matches!(to, DataType::Int4 | DataType::Int2);
    let wide = b.cast(tensor, DType::I32)?;
    let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I32));
    let wrapped = b.map(&[wide], DType::I32, |p, x| {
        let low = p.call(Function::And, &[x[0], int((1 << bits) - 1)]);
        if !is_signed {
            return low;
        }
        let top = int(1 << (bits - 1));
        let turned = p.call(Function::Xor, &[low, top]);
        p.call(Function::Sub, &[turned, top])
    })?;
    b.cast(wrapped, if is_signed { DType::I8 } else { DType::U8 })
}

/// `x / scale + zero` as the nearest value of a narrow type, ties to even; scale and zero point are broadcast. Integers are
/// limited to the type, floats are where it saturates.
pub(super) fn quantize(
    b: &mut Builder,
    [x, scale]: [TensorId; 2],
    zero: Option<TensorId>,
    to: DataType,
    saturates: bool,
) -> Result<TensorId> {
    let (x, scale) = (b.as_f32(x)?, b.as_f32(scale)?);
    let zero = match zero {
        Some(zero) => b.as_f32(zero)?,
        None => b.float(DType::F32, 0.0)?,
    };
    let held = held_in(to).filter(|_| to != DataType::Float8E8M0);
    let held = held.ok_or_else(|| b.unsupported(format!("quantization to {to}")))?;
    b.map(&[x, scale, zero], held, |p, x| {
        let part = p.call(Function::Div, &x[..2]);
        if let Some(float) = Float::of(to) {
            let sum = p.call(Function::Add, &[part, x[2]]);
            return float.round(p, sum, saturates);
        }
        let (least, most) = limits(to).unwrap_or((0, 0));
        let whole = p.call(Function::Round, &[part]);
        let sum = p.call(Function::Add, &[whole, x[2]]);
        let kept = p.call(Function::Clip, &[sum, (least as f32).into(), (most as f32).into()]);
        p.cast(held.value(), kept)
    })
}

/// The least and the largest value of a narrow integer type.
pub(super) fn limits(data_type: DataType) -> Option<(i64, i64)> {
    match data_type {
        DataType::Int4 => Some((-8, 7)),
        DataType::Uint4 => Some((0, 15)),
        DataType::Int2 => Some((-2, 1)),
        DataType::Uint2 => Some((0, 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: [DataType; 5] = [
        DataType::Float8E4M3Fn,
        DataType::Float8E4M3Fnuz,
        DataType::Float8E5M2,
        DataType::Float8E5M2Fnuz,
        DataType::Float4E2M1,
    ];

    #[test]
    fn codes_are_the_numbers_of_the_types() {
        let of = |data_type, code, bits| Float::of(data_type).unwrap().decode(code, bits);
        assert_eq!(of(DataType::Float8E4M3Fn, 0x7e, 8), 448.0);
        assert_eq!(of(DataType::Float8E4M3Fn, 0x01, 8), f32::powi(2.0, -9));
        assert!(of(DataType::Float8E4M3Fn, 0xff, 8).is_nan());
        assert_eq!(of(DataType::Float8E4M3Fnuz, 0x7f, 8), 240.0);
        assert!(of(DataType::Float8E4M3Fnuz, 0x80, 8).is_nan());
        assert_eq!(of(DataType::Float8E5M2, 0xfb, 8), -57344.0);
        assert_eq!(of(DataType::Float8E5M2, 0x7c, 8), f32::INFINITY);
        assert_eq!(of(DataType::Float8E5M2Fnuz, 0x7f, 8), 57344.0);
        assert_eq!(of(DataType::Float4E2M1, 0xf, 4), -6.0);
        let control = crate::Control::new();
        let watch = control.at(crate::Stage::Importing);
        let unpacked = |of, count, bytes: &[u8]| unpack(of, count, bytes, watch).unwrap().unwrap();
        assert_eq!(unpacked(DataType::Int4, 3, &[0x8f, 0x07])[..], [0xff, 0xf8, 7]);
        assert_eq!(unpacked(DataType::Uint2, 4, &[0b1110_0100])[..], [0, 1, 2, 3]);
        let many = CHUNK as u64 + 3;
        let all = unpacked(DataType::Uint4, many, &vec![0x21; CHUNK]);
        assert_eq!((all.len() as u64, &all[CHUNK - 1..]), (many, &[2, 1, 2, 1][..]));
        control.cancel();
        assert!(unpack(DataType::Uint4, many, &vec![0; CHUNK], watch).unwrap_err().is_stop());
    }

    #[test]
    fn numbers_of_a_type_stay_and_those_between_become_even() {
        for data_type in FLOATS {
            let (float, bits) = (Float::of(data_type).unwrap(), data_type.bits() as u32);
            let all: Vec<f32> = (0..1u16 << bits).map(|code| float.decode(code as u8, bits)).collect();
            let mut finite: Vec<f32> = all.iter().copied().filter(|x| x.is_finite() && *x >= 0.0).collect();
            finite.sort_by(f32::total_cmp);
            finite.dedup();
            let middles = finite.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
            let given: Vec<f64> = finite.iter().copied().chain(middles).map(f64::from).collect();
            let mut b = Builder::new();
            let dims = [given.len() as u64];
            let x = b.values(DType::F32, &dims, &Values::Float(given)).unwrap();
            let y = cast(&mut b, x, data_type, true).unwrap();
            let y = b.floats(y).unwrap();
            for (index, own) in finite.iter().enumerate() {
                assert_eq!(y[index] as f32, *own, "{data_type}");
            }
            for (index, middle) in y[finite.len()..].iter().enumerate() {
                let even = finite[index + index % 2];
                assert_eq!(*middle as f32, even, "{data_type} between {:?}", &finite[index..index + 2]);
            }
        }
    }
}
