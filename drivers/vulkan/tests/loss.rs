//! A device that is lost: everything that waits fails with one failure, nothing hangs, and the process goes on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use std::sync::{Arc, Mutex};

use common::*;
use halite_hal::{
    Binding, BindingTable, Buffer, BufferParams, Code, Command, CommandBufferMode, CommandCategory,
    CommandList, CommandTarget, Deadline, Device, DispatchCounts, DispatchFlags, Executable, Fence,
    QueueAffinity, QueueOp, Result, Status,
};
use shim::{DEVICE_LOST, OUT_OF_HOST_MEMORY, Shim, on_shim};

/// Kernel of one dispatch of 64 words, from a buffer to itself.
fn dispatch(executable: &Arc<dyn Executable>, data: &Arc<dyn Buffer>) -> Command {
    let whole =
        || Binding { target: CommandTarget::Direct(data.clone()), offset: 0, length: data.byte_length() };
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: [2, 64].into_iter().collect(),
        bindings: [whole(), whole()].into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

fn execution(
    device: &Arc<dyn Device>,
    executable: &Arc<dyn Executable>,
    data: &Arc<dyn Buffer>,
    mode: CommandBufferMode,
) -> QueueOp {
    let list = CommandList {
        mode,
        categories: CommandCategory::all(),
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands: vec![dispatch(executable, data), Command::Barrier, dispatch(executable, data)],
    };
    let command_buffer = device.create_command_buffer(list).unwrap();
    QueueOp::Execute { command_buffer, bindings: BindingTable::default() }
}

/// What a fence's callback was told, once it was.
type Told = Arc<Mutex<Vec<Result<()>>>>;

fn told(fence: &Fence) -> Told {
    let told = Told::default();
    let log = told.clone();
    fence.on_reached(Box::new(move |result| log.lock().unwrap().push(result)));
    told
}

fn assert_failure(status: &Status, parts: &[&str]) {
    assert_eq!(status.code(), Code::DataLoss, "{status}");
    for part in parts {
        assert!(status.to_string().contains(part), "'{part}' is missing from: {status}");
    }
}

/// A device works: opened again after a loss, or another one.
fn works(shim: &Shim, info: &halite_hal::DeviceInfo) {
    let device = shim.open(info, &[]).unwrap();
    let executable = test_executable(&device);
    let data = words_buffer(&device, &[1; 64]);
    run(&device, execution(&device, &executable, &data, CommandBufferMode::ONE_SHOT));
    assert_ne!(read_words(&data), [1; 64]);
}

#[test]
fn a_loss_in_mid_run_fails_everything_with_one_failure() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("queues", "2")]).unwrap();
        let executable = test_executable(&device);
        let data = words_buffer(&device, &[1; 64]);
        let (host, deferred, first, second) =
            (fence(&device), fence(&device), fence(&device), fence(&device));
        // Waits for a promise of the host that never comes, with a callback; and two that are accepted.
        device.queue_submit(ANY, &host, &deferred, QueueOp::Barrier).unwrap();
        let never = fence(&device);
        let callbacks: Vec<Told> = [&never, &deferred].map(told).into();
        let reusable = execution(&device, &executable, &data, CommandBufferMode::empty());
        device.queue_submit(ANY, &Fence::default(), &first, reusable).unwrap();
        shim.fail("vkQueueSubmit", 0, 1, DEVICE_LOST);
        let one_shot = execution(&device, &executable, &data, CommandBufferMode::ONE_SHOT);
        device.queue_submit(ANY, &first, &second, one_shot).unwrap();
        let last = told(&second);

        let failure = second.wait(seconds(20)).unwrap_err();
        assert_failure(&failure, &["vkQueueSubmit failed with ERROR_DEVICE_LOST", &info.name, "'affine'"]);
        assert_failure(&failure, &["in command buffer", "batch"]);
        assert_eq!(failure.detail("vk.result"), Some("ERROR_DEVICE_LOST"));
        for fence in [&first, &deferred, &never, &host] {
            let same = fence.wait(seconds(20)).unwrap_err();
            assert_eq!(same.message(), failure.message());
            assert_eq!(fence.query().unwrap_err().message(), failure.message());
        }
        for told in callbacks.iter().chain([&last]) {
            let told = told.lock().unwrap();
            assert!(matches!(&told[..], [Err(e)] if e.message() == failure.message()), "{told:?}");
        }
        // Later: nothing is accepted, and all say why.
        let later = Fence::default();
        assert_failure(&device.create_semaphore(0).unwrap_err(), &[failure.message()]);
        assert_failure(&device.allocate_buffer(&BufferParams::DEVICE, 4).unwrap_err(), &[failure.message()]);
        assert_failure(
            &device.queue_submit(ANY, &later, &never, QueueOp::Barrier).unwrap_err(),
            &["vkQueueSubmit"],
        );
        assert_failure(&device.wait_idle(seconds(30)).unwrap_err(), &[failure.message()]);
        // Another device of the process, or the same again, is not concerned: while the lost one is held, and after.
        works(shim, info);
        drop(device);
        drop((data, first));
        drop(executable);
        drop((second, deferred, never, host));
        works(shim, info);
        assert_eq!(shim.live(), 0, "everything was destroyed");
    });
}

