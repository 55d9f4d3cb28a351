//! The VM's view of bound memory.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use halite_abi::{Result, Status, bail, status};
use halite_vm::HostMemory;

use crate::code::HostRange;

/// Says whether the memory of a dispatch may still be used. Bytecode can keep a buffer beyond its dispatch, in a global
/// variable; the buffer must then be of no use.
#[derive(Clone, Debug)]
pub(super) struct Lease(Arc<AtomicBool>);

impl Lease {
    /// A lease that holds.
    pub fn new() -> Self {
        Lease(Arc::new(AtomicBool::new(true)))
    }

    /// Ends it. Accesses come from the thread that runs the bytecode only, which is the caller: none is under way.
    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A binding, or local memory, for as long as the lease holds.
#[derive(Debug)]
pub(super) struct LeasedMemory {
    range: HostRange,
    lease: Lease,
}

impl LeasedMemory {
    /// A view of a range.
    ///
    /// # Safety
    /// Until the lease ends the range must be live, initialised memory that is only accessed through raw pointers, and
    /// the view must not be used by two threads at the same time.
    pub unsafe fn new(range: HostRange, lease: &Lease) -> Self {
        LeasedMemory { range, lease: lease.clone() }
    }

    /// The first of `length` bytes at `offset`.
    fn pointer(&self, offset: u64, length: usize) -> Result<*mut u8> {
        if !self.lease.0.load(Ordering::Relaxed) {
            return Err(ended());
        }
        match usize::try_from(offset) {
            Ok(offset) if offset <= self.range.length && length <= self.range.length - offset => {
                Ok(self.range.pointer.wrapping_add(offset))
            }
            _ => bail!(
                OutOfRange,
                "{length} bytes at offset {offset} lie outside of a binding of {} bytes",
                self.range.length
            ),
        }
    }
}

#[cold]
fn ended() -> Status {
    status!(FailedPrecondition, "the dispatch that the buffer was bound to has ended")
}

impl HostMemory for LeasedMemory {
    fn len(&self) -> u64 {
        self.range.length as u64
    }

    fn address(&self) -> usize {
        self.range.pointer.addr()
    }

    #[inline]
    fn load(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let source = self.pointer(offset, target.len())?.cast_const();
        // SAFETY: the lease holds, so the bytes are live and initialised (`new`), and `pointer` has checked that they
        // are within the range. `target` is a Rust slice, which nothing else can overlap. Widths that single
        // instructions load are spelled out so that they become single loads.
        unsafe {
            match target.len() {
                4 => target.as_mut_ptr().copy_from_nonoverlapping(source, 4),
                1 => target.as_mut_ptr().copy_from_nonoverlapping(source, 1),
                8 => target.as_mut_ptr().copy_from_nonoverlapping(source, 8),
                2 => target.as_mut_ptr().copy_from_nonoverlapping(source, 2),
                length => target.as_mut_ptr().copy_from_nonoverlapping(source, length),
            }
        }
        Ok(())
    }

    #[inline]
    fn store(&self, offset: u64, source: &[u8]) -> Result<()> {
        let target = self.pointer(offset, source.len())?;
        // SAFETY: as for `load`, the other way round: the range is writable memory of a buffer.
        unsafe {
            match source.len() {
                4 => target.copy_from_nonoverlapping(source.as_ptr(), 4),
                1 => target.copy_from_nonoverlapping(source.as_ptr(), 1),
                8 => target.copy_from_nonoverlapping(source.as_ptr(), 8),
                2 => target.copy_from_nonoverlapping(source.as_ptr(), 2),
                length => target.copy_from_nonoverlapping(source.as_ptr(), length),
            }
        }
        Ok(())
    }

    fn fill(&self, offset: u64, length: u64, pattern: &[u8]) -> Result<()> {
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        let target = self.pointer(offset, size)?;
        match pattern {
            [] => {}
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) => {
                // SAFETY: as for `store`; all `size` bytes are within the range.
                unsafe { target.write_bytes(*first, size) };
            }
            _ => {
                for done in (0..size).step_by(pattern.len()) {
                    let part = &pattern[..pattern.len().min(size - done)];
                    self.store(offset + done as u64, part)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_abi::Code;

    #[test]
    fn accesses_stay_within_range_and_lease() {
        let mut bytes = [0_u8; 16];
        let range = HostRange { pointer: bytes.as_mut_ptr(), length: 16 };
        let lease = Lease::new();
        // SAFETY: `bytes` lives to the end of the test and is only touched through the view until it is read below.
        let memory = unsafe { LeasedMemory::new(range, &lease) };
        memory.store(4, &[1, 2, 3]).unwrap();
        memory.fill(8, 4, &[5, 6]).unwrap();
        memory.fill(12, 3, &[7]).unwrap();
        let mut read = [0; 12];
        memory.load(4, &mut read).unwrap();
        assert_eq!(read, [1, 2, 3, 0, 5, 6, 5, 6, 7, 7, 7, 0]);
        for (offset, length) in [(16, 1), (15, 2), (u64::MAX, 1), (u64::MAX - 1, 4)] {
            let mut target = vec![0; length];
            assert_eq!(memory.load(offset, &mut target).unwrap_err().code(), Code::OutOfRange);
            assert_eq!(memory.store(offset, &target).unwrap_err().code(), Code::OutOfRange);
            assert_eq!(memory.fill(offset, length as u64, &[1]).unwrap_err().code(), Code::OutOfRange);
        }
        memory.load(16, &mut []).unwrap();
        lease.end();
        assert_eq!(memory.load(0, &mut read).unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(memory.store(0, &[1]).unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(memory.fill(0, 1, &[1]).unwrap_err().code(), Code::FailedPrecondition);
    }
}
