//! An allocator for tests: the system's, which refuses one large request when it is told to.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ptr::null_mut,
    sync::atomic::{AtomicI64, Ordering},
};

/// Requests of this many bytes and more are counted. Smaller ones are for what a program needs to say what went wrong.
pub const LARGE: usize = 1 << 20;

/// Large requests until the one that is refused; negative behind it.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// The allocator; a test makes it its `#[global_allocator]`.
#[derive(Debug)]
pub struct Scarce;

/// Refuses the large request that comes after so many others.
pub fn refuse(after: u32) {
    LEFT.store(after.into(), Ordering::SeqCst);
}

/// Refuses nothing any more; whether a request was refused.
pub fn enough() -> bool {
    LEFT.swap(i64::MAX, Ordering::SeqCst) < 0
}

fn is_refused(size: usize) -> bool {
    let refused = size >= LARGE && LEFT.fetch_sub(1, Ordering::SeqCst) == 0;
    if refused && std::env::var_os("HALITE_SCARCE_TRACE").is_some() {
        eprintln!("refused {size} bytes at\n{}", std::backtrace::Backtrace::force_capture());
    }
    refused
}

// SAFETY: all is done by the system's allocator, or refused, which every request may be.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        // SAFETY: the caller keeps to what is asked of it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return null_mut();
        }
        // SAFETY: the caller keeps to what is asked of it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return null_mut();
        }
        // SAFETY: the caller keeps to what is asked of it.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: it was allocated by the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}
