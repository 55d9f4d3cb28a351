//! A sample of the kernel library's cases on the Vulkan device at hand: every fortieth, so that all operations are among
//! them. `conformance kernels` runs all.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use halite_conformance::{
    drivers::{opener, registry},
    suites::{Runner, Verdict, kernels},
};
use halite_hal::Options;

const LIMIT: Duration = Duration::from_secs(110);

#[test]
fn a_sample_of_all_kernels_agrees_with_the_twins() {
    let opener = opener(registry(&[]), "vulkan", Options::new());
    if let Err(e) = opener() {
        assert!(std::env::var("HALITE_TEST_DEVICE").is_err(), "the tests were to run on a device: {e}");
        eprintln!("SKIPPED: no Vulkan device: {e}");
        return;
    }
    let cases: Vec<_> = kernels::cases(1, "").into_iter().step_by(40).collect();
    let summary = Runner::new(opener, LIMIT).run(&cases, |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let passed = summary.reports.iter().filter(|r| r.verdict == Verdict::Pass).count();
    assert!(passed > cases.len() / 4, "only {passed} of {} cases could be run", cases.len());
}
