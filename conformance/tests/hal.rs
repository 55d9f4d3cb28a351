//! The device suite on every device at hand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{sync::Arc, time::Duration};

use halite_conformance::suites::{Runner, Summary, hal};
use halite_hal::{Device, Options, Result};
use halite_testing::drivers::{Opener, opener, registry};

const LIMIT: Duration = Duration::from_secs(110);

fn run(opener: Opener) -> Summary {
    let summary = Runner::new(opener, LIMIT).run(&hal::cases(1, 10), |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    summary
}

fn areas_skipped(summary: &Summary) -> Vec<&str> {
    let skipped = summary.reports.iter().filter(|r| r.to_string().starts_with("skip"));
    let mut areas: Vec<&str> = skipped.filter_map(|r| r.case.split(['.', ':']).nth(1)).collect();
    areas.dedup();
    areas
}

#[test]
fn null() {
    let summary = run(opener(registry(&[]), "null", Options::new()));
    // It executes nothing, has one queue, and gives no memory to others; everything else is really run.
    assert_eq!(areas_skipped(&summary), ["dispatch", "queue", "profile", "shared"]);
}

#[test]
fn local_sync() {
    run(opener(registry(&[]), "local-sync", Options::new()));
}

#[test]
fn local_task() {
    run(opener(registry(&[]), "local-task", Options::new()));
}

/// Under the validation layer where it is installed; `HALITE_TEST_VALIDATION=off` is for devices whose driver is newer
/// than the layer. `HALITE_TEST_DEVICE` is explained in `corpus.rs`.
#[test]
fn vulkan() {
    let validation = std::env::var("HALITE_TEST_VALIDATION").unwrap_or_else(|_| "sync".to_owned());
    let options = Options::from([("validation".to_owned(), validation)]);
    let opener = opener(registry(&[]), "vulkan?pipeline_cache=off", options);
    let wanted = std::env::var("HALITE_TEST_DEVICE").ok();
    let opened: Result<Arc<dyn Device>> = opener();
    match opened {
        Ok(device) => {
            let name = device.info().name.to_lowercase();
            let fits = wanted.as_ref().is_none_or(|w| name.contains(&w.to_lowercase()));
            assert!(fits, "the tests were to run on {wanted:?}, the device is '{name}'");
        }
        Err(e) => {
            assert!(wanted.is_none(), "the tests were to run on {wanted:?}: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            return;
        }
    }
    let summary = run(opener);
    let skipped = areas_skipped(&summary);
    assert!(skipped.iter().all(|area| ["memory", "queue", "shared"].contains(area)), "skipped: {skipped:?}");
    assert_eq!(halite_vulkan::validation_message_count(), 0, "validation messages");
}
