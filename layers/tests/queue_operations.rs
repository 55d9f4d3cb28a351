//! Checks of queue operations and host access, check by check.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use crate::common;
use std::{io::Write, sync::Arc};

use crate::common::*;
use bytes::Bytes;
use halite_hal::*;

fn fill_op(target: BufferSpan, pattern_length: u32) -> QueueOp {
    QueueOp::Fill { target, pattern: 0x55, pattern_length }
}

fn file(access: FileAccess, bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    File::Handle { file: Arc::new(file), access }
}

#[test]
fn sound_transfers_are_carried_out() {
    let d = device();
    let (a, b) = (buffer(&d, 16), buffer(&d, 16));
    submit(&d, QueueOp::Barrier).unwrap();
    submit(&d, fill_op(span(&a, 0, 16), 1)).unwrap();
    submit(&d, QueueOp::Update { source: Bytes::from_static(b"abcd"), target: span(&a, 4, 4) }).unwrap();
    submit(&d, QueueOp::Copy { source: span(&a, 0, 8), target: span(&a, 8, 8) }).unwrap();
    submit(&d, QueueOp::Copy { source: span(&a, 0, 16), target: span(&b, 0, 16) }).unwrap();
    assert_eq!(BufferSpan::whole(b).read_all().unwrap(), b"UUUUabcdUUUUabcd");
}

#[test]
fn nothing_is_done_by_empty_transfers() {
    let d = device();
    let b = buffer_for(&d, BufferUsage::DEFAULT, 0);
    let nothing = || span(&b, 0, 0);
    submit(&d, fill_op(nothing(), 4)).unwrap();
    submit(&d, QueueOp::Update { source: Bytes::new(), target: nothing() }).unwrap();
    submit(&d, QueueOp::Copy { source: nothing(), target: nothing() }).unwrap();
    submit(&d, QueueOp::Read { source: File::Memory(Bytes::new()), source_offset: 0, target: nothing() })
        .unwrap();
}

#[test]
fn spans_lie_within_buffers_of_this_device() {
    let (d, other) = (device(), device());
    let (b, foreign) = (buffer(&d, 16), buffer(&other, 16));
    refused(submit(&d, fill_op(span(&foreign, 0, 4), 4)), Code::InvalidArgument, &["another device"]);
    for (offset, length) in [(0, 17), (17, 0), (u64::MAX, 2), (4, u64::MAX)] {
        let target = span(&b, offset, length);
        refused(submit(&d, fill_op(target, 1)), Code::OutOfRange, &["target", "16 bytes", "queue fill"]);
    }
    let source = QueueOp::Copy { source: span(&b, 12, 8), target: span(&b, 0, 8) };
    refused(submit(&d, source), Code::OutOfRange, &["source"]);
}

#[test]
fn usage_bits_are_asked_for() {
    let d = device();
    let source = buffer_for(&d, BufferUsage::TRANSFER_SOURCE, 8);
    let target = buffer_for(&d, BufferUsage::TRANSFER_TARGET, 8);
    let whole = |b: &Arc<dyn Buffer>| BufferSpan::whole(b.clone());
    submit(&d, QueueOp::Copy { source: whole(&source), target: whole(&target) }).unwrap();
    let data = File::Memory(Bytes::from_static(b"12345678"));
    let writable = file(FileAccess::ReadWrite, b"12345678");
    for (op, needed) in [
        (fill_op(whole(&source), 1), "TRANSFER_TARGET"),
        (
            QueueOp::Update { source: Bytes::from_static(b"12345678"), target: whole(&source) },
            "TRANSFER_TARGET",
        ),
        (QueueOp::Copy { source: whole(&target), target: whole(&target) }, "TRANSFER_SOURCE"),
        (QueueOp::Copy { source: whole(&source), target: whole(&source) }, "TRANSFER_TARGET"),
        (QueueOp::Read { source: data, source_offset: 0, target: whole(&source) }, "TRANSFER_TARGET"),
        (QueueOp::Write { source: whole(&target), target: writable, target_offset: 0 }, "TRANSFER_SOURCE"),
    ] {
        refused(submit(&d, op), Code::PermissionDenied, &[needed]);
    }
}

