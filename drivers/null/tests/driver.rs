//! The null driver by itself, without the validation layer: memory, order, failures, executables.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use std::{
    sync::{Arc, Mutex},
    thread,
};

use bytes::Bytes;
use halite_hal::*;
use halite_null::{EXECUTABLE_FORMAT, NullDriver};

fn open(options: &[(&str, &str)]) -> Result<Arc<dyn Device>> {
    NullDriver.open("", &options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
}

fn device() -> Arc<dyn Device> {
    open(&[]).unwrap()
}

fn buffer(device: &Arc<dyn Device>, length: u64) -> Arc<dyn Buffer> {
    device.allocate_buffer(&BufferParams::DEVICE, length).unwrap()
}

fn point(device: &Arc<dyn Device>) -> Fence {
    Fence::new(device.create_semaphore(0).unwrap(), 1)
}

fn submit(device: &Arc<dyn Device>, wait: &Fence, signal: &Fence, op: QueueOp) {
    device.queue_submit(QueueAffinity::ANY, wait, signal, op).unwrap();
}

fn fill(buffer: &Arc<dyn Buffer>, pattern: u64) -> QueueOp {
    QueueOp::Fill { target: BufferSpan::whole(buffer.clone()), pattern, pattern_length: 1 }
}

fn bytes(buffer: &Arc<dyn Buffer>) -> Vec<u8> {
    BufferSpan::whole(buffer.clone()).read_all().unwrap()
}

#[test]
fn the_driver_has_one_device() {
    let devices = NullDriver.enumerate(&Options::new()).unwrap();
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0].uri(), "null://");
    assert_eq!(NullDriver.open("1", &Options::new()).unwrap_err().code(), Code::NotFound);
    assert_eq!(open(&[("memory", "much")]).unwrap_err().code(), Code::InvalidArgument);
    let d = device();
    assert_ne!(d.id(), device().id());
    assert_eq!(d.query_i64("hal.device.id", "null"), Some(1));
    assert_eq!(d.query_i64("hal.device.id", "local*"), Some(0));
    assert_eq!(d.query_i64("hal.executable.format", EXECUTABLE_FORMAT), Some(1));
    assert_eq!(d.query_i64("hal.executable.format", "vulkan-spirv-fb"), Some(0));
    assert_eq!(d.query_i64("hal.device", "concurrency"), None);
}

#[test]
fn work_starts_when_its_wait_fence_is_reached_and_not_before() {
    let d = device();
    let (b, go, filled, copied) = (buffer(&d, 4), point(&d), point(&d), point(&d));
    let c = buffer(&d, 4);
    let copy = QueueOp::Copy { source: BufferSpan::whole(b.clone()), target: BufferSpan::whole(c.clone()) };
    submit(&d, &filled, &copied, copy);
    submit(&d, &go, &filled, fill(&b, 7));
    d.wait_idle(Deadline::Never).unwrap();
    assert!(!filled.query().unwrap());
    assert_eq!(bytes(&b), [0; 4]);
    go.signal().unwrap();
    assert!(copied.query().unwrap());
    assert_eq!(bytes(&c), [7; 4]);
}

#[test]
fn ready_work_runs_in_the_order_of_submission() {
    let d = device();
    let (b, go) = (buffer(&d, 1), point(&d));
    let ends: Vec<_> = (1..=50u8).map(|value| (value, point(&d))).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for (value, end) in &ends {
        let (value, b, seen) = (*value, b.clone(), seen.clone());
        submit(&d, &go, end, fill(&b, value.into()));
        end.on_reached(Box::new(move |_| seen.lock().unwrap().push((value, bytes(&b)[0]))));
    }
    go.signal().unwrap();
    assert_eq!(*seen.lock().unwrap(), (1..=50).map(|v| (v, v)).collect::<Vec<_>>());
}

