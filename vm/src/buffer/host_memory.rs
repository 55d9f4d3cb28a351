//! The interface to host memory that somebody else made, such as a driver's buffers.

use std::fmt;

use halite_abi::Result;

/// Mutable host memory that a [`Buffer`](crate::Buffer) gives a program access to without copying it.
///
/// Several buffers may stand for overlapping ranges of the same memory, and other threads (workgroups of other
/// dispatches) may use it at the same time, so implementations copy bytes and never form Rust references to them.
/// The VM checks all ranges before it calls; implementations check again, cheaply, since their soundness must not
/// hang on a caller. Calls come while the VM holds the lock of another buffer: they must neither block on it nor
/// call the VM.
pub trait HostMemory: fmt::Debug + Send + Sync {
    /// Number of bytes; never changes.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Address of the first byte. Used as a number only, to see which of two memories that overlap begins first.
    fn address(&self) -> usize;

    /// Copies `target.len()` bytes at `offset` to `target`. Loads of 1, 2, 4 and 8 bytes come once per instruction
    /// of a program.
    fn load(&self, offset: u64, target: &mut [u8]) -> Result<()>;

    /// Copies `source` to `offset`. As frequent as loads.
    fn store(&self, offset: u64, source: &[u8]) -> Result<()>;

    /// Repeats `pattern`, of 1, 2, 4 or 8 bytes, over `length` bytes from `offset` on; `length` is a multiple of the
    /// pattern's.
    fn fill(&self, offset: u64, length: u64, pattern: &[u8]) -> Result<()> {
        let mut chunk = [0; CHUNK];
        chunk.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, value)| *byte = *value);
        in_chunks(length, Order::Ascending, |done, size| self.store(offset + done, &chunk[..size]))
    }
}

/// Bytes moved at a time; a multiple of all pattern lengths.
const CHUNK: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Ascending,
    Descending,
}

/// Calls `step` with offset and size of each chunk of `length` bytes.
fn in_chunks(length: u64, order: Order, mut step: impl FnMut(u64, usize) -> Result<()>) -> Result<()> {
    let mut done = 0;
    while done < length {
        let size = (length - done).min(CHUNK as u64);
        let at = if order == Order::Ascending { done } else { length - done - size };
        step(at, size as usize)?;
        done += size;
    }
    Ok(())
}

/// Copies between memories that may overlap, as if through a copy of the source. Ranges lie within both.
pub(super) fn copy(
    source: &dyn HostMemory,
    from: u64,
    target: &dyn HostMemory,
    to: u64,
    length: u64,
) -> Result<()> {
    let first_source = source.address().wrapping_add(from as usize);
    let first_target = target.address().wrapping_add(to as usize);
    let order = if first_target > first_source { Order::Descending } else { Order::Ascending };
    let mut chunk = [0; CHUNK];
    in_chunks(length, order, |done, size| {
        source.load(from + done, &mut chunk[..size])?;
        target.store(to + done, &chunk[..size])
    })
}

/// Calls `look` with the content of a range, piece by piece, until it says false. Whether it never did.
pub(super) fn all(
    memory: &dyn HostMemory,
    offset: u64,
    length: u64,
    mut look: impl FnMut(u64, &[u8]) -> bool,
) -> Result<bool> {
    let mut chunk = [0; CHUNK];
    let mut holds = true;
    in_chunks(length, Order::Ascending, |done, size| {
        if holds {
            memory.load(offset + done, &mut chunk[..size])?;
            holds = look(done, &chunk[..size]);
        }
        Ok(())
    })?;
    Ok(holds)
}

/// Whether ranges of two memories hold the same bytes.
pub(super) fn equal(
    a: &dyn HostMemory,
    offset: u64,
    b: &dyn HostMemory,
    other_offset: u64,
    length: u64,
) -> Result<bool> {
    let mut theirs = [0; CHUNK];
    let mut failed = Ok(());
    let same = all(a, offset, length, |done, mine| {
        let theirs = &mut theirs[..mine.len()];
        failed = b.load(other_offset + done, theirs);
        failed.is_ok() && mine == theirs
    })?;
    failed.map(|()| same)
}