#[test]
fn a_loss_noticed_by_a_wait_names_what_was_running() {
    on_shim(|shim, info| {
        shim.device_fault(true);
        let device = shim.open(info, &[]).unwrap();
        let executable = test_executable(&device);
        let data = words_buffer(&device, &[1; 64]);
        let done = fence(&device);
        shim.stall(true);
        let reusable = execution(&device, &executable, &data, CommandBufferMode::empty());
        device.queue_submit(ANY, &Fence::default(), &done, reusable).unwrap();
        device.queue_flush(ANY).unwrap();
        let watched = told(&done);
        shim.fail(shim.timelines().wait(), 0, 1, DEVICE_LOST);
        let failure = done.wait(seconds(20)).unwrap_err();
        assert_failure(
            &failure,
            &["failed with ERROR_DEVICE_LOST", "timeline of queue 0", "unfinished is batch"],
        );
        assert_failure(
            &failure,
            &["2 dispatches: 'affine' 2 times in command buffer", "an invented page fault"],
        );
        assert!(failure.detail("vk.unfinished.0").is_some_and(|t| t.contains("'affine'")), "{failure:?}");
        assert_eq!(failure.detail("vk.fault.address.0"), Some("invalid write at 0xdeadb000..=0xdeadbfff"));
        let vendor = failure.detail("vk.fault.vendor.0");
        assert_eq!(vendor, Some("an invented cause (code 0x2a, data 0x2b)"));
        drop((device, executable, data, done));
        assert!(matches!(&watched.lock().unwrap()[..], [Err(_)]));
        works(shim, info);
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn a_device_of_its_own_hears_of_another_ones_loss_only_through_fences() {
    on_shim(|shim, info| {
        let (lost, other) = (shim.open(info, &[]).unwrap(), shim.open(info, &[]).unwrap());
        let data = buffer(&other, &[7; 64]);
        let (never, here, foreign) = (fence(&lost), fence(&other), fence(&lost));
        let fill = |value: u8| QueueOp::Fill {
            target: span(&data, 0, 64),
            pattern: u64::from(value),
            pattern_length: 1,
        };
        // The other device waits for the one that goes, which waits for the host.
        lost.queue_submit(ANY, &never, &foreign, QueueOp::Barrier).unwrap();
        other.queue_submit(ANY, &foreign, &here, fill(1)).unwrap();
        let (gone, target) = (fence(&lost), buffer(&lost, &[0; 64]));
        shim.fail("vkQueueSubmit", 0, 1, DEVICE_LOST);
        let op = QueueOp::Fill { target: span(&target, 0, 64), pattern: 1, pattern_length: 1 };
        lost.queue_submit(ANY, &Fence::default(), &gone, op).unwrap();
        assert_eq!(gone.wait(seconds(20)).unwrap_err().code(), Code::DataLoss);
        assert_eq!(here.wait(seconds(20)).unwrap_err().code(), Code::DataLoss);
        assert_eq!(read(&data), [7; 64], "what waited for lost work did not run");
        run(&other, fill(3));
        assert_eq!(read(&data), [3; 64]);
    });
}

#[test]
fn memory_that_runs_out_in_a_wait_is_no_loss() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let data = buffer(&device, &[0; 64]);
        let done = fence(&device);
        shim.stall(true);
        let op = QueueOp::Fill { target: span(&data, 0, 64), pattern: 5, pattern_length: 1 };
        device.queue_submit(ANY, &Fence::default(), &done, op).unwrap();
        let watched = told(&done);
        shim.fail(shim.timelines().wait(), 0, 3, OUT_OF_HOST_MEMORY);
        shim.stall(false);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while let Err(e) = done.wait(seconds(20)) {
            assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
            assert!(std::time::Instant::now() < end);
        }
        device.wait_idle(seconds(20)).unwrap();
        assert_eq!(read(&data), [5; 64]);
        drop(device);
        assert!(matches!(&watched.lock().unwrap()[..], [Ok(())]), "called back all the same");
    });
}

