//! Memory that is shared with others, on its way through the interface.

use std::{num::NonZeroUsize, ptr};

use super::{
    abi::*,
    once,
    peer::Peer,
    raw::{self, Grows},
};
use halite_hal::{
    ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport, Result,
    external::{Descriptor, HardwareBuffer, SystemHandle},
};

/// A memory type that is not known.
const NO_TYPE: u32 = u32::MAX;

const NO_BYTES: HaliteBlob =
    HaliteBlob { data: ptr::null(), length: 0, context: ptr::null_mut(), release: None };

/// What a caller gives for the result to be written to.
pub(super) const NO_MEMORY: HaliteExternalMemory = HaliteExternalMemory {
    struct_size: HaliteExternalMemory::SIZE,
    kind: 0,
    handle: 0,
    size: 0,
    memory_type: NO_TYPE,
    dedicated: 0,
    reserved: [0; 3],
    bytes: NO_BYTES,
};

/// A kind by its number in the interface.
pub(super) fn number(kind: ExternalKind) -> u32 {
    match kind {
        ExternalKind::OpaqueFd => HALITE_EXTERNAL_OPAQUE_FD,
        ExternalKind::DmaBuf => HALITE_EXTERNAL_DMA_BUF,
        ExternalKind::Host => HALITE_EXTERNAL_HOST,
        ExternalKind::AndroidHardwareBuffer => HALITE_EXTERNAL_ANDROID_HARDWARE_BUFFER,
        ExternalKind::OpaqueWin32 => HALITE_EXTERNAL_OPAQUE_WIN32,
    }
}

/// A kind that came in.
pub(super) fn kind(wanted: u32, peer: Peer) -> Result<ExternalKind> {
    let found = ExternalKind::ALL.into_iter().find(|kind| number(*kind) == wanted);
    found.ok_or_else(|| peer.broke(format_args!("memory is of the unknown kind {wanted}")))
}

/// What a device does with a kind, as the interface has it.
pub(super) fn lend_support(support: &ExternalSupport) -> HaliteExternalSupport {
    HaliteExternalSupport {
        kind: number(support.kind),
        import: support.import.into(),
        export: support.export.into(),
        reserved: 0,
        alignment: support.alignment,
    }
}

/// What a device does with a kind, as it came in.
pub(super) fn receive_support(support: &HaliteExternalSupport, peer: Peer) -> Result<ExternalSupport> {
    Ok(ExternalSupport {
        kind: kind(support.kind, peer)?,
        import: support.import != 0,
        export: support.export != 0,
        alignment: support.alignment.max(1),
    })
}

#[cfg(unix)]
mod descriptors {
    use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, RawFd};

    use halite_hal::status;

    use super::{Descriptor, Peer, Result};

    pub(super) fn lend(file: &Descriptor) -> u64 {
        file.as_raw_fd() as u64
    }

    pub(super) fn give(file: Descriptor) -> u64 {
        file.into_raw_fd() as u64
    }

    fn checked(number: u64, peer: Peer) -> Result<RawFd> {
        let file = RawFd::try_from(number).ok().filter(|file| *file >= 0);
        file.ok_or_else(|| peer.broke(format_args!("{number} is no descriptor")))
    }

    /// A duplicate of a descriptor that is lent.
    ///
    /// # Safety
    /// The descriptor is nobody's or open for the call.
    pub(super) unsafe fn borrowed(number: u64, peer: Peer) -> Result<Descriptor> {
        // SAFETY: the caller's promise; -1 was excluded.
        let lent = unsafe { BorrowedFd::borrow_raw(checked(number, peer)?) };
        lent.try_clone_to_owned()
            .map_err(|e| status!(InvalidArgument, "the descriptor cannot be duplicated: {e}"))
    }

    /// A descriptor that changes hands.
    ///
    /// # Safety
    /// It is open and nobody else's.
    pub(super) unsafe fn taken(number: u64, peer: Peer) -> Result<Descriptor> {
        // SAFETY: the caller's promise.
        Ok(unsafe { Descriptor::from_raw_fd(checked(number, peer)?) })
    }
}

#[cfg(not(unix))]
mod descriptors {
    use super::{Descriptor, Peer, Result};

    pub(super) fn lend(file: &Descriptor) -> u64 {
        match *file {}
    }

    pub(super) fn give(file: Descriptor) -> u64 {
        match file {}
    }

    pub(super) unsafe fn borrowed(_: u64, peer: Peer) -> Result<Descriptor> {
        Err(peer.broke(format_args!("this system has no descriptors")))
    }

    pub(super) unsafe fn taken(_: u64, peer: Peer) -> Result<Descriptor> {
        Err(peer.broke(format_args!("this system has no descriptors")))
    }
}

