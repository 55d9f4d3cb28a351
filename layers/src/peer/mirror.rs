//! The stand-ins for foreign buffers: which range is needed, memory for it, copies in and out.

use std::sync::Arc;

use halite_hal::{
    Buffer, BufferParams, BufferSpan, BufferUsage, Device, QueueAffinity, Result, ResultExt, status,
};

/// What an operation may do to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Only reads.
    Read,
    /// Reads or writes any part.
    Write,
}

impl Access {
    /// What covers both.
    pub(super) fn and(self, other: Access) -> Access {
        if self == other { self } else { Access::Write }
    }
}

/// Mirrors begin at multiples of this, so that what was aligned in a buffer is aligned in its mirror.
pub(super) const ALIGNMENT: u64 = halite_abi::BINDING_ALIGNMENT;

/// Usage bits that say what operations do with a buffer.
const USES: BufferUsage = BufferUsage::from_bits_retain(BufferUsage::SHARING_EXPORT.bits() - 1);

/// Changed bytes are looked for in pieces of this many.
const PIECE: usize = 64;

/// All mirrors of an operation.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Vec<Mirror>);

#[derive(Debug)]
struct Mirror {
    foreign: Arc<dyn Buffer>,
    /// The range of the foreign buffer.
    start: u64,
    end: u64,
    access: Access,
    local: Option<Arc<dyn Buffer>>,
    /// What the range held when the mirror was filled.
    before: parking_lot::Mutex<Vec<u8>>,
}

impl Mirrors {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that a foreign range is needed. OUT_OF_RANGE when it does not exist.
    pub(super) fn add(&mut self, span: &BufferSpan, access: Access) -> Result<()> {
        let span = BufferSpan::whole(span.buffer.clone()).subspan(span.offset, span.length)?;
        let start = span.offset - span.offset % ALIGNMENT;
        let end = span.offset + span.length;
        match self.0.iter_mut().find(|mirror| Arc::ptr_eq(&mirror.foreign, &span.buffer)) {
            Some(mirror) => {
                mirror.start = mirror.start.min(start);
                mirror.end = mirror.end.max(end);
                mirror.access = mirror.access.and(access);
            }
            None => self.0.push(Mirror {
                foreign: span.buffer,
                start,
                end,
                access,
                local: None,
                before: parking_lot::Mutex::default(),
            }),
        }
        Ok(())
    }

    /// Takes memory of the device for all ranges that were noted.
    pub(super) fn allocate(&mut self, device: &dyn Device) -> Result<()> {
        for mirror in &mut self.0 {
            // What it is used for goes for the copy too; how it is shared or mapped does not.
            let usage = mirror.foreign.usage() & USES;
            let params = BufferParams { usage, affinity: QueueAffinity::ANY, ..BufferParams::DEVICE };
            let length = mirror.end - mirror.start;
            let local = device.allocate_buffer(&params, length.max(1));
            mirror.local = Some(local.context(|| {
                format!("a copy for '{}' of {length} bytes of another device's buffer", device.info().uri())
            })?);
        }
        Ok(())
    }

    /// The range of a mirror that stands for a foreign range.
    pub(super) fn local(&self, span: &BufferSpan) -> Result<BufferSpan> {
        let mirror = self.0.iter().find(|mirror| Arc::ptr_eq(&mirror.foreign, &span.buffer));
        let place = mirror.and_then(|m| Some((m.local.clone()?, span.offset.checked_sub(m.start)?)));
        let (buffer, offset) = place.ok_or_else(|| status!(Internal, "a foreign range has no mirror"))?;
        Ok(BufferSpan { buffer, offset, length: span.length })
    }

    /// Copies the foreign ranges to their mirrors. Blocks.
    pub(super) fn fill(&self) -> Result<()> {
        self.0.iter().try_for_each(Mirror::fill)
    }

    /// Copies what changed in the mirrors to the foreign buffers. Blocks.
    pub(super) fn write_back(&self) -> Result<()> {
        self.0.iter().filter(|mirror| mirror.access == Access::Write).try_for_each(Mirror::write_back)
    }
}

impl Mirror {
    fn span(&self) -> BufferSpan {
        BufferSpan { buffer: self.foreign.clone(), offset: self.start, length: self.end - self.start }
    }

    fn local(&self) -> Result<&dyn Buffer> {
        self.local.as_deref().ok_or_else(|| status!(Internal, "a mirror without memory was used"))
    }

    fn room(&self) -> Result<Vec<u8>> {
        let length = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        halite_abi::room::zeros(length).map_err(|e| {
            status!(ResourceExhausted, "host memory for {length} bytes on their way between devices: {e}")
        })
    }

    fn fill(&self) -> Result<()> {
        let mut bytes = self.room()?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.span().read(0, &mut bytes).context(|| "copying from another device")?;
        self.local()?.write(0, &bytes)?;
        if self.access == Access::Write {
            *self.before.lock() = bytes;
        }
        Ok(())
    }

    fn write_back(&self) -> Result<()> {
        let mut after = self.room()?;
        if after.is_empty() {
            return Ok(());
        }
        self.local()?.read(0, &mut after)?;
        let before = std::mem::take(&mut *self.before.lock());
        let span = self.span();
        for run in changes(&before, &after) {
            span.write(run.start as u64, &after[run]).context(|| "copying to another device")?;
        }
        Ok(())
    }
}

/// Ranges that cover all bytes that differ; each begins and ends with one. Both slices have the same length.
fn changes(before: &[u8], after: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, (old, new)) in before.chunks(PIECE).zip(after.chunks(PIECE)).enumerate() {
        if old == new {
            continue;
        }
        let differs = |(old, new): (&u8, &u8)| old != new;
        let first = old.iter().zip(new).position(differs).unwrap_or(0);
        let last = old.iter().zip(new).rposition(differs).unwrap_or(0);
        let (start, end) = (index * PIECE + first, index * PIECE + last + 1);
        match runs.last_mut() {
            // Neighbours that meet become one write.
            Some(run) if run.end == start => run.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_bytes_are_covered() {
        let before = vec![0_u8; 300];
        let mut after = before.clone();
        assert_eq!(changes(&before, &after), []);
        after[10] = 1;
        after[20] = 1;
        after[100..200].fill(2);
        after[299] = 3;
        assert_eq!(changes(&before, &after), [10..21, 100..200, 299..300]);
        assert_eq!(changes(&[], &[]), []);
    }
}
