//! A process that forks while a device is open: the child is told that it cannot use it, and takes nothing from its parent.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::*;
use halite_hal::{Code, Fence, QueueOp};

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

#[test]
fn a_fork_is_told_that_the_device_is_its_parents() {
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[1; 64]);
        let fill =
            |value: u64| QueueOp::Fill { target: span(&data, 0, 64), pattern: value, pattern_length: 1 };
        run(device, fill(2));
        let done = fence(device);
        let status = forked(|| {
            let refused = [
                device.queue_submit(ANY, &Fence::default(), &done, fill(3)),
                device.allocate_buffer(&halite_hal::BufferParams::DEVICE, 64).map(drop),
                device.create_semaphore(0).map(drop),
                done.wait(seconds(5)),
                device.wait_idle(seconds(5)),
            ];
            let told = |error: &halite_hal::Status| {
                error.code() == Code::FailedPrecondition && error.message().contains("forked")
            };
            let wrong = refused.iter().position(|result| !result.as_ref().is_err_and(told));
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
