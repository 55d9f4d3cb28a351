//! Access to the VM's own objects from native functions: byte buffers, strings, lists.

use bytes::Bytes;
use halite_abi::{Result, status};
use halite_vm::{Buffer, List, Ref, Value};

/// Names in error messages are cut to this many bytes.
const MAX_LABEL: u64 = 256;

/// All bytes of a `!vm.buffer`: shared when constant, copied when mutable.
pub(crate) fn bytes(reference: &Ref) -> Result<Bytes> {
    reference.expect::<Buffer>("vm.buffer").and_then(Buffer::to_bytes)
}

/// The bytes of a `!vm.buffer`; `None` when the reference is something else.
pub(crate) fn try_bytes(reference: &Ref) -> Option<Result<Bytes>> {
    reference.downcast_ref::<Buffer>().map(Buffer::to_bytes)
}

/// A range of a `!vm.buffer`, shared or copied; a length of -1 is the rest. OUT_OF_RANGE when it does not fit.
pub(crate) fn range(reference: &Ref, offset: i64, length: i64) -> Result<Bytes> {
    let buffer = reference.expect::<Buffer>("vm.buffer")?;
    let total = buffer.len();
    let range = u64::try_from(offset).ok().and_then(|start| {
        let rest = total.checked_sub(start)?;
        let length = if length == -1 { rest } else { u64::try_from(length).ok()? };
        (length <= rest).then_some((start, length))
    });
    let (start, length) = range.ok_or_else(|| {
        status!(
            OutOfRange,
            "range of {length} bytes at offset {offset} is outside of a host buffer of {total} bytes"
        )
    })?;
    buffer.slice(start, length)
}

/// A `!vm.buffer` as text. INVALID_ARGUMENT when it is not UTF-8.
pub(crate) fn text(reference: &Ref, what: &str) -> Result<String> {
    let bytes = bytes(reference)?;
    let text =
        str::from_utf8(&bytes).map_err(|e| status!(InvalidArgument, "{what} is not UTF-8 text: {e}"))?;
    Ok(text.to_owned())
}

/// A `!vm.buffer` as a name for messages, whatever it holds.
pub(crate) fn label(reference: &Ref) -> String {
    let bytes = reference.downcast_ref::<Buffer>().and_then(|b| b.slice(0, b.len().min(MAX_LABEL)).ok());
    bytes.map_or_else(|| "value".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A constant `!vm.buffer`.
pub(crate) fn buffer(bytes: Bytes) -> Ref {
    Ref::new(Buffer::from_bytes(bytes))
}

/// A `!vm.list` of any values.
pub(crate) fn list(values: Vec<Value>) -> Result<Ref> {
    let list = List::any();
    list.resize(values.len())?;
    for (index, value) in values.into_iter().enumerate() {
        list.set(index, value)?;
    }
    Ok(Ref::new(list))
}

/// The values of a `!vm.list`, RESOURCE_EXHAUSTED when there are more than `limit`; `None` when the reference is
/// something else.
pub(crate) fn list_values(reference: &Ref, limit: usize) -> Option<Result<Vec<Value>>> {
    let list = reference.downcast_ref::<List>()?;
    let length = list.len();
    if length > limit {
        return Some(Err(status!(
            ResourceExhausted,
            "the list has {length} values; at most {limit} more can be returned"
        )));
    }
    Some(Ok((0..length).map_while(|index| list.value(index)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_abi::Code;

    #[test]
    fn ranges_are_checked() {
        for buffer in
            [Buffer::from_bytes(Bytes::from_static(b"abcdef")), Buffer::from_vec(b"abcdef".to_vec())]
        {
            let buffer = Ref::new(buffer);
            assert_eq!(range(&buffer, 2, 3).unwrap()[..], *b"cde");
            assert_eq!(range(&buffer, 6, -1).unwrap().len(), 0);
            for (offset, length) in [(7, 0), (-1, 1), (0, 7), (1, i64::MAX), (i64::MAX, 1), (0, -2), (7, -1)]
            {
                assert_eq!(range(&buffer, offset, length).unwrap_err().code(), Code::OutOfRange);
            }
        }
        assert_eq!(range(&Ref::NULL, 0, 0).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn lists_come_back_as_they_went() {
        let list = list(vec![Value::I32(7), Value::Ref(Ref::NULL), Value::F64(0.5)]).unwrap();
        let values = list_values(&list, 3).unwrap().unwrap();
        assert!(matches!(values[..], [Value::I32(7), Value::Ref(_), Value::F64(_)]));
        assert_eq!(list_values(&list, 2).unwrap().unwrap_err().code(), Code::ResourceExhausted);
        assert!(list_values(&buffer(Bytes::new()), 9).is_none());
    }
}
