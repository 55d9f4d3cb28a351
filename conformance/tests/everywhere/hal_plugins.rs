//! The device suite over the null driver in a library. The sample driver in C is tested in `sample_c.rs`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::BTreeSet,
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    path::PathBuf,
    time::Duration,
};

use halite_conformance::suites::{Runner, Verdict, hal};
use halite_hal::Options;
use halite_testing::drivers::{opener, registry};

/// Runs the suite; returns the areas that were skipped.
fn run(library: PathBuf, driver: &str) -> BTreeSet<String> {
    let registry = registry(&[library]);
    let entry = registry.entries().iter().find(|e| e.name() == driver).unwrap();
    assert!(entry.source().is_some(), "'{driver}' is not the library's");
    let runner = Runner::new(opener(registry, driver, Options::new()), Duration::from_secs(110));
    let summary = runner.run(&hal::cases(1, 10), |_| ()).unwrap();
    let failures: Vec<_> = summary.failures().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let skipped = summary.reports.iter().filter(|r| matches!(r.verdict, Verdict::Skip(_)));
    skipped.map(|r| r.case.split('.').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn null_driver_in_a_library() {
    let here = std::env::current_exe().unwrap();
    let library = here.parent().unwrap().join(format!("{DLL_PREFIX}halite_driver_null{DLL_SUFFIX}"));
    assert_eq!(run(library, "null"), ["dispatch", "profile", "queue", "shared"].map(str::to_owned).into());
}
