//! Memory that is shared with others: what is refused above all drivers, and what goes through.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use bytes::Bytes;
use halite_hal::*;

use crate::common::{device, refused};

/// Bytes that begin at a multiple of 64, or `off` bytes behind one.
fn bytes(length: usize, off: usize) -> Bytes {
    let all = Bytes::from(vec![7u8; length + 128]);
    let start = all.as_ptr().align_offset(64) + off;
    all.slice(start..start + length)
}

#[test]
fn memory_of_the_process_is_read() {
    let device = device();
    let memory = bytes(256, 0);
    let buffer = device.import_buffer(&BufferParams::DEVICE, ExternalMemory::host(memory.clone())).unwrap();
    assert_eq!((buffer.byte_length(), buffer.access()), (256, MemoryAccess::READ));
    assert_eq!(BufferSpan::whole(buffer.clone()).read_all().unwrap(), memory);
    let target = BufferSpan::whole(buffer.clone());
    refused(target.write(0, &[1]), Code::PermissionDenied, &["WRITE"]);
    let signal = Fence::new(device.create_semaphore(0).unwrap(), 1);
    let fill = QueueOp::Fill { target, pattern: 0, pattern_length: 1 };
    let submitted = device.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, fill);
    refused(submitted, Code::PermissionDenied, &["queue fill", "READ"]);
    for op in [QueueOp::Acquire { buffer: buffer.clone() }, QueueOp::Release { buffer: buffer.clone() }] {
        let signal = Fence::new(device.create_semaphore(0).unwrap(), 1);
        device.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, op).unwrap();
        signal.wait(Deadline::Never).unwrap();
    }
    assert_eq!(device.memory_stats().used, 0, "it is not the device's");
}

#[test]
fn impossible_memory_is_refused() {
    let device = device();
    let import = |memory| device.import_buffer(&BufferParams::DEVICE, memory);
    refused(
        import(ExternalMemory::host(Bytes::new())),
        Code::InvalidArgument,
        &["0 bytes", "import of memory"],
    );
    refused(import(ExternalMemory::host(bytes(100, 0))), Code::InvalidArgument, &["multiple of 64", "100"]);
    refused(
        import(ExternalMemory::host(bytes(64, 4))),
        Code::InvalidArgument,
        &["begin at a multiple of 64"],
    );
    let longer = ExternalMemory::new(ExternalHandle::Host(bytes(64, 0)), 128);
    refused(import(longer), Code::InvalidArgument, &["128 bytes were stated", "64 are there"]);
    let huge = ExternalMemory::new(ExternalHandle::Host(bytes(64, 0)), u64::MAX - 63);
    refused(import(huge), Code::InvalidArgument, &["cannot have"]);
}

#[test]
fn kinds_that_are_not_there_are_named() {
    let device = device();
    let params = BufferParams::DEVICE;
    let exportable = device.allocate_exportable(&params, 64, ExternalKind::OpaqueFd);
    refused(exportable, Code::Unimplemented, &["opaque-fd", "it can export none at all"]);
    let buffer = device.allocate_buffer(&params, 64).unwrap();
    refused(device.export_buffer(&buffer, ExternalKind::Host), Code::Unimplemented, &["host"]);
    #[cfg(unix)]
    {
        let file = std::fs::File::open("/dev/null").unwrap();
        let memory = ExternalMemory::new(ExternalHandle::OpaqueFd(file.into()), 64);
        refused(device.import_buffer(&params, memory), Code::Unimplemented, &["it can import host"]);
    }
    let other = crate::common::device();
    let op = QueueOp::Release { buffer: other.allocate_buffer(&params, 64).unwrap() };
    let signal = Fence::new(device.create_semaphore(0).unwrap(), 1);
    let submitted = device.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, op);
    refused(submitted, Code::InvalidArgument, &["another device"]);
    let foreign = other.allocate_buffer(&params, 64).unwrap();
    refused(device.export_buffer(&foreign, ExternalKind::Host), Code::InvalidArgument, &["another device"]);
}
