//! Semaphores and fences on their way through the interface, in both directions.

use std::{any::Any, ptr, sync::Arc};

use smallvec::SmallVec;

use super::{
    abi::*,
    guard,
    object::{self, Arrival, Count, Exported, Handle, Shared, present, table},
    once,
    peer::{Peer, Side},
    raw, status, time,
};
use halite_hal::{Deadline, Fence, Result, Semaphore, Status, Timepoint};

table!(counted HaliteSemaphoreVtable of HaliteSemaphore: device_id, query, signal, fail, wait, on_reached);

static TABLE: HaliteSemaphoreVtable = HaliteSemaphoreVtable {
    struct_size: size_of::<HaliteSemaphoreVtable>() as u32,
    reserved: 0,
    retain: Some(object::retain::<dyn Semaphore>),
    release: Some(object::release::<dyn Semaphore>),
    device_id: Some(device_id),
    query: Some(query),
    signal: Some(signal),
    fail: Some(fail),
    wait: Some(wait),
    on_reached: Some(on_reached),
};

impl Shared for dyn Semaphore {
    const NOUN: &'static str = "semaphore";
    type Table = HaliteSemaphoreVtable;
    fn table() -> &'static HaliteSemaphoreVtable {
        &TABLE
    }
}

unsafe extern "C" fn device_id(semaphore: *mut HaliteSemaphore) -> u64 {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::value::<dyn Semaphore, _>(semaphore, "device_id", 0, |s| s.inner.device_id()) }
}

unsafe extern "C" fn query(semaphore: *mut HaliteSemaphore, out_value: *mut u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours, and `out_value` may be written.
    unsafe {
        guard::call::<dyn Semaphore>(semaphore, "query", |s| raw::put(out_value, s.inner.query()?, s.peer()))
    }
}

unsafe extern "C" fn signal(semaphore: *mut HaliteSemaphore, value: u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours.
    unsafe { guard::call::<dyn Semaphore>(semaphore, "signal", |s| s.inner.signal(value)) }
}

unsafe extern "C" fn fail(semaphore: *mut HaliteSemaphore, failure: *mut HaliteStatus) {
    // SAFETY: the caller has a live handle of ours and gives the failure away, also where the semaphore is closed.
    unsafe {
        let peer = Exported::<dyn Semaphore>::borrow(semaphore).map_or(Peer::of(Side::Host), Exported::peer);
        let failure = status::take(failure, peer);
        guard::value::<dyn Semaphore, _>(semaphore, "fail", (), |s| s.inner.fail(failure));
    }
}

unsafe extern "C" fn wait(semaphore: *mut HaliteSemaphore, value: u64, timeout_ns: u64) -> *mut HaliteStatus {
    // SAFETY: the caller has a live handle of ours.
    unsafe {
        guard::call::<dyn Semaphore>(semaphore, "wait", |s| s.inner.wait(value, time::deadline(timeout_ns)))
    }
}

unsafe extern "C" fn on_reached(semaphore: *mut HaliteSemaphore, value: u64, callback: HaliteCallback) {
    let timepoint = once::take_timepoint(callback);
    // SAFETY: the caller has a live handle of ours. Where that is closed, the callback is dropped.
    unsafe {
        guard::value::<dyn Semaphore, _>(semaphore, "on_reached", (), |s| {
            s.inner.on_reached(value, timepoint);
        });
    }
}

/// A semaphore of the far end.
#[derive(Debug)]
struct SemaphoreProxy {
    handle: Handle<HaliteSemaphoreVtable>,
    device_id: u64,
}

impl Semaphore for SemaphoreProxy {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn query(&self) -> Result<u64> {
        let mut value = 0;
        // SAFETY: the handle is live, its table was checked, and the value may be written.
        let outcome = unsafe { present(self.handle.table().query)(self.handle.raw(), &raw mut value) };
        // SAFETY: a failure is ours.
        unsafe { status::outcome(outcome, self.handle.peer) }.map(|()| value)
    }

