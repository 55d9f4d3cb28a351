//! The data of constants in `.tosa` files, and how graphs hold it.

use bytes::Bytes;

use super::{Constant, ElementType, Result, TosaError};

/// Bytes of six for a 48-bit integer.
const I48_BYTES: usize = 6;

/// The constant of a tensor from its data in the file, which may have padding behind it. 4-bit integers lie two in a byte
/// there, the first in the lower half, and 48-bit integers in six bytes.
pub(super) fn constant(element: ElementType, shape: &[u64], data: &Bytes, place: &str) -> Result<Constant> {
    let count = shape.iter().try_fold(1u64, |n, size| n.checked_mul(*size));
    let count = count.and_then(|count| usize::try_from(count).ok());
    let needs = count.and_then(|count| match element {
        ElementType::I4 => Some(count.div_ceil(2)),
        ElementType::I48 => count.checked_mul(I48_BYTES),
        _ => count.checked_mul(element.size() as usize),
    });
    let (Some(count), Some(needs)) = (count, needs.filter(|needs| *needs <= data.len())) else {
        let problem = format!("{} bytes of data are too few for {element}{shape:?}", data.len());
        return Err(TosaError::invalid(place, problem));
    };
    let data = data.slice(..needs);
    let bytes = match element {
        ElementType::I4 => {
            let halves = data.iter().flat_map(|byte| [(*byte << 4) as i8 >> 4, *byte as i8 >> 4]);
            halves.take(count).map(|value| value as u8).collect::<Vec<_>>().into()
        }
        ElementType::I48 => data.as_chunks::<I48_BYTES>().0.iter().flat_map(wide).collect::<Vec<_>>().into(),
        ElementType::Bool if data.iter().any(|byte| *byte > 1) => {
            data.iter().map(|byte| u8::from(*byte != 0)).collect::<Vec<_>>().into()
        }
        _ => data,
    };
    Ok(Constant::Dense(bytes))
}

/// A 48-bit integer in eight bytes.
fn wide(bytes: &[u8; I48_BYTES]) -> [u8; 8] {
    let mut all = [if bytes[I48_BYTES - 1] >> 7 == 1 { 0xFF } else { 0 }; 8];
    all[..I48_BYTES].copy_from_slice(bytes);
    all
}

/// The sizes that a shape's data lists, as many as its rank.
pub(super) fn sizes(rank: u32, data: &[u8], place: &str) -> Result<Vec<i64>> {
    let (words, _) = data.as_chunks::<8>();
    match words.get(..rank as usize) {
        Some(words) => Ok(words.iter().map(|word| i64::from_le_bytes(*word)).collect()),
        None => Err(TosaError::invalid(
            place,
            format!("{} bytes of data are too few for {rank} sizes", data.len()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_odd_types_become_whole_bytes() {
        let of = |element, shape: &[u64], data: &'static [u8]| {
            constant(element, shape, &Bytes::from_static(data), "here").map(|made| made.bytes().to_vec())
        };
        assert_eq!(of(ElementType::I4, &[3], &[0x91, 0x07, 0]).unwrap(), [1, 0xF9, 7]);
        let wide = of(ElementType::I48, &[2], &[1, 0, 0, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!(wide.unwrap(), [1i64.to_le_bytes(), (-2i64).to_le_bytes()].concat());
        assert_eq!(of(ElementType::Bool, &[2], &[0, 255, 9]).unwrap(), [0, 1]);
        assert!(of(ElementType::I32, &[2], &[0; 7]).is_err());
        assert!(of(ElementType::I32, &[u64::MAX, 2], &[0; 7]).is_err());
        assert_eq!(
            sizes(2, &[1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255], "").unwrap(),
            [1, -1]
        );
        assert!(sizes(2, &[0; 15], "").is_err());
    }
}
