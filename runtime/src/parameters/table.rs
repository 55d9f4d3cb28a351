//! The tables that programs pass: keys and spans as packed little-endian records. All of it is untrusted.

use bytes::Bytes;
use halite_abi::{
    Result, bail,
    parameters::{KeyRecord, SpanRecord},
    status,
};

/// Checked tables of one call.
pub(super) struct Table {
    keys: Bytes,
    key_data: Bytes,
    spans: Bytes,
}

impl Table {
    pub(super) fn new(keys: Bytes, key_data: Bytes, spans: Bytes) -> Result<Self> {
        let (key_count, span_count) = (keys.len() / KeyRecord::SIZE, spans.len() / SpanRecord::SIZE);
        let whole =
            keys.len().is_multiple_of(KeyRecord::SIZE) && spans.len().is_multiple_of(SpanRecord::SIZE);
        if !whole || key_count != span_count {
            bail!(
                InvalidArgument,
                "parameter tables do not match: {} bytes of keys ({} each), {} bytes of spans ({} each)",
                keys.len(),
                KeyRecord::SIZE,
                spans.len(),
                SpanRecord::SIZE
            );
        }
        Ok(Table { keys, key_data, spans })
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len() / SpanRecord::SIZE
    }

    /// Bytes of all entries together.
    pub(super) fn byte_length(&self) -> u64 {
        let spans = self.spans.as_chunks::<{ SpanRecord::SIZE }>().0;
        spans.iter().fold(0, |sum: u64, span| sum.saturating_add(SpanRecord::from_bytes(span).length))
    }

    /// Key and span of every entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<(&str, SpanRecord)>> {
        let keys = self.keys.as_chunks::<{ KeyRecord::SIZE }>().0;
        let spans = self.spans.as_chunks::<{ SpanRecord::SIZE }>().0;
        keys.iter().zip(spans).map(|(key, span)| Ok((self.key(key)?, SpanRecord::from_bytes(span))))
    }

    fn key(&self, record: &[u8; KeyRecord::SIZE]) -> Result<&str> {
        let KeyRecord { offset, length } = KeyRecord::from_bytes(record);
        let (offset, length) = (offset as usize, length as usize);
        let bytes =
            offset.checked_add(length).and_then(|end| self.key_data.get(offset..end)).ok_or_else(|| {
                status!(
                    OutOfRange,
                    "a parameter key at {offset} of {length} bytes is outside of {} bytes of key data",
                    self.key_data.len()
                )
            })?;
        str::from_utf8(bytes).map_err(|_| status!(InvalidArgument, "a parameter key is not UTF-8 text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_abi::Code;

    fn words(words: &[u32]) -> Bytes {
        words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>().into()
    }

    #[test]
    fn real_layout() {
        let spans = words(&[0, 0, 0, 0, 64, 0, 1, 0, 2, 0, 3, 0]);
        let table = Table::new(words(&[0, 4, 4, 4]), Bytes::from_static(b"key0key1"), spans).unwrap();
        assert_eq!(table.len(), 2);
        let entries: Vec<_> = table.iter().collect::<Result<_>>().unwrap();
        assert_eq!(entries[0], ("key0", SpanRecord { parameter_offset: 0, buffer_offset: 0, length: 64 }));
        assert_eq!(entries[1], ("key1", SpanRecord { parameter_offset: 1, buffer_offset: 2, length: 3 }));
    }

    #[test]
    fn wrong_tables_are_errors() {
        assert!(Table::new(words(&[0, 1]), Bytes::new(), Bytes::new()).is_err());
        assert!(Table::new(words(&[0]), Bytes::new(), Bytes::new()).is_err());
        for key in [[0, 2], [u32::MAX, u32::MAX], [2, 0]] {
            let table = Table::new(words(&key), Bytes::from_static(b"\xFF"), words(&[0; 6])).unwrap();
            assert_eq!(table.iter().next().unwrap().unwrap_err().code(), Code::OutOfRange);
        }
        let table = Table::new(words(&[0, 1]), Bytes::from_static(b"\xFF"), words(&[0; 6])).unwrap();
        assert_eq!(table.iter().next().unwrap().unwrap_err().code(), Code::InvalidArgument);
    }
}
