//! The checks of queue operations other than execute and dealloca.

use super::range::{self, Uses};
use halite_hal::{BufferSpan, Device, Fence, File, FileAccess, QueueOp, Result, bail};

/// Semaphores to be signalled must be the device's own; foreign ones may only be waited for.
pub(super) fn check_signal(device: &dyn Device, signal: &Fence) -> Result<()> {
    signal
        .points()
        .iter()
        .try_for_each(|p| range::check_owner(device, "semaphore to be signalled", p.semaphore.device_id()))
}

/// Checks fills, updates, copies, file reads and writes. Other operations pass.
pub(super) fn check_transfer(device: &dyn Device, op: &QueueOp) -> Result<()> {
    match op {
        QueueOp::Barrier | QueueOp::Dealloca { .. } | QueueOp::Execute { .. } => Ok(()),
        QueueOp::Acquire { buffer } | QueueOp::Release { buffer } => {
            range::check_owner(device, "buffer", buffer.device_id())
        }
        QueueOp::Fill { target, pattern_length, .. } => {
            range::check_pattern_length(*pattern_length)?;
            range::check_span(device, "target", target, Uses::TRANSFER_TARGET)?;
            range::check_pattern_fit(*pattern_length, target.offset, target.length)
        }
        QueueOp::Update { source, target } => {
            range::check_equal_lengths(source.len() as u64, target.length)?;
            range::check_span(device, "target", target, Uses::TRANSFER_TARGET)
        }
        QueueOp::Copy { source, target } => check_copy(device, source, target),
        QueueOp::Read { source, source_offset, target } => {
            range::check_span(device, "target", target, Uses::TRANSFER_TARGET)?;
            check_file_range("source", source, *source_offset, target.length)
        }
        QueueOp::Write { source, target, target_offset } => {
            range::check_span(device, "source", source, Uses::TRANSFER_SOURCE)?;
            if target.access() != FileAccess::ReadWrite {
                bail!(PermissionDenied, "target file is read-only; open it for reading and writing");
            }
            check_file_range("target", target, *target_offset, source.length)
        }
    }
}

fn check_copy(device: &dyn Device, source: &BufferSpan, target: &BufferSpan) -> Result<()> {
    range::check_equal_lengths(source.length, target.length)?;
    range::check_span(device, "source", source, Uses::TRANSFER_SOURCE)?;
    range::check_span(device, "target", target, Uses::TRANSFER_TARGET)?;
    if std::sync::Arc::ptr_eq(&source.buffer, &target.buffer) {
        range::check_disjoint(source.offset, target.offset, source.length)?;
    }
    Ok(())
}

/// The range must exist in the file as it is now: queue operations never grow files, so that a wrong offset cannot
/// fill a disk.
fn check_file_range(what: &str, file: &File, offset: u64, length: u64) -> Result<()> {
    let limit = file.byte_length()?;
    if offset.checked_add(length).is_none_or(|end| end > limit) {
        bail!(OutOfRange, "{what} file has {limit} bytes; asked for {length} bytes at offset {offset}");
    }
    Ok(())
}
