//! What the far end is to hand back exactly once: timepoints and blobs.
//!
//! The far end gets a number, not an address. Handing it back twice is a fault of its code that does no harm here: the
//! second time nothing is found.

use std::{
    collections::BTreeMap,
    ffi::c_void,
    sync::atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{
    abi::{HaliteBlob, HaliteCallback, HaliteStatus},
    panics,
    peer::{Peer, Side},
    raw, status,
};
use halite_hal::{Result, Timepoint};

/// Values that were lent out under numbers.
struct Table<T> {
    entries: Mutex<BTreeMap<usize, T>>,
    next: AtomicUsize,
}

impl<T> Table<T> {
    const fn new() -> Self {
        Table { entries: Mutex::new(BTreeMap::new()), next: AtomicUsize::new(1) }
    }

    /// The number, as a pointer that points nowhere.
    fn insert(&self, value: T) -> *mut c_void {
        let mut entries = self.entries.lock();
        // The counter comes round on systems with 32-bit addresses only; then used numbers are passed over.
        let key = loop {
            let key = self.next.fetch_add(1, Ordering::Relaxed);
            if key != 0 && !entries.contains_key(&key) {
                break key;
            }
        };
        entries.insert(key, value);
        std::ptr::without_provenance_mut(key)
    }

    fn remove(&self, key: *mut c_void) -> Option<T> {
        self.entries.lock().remove(&key.addr())
    }
}

static TIMEPOINTS: Table<(Timepoint, Side)> = Table::new();
static BLOBS: Table<Bytes> = Table::new();

/// A timepoint for the far end.
pub(super) fn give_timepoint(timepoint: Timepoint, side: Side) -> HaliteCallback {
    let context = TIMEPOINTS.insert((timepoint, side));
    HaliteCallback { context, call: Some(call_timepoint), drop: Some(drop_timepoint) }
}

unsafe extern "C" fn call_timepoint(context: *mut c_void, failure: *mut HaliteStatus) {
    panics::swallow("callback", || {
        let found = TIMEPOINTS.remove(context);
        let peer = Peer::of(found.as_ref().map_or(Side::Host, |(_, side)| *side));
        // SAFETY: a failure belongs to the callback.
        let result = unsafe { status::outcome(failure, peer) };
        match found {
            Some((timepoint, _)) => timepoint(result),
            None => log::warn!("{peer} called back twice; the second time did nothing"),
        }
    });
}

unsafe extern "C" fn drop_timepoint(context: *mut c_void) {
    panics::swallow("dropping a callback", || drop(TIMEPOINTS.remove(context)));
}

/// A callback of the far end.
struct Callback(HaliteCallback);

// SAFETY: the interface lets callbacks run on any thread.
unsafe impl Send for Callback {}

impl Callback {
    fn call(self, result: Result<()>) {
        // Without the function the callback counts as dropped.
        let Some(call) = self.0.call else { return };
        let this = std::mem::ManuallyDrop::new(self);
        let failure = result.map_or_else(status::give, |()| std::ptr::null_mut());
        // SAFETY: called once, and `drop` is not called any more.
        unsafe { call(this.0.context, failure) };
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(drop) = self.0.drop {
            // SAFETY: called once, because `call` was not called: that one forgets the value.
            unsafe { drop(self.0.context) };
        }
    }
}

/// A timepoint that calls the far end back, or tells it when that will not happen.
pub(super) fn take_timepoint(callback: HaliteCallback) -> Timepoint {
    let callback = Callback(callback);
    Box::new(move |result| callback.call(result))
}

/// Bytes for the far end, which gives them back when it needs them no more.
pub(super) fn give_blob(bytes: Bytes) -> HaliteBlob {
    let lent = raw::lend_bytes(&bytes);
    let context = BLOBS.insert(bytes);
    HaliteBlob { data: lent.data, length: lent.length, context, release: Some(release_blob) }
}

unsafe extern "C" fn release_blob(context: *mut c_void) {
    panics::swallow("releasing a blob", || {
        if BLOBS.remove(context).is_none() {
            log::warn!("a blob was released twice; the second time did nothing");
        }
    });
}

/// Bytes of the far end.
struct Blob(HaliteBlob);

// SAFETY: the interface lets any thread read and release a blob.
unsafe impl Send for Blob {}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        if self.0.length == 0 {
            return &[];
        }
        // SAFETY: `take_blob` checked address and length; the bytes live until the release in `drop`.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.length) }
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: called once, when nobody reads any more.
            unsafe { release(self.0.context) };
        }
    }
}

