//! A process that forks while a device is open: the child is told that it cannot use it, and takes nothing from its parent.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use common::*;
use halite_hal::{Code, Device, Driver as _, Fence, Options, QueueOp};
use halite_vulkan::VulkanDriver;

/// How often a process with busy threads forks.
const FORKS: usize = 40;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

/// Runs `child` in a fork; what it gives, or what ended it, as `waitpid` tells.
fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs the closure and ends without returning to the caller. Other threads of this program may hold locks of the C
    // library's allocator, which puts them right in a child; locks of ours are what the test is about, and the alarm ends a child that waits.
    unsafe {
        let process = fork();
        assert!(process >= 0);
        if process == 0 {
            alarm(20);
            _exit(child());
        }
        let mut status = 0;
        assert_eq!(waitpid(process, &raw mut status, 0), process);
        status
    }
}

/// The first of the calls on a device that a child is not refused.
fn first_not_refused(device: &Arc<dyn Device>, done: &Fence) -> Option<usize> {
    let refused = [
        device.queue_submit(ANY, &Fence::default(), done, QueueOp::Barrier),
        device.allocate_buffer(&halite_hal::BufferParams::DEVICE, 64).map(drop),
        device.create_semaphore(0).map(drop),
        done.wait(seconds(5)),
        device.wait_idle(seconds(5)),
    ];
    let told = |error: &halite_hal::Status| {
        error.code() == Code::FailedPrecondition && error.message().contains("forked")
    };
    refused.iter().position(|result| !result.as_ref().is_err_and(told))
}

#[test]
fn a_fork_is_told_that_the_device_is_its_parents() {
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[1; 64]);
        let fill =
            |value: u64| QueueOp::Fill { target: span(&data, 0, 64), pattern: value, pattern_length: 1 };
        run(device, fill(2));
        let done = fence(device);
        let status = forked(|| {
            let wrong = first_not_refused(device, &done);
            // SAFETY: the child ends without dropping them again.
            unsafe { drop((std::ptr::read(device), std::ptr::read(&data))) };
            wrong.map_or(0, |place| place as i32 + 1)
        });
        assert_eq!(status, 0, "the number of the first call that was not refused times 256, or the signal");
        // The parent goes on.
        run(device, fill(4));
        assert_eq!(read(&data), [4; 64]);
    });
}

/// Whether a device can be opened in a fork, and does its work there; or whether it is refused with the reason.
fn opens_own(path: &str, options: &Options) -> bool {
    let device = match VulkanDriver.open(path, options) {
        Ok(device) => device,
        Err(refused) => return refused.message().contains("swiftshader-forks"),
    };
    let data = buffer(&device, &[1; 64]);
    run(&device, QueueOp::Fill { target: span(&data, 0, 64), pattern: 3, pattern_length: 1 });
    read(&data) == [3; 64]
}

#[test]
fn a_fork_opens_devices_of_its_own() {
    // The validation layer is not what this is about.
    on_devices(&[&[("validation", "off")]], |device| {
        let data = buffer(device, &[1; 64]);
        let fill =
            |value: u64| QueueOp::Fill { target: span(&data, 0, 64), pattern: value, pattern_length: 1 };
        run(device, fill(2));
        let path = device.info().path.clone();
        let mut options = Options::from([("pipeline_cache".to_owned(), "off".to_owned())]);
        if let Ok(icd) = std::env::var("HALITE_TEST_ICD") {
            options.insert("icd".to_owned(), icd);
        }
        let child = || if opens_own(&path, &options) && opens_own(&path, &options) { 0 } else { 1 };
        assert_eq!(forked(child), 0, "256 where it was refused or wrong, or the signal (14: it waited)");
        // A fork of a fork, and a fork without the threads that the parent's device lets wait.
        assert_eq!(forked(|| i32::from(child() != 0 || forked(child) != 0)), 0);
        run(device, fill(4));
        assert_eq!(read(&data), [4; 64]);
    });
}

/// What threads were doing when their process forked stays half done in the child, with whatever they had locked.
#[test]
fn a_fork_while_other_threads_are_in_calls_does_not_wait_for_them() {
    on_devices(&[&[]], |device| {
        let over = AtomicBool::new(false);
        let work = || {
            while !over.load(Ordering::Relaxed) {
                let data = buffer(device, &[1; 64]);
                let target = span(&data, 0, 64);
                run(device, QueueOp::Fill { target, pattern: 7, pattern_length: 1 });
                assert_eq!(read(&data), [7; 64]);
            }
        };
        // The lock of the allocator is held for much of this one's time.
        let allocate = || {
            while !over.load(Ordering::Relaxed) {
                drop(buffer(device, &[1; 64]));
            }
        };
        std::thread::scope(|scope| {
            let busy = [scope.spawn(work), scope.spawn(allocate), scope.spawn(allocate)];
            let (data, done) = (buffer(device, &[1; 64]), fence(device));
            let child = || {
                let wrong = first_not_refused(device, &done);
                // What cannot be refused has nothing to tell, and nothing to do.
                device.trim();
                let held = device.memory_stats().reserved;
                // SAFETY: the child ends without dropping them again.
                unsafe { drop((std::ptr::read(device), std::ptr::read(&data))) };
                if held > 0 {
                    return 100;
                }
                wrong.map_or(0, |place| place as i32 + 1)
            };
            let wrong = (0..FORKS).map(|_| forked(child)).find(|end| *end != 0);
            over.store(true, Ordering::Relaxed);
            busy.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(
                wrong, None,
                "256 times the first call that was not refused, or the signal (14: it waited)"
            );
        });
    });
}
