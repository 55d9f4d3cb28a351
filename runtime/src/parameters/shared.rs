//! Parameters that several sessions on one device read, and what they compute of them when they are loaded: each is in the device's
//! memory once, as long as any of them uses it.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use halite_abi::parameters::SpanRecord;
use halite_hal::{Buffer, BufferParams, Fence, File};
use parking_lot::Mutex;

use super::{index::Parameter, results::SharedResults};

/// Most buffers whose bytes are compared for one parameter, so that files cannot make loading slow.
const MOST_COMPARED: usize = 64;

/// A parameter as a buffer of its own.
#[derive(Debug)]
pub(super) struct Wanted {
    /// What is in the buffer, behind `begin` bytes.
    bytes: Bytes,
    begin: u64,
    params: BufferParams,
}

impl Wanted {
    /// None where the bytes are not in memory.
    pub(super) fn of(parameter: &Parameter, span: SpanRecord, params: BufferParams) -> Option<Wanted> {
        Some(Wanted { bytes: stored(parameter, span)?, begin: span.buffer_offset, params })
    }

    /// Whether both lie at the same place in memory.
    fn is_at(&self, other: &Wanted) -> bool {
        self.bytes.as_ptr() == other.bytes.as_ptr() && self.has_shape_of(other)
    }

    fn has_shape_of(&self, other: &Wanted) -> bool {
        (self.bytes.len(), self.begin, self.params) == (other.bytes.len(), other.begin, other.params)
    }
}

/// A part of a parameter. None where its bytes are not in memory.
pub(super) fn stored(parameter: &Parameter, span: SpanRecord) -> Option<Bytes> {
    let Parameter::Stored { file: File::Memory(bytes), offset, .. } = parameter else { return None };
    let start = usize::try_from(offset.checked_add(span.parameter_offset)?).ok()?;
    let end = start.checked_add(usize::try_from(span.length).ok()?)?;
    (end <= bytes.len()).then(|| bytes.slice(start..end))
}

/// A buffer that was made of a parameter.
#[derive(Debug)]
struct Made {
    of: Wanted,
    buffer: Weak<dyn Buffer>,
    /// When the parameter is in it.
    filled: Fence,
}

impl Made {
    /// The buffer, if it is there. What is not filled yet, or failed, is read once more: nobody waits for another's fault.
    fn buffer(&self) -> Option<Arc<dyn Buffer>> {
        self.buffer.upgrade().filter(|_| self.filled.query().unwrap_or(false))
    }
}

/// The buffers that sessions on one device have of parameters that lie in memory, and of what they computed of such. Their programs
/// write to none of them. Threads may share it.
#[derive(Debug, Default)]
pub struct SharedParameters {
    /// By the number of bytes.
    made: Mutex<HashMap<usize, Vec<Made>>>,
    pub(super) results: SharedResults,
}

impl SharedParameters {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The buffer that another has of the same bytes.
    pub(super) fn find(&self, wanted: &Wanted) -> Option<Arc<dyn Buffer>> {
        let made = self.made.lock();
        let made = made.get(&wanted.bytes.len())?;
        let at = made.iter().find(|made| made.of.is_at(wanted)).and_then(Made::buffer);
        at.or_else(|| {
            let alike = made.iter().filter(|made| made.of.has_shape_of(wanted)).take(MOST_COMPARED);
            alike.filter(|made| made.of.bytes == wanted.bytes).find_map(Made::buffer)
        })
    }

    /// Notes a buffer, which is filled when `filled` is reached.
    pub(super) fn add(&self, wanted: Wanted, buffer: &Arc<dyn Buffer>, filled: &Fence) {
        let mut all = self.made.lock();
        let made = all.entry(wanted.bytes.len()).or_default();
        made.retain(|made| made.buffer.strong_count() > 0);
        made.push(Made { of: wanted, buffer: Arc::downgrade(buffer), filled: filled.clone() });
    }
}