#[test]
fn patterns_lengths_and_overlaps_are_checked() {
    let d = device();
    let b = buffer(&d, 16);
    submit(&d, fill_op(span(&b, 8, 8), 8)).unwrap();
    refused(submit(&d, fill_op(span(&b, 0, 8), 3)), Code::InvalidArgument, &["1, 2, 4 or 8"]);
    refused(submit(&d, fill_op(span(&b, 2, 8), 4)), Code::InvalidArgument, &["multiples"]);
    refused(submit(&d, fill_op(span(&b, 0, 6), 4)), Code::InvalidArgument, &["multiples"]);
    let cut = QueueOp::Update { source: Bytes::from_static(b"abc"), target: span(&b, 0, 4) };
    refused(submit(&d, cut), Code::InvalidArgument, &["source has 3", "target has 4"]);
    let longer = QueueOp::Copy { source: span(&b, 0, 4), target: span(&b, 8, 8) };
    refused(submit(&d, longer), Code::InvalidArgument, &["source has 4", "target has 8"]);
    let overlap = QueueOp::Copy { source: span(&b, 0, 8), target: span(&b, 7, 8) };
    refused(submit(&d, overlap), Code::InvalidArgument, &["overlaps"]);
}

#[test]
fn files_are_read_and_written_within_their_length() {
    let d = device();
    let b = buffer(&d, 8);
    let whole = || BufferSpan::whole(b.clone());
    for source in [File::Memory(Bytes::from_static(b"0123456789")), file(FileAccess::Read, b"0123456789")] {
        let read = |source_offset| QueueOp::Read { source: source.clone(), source_offset, target: whole() };
        submit(&d, read(2)).unwrap();
        assert_eq!(whole().read_all().unwrap(), b"23456789");
        for offset in [3, 11, u64::MAX] {
            refused(submit(&d, read(offset)), Code::OutOfRange, &["10 bytes", "queue read"]);
        }
        let write = QueueOp::Write { source: whole(), target: source.clone(), target_offset: 0 };
        refused(submit(&d, write), Code::PermissionDenied, &["open it for reading and writing"]);
    }
    let target = file(FileAccess::ReadWrite, b"0123456789");
    let write = |target_offset| QueueOp::Write { source: whole(), target: target.clone(), target_offset };
    submit(&d, write(0)).unwrap();
    let mut bytes = [0; 10];
    target.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, *b"2345678989");
    for offset in [3, u64::MAX] {
        refused(submit(&d, write(offset)), Code::OutOfRange, &["10 bytes", "queue write"]);
    }
}

#[test]
fn memory_goes_back_once_and_only_where_it_came_from() {
    let (d, other) = (device(), device());
    let alloca = |d: &Arc<dyn Device>| {
        let signal = Fence::new(d.create_semaphore(0).unwrap(), 1);
        d.queue_alloca(QueueAffinity::ANY, &Fence::default(), &signal, &BufferParams::DEVICE, 1024).unwrap()
    };
    let give_back = |buffer: &Arc<dyn Buffer>| submit(&d, QueueOp::Dealloca { buffer: buffer.clone() });
    let buffer = alloca(&d);
    assert_eq!(d.memory_stats().used, 1024);
    give_back(&buffer).unwrap();
    assert_eq!(d.memory_stats().used, 0);
    refused(give_back(&buffer), Code::FailedPrecondition, &["given back already"]);
    let plain = common::buffer(&d, 16);
    give_back(&plain).unwrap();
    plain.write(0, &[1; 16]).unwrap();
    assert_eq!(d.memory_stats().used, 16, "a buffer from allocate_buffer lives as long as its handles");
    drop(plain);
    refused(give_back(&alloca(&other)), Code::InvalidArgument, &["another device"]);
    for _ in 0..1000 {
        give_back(&alloca(&d)).unwrap();
    }
    let kept = alloca(&d);
    (0..200).for_each(|_| drop(alloca(&d)));
    give_back(&kept).unwrap();
    assert_eq!(d.memory_stats().used, 0);
}