    fn signal(&self, value: u64) -> Result<()> {
        // SAFETY: the handle is live and its table was checked; a failure is ours.
        unsafe {
            status::outcome(present(self.handle.table().signal)(self.handle.raw(), value), self.handle.peer)
        }
    }

    fn fail(&self, status: Status) {
        // SAFETY: the handle is live and its table was checked; the failure changes hands.
        unsafe { present(self.handle.table().fail)(self.handle.raw(), status::give(status)) };
    }

    fn wait(&self, value: u64, deadline: Deadline) -> Result<()> {
        let timeout = time::timeout(deadline);
        // SAFETY: the handle is live and its table was checked; a failure is ours.
        unsafe {
            let outcome = present(self.handle.table().wait)(self.handle.raw(), value, timeout);
            status::outcome(outcome, self.handle.peer)
        }
    }

    fn on_reached(&self, value: u64, timepoint: Timepoint) {
        let callback = once::give_timepoint(timepoint, self.handle.peer.side);
        // SAFETY: the handle is live and its table was checked; the callback changes hands.
        unsafe { present(self.handle.table().on_reached)(self.handle.raw(), value, callback) };
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A semaphore that came in.
///
/// # Safety
/// As for [`object::receive`].
pub(super) unsafe fn receive(
    semaphore: *mut HaliteSemaphore,
    count: Count,
    peer: Peer,
) -> Result<Arc<dyn Semaphore>> {
    // SAFETY: the caller's promise.
    match unsafe { object::receive::<dyn Semaphore>(semaphore, count, peer)? } {
        Arrival::Own(semaphore) => Ok(semaphore),
        Arrival::Foreign(handle) => {
            // SAFETY: the handle is live and its table was checked.
            let device_id = unsafe { present(handle.table().device_id)(handle.raw()) };
            Ok(Arc::new(SemaphoreProxy { handle, device_id }))
        }
    }
}

/// A semaphore for the far end, with a count that it owns.
pub(super) fn give(semaphore: Arc<dyn Semaphore>, side: Side) -> *mut HaliteSemaphore {
    match semaphore.as_any().downcast_ref::<SemaphoreProxy>() {
        Some(proxy) => {
            // SAFETY: the handle is live and its table was checked.
            unsafe { present(proxy.handle.table().retain)(proxy.handle.raw()) };
            proxy.handle.raw()
        }
        None => Exported::give(Exported::new(side, semaphore)),
    }
}

/// A fence that is lent for a call.
pub(super) struct LentFence {
    points: SmallVec<[HaliteSemaphorePoint; 4]>,
    /// Handles that were made for the call.
    _made: SmallVec<[Arc<Exported<dyn Semaphore>>; 2]>,
}

impl LentFence {
    /// Lends the points of a fence, which outlives the result.
    pub(super) fn new(fence: &Fence, side: Side) -> Self {
        let mut made = SmallVec::new();
        let points = fence.points().iter().map(|point| {
            let semaphore = match point.semaphore.as_any().downcast_ref::<SemaphoreProxy>() {
                Some(proxy) => proxy.handle.raw(),
                None => {
                    let object = Exported::new(side, point.semaphore.clone());
                    let handle = Exported::handle(&object);
                    made.push(object);
                    handle
                }
            };
            HaliteSemaphorePoint { semaphore, value: point.value }
        });
        let points = points.collect();
        LentFence { points, _made: made }
    }

    /// The fence as the interface has it.
    pub(super) fn raw(&self) -> HaliteFence {
        let points = if self.points.is_empty() { ptr::null() } else { self.points.as_ptr() };
        HaliteFence { points, count: self.points.len() }
    }
}

/// A fence that was lent to us.
///
/// # Safety
/// The points are there for the call, and so are their semaphores.
pub(super) unsafe fn receive_fence(fence: HaliteFence, peer: Peer) -> Result<Fence> {
    let mut received = Fence::default();
    // SAFETY: the caller's promise.
    for point in unsafe { raw::array(fence.points, fence.count, "a fence", peer)? } {
        // SAFETY: the caller's promise.
        received.insert(unsafe { receive(point.semaphore, Count::Borrowed, peer)? }, point.value);
    }
    Ok(received)
}
