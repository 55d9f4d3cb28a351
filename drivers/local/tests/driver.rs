//! Both CPU drivers by themselves, without the validation layer: memory, order, failures.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use bytes::Bytes;
use halite_hal::*;
use halite_local::LocalDriver;

type D = Arc<dyn Device>;

fn options(list: &[(&str, &str)]) -> Options {
    list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// One device of each kind: the caller's thread alone, a thread beside it, several threads.
fn devices() -> Vec<D> {
    let task = |threads| LocalDriver::TASK.open("", &options(&[("threads", threads)])).unwrap();
    vec![LocalDriver::SYNC.open("", &options(&[])).unwrap(), task("1"), task("3")]
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn buffer(device: &D, length: u64) -> Arc<dyn Buffer> {
    device.allocate_buffer(&BufferParams::DEVICE, length).unwrap()
}

fn point(device: &D) -> Fence {
    Fence::new(device.create_semaphore(0).unwrap(), 1)
}

fn submit(device: &D, wait: &Fence, signal: &Fence, op: QueueOp) {
    device.queue_submit(QueueAffinity::ANY, wait, signal, op).unwrap();
}

fn alloca(device: &D, wait: &Fence, signal: &Fence, length: u64) -> Arc<dyn Buffer> {
    device.queue_alloca(QueueAffinity::ANY, wait, signal, &BufferParams::DEVICE, length).unwrap()
}

fn span(buffer: &Arc<dyn Buffer>) -> BufferSpan {
    BufferSpan::whole(buffer.clone())
}

fn fill(buffer: &Arc<dyn Buffer>, pattern: u64) -> QueueOp {
    QueueOp::Fill { target: span(buffer), pattern, pattern_length: 1 }
}

fn bytes(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    span(buffer).read_all().unwrap()
}

/// Waits with a callback alone: nobody calls `wait`.
fn watch(fence: &Fence) -> mpsc::Receiver<Result<()>> {
    let (sender, receiver) = mpsc::channel();
    fence.on_reached(Box::new(move |result| sender.send(result).unwrap()));
    receiver
}

fn watched(receiver: &mpsc::Receiver<Result<()>>) -> Result<()> {
    receiver.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn each_driver_has_one_device() {
    for driver in [LocalDriver::SYNC, LocalDriver::TASK] {
        let found = driver.enumerate(&Options::new()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].uri(), format!("{}://", driver.name()));
        assert_eq!(found[0].kind, DeviceKind::Cpu);
        assert_eq!(driver.open("1", &Options::new()).unwrap_err().code(), Code::NotFound);
        let d = driver.open("", &Options::new()).unwrap();
        for (pattern, answer) in
            [("local", 1), ("local*", 1), (driver.name(), 1), ("vulkan", 0), ("local-x", 0)]
        {
            assert_eq!(d.query_i64("hal.device.id", pattern), Some(answer), "{pattern}");
        }
        assert_eq!(d.query_i64("hal.executable.format", "vmvx-bytecode-fb"), Some(1));
        assert_eq!(d.query_i64("hal.executable.format", "vulkan-spirv-fb"), Some(0));
        assert_eq!(d.query_i64("hal.device", "concurrency"), Some(1));
        assert_eq!(d.query_i64("no.such", "key"), None);
        let target = d.info().target.clone().unwrap();
        assert!(target.starts_with("cpu-"), "{target}");
        assert!(d.query_i64("halite.target", &target).unwrap() > 0);
        for other in ["cpu-llvmpipe-linux", "hopper-h200-linux", "vp-vulkan_1_1-unknown", "nothing"] {
            assert_eq!(d.query_i64("halite.target", other), Some(0), "{other}");
        }
    }
}

#[test]
fn options_are_read() {
    let open = |driver: LocalDriver, list: &[(&str, &str)]| driver.open("", &options(list));
    for bad in [("threads", "0"), ("threads", "2000"), ("native_code", "maybe"), ("memory", "much")] {
        let status = open(LocalDriver::TASK, &[bad]).unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{bad:?}");
        assert!(status.message().contains(bad.1), "{status}");
    }
    let d = open(LocalDriver::TASK, &[("threads", "3"), ("native_code", "off")]).unwrap();
    assert_eq!(d.query_i64("hal.dispatch", "concurrency"), Some(3));
    assert_eq!(d.info().executable_formats, ["vmvx-bytecode-fb"]);
    assert_eq!(d.query_i64("hal.executable.format", "embedded-elf-x86_64"), Some(0));
    let small = open(LocalDriver::SYNC, &[("memory", "4096")]).unwrap();
    let status = small.allocate_buffer(&BufferParams::DEVICE, 5000).unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[test]
fn lengths_that_cannot_be_had_are_refused() {
    for d in devices() {
        for length in [1 << 50, u64::MAX / 2, u64::MAX] {
            let status = d.allocate_buffer(&BufferParams::DEVICE, length).unwrap_err();
            assert_eq!(status.code(), Code::ResourceExhausted, "{length}");
            let none = Fence::default();
            let later = d.queue_alloca(QueueAffinity::ANY, &none, &none, &BufferParams::DEVICE, length);
            assert_eq!(later.unwrap_err().code(), Code::ResourceExhausted);
        }
        assert_eq!(bytes(&buffer(&d, 0)), b"");
    }
}

#[test]
fn buffers_are_host_memory_in_multiples_of_64_bytes() {
    for d in devices() {
        let b = buffer(&d, 5);
        assert!(b.host_address().unwrap().addr().is_multiple_of(64));
        b.write(1, b"abcd").unwrap();
        assert_eq!(&bytes(&b)[1..], b"abcd");
        assert_eq!(b.read(3, &mut [0; 3]).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.write(6, b"").unwrap_err().code(), Code::OutOfRange);
        b.write(5, b"").unwrap();
        assert_eq!(d.memory_stats().used, 64);
        drop(b);
        assert_eq!((d.memory_stats().used, d.memory_stats().reserved), (0, 64));
        d.trim();
        assert_eq!(d.memory_stats().reserved, 0);
    }
}

#[test]
fn work_starts_when_its_wait_fence_is_reached_and_not_before() {
    for d in devices() {
        let (b, go, filled, copied) = (buffer(&d, 4), point(&d), point(&d), point(&d));
        let c = buffer(&d, 4);
        b.write(0, &[9; 4]).unwrap();
        submit(&d, &filled, &copied, QueueOp::Copy { source: span(&b), target: span(&c) });
        submit(&d, &go, &filled, fill(&b, 7));
        d.wait_idle(soon()).unwrap();
        assert!(!filled.query().unwrap());
        assert_eq!(bytes(&b), [9; 4]);
        let late = copied.wait(Deadline::after(Duration::from_millis(5))).unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
        go.signal().unwrap();
        copied.wait(soon()).unwrap();
        assert_eq!(bytes(&c), [7; 4]);
    }
}

#[test]
fn ready_work_runs_in_the_order_of_submission() {
    for d in devices() {
        let (b, go) = (buffer(&d, 1), point(&d));
        let ends: Vec<_> = (1..=200u8).map(|value| (value, point(&d))).collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        for (value, end) in &ends {
            let (value, b, seen) = (*value, b.clone(), seen.clone());
            submit(&d, &go, end, fill(&b, value.into()));
            end.on_reached(Box::new(move |_| seen.lock().unwrap().push((value, bytes(&b)[0]))));
        }
        go.signal().unwrap();
        Fence::join(ends.iter().map(|(_, end)| end)).wait(soon()).unwrap();
        d.wait_idle(soon()).unwrap();
        assert_eq!(*seen.lock().unwrap(), (1..=200).map(|v| (v, v)).collect::<Vec<_>>());
    }
}

#[test]
fn work_progresses_without_a_waiter_after_a_flush_a_poll_or_a_callback() {
    for d in devices() {
        let b = buffer(&d, 1);
        let (flushed, polled, called) = (point(&d), point(&d), point(&d));
        submit(&d, &Fence::default(), &flushed, fill(&b, 1));
        d.queue_flush(QueueAffinity::ANY).unwrap();
        // Watching starts work too, so a plain look is taken: a thread that never waits.
        let started = std::time::Instant::now();
        while bytes(&b) != [1] {
            assert!(started.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
        submit(&d, &Fence::default(), &polled, fill(&b, 2));
        while !polled.query().unwrap() {
            thread::yield_now();
        }
        submit(&d, &polled, &called, fill(&b, 3));
        watched(&watch(&called)).unwrap();
        assert_eq!(bytes(&b), [3]);
        // The callback may also come first.
        let called = point(&d);
        let receiver = watch(&called);
        submit(&d, &polled, &called, fill(&b, 4));
        watched(&receiver).unwrap();
        assert_eq!(bytes(&b), [4]);
    }
}

#[test]
fn a_sleeping_waiter_is_served_by_later_submissions() {
    for d in devices() {
        let (b, end) = (buffer(&d, 1), point(&d));
        let waiter = thread::spawn({
            let end = end.clone();
            move || end.wait(soon())
        });
        thread::yield_now();
        submit(&d, &Fence::default(), &end, fill(&b, 5));
        waiter.join().unwrap().unwrap();
        assert_eq!(bytes(&b), [5]);
    }
}

#[test]
fn long_chains_do_not_recurse() {
    const LENGTH: u64 = 20_000;
    for d in devices() {
        let fences: Vec<_> = (0..=LENGTH).map(|_| point(&d)).collect();
        for pair in fences.windows(2).rev() {
            submit(&d, &pair[0], &pair[1], QueueOp::Barrier);
        }
        let (first, last) = (fences[0].clone(), fences[LENGTH as usize].clone());
        let run = move || {
            first.signal()?;
            last.wait(soon())
        };
        thread::Builder::new().stack_size(128 * 1024).spawn(run).unwrap().join().unwrap().unwrap();
    }
}

#[test]
fn chains_that_never_end_are_dropped_flat_and_fail_their_fences() {
    for d in devices() {
        let last = point(&d);
        {
            let fences: Vec<_> = (0..5000).map(|_| point(&d)).collect();
            for pair in fences.windows(2) {
                submit(&d, &pair[0], &pair[1], QueueOp::Barrier);
            }
            submit(&d, &fences[4999], &last, QueueOp::Barrier);
            let drop_all = move || drop(fences);
            thread::Builder::new().stack_size(256 * 1024).spawn(drop_all).unwrap().join().unwrap();
        }
        let status = last.wait(soon()).unwrap_err();
        assert_eq!(status.code(), Code::Aborted, "{status}");
    }
}

#[test]
fn failures_travel_along_fences() {
    for d in devices() {
        let (b, go, first, second) = (buffer(&d, 4), point(&d), point(&d), point(&d));
        b.write(0, &[0; 4]).unwrap();
        submit(&d, &go, &first, fill(&b, 1));
        submit(&d, &first, &second, fill(&b, 2));
        go.fail(&Status::new(Code::DataLoss, "pulled the plug"));
        for fence in [first, second] {
            let status = fence.wait(soon()).unwrap_err();
            assert_eq!((status.code(), status.message()), (Code::DataLoss, "pulled the plug"));
            assert!(status.to_string().contains("queue fill waited"), "{status}");
        }
        assert_eq!(bytes(&b), [0; 4]);
    }
}

#[test]
fn work_that_goes_wrong_fails_its_signal_fence() {
    for d in devices() {
        let (end, after) = (point(&d), point(&d));
        let beyond = BufferSpan { buffer: buffer(&d, 4), offset: 2, length: 4 };
        let wrong = QueueOp::Fill { target: beyond, pattern: 0, pattern_length: 1 };
        submit(&d, &Fence::default(), &end, wrong);
        submit(&d, &end, &after, QueueOp::Barrier);
        let status = end.wait(soon()).unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange);
        assert!(status.to_string().contains("queue fill"), "{status}");
        assert_eq!(after.wait(soon()).unwrap_err().code(), Code::OutOfRange);
    }
}

#[test]
fn queue_memory_goes_back_in_order_and_is_used_again() {
    for d in devices() {
        let (made, filled, gone, again) = (point(&d), point(&d), point(&d), point(&d));
        let b = alloca(&d, &Fence::default(), &made, 5000);
        submit(&d, &made, &filled, fill(&b, 1));
        submit(&d, &filled, &gone, QueueOp::Dealloca { buffer: b.clone() });
        let c = alloca(&d, &gone, &again, 5000);
        again.wait(soon()).unwrap();
        let stats = d.memory_stats();
        assert_eq!((stats.used, stats.allocation_count), (5120, 1));
        assert_eq!(b.byte_length(), 5000);
        assert_eq!(b.host_address(), None);
        assert_eq!(b.read(0, &mut [0]).unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(b.write(0, &[0]).unwrap_err().code(), Code::FailedPrecondition);
        let used_after = point(&d);
        submit(&d, &again, &used_after, fill(&b, 1));
        assert_eq!(used_after.wait(soon()).unwrap_err().code(), Code::FailedPrecondition);
        drop((b, c));
        assert_eq!(d.memory_stats().used, 0);
    }
}

#[test]
fn memory_of_a_pending_allocation_does_not_exist_yet() {
    for d in devices() {
        let (go, made) = (point(&d), point(&d));
        let b = alloca(&d, &go, &made, 64);
        assert_eq!(b.host_address(), None);
        assert_eq!(b.read(0, &mut [0]).unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(d.memory_stats().used, 0);
        go.signal().unwrap();
        made.wait(soon()).unwrap();
        b.read(0, &mut [0]).unwrap();
    }
}

#[test]
fn semaphores_of_others_are_waited_for_and_signalled() {
    for d in devices() {
        let other: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(u64::MAX, 0));
        let (b, end) = (buffer(&d, 1), point(&d));
        submit(&d, &Fence::new(other.clone(), 3), &end, fill(&b, 6));
        submit(&d, &end, &Fence::new(other.clone(), 9), QueueOp::Barrier);
        d.queue_flush(QueueAffinity::ANY).unwrap();
        assert!(!end.query().unwrap());
        other.signal(3).unwrap();
        end.wait(soon()).unwrap();
        other.wait(9, soon()).unwrap();
        assert_eq!(bytes(&b), [6]);
    }
}

#[test]
fn files_move_in_chunks() {
    for d in devices() {
        let content: Vec<u8> = (0..700_000u32).map(|i| (i % 251) as u8).collect();
        let b = buffer(&d, 600_000);
        let file = |content: &[u8]| {
            let file =
                File::Handle { file: Arc::new(tempfile::tempfile().unwrap()), access: FileAccess::ReadWrite };
            file.write_at(0, content).unwrap();
            file
        };
        for source in [File::Memory(Bytes::from(content.clone())), file(&content)] {
            let (read, written) = (point(&d), point(&d));
            let target = file(&[]);
            b.write(0, &vec![0; 600_000]).unwrap();
            submit(
                &d,
                &Fence::default(),
                &read,
                QueueOp::Read { source, source_offset: 1000, target: span(&b) },
            );
            let write = QueueOp::Write { source: span(&b), target: target.clone(), target_offset: 0 };
            submit(&d, &read, &written, write);
            written.wait(soon()).unwrap();
            let mut back = vec![0; 600_000];
            target.read_at(0, &mut back).unwrap();
            assert!(back == content[1000..601_000]);
        }
        let missing = point(&d);
        let short = QueueOp::Read { source: file(b"xy"), source_offset: 1, target: span(&b) };
        submit(&d, &Fence::default(), &missing, short);
        assert_eq!(missing.wait(soon()).unwrap_err().code(), Code::OutOfRange);
    }
}

#[test]
fn recordings_are_carried_out_in_order_and_again() {
    for d in devices() {
        let direct = buffer(&d, 4);
        let slot = |offset, length| BufferRef { target: CommandTarget::Slot(7), offset, length };
        let list = CommandList {
            mode: CommandBufferMode::empty(),
            categories: CommandCategory::ANY,
            affinity: QueueAffinity::ANY,
            binding_capacity: 9,
            commands: vec![
                Command::Fill { target: slot(0, WHOLE_BUFFER), pattern: 0x4241, pattern_length: 2 },
                Command::Update { source: Bytes::from_static(b"xyz"), target: slot(1, 3) },
                Command::Barrier,
                Command::Copy { source: slot(0, 4), target: slot(8, 4) },
                Command::Copy { source: slot(0, 4), target: span(&direct).into() },
                Command::Fill {
                    target: BufferRef { target: CommandTarget::Slot(8), offset: 0, length: 0 },
                    pattern: 0,
                    pattern_length: 1,
                },
            ],
        };
        let command_buffer = d.create_command_buffer(list).unwrap();
        for offset in [2, 4] {
            let (b, end) = (buffer(&d, 20), point(&d));
            b.write(0, &[0; 20]).unwrap();
            let mut bindings = BindingTable::default();
            bindings.entries.resize(8, None);
            bindings.entries[7] = Some(BufferSpan { buffer: b.clone(), offset, length: 14 });
            let op = QueueOp::Execute { command_buffer: command_buffer.clone(), bindings };
            submit(&d, &Fence::default(), &end, op);
            end.wait(soon()).unwrap();
            assert_eq!(&bytes(&b)[offset as usize..][..14], b"AxyzABABAxyzAB");
            assert_eq!(bytes(&direct), b"Axyz");
        }
        let end = point(&d);
        let op = QueueOp::Execute { command_buffer, bindings: BindingTable::default() };
        submit(&d, &Fence::default(), &end, op);
        assert_eq!(end.wait(soon()).unwrap_err().code(), Code::OutOfRange);
    }
}

#[test]
fn many_threads_submit_and_wait() {
    for d in devices() {
        thread::scope(|scope| {
            for number in 0..4u8 {
                let d = &d;
                scope.spawn(move || {
                    let b = buffer(d, 100);
                    for round in 0..200u8 {
                        let (made, filled, end) = (point(d), point(d), point(d));
                        let t = alloca(d, &Fence::default(), &made, 100);
                        submit(d, &made, &filled, fill(&t, u64::from(round ^ number)));
                        submit(d, &filled, &end, QueueOp::Copy { source: span(&t), target: span(&b) });
                        submit(d, &end, &Fence::default(), QueueOp::Dealloca { buffer: t });
                        end.wait(soon()).unwrap();
                        assert_eq!(bytes(&b), [round ^ number; 100]);
                    }
                });
            }
        });
        d.wait_idle(soon()).unwrap();
        assert_eq!(d.memory_stats().used, 0);
    }
}

#[test]
fn code_of_other_formats_is_refused() {
    for d in devices() {
        for (format, data) in [("vulkan-spirv-fb", &b"x"[..]), ("embedded-elf-riscv_64", b"\x7fELF")] {
            let desc = ExecutableDesc {
                format: format.to_owned(),
                data: Bytes::from_static(data),
                constants: Vec::new(),
                label: "main".to_owned(),
                subgroup_sizes: Vec::new(),
            };
            let status = d.create_executable(desc).unwrap_err();
            assert_eq!(status.code(), Code::Incompatible);
            assert!(status.message().contains(format) && status.message().contains("vmvx-bytecode-fb"));
        }
    }
}

#[test]
fn work_finishes_without_its_device() {
    for d in devices() {
        let (b, go, end) = (buffer(&d, 2), point(&d), point(&d));
        let (c, free) = (buffer(&d, 2), point(&d));
        submit(&d, &go, &end, fill(&b, 3));
        submit(&d, &Fence::default(), &free, fill(&c, 4));
        drop(d);
        go.signal().unwrap();
        end.wait(soon()).unwrap();
        free.wait(soon()).unwrap();
        assert_eq!((bytes(&b), bytes(&c)), (vec![3, 3], vec![4, 4]));
    }
}

/// The host signals, and work that had to wait for it in a chain runs although nobody waits on the device.
#[test]
fn a_chain_that_was_put_off_runs_by_itself() {
    for d in devices() {
        let (b, go, first, second, third) = (buffer(&d, 4), point(&d), point(&d), point(&d), point(&d));
        submit(&d, &second, &third, fill(&b, 3));
        submit(&d, &first, &second, fill(&b, 2));
        submit(&d, &go, &first, fill(&b, 1));
        let done = watch(&third);
        go.signal().unwrap();
        done.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(bytes(&b), [3; 4]);
    }
}
