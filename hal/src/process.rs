//! The process that opened a device, and state that a child of `fork` does not share with it. The child inherits objects, but neither
//! threads nor what the system keeps for them, and locks as threads of its parent had them.

use std::sync::OnceLock;

use crate::{DeviceInfo, Result, status};

/// The process that made something which no child of `fork` can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opener(u32);

impl Opener {
    /// This process.
    pub fn here() -> Self {
        Opener(std::process::id())
    }

    /// Whether this is a fork of that process: nothing of what it made may be used here, nor given back.
    pub fn is_forked(self) -> bool {
        self.0 != std::process::id()
    }

    /// FAILED_PRECONDITION in a fork of the process that opened the device.
    pub fn check(self, device: &DeviceInfo) -> Result<()> {
        if !self.is_forked() {
            return Ok(());
        }
        Err(status!(
            FailedPrecondition,
            "device '{}' was opened before this process was forked, and cannot be used in the child, which has neither its threads nor its \
             memory; open the device and make sessions in the child, or start the child anew (exec; in Python, the start method 'spawn' or \
             'forkserver' of multiprocessing)",
            device.uri()
        ))
    }
}

/// Processes that were forked from each other and have values of their own; more of them share the last.
const GENERATIONS: usize = 16;

/// A value of each process, made when it first asks for it. A child of `fork` leaves its parent's alone.
///
/// A lock alone would not do: a thread of the parent may have had it when the process was forked, and nobody returns it in the child.
#[derive(Debug)]
pub struct PerProcess<T> {
    make: fn() -> T,
    values: [OnceLock<(Opener, T)>; GENERATIONS],
}

impl<T> PerProcess<T> {
    /// Nothing yet; `make` makes the value of a process.
    pub const fn new(make: fn() -> T) -> Self {
        PerProcess { make, values: [const { OnceLock::new() }; GENERATIONS] }
    }

    /// The value of this process.
    pub fn get(&self) -> &T {
        let own = Opener::here();
        let held = |slot: &OnceLock<(Opener, T)>| slot.get_or_init(|| (own, (self.make)())).0 == own;
        let place = self.values.iter().position(held).unwrap_or(GENERATIONS - 1);
        &self.values[place].get_or_init(|| (own, (self.make)())).1
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn another_process_is_refused_with_advice() {
        let device = DeviceInfo::default();
        assert!(Opener::here().check(&device).is_ok());
        let told = Opener(0).check(&device).unwrap_err().message().to_owned();
        assert!(Opener(0).is_forked() && told.contains("forked") && told.contains("forkserver"), "{told}");
    }

    #[test]
    fn processes_have_values_of_their_own() {
        let all: PerProcess<Cell<u32>> = PerProcess::new(Cell::default);
        let parents = all.values[0].set((Opener(0), Cell::new(7)));
        assert!(parents.is_ok() && all.get().replace(2) == 0 && all.get().get() == 2);
        assert_eq!(all.values[0].get().map(|(_, value)| value.get()), Some(7));
        // Too many generations share the last value.
        let all: PerProcess<Cell<u32>> = PerProcess::new(Cell::default);
        assert!(all.values.iter().all(|slot| slot.set((Opener(0), Cell::new(7))).is_ok()));
        assert_eq!(all.get().get(), 7);
    }
}
