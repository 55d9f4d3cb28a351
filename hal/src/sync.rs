//! A lock and a condition for threads that may wait long: those of the standard library, which a panic does not close.
//!
//! `parking_lot` is not for them: it keeps one table of waiting threads for the whole process. A child of `fork` inherits the entries of
//! threads that it does not have, and finds in their memory whatever its own new threads put there; it would then search that table without
//! an end. The standard library keeps nothing outside the objects themselves.

use std::{
    ops::{Deref, DerefMut},
    sync::{self, PoisonError, WaitTimeoutResult},
    time::{Duration, Instant},
};

/// A lock. A thread that panics while it has it returns it.
#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock that nobody has.
    pub const fn new(value: T) -> Self {
        Mutex(sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What it guards, which nobody else can have.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it guarded.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to what a [`Mutex`] guards, until it is dropped.
///
/// It is empty only within a [`Condvar`]'s calls, which take the inner guard and bring it back.
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

/// Why a guard is never seen empty.
const HELD: &str = "only a condition's wait takes the guard, and it brings it back before it returns";

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

/// A condition that threads wait for with a lock, which they give back meanwhile. They may wake without a reason.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition that nobody waits for.
    pub const fn new() -> Self {
        Condvar(sync::Condvar::new())
    }

    /// Wakes one of those who wait.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Waits until somebody wakes this thread.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits so long at most.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        let held = guard.0.take().expect(HELD);
        let (held, result) = self.0.wait_timeout(held, limit).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        result
    }

    /// Waits until then at most.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, end: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, end.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn a_thread_that_panics_returns_the_lock() {
        let lock = Arc::new(Mutex::new(1));
        let other = lock.clone();
        let ended = thread::spawn(move || {
            let mut held = other.lock();
            *held = 2;
            panic!("a panic that the test is about");
        });
        assert!(ended.join().is_err());
        assert_eq!(*lock.lock(), 2);
        assert_eq!(Arc::into_inner(lock).unwrap().into_inner(), 2);
    }

    #[test]
    fn waits_end_by_a_call_or_by_the_clock() {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let mut held = shared.0.lock();
        assert!(shared.1.wait_for(&mut held, Duration::from_millis(1)).timed_out());
        assert!(shared.1.wait_until(&mut held, Instant::now()).timed_out());
        let other = shared.clone();
        let caller = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_all();
        });
        while !*held {
            shared.1.wait(&mut held);
        }
        drop(held);
        caller.join().unwrap();
    }
}
