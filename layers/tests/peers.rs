//! Devices that work on each other's buffers: every operation with foreign buffers on either side, order, failures,
//! reuse, threads.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::sync::Arc;

use crate::common::*;
use bytes::Bytes;
use halite_hal::*;
use halite_layers::peer;

fn pair() -> [Arc<dyn Device>; 2] {
    peer::connect(vec![device(), device()]).try_into().unwrap()
}

fn filled(device: &Arc<dyn Device>, bytes: &[u8]) -> Arc<dyn Buffer> {
    let buffer = buffer(device, bytes.len() as u64);
    buffer.write(0, bytes).unwrap();
    buffer
}

fn content(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    BufferSpan::whole(buffer.clone()).read_all().unwrap()
}

fn numbers(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

#[test]
fn transfers_reach_foreign_buffers_and_leave_the_rest_alone() {
    let [a, b] = pair();
    let source = filled(&b, &numbers(1000));
    for (from, to) in [(&b, &b), (&b, &a), (&a, &b)] {
        // The operation runs on `a`, whoever owns the buffers.
        let source = filled(from, &numbers(1000));
        let target = filled(to, &[9; 1000]);
        submit(&a, QueueOp::Copy { source: span(&source, 300, 500), target: span(&target, 400, 500) })
            .unwrap();
        let mut expected = vec![9; 1000];
        expected[400..900].copy_from_slice(&numbers(1000)[300..800]);
        assert_eq!(content(&target), expected);
        assert_eq!(content(&source), numbers(1000));
    }
    // Within one foreign buffer.
    submit(&a, QueueOp::Copy { source: span(&source, 0, 400), target: span(&source, 600, 400) }).unwrap();
    assert_eq!(content(&source)[600..], numbers(1000)[..400]);
    let target = filled(&b, &[1; 600]);
    submit(&a, QueueOp::Fill { target: span(&target, 300, 8), pattern: 0x0201, pattern_length: 2 }).unwrap();
    submit(&a, QueueOp::Update { source: Bytes::from_static(b"xyz"), target: span(&target, 1, 3) }).unwrap();
    let file = File::Memory(Bytes::from_static(b"0123456789"));
    submit(&a, QueueOp::Read { source: file, source_offset: 2, target: span(&target, 590, 5) }).unwrap();
    let mut expected = vec![1; 600];
    expected[300..308].copy_from_slice(&[1, 2, 1, 2, 1, 2, 1, 2]);
    expected[1..4].copy_from_slice(b"xyz");
    expected[590..595].copy_from_slice(b"23456");
    assert_eq!(content(&target), expected);
    submit(&a, QueueOp::Fill { target: span(&target, 600, 0), pattern: 0, pattern_length: 1 }).unwrap();
}

#[test]
fn recordings_take_foreign_buffers_directly_and_through_slots() {
    let [a, b] = pair();
    let (mine, theirs) = (filled(&a, &numbers(512)), filled(&b, &[0; 512]));
    let commands = vec![
        copy(direct(&mine, 0, 100), direct(&theirs, 300, 100)),
        Command::Barrier,
        copy(direct(&theirs, 300, 100), slot(1, 0, 100)),
        Command::Barrier,
        copy(slot(1, 50, 50), slot(0, 0, WHOLE_BUFFER)),
    ];
    let recorded = record(&a, commands, 3).unwrap();
    for _ in 0..2 {
        let (first, second) = (filled(&b, &[7; 64]), filled(&b, &[8; 300]));
        let table = [Some(span(&first, 14, 50)), Some(span(&second, 200, 100)), Some(span(&first, 0, 1))];
        execute(&a, &recorded, &table).unwrap();
        assert_eq!(content(&theirs)[300..400], numbers(100));
        assert_eq!(content(&theirs)[..300], [0; 300]);
        assert_eq!(content(&second)[200..], numbers(100));
        assert_eq!(content(&second)[..200], [8; 200]);
        assert_eq!(content(&first)[14..], numbers(100)[50..]);
        assert_eq!(content(&first)[..14], [7; 14]);
    }
    // Too short an entry is refused as ever; a slot that nothing uses may hold anything.
    let short = [Some(span(&theirs, 0, 50)), Some(span(&theirs, 0, 99))];
    refused(execute(&a, &recorded, &short), Code::OutOfRange, &["slot 1"]);
    refused(record(&a, vec![fill(direct(&theirs, 500, 16), 4)], 0), Code::OutOfRange, &["16"]);
}

#[test]
fn dispatches_bind_foreign_buffers() {
    let [a, b] = pair();
    let function = executable(&a);
    let (mine, theirs) = (filled(&a, &[1; 64]), filled(&b, &numbers(64)));
    let commands = vec![dispatch(&function, &[direct(&theirs, 0, 64), slot(0, 0, 32)])];
    let recorded = record(&a, commands, 1).unwrap();
    for bound in [&mine, &theirs] {
        execute(&a, &recorded, &[Some(span(bound, 0, 32))]).unwrap();
    }
    assert_eq!(content(&theirs), numbers(64));
    refused(record(&b, vec![dispatch(&function, &[])], 0), Code::InvalidArgument, &["executable"]);
}

#[test]
fn work_waits_and_signals_across_devices() {
    let [a, b] = pair();
    let theirs = buffer(&b, 16);
    let [go, filled, copied] = [&a, &b, &a].map(|d| Fence::new(d.create_semaphore(0).unwrap(), 1));
    let mine = buffer(&a, 16);
    let fill = |value| QueueOp::Fill { target: span(&theirs, 0, 16), pattern: value, pattern_length: 1 };
    let copy = QueueOp::Copy { source: span(&theirs, 0, 16), target: span(&mine, 0, 16) };
    // Each device signals a semaphore of the other.
    a.queue_submit(QueueAffinity::ANY, &filled, &copied, copy).unwrap();
    a.queue_submit(QueueAffinity::ANY, &go, &filled, fill(5)).unwrap();
    a.wait_idle(Deadline::from_millis(20_000)).unwrap();
    assert!(!copied.query().unwrap());
    go.signal().unwrap();
    copied.wait(Deadline::from_millis(20_000)).unwrap();
    assert_eq!(content(&mine), [5; 16]);
    let end = Fence::new(b.create_semaphore(0).unwrap(), 1);
    a.queue_submit(QueueAffinity::ANY, &copied, &end, QueueOp::Barrier).unwrap();
    end.wait(Deadline::from_millis(20_000)).unwrap();
    let made = Fence::new(b.create_semaphore(0).unwrap(), 1);
    let params = BufferParams::DEVICE;
    a.queue_alloca(QueueAffinity::ANY, &end, &made, &params, 16).unwrap();
    made.wait(Deadline::from_millis(20_000)).unwrap();
}

#[test]
fn failures_travel() {
    let [a, b] = pair();
    let theirs = filled(&b, &[3; 16]);
    let failed = Fence::new(b.create_semaphore(0).unwrap(), 1);
    let end = Fence::new(a.create_semaphore(0).unwrap(), 1);
    let fill = QueueOp::Fill { target: span(&theirs, 0, 16), pattern: 1, pattern_length: 1 };
    a.queue_submit(QueueAffinity::ANY, &failed, &end, fill).unwrap();
    failed.fail(&status!(Aborted, "the cause"));
    refused(end.wait(Deadline::from_millis(20_000)), Code::Aborted, &["the cause"]);
    assert_eq!(content(&theirs), [3; 16]);
    // What the operation waits for goes away.
    let end = Fence::new(a.create_semaphore(0).unwrap(), 1);
    let fill = QueueOp::Fill { target: span(&theirs, 0, 16), pattern: 1, pattern_length: 1 };
    let never = Fence::new(b.create_semaphore(0).unwrap(), 1);
    a.queue_submit(QueueAffinity::ANY, &never, &end, fill).unwrap();
    drop(never);
    refused(end.wait(Deadline::from_millis(20_000)), Code::Aborted, &["never ran"]);
    // A foreign buffer whose memory is gone.
    let gone = {
        let end = Fence::new(b.create_semaphore(0).unwrap(), 1);
        b.queue_alloca(QueueAffinity::ANY, &Fence::default(), &end, &BufferParams::DEVICE, 16).unwrap()
    };
    submit(&b, QueueOp::Dealloca { buffer: gone.clone() }).unwrap();
    let mine = buffer(&a, 16);
    let copy = QueueOp::Copy { source: span(&gone, 0, 16), target: span(&mine, 0, 16) };
    refused(submit(&a, copy), Code::FailedPrecondition, &["given back", "another device"]);
    // What validation refuses is refused on submission.
    let guarded: Arc<dyn Buffer> = Arc::new(Guarded { device_id: b.id(), access: MemoryAccess::READ });
    let fill = QueueOp::Fill { target: span(&guarded, 0, 16), pattern: 1, pattern_length: 1 };
    refused(submit(&a, fill), Code::PermissionDenied, &["queue fill"]);
    let beyond = QueueOp::Fill { target: span(&theirs, 8, 16), pattern: 1, pattern_length: 1 };
    refused(submit(&a, beyond), Code::OutOfRange, &["queue fill"]);
}

#[test]
fn threads_write_disjoint_parts_of_one_buffer() {
    let [a, b] = pair();
    let shared = filled(&b, &[0; 4096]);
    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let (device, shared) = (if part % 2 == 0 { &a } else { &b }, &shared);
            scope.spawn(move || {
                for round in 1..=50u64 {
                    let target = span(shared, part * 1000, 1000);
                    submit(device, QueueOp::Fill { target, pattern: round + part, pattern_length: 1 })
                        .unwrap();
                }
            });
        }
    });
    let bytes = content(&shared);
    for part in 0..4usize {
        assert_eq!(bytes[part * 1000..(part + 1) * 1000], vec![50 + part as u8; 1000], "part {part}");
    }
    assert_eq!(bytes[4000..], [0; 96]);
}

#[test]
fn a_device_alone_stays_as_it_is() {
    let d = device();
    let connected = peer::connect(vec![d.clone(), d.clone()]);
    assert!(connected.iter().all(|c| Arc::ptr_eq(c, &d)));
    assert!(peer::connect(Vec::new()).is_empty());
}
