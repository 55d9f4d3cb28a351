//! Queue order, fences, deferral, memory reuse and teardown.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use common::*;
use halite_hal::{
    BufferParams, Code, Deadline, Device, Fence, MemoryStats, QueueAffinity, QueueOp, Semaphore,
    SoftSemaphore, Status,
};

const TWO_QUEUES: &[&[(&str, &str)]] = &[
    &[],
    &[("queues", "2"), ("dedicated_compute_queue", "off")],
    &[("queues", "2"), ("dedicated_compute_queue", "off"), ("timeline", "emulated")],
];

fn fill(device: &Arc<dyn Device>, target: &Arc<dyn halite_hal::Buffer>, value: u8) -> QueueOp {
    assert_eq!(target.device_id(), device.id());
    QueueOp::Fill { target: span(target, 0, target.byte_length()), pattern: value.into(), pattern_length: 1 }
}

#[test]
fn waits_from_other_threads_and_callbacks() {
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[0; 256]);
        let (start, done) = (fence(device), fence(device));
        // Nothing has promised `done` when the others begin to wait for it.
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                let done = done.clone();
                thread::spawn(move || done.wait(seconds(30)))
            })
            .collect();
        let (sender, receiver) = mpsc::channel();
        semaphore(&done).on_reached(1, Box::new(move |r| sender.send(r).unwrap()));
        device.queue_submit(ANY, &start, &done, fill(device, &data, 9)).unwrap();
        assert!(!done.query().unwrap());
        assert_eq!(done.wait(Deadline::Now).unwrap_err().code(), Code::DeadlineExceeded);
        semaphore(&start).signal(1).unwrap();
        waiters.into_iter().for_each(|w| w.join().unwrap().unwrap());
        receiver.recv_timeout(Duration::from_secs(30)).unwrap().unwrap();
        assert_eq!(read(&data), [9; 256]);
        assert!(done.query().unwrap());
    });
}

#[test]
fn long_chains_that_wait_for_the_host() {
    on_devices(TWO_QUEUES, |device| {
        let data = buffer(device, &[0; 64]);
        let start = fence(device);
        let mut last = start.clone();
        // Deep enough that releasing the chain by recursion would need much stack; queues take turns.
        for i in 0..3000u32 {
            let next = fence(device);
            let affinity = QueueAffinity(1 << (i % device.queue_count()));
            let op = if i % 50 == 0 { fill(device, &data, (i / 50) as u8) } else { QueueOp::Barrier };
            device.queue_submit(affinity, &last, &next, op).unwrap();
            last = next;
        }
        assert!(!last.query().unwrap());
        semaphore(&start).signal(1).unwrap();
        last.wait(seconds(60)).unwrap();
        assert_eq!(read(&data), [59; 64]);
    });
}

#[test]
fn queues_wait_for_each_other_in_both_directions() {
    on_devices(TWO_QUEUES, |device| {
        let data = buffer(device, &[0; 64]);
        let mut last = Fence::default();
        let timeline = device.create_semaphore(0).unwrap();
        for i in 0..40u32 {
            let next = Fence::new(timeline.clone(), u64::from(i) + 1);
            let affinity = QueueAffinity(1 << (i % device.queue_count()));
            device.queue_submit(affinity, &last, &next, fill(device, &data, i as u8)).unwrap();
            last = next;
        }
        last.wait(seconds(30)).unwrap();
        assert_eq!(read(&data), [39; 64]);
        assert_eq!(timeline.query().unwrap(), 40);
        assert_eq!(timeline.signal(40).unwrap_err().code(), Code::InvalidArgument);
    });
}

#[test]
fn failures_travel_and_foreign_semaphores_work() {
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[0; 64]);
        let (first, second, third) = (fence(device), fence(device), fence(device));
        device.queue_submit(ANY, &first, &second, fill(device, &data, 1)).unwrap();
        device.queue_submit(ANY, &second, &third, QueueOp::Barrier).unwrap();
        first.fail(&Status::new(Code::Cancelled, "not today"));
        assert_eq!(third.wait(seconds(30)).unwrap_err().code(), Code::Cancelled);
        assert_eq!(read(&data), [0; 64], "an operation whose wait failed does not run");

        let soft: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(0, 0));
        let (before, after) = (Fence::new(soft.clone(), 1), Fence::new(soft.clone(), 2));
        device.queue_submit(ANY, &before, &after, fill(device, &data, 2)).unwrap();
        soft.signal(1).unwrap();
        // Nobody waits on the device: it has to notice by itself.
        soft.wait(2, seconds(30)).unwrap();
        assert_eq!(read(&data), [2; 64]);
    });
}

