//! Parts of constants: what selects neighbouring elements of a constant gives a constant with the same bytes, which are not
//! copied.

use bytes::Bytes;
use halite_ops::{Operation, copy::StridedCopy, gather::Gather};
use halite_sizes::Size;

use super::Builder;
use crate::graph::TensorId;

impl Builder {
    /// The bytes of an operation's result, when these are a part of its input's.
    pub(super) fn part(&self, operation: &Operation, inputs: &[TensorId]) -> Option<Bytes> {
        let (data, size) =
            (self.tensor(*inputs.first()?).constant.as_ref()?, self.element(inputs[0]).storage().size());
        let (first, count) = match operation {
            Operation::StridedCopy(copy) => (copy.offset.exact(), neighbours(copy)?),
            Operation::Gather(gather) => self.rows(gather, inputs[1])?,
            _ => return None,
        };
        let start = usize::try_from(first.checked_mul(size)?).ok()?;
        let end = start.checked_add(usize::try_from(count.checked_mul(size)?).ok()?)?;
        (end <= data.len()).then(|| data.slice(start..end))
    }

    /// The first element and the number of those that a gather takes, when its indices count up.
    fn rows(&self, gather: &Gather, indices: TensorId) -> Option<(u64, u64)> {
        if gather.outer != 1 {
            return None;
        }
        let indices = self.known(indices)?;
        let first = u64::try_from(indices.int(0)).ok()?;
        let counts = (0..indices.len()).all(|i| indices.int(i) == (first as i64).saturating_add(i as i64));
        let count = indices.len() as u64;
        let inside = first.checked_add(count)? <= gather.axis.exact();
        let inner = gather.inner.exact();
        Some((first.checked_mul(inner)?, count.checked_mul(inner)?)).filter(|_| counts && inside)
    }
}

/// The number of elements of a copy that takes neighbours in their order.
fn neighbours(copy: &StridedCopy) -> Option<u64> {
    let count = copy.shape.iter().product::<Size>().exact();
    let mut location = Size::constant(1);
    for (size, stride) in copy.shape.iter().zip(&copy.strides).rev() {
        if *size != 1 && *stride != location {
            return None;
        }
        location *= size;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, Values};

    use super::super::Range;
    use super::*;

    fn table(b: &mut Builder) -> TensorId {
        b.values(DType::F32, &[6, 4], &Values::Float((0..24).map(f64::from).collect())).unwrap()
    }

    #[test]
    fn rows_of_constants_are_parts_of_them() {
        let mut b = Builder::new();
        let whole = table(&mut b);
        let bytes = |b: &Builder, id| b.tensor(id).constant.clone().unwrap();
        let ranges = [Range { start: 1, step: 1, count: 3 }, Range::all(4)];
        let rows = b.slice(whole, &ranges).unwrap();
        assert_eq!(bytes(&b, rows).as_ptr(), bytes(&b, whole)[16..].as_ptr());
        let places = b.values(DType::I64, &[2], &Values::Int(vec![4, 5])).unwrap();
        let picked = b.gather(whole, places, 0).unwrap();
        assert_eq!(bytes(&b, picked), bytes(&b, whole)[64..]);
        assert_eq!(bytes(&b, picked).as_ptr(), bytes(&b, whole)[64..].as_ptr());
    }

    #[test]
    fn other_selections_are_computed() {
        let mut b = Builder::new();
        let whole = table(&mut b);
        let columns = b.slice(whole, &[Range::all(6), Range { start: 0, step: 1, count: 2 }]).unwrap();
        let read = |b: &Builder, id: TensorId| {
            Values::from_bytes(DType::F32, b.tensor(id).constant.as_ref().unwrap()).floats()
        };
        assert_eq!(read(&b, columns)[..4], [0.0, 1.0, 4.0, 5.0]);
        // Out of range is zeros, below 0 counts from the end.
        let places = b.values(DType::I64, &[2], &Values::Int(vec![5, 6])).unwrap();
        let picked = b.gather(whole, places, 0).unwrap();
        assert_eq!(read(&b, picked)[3..6], [23.0, 0.0, 0.0]);
        let places = b.values(DType::I64, &[2], &Values::Int(vec![-1, 0])).unwrap();
        let picked = b.gather(whole, places, 0).unwrap();
        assert_eq!(read(&b, picked)[3..6], [23.0, 0.0, 1.0]);
    }
}
