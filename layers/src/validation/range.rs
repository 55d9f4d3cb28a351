//! The checks of one range of one buffer: owner, bounds, usage, access, pattern.

use bitflags::bitflags;

use halite_hal::{
    Buffer, BufferSpan, BufferUsage, Device, MemoryAccess, Result, WHOLE_BUFFER, bail, foreign_object, status,
};

bitflags! {
    /// What operations do with a range.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Uses: u8 {
        /// Read by a copy or a file write.
        const TRANSFER_SOURCE = 1;
        /// Written by a fill, an update, a copy or a file read.
        const TRANSFER_TARGET = 2;
        /// Bound to a dispatch.
        const BINDING = 4;
        /// Workgroup counts of a dispatch.
        const COUNTS = 8;
    }
}

/// Each use, the usage bits of which a buffer needs all (or any, for bindings), and the access it makes. A
/// binding's access is known only to the device code, so nothing is asked of it.
const NEEDS: [(Uses, BufferUsage, MemoryAccess); 3] = [
    (Uses::TRANSFER_SOURCE, BufferUsage::TRANSFER_SOURCE, MemoryAccess::READ),
    (Uses::TRANSFER_TARGET, BufferUsage::TRANSFER_TARGET, MemoryAccess::WRITE),
    (Uses::COUNTS, BufferUsage::DISPATCH_INDIRECT_PARAMETERS, MemoryAccess::READ),
];

const BINDABLE: BufferUsage = BufferUsage::DISPATCH_STORAGE
    .union(BufferUsage::DISPATCH_UNIFORM_READ)
    .union(BufferUsage::DISPATCH_IMAGE_READ)
    .union(BufferUsage::DISPATCH_IMAGE_WRITE);

/// INVALID_ARGUMENT when another device made the object.
pub(super) fn check_owner(device: &dyn Device, what: &str, owner: u64) -> Result<()> {
    if owner == device.id() { Ok(()) } else { Err(foreign_object(what, device)) }
}

/// PERMISSION_DENIED when the buffer may not be used like this.
pub(super) fn check_uses(what: &str, buffer: &dyn Buffer, uses: Uses) -> Result<()> {
    let usage = buffer.usage();
    for (_, needed, access) in NEEDS.into_iter().filter(|(used, ..)| uses.contains(*used)) {
        if !usage.contains(needed) {
            return Err(usage_error(what, needed, usage));
        }
        buffer.check_access(what, access)?;
    }
    if uses.contains(Uses::BINDING) && !usage.intersects(BINDABLE) {
        return Err(usage_error(what, BufferUsage::DISPATCH_STORAGE, usage));
    }
    Ok(())
}

fn usage_error(what: &str, needed: BufferUsage, usage: BufferUsage) -> halite_hal::Status {
    status!(
        PermissionDenied,
        "{what} needs a buffer with usage {}, this one was allocated with {}",
        needed,
        usage
    )
}

/// Length of a range inside `limit` bytes, with [`WHOLE_BUFFER`] resolved. OUT_OF_RANGE when it does not fit.
pub(super) fn resolve(what: &str, offset: u64, length: u64, limit: u64) -> Result<u64> {
    match limit.checked_sub(offset) {
        Some(rest) if length == WHOLE_BUFFER => Ok(rest),
        Some(rest) if length <= rest => Ok(length),
        _ if length == WHOLE_BUFFER => {
            Err(status!(OutOfRange, "{what} starts at byte {offset}, beyond the {limit} bytes that exist"))
        }
        _ => Err(status!(
            OutOfRange,
            "{what} covers {length} bytes at offset {offset}, beyond the {limit} bytes that exist"
        )),
    }
}

/// All checks of a span: owner, bounds, uses.
pub(super) fn check_span(device: &dyn Device, what: &str, span: &BufferSpan, uses: Uses) -> Result<()> {
    check_owner(device, what, span.buffer.device_id())?;
    span.buffer.check_bounds(what, span.offset, span.length)?;
    check_uses(what, span.buffer.as_ref(), uses)
}

/// INVALID_ARGUMENT for a pattern length that is not 1, 2, 4 or 8.
pub(super) fn check_pattern_length(pattern_length: u32) -> Result<()> {
    if !matches!(pattern_length, 1 | 2 | 4 | 8) {
        bail!(InvalidArgument, "fill patterns have 1, 2, 4 or 8 bytes, not {pattern_length}");
    }
    Ok(())
}

/// Offset and length of a fill must be multiples of its pattern. The pattern length was checked before.
pub(super) fn check_pattern_fit(pattern_length: u32, offset: u64, length: u64) -> Result<()> {
    let unit = u64::from(pattern_length);
    if !offset.is_multiple_of(unit) || !length.is_multiple_of(unit) {
        bail!(
            InvalidArgument,
            "fill of {length} bytes at offset {offset} is not made of whole {pattern_length}-byte patterns; \
             offset and length must be multiples of the pattern length"
        );
    }
    Ok(())
}

/// INVALID_ARGUMENT for copies between lengths that differ.
pub(super) fn check_equal_lengths(source: u64, target: u64) -> Result<()> {
    if source != target {
        bail!(InvalidArgument, "source has {source} bytes and target has {target}; they must be equal");
    }
    Ok(())
}

/// INVALID_ARGUMENT when two ranges of one buffer share a byte. Both ranges lie within the buffer.
pub(super) fn check_disjoint(source: u64, target: u64, length: u64) -> Result<()> {
    if length > 0 && source.abs_diff(target) < length {
        bail!(
            InvalidArgument,
            "copy of {length} bytes from offset {source} to offset {target} of one buffer overlaps itself"
        );
    }
    Ok(())
}

/// INVALID_ARGUMENT for sizes that are negative in the HAL ABI's i64.
pub(super) fn check_allocation_size(byte_length: u64) -> Result<()> {
    if i64::try_from(byte_length).is_err() {
        bail!(InvalidArgument, "buffer size {byte_length} is above the HAL's limit of {} bytes", i64::MAX);
    }
    Ok(())
}
