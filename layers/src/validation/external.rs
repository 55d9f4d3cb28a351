//! The checks of memory that is shared with others.

use halite_hal::{
    DeviceInfo, ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport, Result, bail, external,
};

/// UNIMPLEMENTED when a device does not take (`takes`) or give this kind.
pub(super) fn check_kind(info: &DeviceInfo, kind: ExternalKind, takes: bool) -> Result<ExternalSupport> {
    let does = |support: &&ExternalSupport| {
        support.kind == kind && if takes { support.import } else { support.export }
    };
    info.external_memory.iter().find(does).copied().ok_or_else(|| external::unsupported(info, kind, takes))
}

/// INVALID_ARGUMENT for sizes and addresses that cannot be right.
pub(super) fn check_import(info: &DeviceInfo, memory: &ExternalMemory) -> Result<()> {
    let (kind, size) = (memory.handle.kind(), memory.size);
    let alignment = check_kind(info, kind, true)?.alignment.max(1);
    if size == 0 || i64::try_from(size).is_err() {
        bail!(InvalidArgument, "memory cannot have {size} bytes");
    }
    if !size.is_multiple_of(alignment) {
        bail!(InvalidArgument, "memory of the kind {kind} has a multiple of {alignment} bytes, not {size}");
    }
    let ExternalHandle::Host(bytes) = &memory.handle else { return Ok(()) };
    if bytes.len() as u64 != size {
        bail!(InvalidArgument, "{size} bytes were stated, and {} are there", bytes.len());
    }
    let address = bytes.as_ptr().addr();
    if !(address as u64).is_multiple_of(alignment) {
        bail!(
            InvalidArgument,
            "memory of the process must begin at a multiple of {alignment} bytes, and {address:#x} is none; allocate it aligned"
        );
    }
    Ok(())
}