#[cfg(windows)]
mod handles {
    use std::os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, IntoRawHandle as _};

    use halite_hal::status;

    use super::{Peer, Result, SystemHandle};

    pub(super) fn lend(handle: &SystemHandle) -> u64 {
        handle.as_raw_handle().addr() as u64
    }

    pub(super) fn give(handle: SystemHandle) -> u64 {
        handle.into_raw_handle().addr() as u64
    }

    /// A duplicate of a handle that is lent.
    ///
    /// # Safety
    /// The handle is nobody's or open for the call.
    pub(super) unsafe fn borrowed(number: u64, _: Peer) -> Result<SystemHandle> {
        // SAFETY: the caller's promise.
        let lent = unsafe { BorrowedHandle::borrow_raw(std::ptr::without_provenance_mut(number as usize)) };
        lent.try_clone_to_owned()
            .map_err(|e| status!(InvalidArgument, "the handle cannot be duplicated: {e}"))
    }

    /// A handle that changes hands.
    ///
    /// # Safety
    /// It is open and nobody else's.
    pub(super) unsafe fn taken(number: u64, _: Peer) -> Result<SystemHandle> {
        // SAFETY: the caller's promise.
        Ok(unsafe { SystemHandle::from_raw_handle(std::ptr::without_provenance_mut(number as usize)) })
    }
}

#[cfg(not(windows))]
mod handles {
    use super::{Peer, Result, SystemHandle};

    pub(super) fn lend(handle: &SystemHandle) -> u64 {
        match *handle {}
    }

    pub(super) fn give(handle: SystemHandle) -> u64 {
        match handle {}
    }

    pub(super) unsafe fn borrowed(_: u64, peer: Peer) -> Result<SystemHandle> {
        Err(peer.broke(format_args!("this system has no handles of Windows")))
    }

    pub(super) unsafe fn taken(_: u64, peer: Peer) -> Result<SystemHandle> {
        Err(peer.broke(format_args!("this system has no handles of Windows")))
    }
}

/// Memory as the interface has it; it is lent as long as `memory` lives, but for memory of the process, a count on which is given.
pub(super) fn lend(memory: &ExternalMemory) -> HaliteExternalMemory {
    let (handle, bytes) = match &memory.handle {
        ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => (descriptors::lend(file), NO_BYTES),
        ExternalHandle::Host(bytes) => (0, once::give_blob(bytes.clone())),
        ExternalHandle::AndroidHardwareBuffer(buffer) => (buffer.address().get() as u64, NO_BYTES),
        ExternalHandle::OpaqueWin32(handle) => (handles::lend(handle), NO_BYTES),
    };
    HaliteExternalMemory {
        kind: number(memory.handle.kind()),
        handle,
        size: memory.size,
        memory_type: memory.memory_type.unwrap_or(NO_TYPE),
        dedicated: memory.dedicated.into(),
        bytes,
        ..NO_MEMORY
    }
}

/// Memory for the far end, which gets all of it.
pub(super) fn give(memory: ExternalMemory) -> HaliteExternalMemory {
    let (size, memory_type, dedicated) = (memory.size, memory.memory_type, memory.dedicated);
    let kind = number(memory.handle.kind());
    let (handle, bytes) = match memory.handle {
        ExternalHandle::OpaqueFd(file) | ExternalHandle::DmaBuf(file) => (descriptors::give(file), NO_BYTES),
        ExternalHandle::Host(bytes) => (0, once::give_blob(bytes)),
        ExternalHandle::AndroidHardwareBuffer(buffer) => (buffer.address().get() as u64, NO_BYTES),
        ExternalHandle::OpaqueWin32(handle) => (handles::give(handle), NO_BYTES),
    };
    let memory_type = memory_type.unwrap_or(NO_TYPE);
    HaliteExternalMemory { kind, handle, size, memory_type, dedicated: dedicated.into(), bytes, ..NO_MEMORY }
}

/// Memory that came in: lent for the call, or the receiver's from now on (`changes_hands`).
///
/// # Safety
/// `memory` is null or there for the call, and its handle is what its kind says.
pub(super) unsafe fn receive(
    memory: *const HaliteExternalMemory,
    changes_hands: bool,
    peer: Peer,
) -> Result<ExternalMemory> {
    // SAFETY: the caller's promise, for all of it. Bytes come first: they are given back also when something else is wrong.
    unsafe {
        let memory = raw::structure(memory, peer)?;
        let bytes = once::take_blob(memory.bytes, "memory of the process", peer)?;
        let file = |number| {
            if changes_hands { descriptors::taken(number, peer) } else { descriptors::borrowed(number, peer) }
        };
        let number = memory.handle;
        let handle = match kind(memory.kind, peer)? {
            ExternalKind::OpaqueFd => ExternalHandle::OpaqueFd(file(number)?),
            ExternalKind::DmaBuf => ExternalHandle::DmaBuf(file(number)?),
            ExternalKind::Host => ExternalHandle::Host(bytes),
            ExternalKind::AndroidHardwareBuffer => {
                let address = usize::try_from(number).ok().and_then(NonZeroUsize::new);
                let address =
                    address.ok_or_else(|| peer.broke(format_args!("an AHardwareBuffer is null")))?;
                ExternalHandle::AndroidHardwareBuffer(HardwareBuffer::from_address(address))
            }
            ExternalKind::OpaqueWin32 if changes_hands => {
                ExternalHandle::OpaqueWin32(handles::taken(number, peer)?)
            }
            ExternalKind::OpaqueWin32 => ExternalHandle::OpaqueWin32(handles::borrowed(number, peer)?),
        };
        let memory_type = Some(memory.memory_type).filter(|index| *index != NO_TYPE);
        Ok(ExternalMemory { handle, size: memory.size, memory_type, dedicated: memory.dedicated != 0 })
    }
}