#[test]
fn long_chains_do_not_recurse() {
    let d = device();
    let semaphore = d.create_semaphore(0).unwrap();
    let at = |value| Fence::new(semaphore.clone(), value);
    const LENGTH: u64 = 50_000;
    let fences: Vec<_> = (0..=LENGTH).map(|_| point(&d)).collect();
    for pair in fences.windows(2).rev() {
        submit(&d, &pair[0], &pair[1], QueueOp::Barrier);
    }
    submit(&d, &fences[LENGTH as usize], &at(1), QueueOp::Barrier);
    let small_stack = thread::Builder::new().stack_size(128 * 1024);
    let first = fences[0].clone();
    small_stack.spawn(move || first.signal()).unwrap().join().unwrap().unwrap();
    assert_eq!(semaphore.query().unwrap(), 1);
}

#[test]
fn failures_travel_along_fences() {
    let d = device();
    let (b, go, first, second) = (buffer(&d, 4), point(&d), point(&d), point(&d));
    submit(&d, &go, &first, fill(&b, 1));
    submit(&d, &first, &second, fill(&b, 2));
    go.fail(&Status::new(Code::DataLoss, "pulled the plug"));
    for fence in [first, second] {
        let status = fence.wait(Deadline::Never).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DataLoss, "pulled the plug"));
        assert!(status.to_string().contains("queue fill waited"), "{status}");
    }
    assert_eq!(bytes(&b), [0; 4]);
}

#[test]
fn work_that_goes_wrong_fails_its_signal_fence() {
    let d = device();
    let end = point(&d);
    let beyond = BufferSpan { buffer: buffer(&d, 4), offset: 2, length: 4 };
    submit(&d, &Fence::default(), &end, QueueOp::Fill { target: beyond, pattern: 0, pattern_length: 1 });
    let status = end.query().unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert!(status.to_string().contains("queue fill"), "{status}");
}

#[test]
fn queue_memory_goes_back_in_order_and_the_handle_stays() {
    let d = open(&[("memory", "4096")]).unwrap();
    let (made, go, gone) = (point(&d), point(&d), point(&d));
    let none = Fence::default();
    let b = d.queue_alloca(QueueAffinity::ANY, &none, &made, &BufferParams::DEVICE, 4096).unwrap();
    assert!(made.query().unwrap());
    b.write(4092, b"tail").unwrap();
    submit(&d, &go, &gone, QueueOp::Dealloca { buffer: b.clone() });
    let full = d.allocate_buffer(&BufferParams::DEVICE, 1).unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(full.message().contains("4096 of its 4096 bytes"), "{full}");
    go.signal().unwrap();
    assert!(gone.query().unwrap());
    assert_eq!(b.byte_length(), 4096);
    assert_eq!(b.read(0, &mut [0]).unwrap_err().code(), Code::FailedPrecondition);
    assert_eq!(b.write(0, &[0]).unwrap_err().code(), Code::FailedPrecondition);
    drop(d.allocate_buffer(&BufferParams::DEVICE, 4096).unwrap());
    drop(b);
    let stats = d.memory_stats();
    assert_eq!((stats.used, stats.peak_used, stats.allocation_count), (0, 4096, 2));
}

#[test]
fn storage_is_made_by_the_first_write_only() {
    let d = open(&[("memory", "9223372036854775807")]).unwrap();
    let b = buffer(&d, 1 << 62);
    let mut tail = [1; 4];
    b.read((1 << 62) - 4, &mut tail).unwrap();
    assert_eq!(tail, [0; 4]);
    assert_eq!(b.write(0, b"x").unwrap_err().code(), Code::ResourceExhausted);
    assert_eq!(b.read(1 << 62, &mut tail).unwrap_err().code(), Code::OutOfRange);
}

#[test]
fn copies_in_opposite_directions_do_not_block_each_other() {
    let d = device();
    let (a, b) = (buffer(&d, 300_000), buffer(&d, 300_000));
    a.write(0, &vec![5; 300_000]).unwrap();
    b.write(0, &vec![5; 300_000]).unwrap();
    thread::scope(|scope| {
        for (from, to) in [(&a, &b), (&b, &a)] {
            let d = &d;
            scope.spawn(move || {
                for _ in 0..20 {
                    let end = point(d);
                    let (source, target) = (BufferSpan::whole(from.clone()), BufferSpan::whole(to.clone()));
                    submit(d, &Fence::default(), &end, QueueOp::Copy { source, target });
                    end.wait(Deadline::from_millis(20_000)).unwrap();
                }
            });
        }
    });
    assert_eq!(bytes(&a), vec![5; 300_000]);
}