#[test]
fn foreign_semaphores_are_waited_for_but_not_signalled() {
    let (d, other) = (device(), device());
    let foreign = Fence::new(other.create_semaphore(0).unwrap(), 1);
    let own = Fence::new(d.create_semaphore(0).unwrap(), 1);
    d.queue_submit(QueueAffinity::ANY, &foreign, &own, QueueOp::Barrier).unwrap();
    assert!(!own.query().unwrap());
    foreign.signal().unwrap();
    own.wait(Deadline::from_millis(20_000)).unwrap();
    let none = Fence::default();
    let refusal = d.queue_submit(QueueAffinity::ANY, &none, &foreign, QueueOp::Barrier);
    refused(refusal, Code::InvalidArgument, &["semaphore", "another device", "queue barrier"]);
    let refusal = d.queue_alloca(QueueAffinity::ANY, &none, &foreign, &BufferParams::DEVICE, 16);
    refused(refusal, Code::InvalidArgument, &["semaphore", "queue alloca"]);
}

#[test]
fn a_refused_operation_leaves_the_fence_alone() {
    let d = device();
    let signal = Fence::new(d.create_semaphore(0).unwrap(), 1);
    let op = fill_op(span(&buffer(&d, 4), 0, 8), 4);
    refused(d.queue_submit(QueueAffinity::ANY, &Fence::default(), &signal, op), Code::OutOfRange, &[]);
    assert!(!signal.query().unwrap());
}

#[test]
fn sizes_and_formats_that_cannot_be_are_refused() {
    let d = device();
    let refusal = d.allocate_buffer(&BufferParams::DEVICE, u64::MAX);
    refused(refusal, Code::InvalidArgument, &["limit"]);
    let none = Fence::default();
    let refusal = d.queue_alloca(QueueAffinity::ANY, &none, &none, &BufferParams::DEVICE, 1 << 63);
    refused(refusal, Code::InvalidArgument, &["limit"]);
    let unforeseen = d.allocate_buffer(&BufferParams::DEVICE, 1 << 62);
    refused(unforeseen, Code::ResourceExhausted, &["in use"]);
    let desc = ExecutableDesc {
        format: String::new(),
        data: Bytes::new(),
        constants: Vec::new(),
        label: "l".to_owned(),
        subgroup_sizes: Vec::new(),
    };
    refused(d.create_executable(desc), Code::InvalidArgument, &["no format string"]);
}

#[test]
fn host_access_stays_within_span_buffer_and_rights() {
    let d = device();
    let b = buffer(&d, 16);
    let part = span(&b, 4, 8);
    part.write(0, b"abcdefgh").unwrap();
    let mut bytes = [0; 4];
    part.read(4, &mut bytes).unwrap();
    assert_eq!(bytes, *b"efgh");
    refused(part.write(5, b"abcd"), Code::OutOfRange, &["offset=5"]);
    refused(part.read(u64::MAX, &mut bytes), Code::OutOfRange, &[]);
    refused(span(&b, 8, 100).read(40, &mut bytes), Code::OutOfRange, &["host access", "16 bytes"]);
    refused(span(&b, u64::MAX, 100).write(1, b"x"), Code::OutOfRange, &[]);
    refused(span(&b, 0, 1 << 60).read_all(), Code::OutOfRange, &["host access"]);
    let guarded = |access| -> Arc<dyn Buffer> { Arc::new(Guarded { device_id: d.id(), access }) };
    let (read, write) = (guarded(MemoryAccess::READ), guarded(MemoryAccess::WRITE));
    assert_eq!(BufferSpan::whole(read.clone()).read_all().unwrap(), [9; 16]);
    refused(span(&read, 0, 4).write(0, b"x"), Code::PermissionDenied, &["WRITE"]);
    span(&write, 0, 4).write(0, b"x").unwrap();
    refused(span(&write, 0, 4).read(0, &mut bytes), Code::PermissionDenied, &["READ"]);
}

#[test]
fn sub_spans_know_their_end() {
    let d = device();
    let b = buffer(&d, 16);
    let part = span(&b, 4, 8);
    let rest = part.subspan(6, WHOLE_BUFFER).unwrap();
    assert_eq!((rest.offset, rest.length), (10, 2));
    assert!(part.subspan(8, 0).unwrap().same_range(&span(&b, 12, 0)));
    refused(part.subspan(9, WHOLE_BUFFER), Code::OutOfRange, &["byte_length=8"]);
    refused(span(&b, u64::MAX, 4).subspan(1, 1), Code::OutOfRange, &[]);
}
