//! A process that forks while a device is open: the child is told where it cannot use it, and waits for no thread of its parent.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{sync::Arc, time::Duration};

use halite_hal::{
    BufferParams, Code, Deadline, Device, Driver as _, Fence, Options, QueueAffinity, QueueOp, Result,
};
use halite_local::LocalDriver;

const ANY: QueueAffinity = QueueAffinity::ANY;

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

/// Runs `child` in a fork; what it gives times 256, or the signal that ended it.
fn forked(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child runs the closure and ends without returning to the caller; the alarm ends one that waits.
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

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn works(device: &Arc<dyn Device>) -> Result<()> {
    let done = Fence::new(device.create_semaphore(0)?, 1);
    device.queue_submit(ANY, &Fence::default(), &done, QueueOp::Barrier)?;
    done.wait(soon())?;
    device.wait_idle(soon())
}

#[test]
fn a_fork_is_told_that_the_threads_are_its_parents() {
    let device = LocalDriver::TASK.open("", &Options::new()).unwrap();
    works(&device).unwrap();
    let later = Fence::new(device.create_semaphore(0).unwrap(), 1);
    let child = || {
        let refused = [
            device.check_process(),
            device.queue_submit(ANY, &Fence::default(), &later, QueueOp::Barrier),
            device.allocate_buffer(&BufferParams::DEVICE, 64).map(drop),
            device.create_semaphore(0).map(drop),
            later.wait(soon()),
            device.wait_idle(soon()),
        ];
        device.trim();
        // SAFETY: the child ends without dropping it again.
        unsafe { drop(std::ptr::read(&device)) };
        let own = LocalDriver::TASK.open("", &Options::new()).and_then(|own| works(&own));
        let told = |r: &Result<()>| {
            r.as_ref().is_err_and(|e| e.code() == Code::FailedPrecondition && e.message().contains("forked"))
        };
        i32::from(!refused.iter().all(told)) + 2 * i32::from(own.is_err())
    };
    assert_eq!(forked(child), 0, "256: it was not refused, 512: it has no device of its own, or the signal");
    works(&device).unwrap();
}

#[test]
fn a_fork_uses_a_device_without_threads() {
    let device = LocalDriver::SYNC.open("", &Options::new()).unwrap();
    assert_eq!(forked(|| i32::from(works(&device).is_err())), 0);
}