#[test]
fn a_device_that_hangs_ends_waits_with_a_reason() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("stall_limit", "1"), ("memory", "staged")]).unwrap();
        let executable = test_executable(&device);
        let data = words_buffer(&device, &[1; 64]);
        let done = fence(&device);
        shim.stall(true);
        let op = execution(&device, &executable, &data, CommandBufferMode::ONE_SHOT);
        device.queue_submit(ANY, &Fence::default(), &done, op).unwrap();
        let late = done.wait(Deadline::from_millis(50)).unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
        assert!(late.to_string().contains("'affine'"), "{late}");
        let mut bytes = [0; 256];
        let stalled = data.read(0, &mut bytes).unwrap_err();
        assert_eq!(stalled.code(), Code::DeadlineExceeded);
        for part in ["finished nothing for 1s", "'affine'", "stall_limit", &info.name] {
            assert!(stalled.to_string().contains(part), "'{part}' is missing from: {stalled}");
        }
        // Closing does not wait for ever either.
        drop((executable, data, done));
        drop(device);
        shim.stall(false);
        works(shim, info);
    });
}

/// What a worker does until it fails; `None` when it came to its end.
fn labour(device: &Arc<dyn Device>, worker: u8) -> Option<Status> {
    let affinity = QueueAffinity(1 << (u32::from(worker) % device.queue_count()));
    let mut last = Fence::default();
    for round in 0..400 {
        let outcome = (|| {
            let steps: Vec<Fence> =
                (0..3).map(|_| Ok(Fence::new(device.create_semaphore(0)?, 1))).collect::<Result<_>>()?;
            let data = device.queue_alloca(affinity, &last, &steps[0], &BufferParams::DEVICE, 4096)?;
            let target = span(&data, 0, 4096);
            let op = QueueOp::Fill { target, pattern: u64::from(worker), pattern_length: 1 };
            device.queue_submit(affinity, &steps[0], &steps[1], op)?;
            device.queue_submit(affinity, &steps[1], &steps[2], QueueOp::Dealloca { buffer: data })?;
            last = steps[2].clone();
            if round % 3 == 0 { last.wait(seconds(30)) } else { Ok(()) }
        })();
        if let Err(status) = outcome {
            return Some(status);
        }
    }
    None
}

#[test]
fn threads_under_load_all_hear_of_a_loss() {
    on_shim(|shim, info| {
        let timelines = shim.timelines();
        for (round, call) in
            ["vkQueueSubmit", timelines.wait(), timelines.look()].into_iter().cycle().take(15).enumerate()
        {
            let device = shim.open(info, &[("queues", "2")]).unwrap();
            shim.fail(call, round as u32 * 7, 1, DEVICE_LOST);
            let failures: Vec<Status> = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..3).map(|n| (n, device.clone())).collect();
                let workers: Vec<_> =
                    workers.into_iter().map(|(n, device)| scope.spawn(move || labour(&device, n))).collect();
                workers.into_iter().filter_map(|w| w.join().unwrap()).collect()
            });
            // On a fast device no thread may ever have to sleep in Vulkan.
            assert!(!failures.is_empty() || call == timelines.wait(), "{call} did not fail");
            for failure in &failures {
                // Which of the calls of all threads met it first is open; the failure is one.
                assert_failure(failure, &["ERROR_DEVICE_LOST", failures[0].message()]);
            }
            drop(device);
            assert_eq!(shim.live(), 0, "{call}, round {round}");
        }
    });
}