/// Takes bytes over without copying them; they are released also on failure.
///
/// # Safety
/// The blob is ours, and its bytes are there until its release.
pub(super) unsafe fn take_blob(blob: HaliteBlob, what: &str, peer: Peer) -> Result<Bytes> {
    let blob = Blob(blob);
    // SAFETY: the caller's promise.
    unsafe { raw::array(blob.0.data, blob.0.length, what, peer)? };
    Ok(Bytes::from_owner(blob))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use halite_hal::{Code, Status};

    fn counted() -> (Arc<AtomicU32>, HaliteCallback) {
        let calls = Arc::new(AtomicU32::new(0));
        let count = calls.clone();
        let timepoint: Timepoint =
            Box::new(move |r| _ = count.fetch_add(if r.is_ok() { 1 } else { 100 }, Ordering::SeqCst));
        (calls, give_timepoint(timepoint, Side::Host))
    }

    #[test]
    fn callbacks_run_once_or_are_dropped_once() {
        let (calls, callback) = counted();
        take_timepoint(callback)(Ok(()));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        let (calls, callback) = counted();
        take_timepoint(callback)(Err(Status::new(Code::Aborted, "x")));
        assert_eq!(calls.load(Ordering::SeqCst), 100);
        let (calls, callback) = counted();
        drop(take_timepoint(callback));
        assert_eq!((calls.load(Ordering::SeqCst), Arc::strong_count(&calls)), (0, 1));
    }

    #[test]
    fn a_far_end_that_calls_twice_does_no_harm() {
        let (calls, callback) = counted();
        for _ in 0..3 {
            // SAFETY: not what the contract allows; this is what the table is for.
            unsafe {
                call_timepoint(callback.context, std::ptr::null_mut());
                drop_timepoint(callback.context);
            }
        }
        assert_eq!((calls.load(Ordering::SeqCst), Arc::strong_count(&calls)), (1, 1));
        // SAFETY: a failure that nobody wants is freed all the same.
        unsafe { call_timepoint(callback.context, status::give(Status::new(Code::Aborted, "late"))) };
    }

    #[test]
    fn a_panicking_callback_stops_at_the_wall() {
        let callback = give_timepoint(Box::new(|_| panic!("in a callback")), Side::Host);
        take_timepoint(callback)(Ok(()));
    }

    #[test]
    fn blobs_are_lent_and_come_back_once() {
        let alive = Arc::new(());
        struct Owner(Vec<u8>, #[expect(dead_code, reason = "counted from outside")] Arc<()>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let bytes = Bytes::from_owner(Owner(b"code".to_vec(), alive.clone()));
        let peer = Peer::of(Side::Plugin);
        // SAFETY: the blob is taken once.
        let taken = unsafe { take_blob(give_blob(bytes), "code", peer) }.unwrap();
        let part = taken.slice(1..3);
        drop(taken);
        assert_eq!((&part[..], Arc::strong_count(&alive)), (&b"od"[..], 2));
        drop(part);
        assert_eq!(Arc::strong_count(&alive), 1);
        let impossible = HaliteBlob { data: std::ptr::null(), length: 5, ..give_blob(Bytes::new()) };
        // SAFETY: nothing is read at null.
        let refused = unsafe { take_blob(impossible, "code", peer) }.unwrap_err();
        assert!(refused.message().contains("code"), "{refused}");
        assert!(BLOBS.remove(impossible.context).is_none(), "released also on failure");
    }
}