#[test]
fn memory_is_reused_in_queue_order() {
    on_devices(BOTH_WAYS, |device| {
        let mut last = Fence::default();
        let mut reserved = 0;
        for i in 0..50u8 {
            let (ready, filled, freed) = (fence(device), fence(device), fence(device));
            let data = device.queue_alloca(ANY, &last, &ready, &BufferParams::DEVICE, 1 << 20).unwrap();
            device.queue_submit(ANY, &ready, &filled, fill(device, &data, i)).unwrap();
            if i % 10 == 0 {
                filled.wait(seconds(30)).unwrap();
                assert_eq!(read(&data), vec![i; 1 << 20]);
            }
            device.queue_submit(ANY, &filled, &freed, QueueOp::Dealloca { buffer: data.clone() }).unwrap();
            assert_eq!(data.read(0, &mut [0]).unwrap_err().code(), Code::FailedPrecondition);
            last = freed;
            if i == 2 {
                reserved = device.memory_stats().reserved;
            }
        }
        last.wait(seconds(30)).unwrap();
        let stats = device.memory_stats();
        assert_eq!(stats.reserved, reserved, "a steady state takes no more memory");
        assert!(stats.peak_used < 4 << 20, "{stats:?}");
        device.wait_idle(Deadline::after(Duration::from_secs(60))).unwrap();
        assert_eq!(device.memory_stats().used, 0);
        device.trim();
        assert_eq!(device.memory_stats(), MemoryStats { reserved: 0, used: 0, ..stats });
    });
}

#[test]
fn many_threads_share_a_device() {
    on_devices(TWO_QUEUES, |device| {
        thread::scope(|scope| {
            for worker in 0..4u8 {
                scope.spawn(move || {
                    let affinity = QueueAffinity(1 << (u32::from(worker) % device.queue_count()));
                    let kept = buffer(device, &[0; 4096]);
                    let mut last = Fence::default();
                    for i in 0..60u8 {
                        let steps: Vec<Fence> = (0..4).map(|_| fence(device)).collect();
                        let size = 4096 * (1 + u64::from(i % 3));
                        let data = device
                            .queue_alloca(affinity, &last, &steps[0], &BufferParams::DEVICE, size)
                            .unwrap();
                        let value = worker.wrapping_mul(61).wrapping_add(i);
                        device
                            .queue_submit(affinity, &steps[0], &steps[1], fill(device, &data, value))
                            .unwrap();
                        let op = QueueOp::Copy { source: span(&data, 0, 4096), target: span(&kept, 0, 4096) };
                        device.queue_submit(affinity, &steps[1], &steps[2], op).unwrap();
                        let op = QueueOp::Dealloca { buffer: data };
                        device.queue_submit(affinity, &steps[2], &steps[3], op).unwrap();
                        last = steps[3].clone();
                        if i % 7 == 0 {
                            last.wait(seconds(60)).unwrap();
                            assert_eq!(read(&kept), [value; 4096]);
                        }
                    }
                    last.wait(seconds(60)).unwrap();
                });
            }
        });
    });
}

#[test]
fn out_of_memory_says_how_much() {
    on_devices(&[&[]], |device| {
        let error = device.allocate_buffer(&BufferParams::DEVICE, 1 << 60).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(error.to_string().contains(&(1u64 << 60).to_string()), "{error}");
        assert!(device.allocate_buffer(&BufferParams::DEVICE, u64::MAX).is_err());
        let done = fence(device);
        assert!(device.queue_alloca(ANY, &Fence::default(), &done, &BufferParams::DEVICE, 1 << 60).is_err());
        assert_ne!(done.wait(seconds(30)).unwrap_err().code(), Code::DeadlineExceeded);
        let empty = device.allocate_buffer(&BufferParams::DEVICE, 0).unwrap();
        run(device, fill(device, &empty, 1));
        empty.write(0, &[]).unwrap();
        assert!(empty.write(0, &[1]).is_err());
    });
}

#[test]
fn objects_outlive_their_device_in_any_order() {
    let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicU32::new(0));
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[5; 128]);
        let executable = test_executable(device);
        let (never, waits) = (fence(device), fence(device));
        device.queue_submit(ANY, &never, &waits, fill(device, &data, 1)).unwrap();
        let calls = calls.clone();
        semaphore(&waits)
            .on_reached(1, Box::new(move |r| _ = calls.fetch_add(r.is_err().into(), Ordering::SeqCst)));
        kept.lock().unwrap().push((data, executable, waits));
    });
    let kept = std::mem::take(&mut *kept.lock().unwrap());
    assert_eq!(calls.load(Ordering::SeqCst) as usize, kept.len(), "closing fails what can never run");
    for (data, _executable, waits) in kept {
        assert_eq!(waits.wait(seconds(30)).unwrap_err().code(), Code::Aborted);
        assert_eq!(read(&data), [5; 128]);
    }
}

#[test]
fn queries() {
    on_devices(&[&[]], |device| {
        let ask = |category, key| device.query_i64(category, key);
        assert_eq!(ask("hal.device.id", "vul*"), Some(1));
        assert_eq!(ask("hal.device.id", "local*"), Some(0));
        assert_eq!(ask("hal.executable.format", "vulkan-spirv-fb"), Some(1));
        assert_eq!(ask("hal.executable.format", "embedded-elf-x86_64"), Some(0));
        assert_eq!(ask("hal.dispatch", "concurrency"), Some(1));
        assert!(ask("vulkan.device", "subgroup_size").is_some_and(|s| s > 0));
        assert_eq!(ask("vulkan.feature", "made_up"), None);
        let target = device.info().target.clone().expect("every device has a target");
        let (own, baseline) = (ask("halite.target", &target), ask("halite.target", "vp-vulkan_1_1-unknown"));
        assert!(own > baseline && baseline > Some(0), "{target}: {own:?}, {baseline:?}");
        assert_eq!(ask("halite.target", "no-such-target"), Some(0));
    });
}
