//! Memory that is shared with others: what the device says it takes and gives it does, and the rest it refuses.

use std::sync::Arc;

use bytes::Bytes;
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Code, ExternalKind, ExternalMemory, ExternalSupport, QueueOp,
};
use halite_testing::hal::support::{Dev, counting, fill, read, run, whole};

use crate::suites::{
    Cases, Context, Outcome, Stop,
    case::{check, refused, same, same_bytes},
};

/// Bytes of the memory: enough for any device's pages.
const SIZE: u64 = 1 << 16;

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for kind in ExternalKind::ALL {
        cases.add(format!("shared.round_trip:kind={kind}"), &[], move |t| round_trip(t, kind));
        cases.add(format!("shared.what_is_not_there_is_refused:kind={kind}"), &[], move |t| absent(t, kind));
    }
    cases.add("shared.host_memory_is_read", &[], host);
    cases.add("shared.own_buffers_are_left_alone", &[], own);
}

fn support(device: &Dev, kind: ExternalKind) -> ExternalSupport {
    let found = device.info().external_memory.iter().find(|support| support.kind == kind).copied();
    found.unwrap_or(ExternalSupport { kind, import: false, export: false, alignment: 1 })
}

fn copy(source: BufferSpan, target: BufferSpan) -> QueueOp {
    QueueOp::Copy { source, target }
}

fn acquire(device: &Dev, buffer: &Arc<dyn Buffer>) -> Outcome {
    run(device, QueueOp::Acquire { buffer: buffer.clone() })?;
    Ok(())
}

fn release(device: &Dev, buffer: &Arc<dyn Buffer>) -> Outcome {
    run(device, QueueOp::Release { buffer: buffer.clone() })?;
    Ok(())
}

/// Memory that the device gave comes back to it as that of others.
fn round_trip(t: &Context, kind: ExternalKind) -> Outcome {
    let device = t.device();
    let there = support(device, kind);
    if !(there.import && there.export) {
        return Err(Stop::Skip(format!("the device does not both take and give memory of the kind {kind}")));
    }
    let given = device.allocate_exportable(&BufferParams::DEVICE, SIZE, kind)?;
    run(device, fill(whole(&given), 0x0102_0304, 4))?;
    let memory = device.export_buffer(&given, kind)?;
    check!(memory.size >= SIZE, "the memory has {} of {SIZE} bytes", memory.size);
    let taken = device.import_buffer(&BufferParams::DEVICE, memory)?;
    check!(taken.byte_length() >= SIZE, "the buffer has {} of {SIZE} bytes", taken.byte_length());
    release(device, &given)?;
    acquire(device, &taken)?;
    let copied = device.allocate_buffer(&BufferParams::DEVICE, SIZE)?;
    let from = whole(&taken).subspan(0, SIZE)?;
    run(device, copy(from.clone(), whole(&copied)))?;
    same_bytes("what was given", &read(&copied)?, &[4, 3, 2, 1].repeat(SIZE as usize / 4))?;
    run(device, fill(from, 0xA5, 1))?;
    release(device, &taken)?;
    acquire(device, &given)?;
    drop(taken);
    same_bytes("what came back", &read(&given)?, &[0xA5].repeat(SIZE as usize))
}

fn absent(t: &Context, kind: ExternalKind) -> Outcome {
    let device = t.device();
    if support(device, kind).export {
        return Err(Stop::Skip(format!("the device gives memory of the kind {kind}")));
    }
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, SIZE)?;
    refused(
        "allocation",
        device.allocate_exportable(&BufferParams::DEVICE, SIZE, kind),
        &[Code::Unimplemented],
    )?;
    refused("export", device.export_buffer(&buffer, kind), &[Code::Unimplemented]).map(drop)
}

/// Bytes that begin at a multiple of `alignment`.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + SIZE as usize]
    }
}

fn host(t: &Context) -> Outcome {
    let device = t.device();
    let there = support(device, ExternalKind::Host);
    let bytes = counting(SIZE as usize + there.alignment as usize);
    let start = bytes.as_ptr().align_offset(there.alignment as usize);
    let bytes = Bytes::from_owner(Aligned { bytes, start });
    let memory = ExternalMemory::host(bytes.clone());
    if !there.import {
        let made = device.import_buffer(&BufferParams::DEVICE, memory);
        return refused("import", made, &[Code::Unimplemented]).map(drop);
    }
    check!(SIZE.is_multiple_of(there.alignment), "{} is no alignment for {SIZE} bytes", there.alignment);
    let taken = device.import_buffer(&BufferParams::DEVICE, memory)?;
    same("byte length", taken.byte_length(), SIZE)?;
    acquire(device, &taken)?;
    let copied = device.allocate_buffer(&BufferParams::DEVICE, SIZE)?;
    run(device, copy(whole(&taken), whole(&copied)))?;
    same_bytes("what the device read", &read(&copied)?, &bytes)?;
    refused("a write", taken.write(0, &[0; 4]), &[Code::PermissionDenied]).map(drop)
}

fn own(t: &Context) -> Outcome {
    let device = t.device();
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, 256)?;
    release(device, &buffer)?;
    run(device, fill(whole(&buffer), 0x5A, 1))?;
    acquire(device, &buffer)?;
    same_bytes("contents", &read(&buffer)?, &[0x5A; 256])
}