#[test]
fn a_thread_that_comes_before_the_story_is_told_hears_the_same() {
    on_shim(|shim, info| {
        shim.device_fault(true);
        let device = shim.open(info, &[("queues", "2")]).unwrap();
        let data = buffer(&device, &[0; 64]);
        let fill = || QueueOp::Fill { target: span(&data, 0, 64), pattern: 1, pattern_length: 1 };
        let (first, second, third) = (fence(&device), fence(&device), fence(&device));
        let (here, there) = (QueueAffinity(1), QueueAffinity(2));
        device.queue_submit(here, &Fence::default(), &first, fill()).unwrap();
        // The others are let in while it fails: they meet the failed batch, and the loss is not on record yet.
        for call in ["vkQueueSubmit", "vkGetDeviceFaultInfoEXT"] {
            shim.hang(call, true);
        }
        let before = shim.calls("vkQueueSubmit");
        shim.fail("vkQueueSubmit", 0, 1, DEVICE_LOST);
        let (ended, ends) = std::sync::mpsc::channel();
        let failures: Vec<Status> = std::thread::scope(|scope| {
            let flush = scope.spawn(|| device.queue_flush(here).and_then(|()| first.wait(seconds(20))));
            while shim.calls("vkQueueSubmit") == before {
                std::thread::yield_now();
            }
            let after = [(here, &second), (there, &third)].map(|(queue, signal)| {
                let (device, first, fill) = (&device, &first, &fill);
                let ended = ended.clone();
                scope.spawn(move || {
                    let submitted = device.queue_submit(queue, first, signal, fill());
                    let outcome = submitted.and_then(|()| signal.wait(seconds(20)));
                    ended.send(()).unwrap();
                    outcome
                })
            });
            for call in ["vkQueueSubmit", "vkGetDeviceFaultInfoEXT"] {
                // Time to come as far as they get.
                _ = ends.recv_timeout(std::time::Duration::from_millis(50));
                shim.hang(call, false);
            }
            std::iter::once(flush).chain(after).map(|t| t.join().unwrap().unwrap_err()).collect()
        });
        for failure in &failures {
            assert_failure(failure, &["ERROR_DEVICE_LOST", "an invented page fault", failures[0].message()]);
        }
        drop((data, device, first, second, third));
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn a_lost_device_whose_driver_hangs_does_not_take_the_program_along() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("stall_limit", "1")]).unwrap();
        let data = buffer(&device, &[0; 64]);
        let done = fence(&device);
        shim.hang("vkQueueWaitIdle", true);
        shim.fail("vkQueueSubmit", 0, 1, DEVICE_LOST);
        let op = QueueOp::Fill { target: span(&data, 0, 64), pattern: 1, pattern_length: 1 };
        device.queue_submit(ANY, &Fence::default(), &done, op).unwrap();
        assert_failure(&done.wait(seconds(20)).unwrap_err(), &["vkQueueSubmit"]);
        drop((device, data, done));
        shim.hang("vkQueueWaitIdle", false);
        works(shim, info);
    });
}

#[test]
fn a_wait_for_pipelines_ends_in_time_and_what_nobody_needs_is_not_built() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("compile_threads", "1")]).unwrap();
        shim.hang("vkCreateComputePipelines", true);
        let first = test_executable(&device);
        while shim.calls("vkCreateComputePipelines") == 0 {
            std::thread::yield_now();
        }
        // With other constants: kernels that are the same would be the first one's.
        let [dropped, second] =
            [8, 9].map(|constant| device.create_executable(desc(&kernels(), &[constant])).unwrap());
        let all: Vec<u32> = (0..first.functions().len() as u32).collect();
        assert_eq!(first.wait_built(&all, Deadline::Now).unwrap(), 0);
        let soon = Deadline::after(std::time::Duration::from_millis(5));
        assert_eq!(second.wait_built(&all, soon).unwrap(), 0);
        assert_eq!(second.wait_built(&[99], Deadline::Now).unwrap_err().code(), Code::OutOfRange);
        drop(dropped);
        shim.hang("vkCreateComputePipelines", false);
        for executable in [&second, &first] {
            assert_eq!(executable.wait_built(&all, seconds(60)).unwrap(), all.len());
        }
        drop(device);
        assert_eq!(shim.calls("vkCreateComputePipelines"), 2 * all.len() as u32);
        drop((first, second));
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn a_compiler_that_hangs_is_named() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("stall_limit", "1"), ("compile_threads", "1")]).unwrap();
        shim.hang("vkCreateComputePipelines", true);
        let executable = test_executable(&device);
        while shim.calls("vkCreateComputePipelines") == 0 {
            std::thread::yield_now();
        }
        let data = words_buffer(&device, &[1; 64]);
        let op = execution(&device, &executable, &data, CommandBufferMode::ONE_SHOT);
        let waited = executable.wait_built(&[0], Deadline::Never).unwrap_err();
        let submitted = device.queue_submit(ANY, &Fence::default(), &Fence::default(), op).unwrap_err();
        for e in [waited, submitted] {
            assert_eq!(e.code(), Code::DeadlineExceeded);
            assert!(e.to_string().contains("compiling kernel 'affine' for 1s"), "{e}");
        }
        shim.hang("vkCreateComputePipelines", false);
        // It goes on, and has a second for it each time: on a busy machine one may be too short.
        let done = fence(&device);
        let again = || execution(&device, &executable, &data, CommandBufferMode::ONE_SHOT);
        while let Err(e) = device.queue_submit(ANY, &Fence::default(), &done, again()) {
            assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
        }
        done.wait(seconds(20)).unwrap();
    });
}