#[test]
fn files_move_in_chunks() {
    let d = device();
    let content: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let b = buffer(&d, 150_000);
    let (read, written) = (point(&d), point(&d));
    let span = || BufferSpan::whole(b.clone());
    let source = File::Memory(Bytes::from(content.clone()));
    submit(&d, &Fence::default(), &read, QueueOp::Read { source, source_offset: 1000, target: span() });
    assert!(read.query().unwrap());
    let target =
        File::Handle { file: Arc::new(tempfile::tempfile().unwrap()), access: FileAccess::ReadWrite };
    let write = QueueOp::Write { source: span(), target: target.clone(), target_offset: 0 };
    submit(&d, &read, &written, write);
    let mut back = vec![0; 150_000];
    target.read_at(0, &mut back).unwrap();
    assert!(back == content[1000..151_000]);
}

#[test]
fn recordings_are_carried_out_in_order() {
    let d = device();
    let b = buffer(&d, 16);
    let slot = |offset, length| BufferRef { target: CommandTarget::Slot(0), offset, length };
    let list = CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 1,
        commands: vec![
            Command::Fill { target: slot(0, WHOLE_BUFFER), pattern: 0x4241, pattern_length: 2 },
            Command::Update { source: Bytes::from_static(b"xyz"), target: slot(1, 3) },
            Command::Barrier,
            Command::Copy { source: slot(0, 4), target: slot(8, 4) },
        ],
    };
    let command_buffer = d.create_command_buffer(list).unwrap();
    let end = point(&d);
    let bindings = BindingTable {
        entries: [Some(BufferSpan { buffer: b.clone(), offset: 2, length: 14 })].into_iter().collect(),
    };
    submit(&d, &Fence::default(), &end, QueueOp::Execute { command_buffer, bindings });
    assert!(end.query().unwrap());
    assert_eq!(bytes(&b), b"\0\0AxyzABABAxyzAB");
}

#[test]
fn executables_are_lists_of_functions() {
    let d = device();
    let make = |format: &str, data: &'static [u8]| {
        d.create_executable(ExecutableDesc {
            format: format.to_owned(),
            data: Bytes::from_static(data),
            constants: Vec::new(),
            label: "main".to_owned(),
            subgroup_sizes: Vec::new(),
        })
    };
    let good =
        br#"[{"name": "a"}, {"name": "b", "bindings": 3, "constants": 2, "workgroup_size": [64, 1, 1]}]"#;
    let executable = make(EXECUTABLE_FORMAT, good).unwrap();
    assert_eq!(executable.lookup("b"), Some(1));
    assert_eq!(executable.lookup("c"), None);
    let b = &executable.functions()[1];
    assert_eq!((b.binding_count, b.constant_count, b.workgroup_size), (3, 2, [64, 1, 1]));
    let other = make("vulkan-spirv-fb", good).unwrap_err();
    assert_eq!(other.code(), Code::Incompatible);
    for bad in
        [&b""[..], b"{}", b"[{}]", br#"[{"name": "a", "bindings": -1}]"#, br#"[{"name":"a","x":1}]"#, b"\xFF"]
    {
        assert_eq!(make(EXECUTABLE_FORMAT, bad).unwrap_err().code(), Code::InvalidArgument);
    }
    let deep: &'static [u8] = Vec::leak(vec![b'['; 100_000]);
    assert_eq!(make(EXECUTABLE_FORMAT, deep).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn work_finishes_without_its_device() {
    let d = device();
    let (b, go, end) = (buffer(&d, 2), point(&d), point(&d));
    submit(&d, &go, &end, fill(&b, 3));
    drop(d);
    go.signal().unwrap();
    assert!(end.query().unwrap());
    assert_eq!(bytes(&b), [3, 3]);
}
