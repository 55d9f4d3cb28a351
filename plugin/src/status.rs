//! Failures on their way through the interface: complete copies in both directions.

use super::{
    abi::{HalitePair, HaliteStatus, HaliteStr},
    peer::Peer,
    raw::{self, Grows},
};
use halite_hal::{Code, Result, Status};

/// A failure of ours at the far end. The lent texts are in the heap blocks of `status`, which do not move with it.
#[repr(C)]
struct Given {
    head: HaliteStatus,
    status: Status,
    annotations: Vec<HaliteStr>,
    details: Vec<HalitePair>,
}

/// A failure for the far end, which owns it.
pub(super) fn give(status: Status) -> *mut HaliteStatus {
    let annotations: Vec<_> = status.annotations().iter().map(|a| raw::lend(a)).collect();
    let details: Vec<_> = status.details().map(|(k, v)| raw::lend_pair(k, v)).collect();
    let head = HaliteStatus {
        struct_size: HaliteStatus::SIZE,
        code: status.code() as u32,
        message: raw::lend(status.message()),
        annotations: annotations.as_ptr(),
        annotation_count: annotations.len(),
        details: details.as_ptr(),
        detail_count: details.len(),
        release: Some(release),
    };
    Box::into_raw(Box::new(Given { head, status, annotations, details })).cast()
}

/// Frees a failure that [`give`] made.
unsafe extern "C" fn release(status: *mut HaliteStatus) {
    if !status.is_null() {
        // SAFETY: only `give` hands this function out, with a box of `Given` whose head the pointer is.
        drop(unsafe { Box::from_raw(status.cast::<Given>()) });
    }
}

/// The outcome of a call of the far end.
///
/// # Safety
/// `status` is null or a failure that is ours now.
pub(super) unsafe fn outcome(status: *mut HaliteStatus, peer: Peer) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    Err(unsafe { take(status, peer) })
}

/// Copies a failure of the far end and releases it. Whatever it is, a failure comes of it.
///
/// # Safety
/// `status` is a failure that is ours now, or null.
pub(super) unsafe fn take(status: *mut HaliteStatus, peer: Peer) -> Status {
    // SAFETY: the caller's promise. One that is too short to be read is not released: its function cannot be found.
    let head = match unsafe { raw::structure(status.cast_const(), peer) } {
        Ok(head) => head,
        Err(broken) => return broken,
    };
    // SAFETY: as above; the texts live until the release.
    let copy = unsafe { copy(head, peer) };
    if let Some(release) = head.release {
        // SAFETY: called once, and `head` is not used after it.
        unsafe { release(status) };
    }
    copy
}

/// # Safety
/// What the failure points to is alive.
unsafe fn copy(head: &HaliteStatus, peer: Peer) -> Status {
    let code = Code::ALL.iter().copied().find(|code| *code as u32 == head.code);
    // SAFETY: the caller's promise.
    let message = unsafe { lossy(head.message, peer) };
    let mut status = match code {
        Some(code) => Status::new(code, message),
        None => peer.broke(format_args!("a failure has the unknown code {}: {message}", head.code)),
    };
    // SAFETY: the caller's promise.
    let parts = unsafe {
        (
            raw::array(head.annotations, head.annotation_count, "annotations", peer),
            raw::array(head.details, head.detail_count, "details", peer),
        )
    };
    for annotation in parts.0.unwrap_or_default() {
        // SAFETY: the caller's promise.
        status = status.annotate(unsafe { lossy(*annotation, peer) });
    }
    for detail in parts.1.unwrap_or_default() {
        // SAFETY: the caller's promise.
        let (name, value) = unsafe { (lossy(detail.name, peer), lossy(detail.value, peer)) };
        status = status.with_detail(name, value);
    }
    status
}

/// Text for people: what is no UTF-8 in it is replaced, because a failure must get through.
///
/// # Safety
/// The text is alive.
unsafe fn lossy(text: HaliteStr, peer: Peer) -> String {
    // SAFETY: the caller's promise.
    match unsafe { raw::array(text.data.cast::<u8>(), text.length, "a message", peer) } {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(broken) => broken.message().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Side;

    const PEER: Peer = Peer { side: Side::Host, name: "driver 'test'" };

    #[test]
    fn failures_keep_everything() {
        let status = Status::new(Code::DataLoss, "lost")
            .annotate("inner")
            .annotate("outer ü")
            .with_detail("vk.result", "ERROR_DEVICE_LOST")
            .with_detail("empty", "");
        // SAFETY: a failure that nobody else has.
        let copy = unsafe { take(give(status.clone()), PEER) };
        assert_eq!(format!("{copy:?}"), format!("{status:?}"));
        // SAFETY: null is success.
        assert!(unsafe { outcome(std::ptr::null_mut(), PEER) }.is_ok());
    }

    fn static_failure(code: u32, message: &[u8]) -> HaliteStatus {
        let message = HaliteStr { data: message.as_ptr().cast(), length: message.len() };
        HaliteStatus {
            struct_size: HaliteStatus::SIZE,
            code,
            message,
            annotations: std::ptr::null(),
            annotation_count: 0,
            details: std::ptr::null(),
            detail_count: 0,
            release: None,
        }
    }

    #[test]
    fn odd_failures_are_failures_all_the_same() {
        for code in [0, 19, 0x25, u32::MAX] {
            let mut odd = static_failure(code, b"why");
            // SAFETY: it has no release and lives on the stack.
            let copy = unsafe { take(&raw mut odd, PEER) };
            assert_eq!(copy.code(), Code::Internal);
            assert!(copy.message().contains("driver 'test'") && copy.message().contains("why"), "{copy}");
        }
        let mut text = static_failure(3, b"a\xFFb");
        text.annotation_count = 7;
        // SAFETY: as above; annotations at null are looked at by nobody.
        let copy = unsafe { take(&raw mut text, PEER) };
        assert_eq!((copy.code(), copy.message()), (Code::InvalidArgument, "a\u{FFFD}b"));
        text.struct_size = 16;
        // SAFETY: as above.
        let copy = unsafe { take(&raw mut text, PEER) };
        assert!(copy.message().contains("16 bytes"), "{copy}");
    }
}
