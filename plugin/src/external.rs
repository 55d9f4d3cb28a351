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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::peer::Side;

    #[test]
    fn memory_of_the_process_changes_hands_once() {
        let peer = Peer::of(Side::Plugin);
        let bytes = Bytes::from(vec![1, 2, 3]);
        let memory = ExternalMemory::host(bytes.clone());
        let lent = lend(&memory);
        assert_eq!((lent.kind, lent.handle, lent.memory_type), (HALITE_EXTERNAL_HOST, 0, NO_TYPE));
        // SAFETY: it was just made.
        let received = unsafe { receive(&raw const lent, false, peer) }.unwrap();
        let ExternalHandle::Host(same) = received.handle else { panic!("another kind") };
        assert_eq!((same.as_ptr(), received.size), (bytes.as_ptr(), 3));
        let mut wrong = lend(&memory);
        wrong.kind = 99;
        // SAFETY: as above; the kind is wrong.
        let told = unsafe { receive(&raw const wrong, false, peer) }.unwrap_err();
        assert!(told.to_string().contains("kind 99"), "{told}");
        drop((memory, same));
        assert!(bytes.try_into_mut().is_ok(), "the blob of what was refused was given back, too");
    }

    #[cfg(unix)]
    #[test]
    fn descriptors_are_lent_or_change_hands() {
        use std::{
            io::{Read as _, Seek as _, Write as _},
            os::fd::AsRawFd as _,
        };
        let peer = Peer::of(Side::Plugin);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"shared").unwrap();
        let handle = ExternalHandle::DmaBuf(file.try_clone().unwrap().into());
        let memory =
            ExternalMemory { memory_type: Some(3), dedicated: true, ..ExternalMemory::new(handle, 6) };
        let lent = lend(&memory);
        // SAFETY: it was just made, and the descriptor is open.
        let received = unsafe { receive(&raw const lent, false, peer) }.unwrap();
        assert_eq!((received.size, received.memory_type, received.dedicated), (6, Some(3), true));
        let ExternalHandle::DmaBuf(copy) = received.handle else { panic!("another kind") };
        assert_ne!(copy.as_raw_fd() as u64, lent.handle, "a duplicate");
        let given = give(memory);
        assert_eq!(given.handle, lent.handle, "the same one");
        // SAFETY: it was given.
        let received = unsafe { receive(&raw const given, true, peer) }.unwrap();
        let ExternalHandle::DmaBuf(own) = received.handle else { panic!("another kind") };
        assert_eq!(own.as_raw_fd() as u64, lent.handle);
        let (mut text, mut own) = (String::new(), std::fs::File::from(own));
        own.rewind().unwrap();
        own.read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared");
        let none = HaliteExternalMemory {
            handle: u64::MAX,
            ..lend(&ExternalMemory::new(ExternalHandle::OpaqueFd(copy), 1))
        };
        // SAFETY: the number is no descriptor.
        let told = unsafe { receive(&raw const none, false, peer) };
        assert!(told.is_err());
    }

    #[test]
    fn numbers_of_kinds_are_told_apart() {
        let peer = Peer::of(Side::Plugin);
        for own in ExternalKind::ALL {
            assert_eq!(kind(number(own), peer).unwrap(), own);
            let support = ExternalSupport { kind: own, import: true, export: false, alignment: 4096 };
            assert_eq!(receive_support(&lend_support(&support), peer).unwrap(), support);
        }
        assert!(kind(0, peer).is_err());
    }
}
