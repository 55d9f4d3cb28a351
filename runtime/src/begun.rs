//! What a call has begun: the fences that it made, so that their work can be abandoned when the call is stopped. A program's
//! functions run on the thread of their caller; so that is where the fences are noted.

use std::cell::RefCell;

use halite_hal::Fence;

thread_local! {
    /// Fences of the calls that run on this thread, the innermost last.
    static CALLS: RefCell<Vec<Vec<Fence>>> = const { RefCell::new(Vec::new()) };
}

/// A call on this thread, until it is dropped.
pub(crate) struct Begun {
    /// Belongs to its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

/// Notes from now on which fences this thread makes.
pub(crate) fn watch() -> Begun {
    CALLS.with_borrow_mut(|calls| calls.push(Vec::new()));
    Begun { _thread: std::marker::PhantomData }
}

/// A fence was made, for work of the call that runs here.
pub(crate) fn note(fence: &Fence) {
    CALLS.with_borrow_mut(|calls| {
        if let Some(call) = calls.last_mut() {
            call.push(fence.clone());
        }
    });
}

impl Begun {
    /// The fences.
    pub fn end(self) -> Vec<Fence> {
        CALLS.with_borrow_mut(|calls| calls.last_mut().map(std::mem::take)).unwrap_or_default()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        CALLS.with_borrow_mut(Vec::pop);
    }
}

#[cfg(test)]
mod tests {
    use halite_hal::SoftSemaphore;

    use super::*;

    fn fence() -> Fence {
        Fence::new(std::sync::Arc::new(SoftSemaphore::new(1, 0)), 1)
    }

    #[test]
    fn each_call_has_its_own_fences() {
        note(&fence());
        let outer = watch();
        note(&fence());
        {
            let _inner = watch();
            note(&fence());
            note(&fence());
            assert_eq!(CALLS.with_borrow(|calls| calls.iter().map(Vec::len).collect::<Vec<_>>()), [1, 2]);
        }
        assert_eq!(outer.end().len(), 1);
        assert!(CALLS.with_borrow(Vec::is_empty));
    }
}
