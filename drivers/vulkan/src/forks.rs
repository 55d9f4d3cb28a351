//! What keeps a child of `fork` from devices of its own: threads that all devices of a driver share, which stay in the parent, and locks of
//! Vulkan's loader that a thread of the parent had.

use std::sync::atomic::{AtomicU64, Ordering};

use halite_hal::{DeviceInfo, Result, status};

use crate::workarounds::Workaround;

/// Devices that are open of drivers whose devices share threads, and the process that opened them (the upper half).
static OPEN: AtomicU64 = AtomicU64::new(0);
/// Calls in which the loader may hold its lock, likewise.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// One of these devices, until it is dropped.
pub(crate) struct SharesThreads(());

impl SharesThreads {
    /// Counts a device. FAILED_PRECONDITION where the process was forked while there was one.
    pub(crate) fn count(info: &DeviceInfo, why: &Workaround) -> Result<Self> {
        count(&OPEN).map(|()| SharesThreads(())).ok_or_else(|| {
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

/// A call in which the loader may hold its lock: it makes or ends an instance or a device, or looks for devices. Until it is dropped.
pub(crate) struct LoaderCall(());

impl LoaderCall {
    /// Counts a call. FAILED_PRECONDITION where the process was forked during one: the lock stays as it was.
    pub(crate) fn begin() -> Result<Self> {
        count(&CALLS).map(|()| LoaderCall(())).ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Vulkan cannot be used here: another thread was opening or closing a device when this process was forked, so a lock of Vulkan's \
                 loader may never be free again; fork at another time, or start the child anew (exec; in Python, the start method 'spawn' or \
                 'forkserver' of multiprocessing)"
            )
        })
    }
}

impl Drop for LoaderCall {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Counts one more; `None` where those that are counted are of the process that this one was forked from.
fn count(all: &AtomicU64) -> Option<()> {
    let process = u64::from(std::process::id()) << 32;
    all.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| next(open, process)).ok().map(drop)
}

/// The count with one more of a process; `None` where those that it counts are another's.
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
