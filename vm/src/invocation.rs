//! What bounds a call in time: deadline and cancellation.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use halite_abi::{Result, bail};

/// Limits of one invocation. The VM checks them on calls and backward branches; native functions that block should
/// check them too (see [`crate::Arguments::invocation`]).
#[derive(Clone, Debug, Default)]
pub struct Invocation {
    /// When to give up with DEADLINE_EXCEEDED.
    pub deadline: Option<Instant>,
    /// Set to true from any thread to give up with CANCELLED.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Invocation {
    /// An invocation that must end by `deadline`.
    pub fn until(deadline: Instant) -> Self {
        Invocation { deadline: Some(deadline), cancel: None }
    }

    /// CANCELLED or DEADLINE_EXCEEDED if it is time to stop.
    pub fn check(&self) -> Result<()> {
        if self.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            bail!(Cancelled, "the invocation was cancelled by the caller");
        }
        if self.deadline.is_some_and(|d| Instant::now() >= d) {
            bail!(DeadlineExceeded, "the deadline of the invocation passed while the module was running");
        }
        Ok(())
    }
}

/// Work units between two looks at the clock.
const PERIOD: u32 = 512;

/// Counts work and looks at the invocation's limits now and then.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) invocation: Invocation,
    left: u32,
}

impl Watch {
    pub(crate) fn new(invocation: Invocation) -> Self {
        Watch { invocation, left: 1 }
    }

    /// Accounts for work; one unit is about one call or loop iteration.
    #[inline(always)]
    pub(crate) fn charge(&mut self, units: u32) -> Result<()> {
        match self.left.checked_sub(units) {
            Some(left) if left > 0 => {
                self.left = left;
                Ok(())
            }
            _ => self.look(),
        }
    }

    /// Accounts for an operation over many bytes.
    pub(crate) fn charge_bytes(&mut self, bytes: u64) -> Result<()> {
        self.charge(u32::try_from(bytes >> 10).unwrap_or(u32::MAX))
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.left = PERIOD;
        self.invocation.check()
    }
}
