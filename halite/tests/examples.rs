//! The programs in `examples` run on the first Vulkan device. Each checks its own results.

use crate::common;

#[path = "../examples/digits.rs"]
mod digits;
#[path = "../examples/feedback.rs"]
mod feedback;
#[path = "../examples/limits.rs"]
mod limits;
#[path = "../examples/threads.rs"]
mod threads;

#[test]
fn a_digit_is_read() {
    if common::device().is_some() {
        digits::main().unwrap();
    }
}

#[test]
fn results_are_fed_back_without_a_copy() {
    if common::device().is_some() {
        feedback::main().unwrap();
    }
}

#[test]
fn work_ends_at_its_limits() {
    if common::device().is_some() {
        limits::main().unwrap();
    }
}

#[test]
fn threads_share_sessions_and_devices() {
    if common::device().is_some() {
        threads::main().unwrap();
    }
}
