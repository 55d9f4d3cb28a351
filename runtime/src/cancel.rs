//! The switch that stops a running call.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Stops calls that were started with it. Clones are the same switch; it cannot be set back.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A switch that is not thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the calls, from any thread.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was thrown.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for layers that look at one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}
