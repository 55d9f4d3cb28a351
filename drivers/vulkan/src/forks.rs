//! Drivers whose devices share threads: a child of `fork` finds the threads of its parent's devices missing, also with a device of its
//! own.

use std::sync::atomic::{AtomicU64, Ordering};

use halite_hal::{DeviceInfo, Result, status};

use crate::workarounds::Workaround;

/// Devices of such drivers that are open, and the process that opened them (the upper half).
static OPEN: AtomicU64 = AtomicU64::new(0);

/// One of these devices, until it is dropped.
pub(crate) struct SharesThreads(());

impl SharesThreads {
    /// Counts a device. FAILED_PRECONDITION where the process was forked while there was one.
    pub(crate) fn count(info: &DeviceInfo, why: &Workaround) -> Result<Self> {
        let process = u64::from(std::process::id()) << 32;
        let counted = OPEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| next(open, process));
        counted.map(|_| SharesThreads(())).map_err(|_| {
            status!(
                FailedPrecondition,
                "device '{}' cannot be opened here: a device of this driver was open when this process was forked, and {}; start the child \
                 anew (exec; in Python, the start method 'spawn' or 'forkserver' of multiprocessing), or open devices after the fork alone \
                 (workaround {})",
                info.uri(),
                why.reason,
                why.name
            )
        })
    }
}

impl Drop for SharesThreads {
    fn drop(&mut self) {
        // Those of a parent are not dropped in its children.
        OPEN.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The count with one device more of a process; `None` where those that it counts are another's.
fn next(open: u64, process: u64) -> Option<u64> {
    let (of, count) = (open & !u64::from(u32::MAX), open & u64::from(u32::MAX));
    (of == process || count == 0).then_some(process | (count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_another_process_are_in_the_way_while_they_are_open() {
        let (parent, child) = (7 << 32, 8 << 32);
        assert_eq!(next(0, parent), Some(parent | 1));
        assert_eq!(next(parent | 1, parent), Some(parent | 2));
        assert_eq!(next(parent | 2, child), None);
        assert_eq!(next(parent, child), Some(child | 1));
    }
}
