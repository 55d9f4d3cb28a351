//! Semaphores, callbacks and files on both sides of the plug-in interface.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

#[path = "../../layers/tests/common/mod.rs"]
mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use common::*;
use halite_hal::*;

/// A device behind the interface, without validation: that would refuse to signal semaphores of others.
fn bare() -> Arc<dyn Device> {
    halite_plugin::loopback(Arc::new(halite_null::NullDriver)).unwrap().open("", &Options::new()).unwrap()
}

fn soft() -> Arc<dyn Semaphore> {
    Arc::new(SoftSemaphore::new(0, 0))
}

fn point(semaphore: &Arc<dyn Semaphore>, value: u64) -> Fence {
    Fence::new(semaphore.clone(), value)
}

fn soon() -> Deadline {
    Deadline::from_millis(20_000)
}

#[test]
fn semaphores_of_the_program_are_waited_for_and_signalled_by_a_plug_in() {
    let device = bare();
    let (start, end) = (soft(), soft());
    let target = buffer(&device, 4);
    let fill = QueueOp::Fill { target: span(&target, 0, 4), pattern: 9, pattern_length: 1 };
    device.queue_submit(QueueAffinity::ANY, &point(&start, 3), &point(&end, 5), fill).unwrap();
    start.signal(2).unwrap();
    assert_eq!(end.query().unwrap(), 0);
    start.signal(3).unwrap();
    end.wait(5, soon()).unwrap();
    assert_eq!(BufferSpan::whole(target).read_all().unwrap(), [9; 4]);
    assert_eq!((Arc::strong_count(&start), Arc::strong_count(&end)), (1, 1), "the plug-in keeps nothing");
}

#[test]
fn semaphores_of_one_plug_in_order_work_of_another() {
    let (a, b) = (bare(), bare());
    let (first, second) = (a.create_semaphore(0).unwrap(), b.create_semaphore(0).unwrap());
    let start = a.create_semaphore(0).unwrap();
    let both = Fence::join([&point(&first, 1), &point(&second, 1)]);
    let end = b.create_semaphore(0).unwrap();
    let any = QueueAffinity::ANY;
    a.queue_submit(any, &both, &point(&end, 1), QueueOp::Barrier).unwrap();
    b.queue_submit(any, &point(&start, 1), &point(&first, 1), QueueOp::Barrier).unwrap();
    a.queue_submit(any, &point(&first, 1), &point(&second, 1), QueueOp::Barrier).unwrap();
    assert_eq!(end.query().unwrap(), 0);
    start.signal(1).unwrap();
    end.wait(1, soon()).unwrap();
}

#[test]
fn failures_travel_through_the_interface_in_both_directions() {
    let device = bare();
    let (start, end) = (soft(), device.create_semaphore(0).unwrap());
    let last = soft();
    let any = QueueAffinity::ANY;
    device.queue_submit(any, &point(&start, 1), &point(&end, 1), QueueOp::Barrier).unwrap();
    device.queue_submit(any, &point(&end, 1), &point(&last, 1), QueueOp::Barrier).unwrap();
    start.fail(Status::new(Code::Aborted, "pulled the plug"));
    for semaphore in [&end, &last] {
        let status = semaphore.wait(1, soon()).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Aborted, "pulled the plug"));
        assert!(semaphore.query().is_err());
    }
}

#[test]
fn waits_respect_their_deadline() {
    let device = bare();
    let semaphore = device.create_semaphore(0).unwrap();
    assert_eq!(semaphore.wait(1, Deadline::Now).unwrap_err().code(), Code::DeadlineExceeded);
    let soon = Deadline::after(std::time::Duration::from_millis(5));
    assert_eq!(semaphore.wait(1, soon).unwrap_err().code(), Code::DeadlineExceeded);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| semaphore.wait(1, Deadline::Never));
        semaphore.signal(1).unwrap();
        waiter.join().unwrap().unwrap();
    });
    assert_eq!(semaphore.signal(1).unwrap_err().code(), Code::InvalidArgument);
}

/// Operations that wait for each other in a row, over semaphores of both sides by turns; the first one is not signalled.
fn chain(device: &Arc<dyn Device>, length: usize) -> (Arc<dyn Semaphore>, Arc<dyn Semaphore>) {
    let start = soft();
    let mut last = start.clone();
    for index in 0..length {
        let next = if index % 2 == 0 { device.create_semaphore(0).unwrap() } else { soft() };
        device
            .queue_submit(QueueAffinity::ANY, &point(&last, 1), &point(&next, 1), QueueOp::Barrier)
            .unwrap();
        last = next;
    }
    (start, last)
}

#[test]
fn long_chains_across_the_interface_neither_run_nor_end_recursively() {
    let device = bare();
    let (start, last) = chain(&device, 10_000);
    start.signal(1).unwrap();
    last.wait(1, soon()).unwrap();
    let (start, last) = chain(&device, 10_000);
    let seen = watched(&last, 1);
    drop((start, last));
    assert_eq!((seen.calls.lock().unwrap().len(), Arc::strong_count(&seen)), (0, 1), "all of it is gone");
    let (start, last) = chain(&device, 10_000);
    start.fail(Status::new(Code::Aborted, "stop"));
    assert_eq!(last.query().unwrap_err().code(), Code::Aborted);
}

