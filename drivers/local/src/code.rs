//! What a kernel is to the rest of the driver: facts of functions, and running a range of workgroups.

use std::{fmt, ops::Range};

use halite_abi::{Result, status};
use halite_hal::FunctionInfo;
use smallvec::SmallVec;

/// Most bindings of a function; IREE's limit for CPU executables.
pub(crate) const MAX_BINDINGS: usize = 64;

/// Most constants of a function; IREE's limit for CPU executables.
pub(crate) const MAX_CONSTANTS: usize = 64;

/// What the driver has to know of a function beside its [`FunctionInfo`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Bytes of memory of its own that every running workgroup gets.
    pub local_memory: usize,
    /// Whether workgroups may run at the same time on several threads.
    pub parallel: bool,
}

/// Code of an executable. Any thread may run any function; two threads run workgroups of the same dispatch at the
/// same time only where [`Needs::parallel`] allows it.
pub(crate) trait Code: fmt::Debug + Send + Sync + 'static {
    /// Facts of the functions, in the order of the module's export ordinals.
    fn functions(&self) -> &[FunctionInfo];

    /// More facts; `function` is an index of [`Code::functions`].
    fn needs(&self, function: usize) -> Needs;

    /// Whether a dispatch may take for ever through no fault of native code. Such code never runs on a thread that
    /// waits with a deadline.
    fn may_hang(&self) -> bool {
        false
    }

    /// Runs the workgroups with these linear numbers (x fastest) of a dispatch, one after the other. The number of
    /// bindings and constants is that of the function's facts.
    ///
    /// # Errors
    /// What the code answered; the rest of the dispatch is then skipped.
    fn run(&self, call: &Call<'_>, workgroups: Range<u64>, worker: &mut Worker<'_>) -> Result<()>;
}

/// One dispatch, as every thread that takes part in it sees it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// Index of the function.
    pub function: usize,
    /// Workgroups in x, y and z.
    pub counts: [u32; 3],
    /// Most threads that run workgroups of it at the same time.
    pub concurrency: u32,
    /// Constants in HAL order.
    pub constants: &'a [u32],
    /// Bindings in order: address and length.
    pub bindings: &'a Bindings,
}

/// What belongs to the thread that runs workgroups.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    /// Number of the thread within the device.
    pub processor: u32,
    /// At least [`Needs::local_memory`] bytes, aligned to 64. Contents are left over from earlier workgroups.
    pub local_memory: &'a mut [u8],
}

/// Addresses and lengths of bound host memory, in the two arrays that native code wants. The memory lives as long
/// as the execution that it was resolved for.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// Addresses; never null.
    pub pointers: SmallVec<[*mut u8; 8]>,
    /// Bytes that may be touched from there.
    pub lengths: SmallVec<[usize; 8]>,
}

// SAFETY: addresses and numbers; those who use them to touch memory answer for that.
unsafe impl Send for Bindings {}
// SAFETY: as above.
unsafe impl Sync for Bindings {}

impl Bindings {
    /// Forgets all bindings, keeps the room.
    pub fn clear(&mut self) {
        self.pointers.clear();
        self.lengths.clear();
    }

    /// Adds a binding.
    pub fn push(&mut self, range: HostRange) {
        self.pointers.push(range.pointer);
        self.lengths.push(range.length);
    }
}

/// Bytes in host memory that belong to one of this driver's buffers (or to nobody: length 0). Not borrowed: whoever
/// makes one says what keeps the memory alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostRange {
    /// First byte; never null.
    pub pointer: *mut u8,
    /// Number of bytes.
    pub length: usize,
}

// SAFETY: a range is an address and a number; those who use it to touch memory answer for that.
unsafe impl Send for HostRange {}
// SAFETY: as above.
unsafe impl Sync for HostRange {}

impl HostRange {
    /// No bytes, at an address that is aligned like every buffer.
    pub const EMPTY: HostRange = HostRange { pointer: std::ptr::without_provenance_mut(64), length: 0 };

    /// The part at `offset` with `length` bytes ([`halite_hal::WHOLE_BUFFER`] for the rest). OUT_OF_RANGE when it
    /// does not fit.
    pub fn part(self, offset: u64, length: u64) -> Result<HostRange> {
        let fits = || {
            let offset = usize::try_from(offset).ok().filter(|offset| *offset <= self.length)?;
            let rest = self.length - offset;
            let length =
                if length == halite_hal::WHOLE_BUFFER { rest } else { usize::try_from(length).ok()? };
            (length <= rest).then(|| HostRange { pointer: self.pointer.wrapping_add(offset), length })
        };
        fits().ok_or_else(|| {
            status!(
                OutOfRange,
                "{length} bytes at offset {offset} lie outside of a range of {} bytes",
                self.length
            )
        })
    }
}

/// Number of workgroups, or `None` beyond what fits in 64 bits.
pub(crate) fn workgroup_total(counts: [u32; 3]) -> Option<u64> {
    let [x, y, z] = counts.map(u64::from);
    x.checked_mul(y)?.checked_mul(z)
}

/// Position (x, y, z) of the workgroup with this linear number; counts are not zero.
pub(crate) fn workgroup_position(counts: [u32; 3], linear: u64) -> [u32; 3] {
    let [x, y, _] = counts.map(u64::from);
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_numbers_run_through_x_first() {
        let counts = [3, 2, 4];
        assert_eq!(workgroup_total(counts), Some(24));
        assert_eq!(workgroup_position(counts, 0), [0, 0, 0]);
        assert_eq!(workgroup_position(counts, 4), [1, 1, 0]);
        assert_eq!(workgroup_position(counts, 23), [2, 1, 3]);
        assert_eq!(workgroup_total([u32::MAX; 3]), None);
        assert_eq!(workgroup_total([u32::MAX, 0, u32::MAX]), Some(0));
    }

    #[test]
    fn parts_stay_inside() {
        let mut bytes = [0_u8; 16];
        let range = HostRange { pointer: bytes.as_mut_ptr(), length: 16 };
        assert_eq!(range.part(4, halite_hal::WHOLE_BUFFER).unwrap().length, 12);
        assert_eq!(range.part(16, 0).unwrap().length, 0);
        for (offset, length) in [(17, 0), (0, 17), (15, 2), (u64::MAX, 1), (1, u64::MAX - 1)] {
            assert!(range.part(offset, length).is_err(), "{offset} {length}");
        }
    }
}
