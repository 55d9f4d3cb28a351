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
#[cfg(feature = "text")]
#[path = "../examples/together.rs"]
mod together;

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

#[cfg(feature = "text")]
#[test]
fn texts_are_written_together_as_each_alone() {
    if common::device().is_none() {
        return;
    }
    let model = common::repo("compiler/tests/data/gguf/llama.gguf").display().to_string();
    // One more than there are places.
    let prompts = ["the then", "in the", "world", "hello the", "then in the"].map(str::to_owned);
    let all = together::write(&model, &prompts).unwrap();
    for (prompt, text) in prompts.iter().zip(&all) {
        let alone = together::write(&model, std::slice::from_ref(prompt)).unwrap();
        assert_eq!(alone, std::slice::from_ref(text), "{prompt}");
    }
    assert!(all.iter().any(|text| !text.is_empty()));
}
