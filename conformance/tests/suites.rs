//! A part of every suite on every device at hand, as `conformance run` does it: in several processes, with the expectations of
//! this repository. `conformance run` without `--shard` runs all of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeSet, fs, process::Command};

use halite_conformance::reports::{CaseReport, DeviceReport, RunReport};
use halite_hal::Options;
use halite_testing::drivers::registry;

/// Runs a part of all suites; fails with what the program says unless nothing is unexpected.
fn run(device: &str, part: &str, more: &[&str]) -> DeviceReport {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let flags =
        [format!("--device={device}"), format!("--shard={part}"), format!("--json={}", json.display())];
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
    // Not the pipelines that this user keeps.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command.arg("run").args(&flags).args(["--jobs=2", "--isolate"]).args(more);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{told}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?} ended with {}\n{told}{errors}", output.status);
    let report: RunReport = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    report.devices.into_iter().next().unwrap()
}

/// The suites that a report has cases of.
fn suites(report: &DeviceReport) -> BTreeSet<&str> {
    report.cases.iter().map(CaseReport::suite).collect()
}

#[test]
fn a_part_of_all_suites_on_the_cpu_devices() {
    for device in ["local-sync", "local-task"] {
        let report = run(device, "1/4", &[]);
        assert_eq!(suites(&report), ["hal", "modules", "vm"].into());
    }
}

/// Under the validation layer where it is installed; `HALITE_TEST_VALIDATION=off` is for devices whose driver is newer than
/// the layer. `HALITE_TEST_DEVICE` is explained in `corpus.rs`.
#[test]
fn a_part_of_all_suites_on_the_vulkan_device() {
    let wanted = std::env::var("HALITE_TEST_DEVICE").ok();
    if let Err(e) = halite_layers::open(&registry(&[]), "vulkan", &Options::new()) {
        assert!(wanted.is_none(), "the tests were to run on {wanted:?}: {e}");
        eprintln!("SKIPPED: no Vulkan device: {e}");
        return;
    }
    let parts = std::env::var("HALITE_TEST_VALIDATION").unwrap_or_else(|_| "sync".to_owned());
    let validate = format!("--validate={parts}");
    let more: &[&str] = if parts == "off" { &[] } else { &[&validate] };
    let report = run("vulkan", "1/80", more);
    let name = report.device.name.to_lowercase();
    let fits = wanted.as_ref().is_none_or(|wanted| name.contains(&wanted.to_lowercase()));
    assert!(fits, "the tests were to run on {wanted:?}, the device is '{name}'");
    // Without a corpus, there are so few modules that one in eighty may be none; all of them are run on CPU devices.
    let mut wanted = BTreeSet::from(["hal", "kernels", "models", "vm"]);
    wanted.extend(halite_conformance::corpus::shared().map(|_| "modules"));
    assert!(suites(&report).is_superset(&wanted), "{:?} of {wanted:?}", suites(&report));
    assert!(report.cases.len() > 350, "only {} cases", report.cases.len());
}