/// What happened to a callback.
#[derive(Default)]
struct Seen {
    calls: Mutex<Vec<Result<()>>>,
    dropped: AtomicU64,
}

struct Watch(Arc<Seen>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn watched(semaphore: &Arc<dyn Semaphore>, value: u64) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let watch = Watch(seen.clone());
    semaphore.on_reached(value, Box::new(move |result| watch.0.calls.lock().unwrap().push(result)));
    seen
}

#[test]
fn callbacks_come_exactly_once_whatever_happens() {
    let device = bare();
    let semaphore = device.create_semaphore(1).unwrap();
    let (now, later, failed) = (watched(&semaphore, 1), watched(&semaphore, 4), watched(&semaphore, 9));
    assert_eq!(now.calls.lock().unwrap().len(), 1);
    semaphore.signal(5).unwrap();
    assert!(matches!(later.calls.lock().unwrap().as_slice(), [Ok(())]));
    semaphore.fail(Status::new(Code::DataLoss, "gone").with_detail("k", "v"));
    let after = watched(&semaphore, 20);
    for seen in [&failed, &after] {
        let calls = seen.calls.lock().unwrap();
        let [Err(status)] = calls.as_slice() else { panic!("{} calls", calls.len()) };
        assert_eq!((status.code(), status.detail("k")), (Code::DataLoss, Some("v")));
    }
    let alone = device.create_semaphore(0).unwrap();
    let never = watched(&alone, 1);
    drop(alone);
    assert_eq!(never.calls.lock().unwrap().len(), 0);
    for seen in [now, later, failed, after, never] {
        assert_eq!(seen.dropped.load(Ordering::SeqCst), 1);
        assert_eq!(Arc::strong_count(&seen), 1);
    }
}

#[test]
fn racing_signals_call_every_callback_once() {
    let device = bare();
    let semaphore = device.create_semaphore(0).unwrap();
    let seen: Vec<_> = thread::scope(|scope| {
        let registering = scope.spawn(|| (1..400).map(|value| watched(&semaphore, value)).collect());
        for value in 1..400 {
            semaphore.signal(value).unwrap();
        }
        registering.join().unwrap()
    });
    for seen in seen {
        assert_eq!((seen.calls.lock().unwrap().len(), Arc::strong_count(&seen)), (1, 1));
    }
}

/// A file of bytes that may be read and written.
struct Numbers(Mutex<Vec<u8>>);

impl FileSource for Numbers {
    fn byte_length(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }
    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let bytes = self.0.lock().unwrap();
        let Some(source) = bytes.get(offset as usize..offset as usize + target.len()) else {
            bail!(OutOfRange, "no such numbers");
        };
        target.copy_from_slice(source);
        Ok(())
    }
    fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.0.lock().unwrap()[offset as usize..offset as usize + source.len()].copy_from_slice(source);
        Ok(())
    }
}

#[test]
fn files_of_the_program_are_read_and_written_by_a_plug_in() {
    let device = bare();
    let source = Arc::new(Numbers(Mutex::new((0..100).collect())));
    let file = |access| File::Custom { source: source.clone(), access };
    let target = buffer(&device, 10);
    let read = |source_offset| QueueOp::Read {
        source: file(FileAccess::Read),
        source_offset,
        target: span(&target, 0, 10),
    };
    submit(&device, read(20)).unwrap();
    let write =
        |access| QueueOp::Write { source: span(&target, 0, 10), target: file(access), target_offset: 50 };
    submit(&device, write(FileAccess::ReadWrite)).unwrap();
    assert_eq!(source.0.lock().unwrap()[48..62], [48, 49, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 60, 61]);
    refused(submit(&device, read(95)), Code::OutOfRange, &["no such numbers"]);
    refused(submit(&device, write(FileAccess::Read)), Code::PermissionDenied, &["read-only"]);
    assert_eq!(Arc::strong_count(&source), 1, "the plug-in keeps no file");
}

#[test]
fn objects_live_as_long_as_anybody_holds_them() {
    let device = bare();
    let (kept, semaphore) = (buffer(&device, 100), device.create_semaphore(0).unwrap());
    let executable = executable(&device);
    let recorded = device.create_command_buffer(list(vec![fill(direct(&kept, 0, 4), 4)], 0)).unwrap();
    let used = || device.memory_stats().used;
    assert_eq!(used(), 100);
    let start = soft();
    let op = QueueOp::Execute { command_buffer: recorded.clone(), bindings: BindingTable::default() };
    device.queue_submit(QueueAffinity::ANY, &point(&start, 1), &point(&semaphore, 1), op).unwrap();
    drop((kept, recorded));
    assert_eq!(used(), 100, "pending work holds its recording, and that its buffer");
    start.signal(1).unwrap();
    semaphore.wait(1, soon()).unwrap();
    assert_eq!(used(), 0);
    drop(device);
    assert_eq!(executable.functions()[0].name, "f");
    assert_eq!(semaphore.query().unwrap(), 1);
}
