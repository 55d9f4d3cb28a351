//! A part of every suite on every device at hand, as `conformance run` does it: in several processes, with the expectations of
//! this repository. `conformance run` without `--shard` and `--case` runs all of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use halite_conformance::reports::{CaseReport, DeviceReport, RunReport, Status};
use halite_hal::Options;
use halite_testing::{Part, drivers::registry};

/// The program with its command `run`.
fn conformance(device: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
    // Not the pipelines that this user keeps.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command.arg("run").arg(format!("--device={device}"));
    command
}

/// Runs cases that flags name; fails with what the program says unless nothing is unexpected.
fn run(device: &str, flags: &[String]) -> DeviceReport {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let mut command = conformance(device);
    command.args(["--jobs=2", "--isolate"]).arg(format!("--json={}", json.display())).args(flags);
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

/// Names of all cases for a device.
fn names(device: &str) -> Vec<String> {
    let output = conformance(device).arg("--list").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The kernels that a case is of, whatever their types and the sizes of their tiles: `matmul tile x x` of
/// `kernels.matmul.f32.tile64x64x16:m=1`. `None` for cases of other suites.
fn family(name: &str) -> Option<String> {
    let variant = name.strip_prefix("kernels.")?.split(':').next()?;
    let mut parts = variant.split('.');
    let (operation, _) = (parts.next()?, parts.next());
    let kind: String = parts.collect::<Vec<_>>().join(".").replace(|c: char| c.is_ascii_digit(), " ");
    Some(format!("{operation} {}", kind.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// A case of each family of kernels, and every 40th of all others. Where drivers share the work, a part of every other family: the
/// program `kernels` has a plan of each template.
fn sample(names: &[String], part: Part) -> BTreeSet<&str> {
    let mut families: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let (kernels, others): (Vec<&String>, Vec<_>) = names.iter().partition(|name| family(name).is_some());
    for name in kernels {
        families.entry(family(name).unwrap()).or_default().push(name);
    }
    assert!(families.len() > 200, "{:?}", families.keys());
    // Neither the first nor the last sample of an operation, which are the smallest.
    let of_each = families.values().map(|cases| cases[cases.len() / 2]);
    let others = others.into_iter().step_by(40).map(String::as_str);
    let step = if part == Part::WHOLE { 1 } else { 2 };
    part.of(of_each.step_by(step)).chain(part.of(others)).collect()
}

#[test]
fn a_part_of_all_suites_on_the_cpu_devices() {
    for device in ["local-sync", "local-task"] {
        let report = run(device, &["--shard=1/4".to_owned()]);
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
    let validate = if parts == "off" { Vec::new() } else { vec![format!("--validate={parts}")] };
    let names = names("vulkan");
    let part = Part::wanted();
    let cases = sample(&names, part).into_iter().map(|name| format!("--case={name}"));
    holds(
        &run("vulkan", &validate.iter().cloned().chain(cases).collect::<Vec<_>>()),
        wanted.as_ref(),
        if part == Part::WHOLE { 200 } else { 100 / part.count() },
    );
    if std::env::var_os("HALITE_TEST_THOROUGH").is_some() {
        let part = "--shard=1/160".to_owned();
        holds(&run("vulkan", &[validate, vec![part]].concat()), wanted.as_ref(), 175);
    }
}

/// A report is of the device that was wanted, of all suites, and of more cases than so many.
fn holds(report: &DeviceReport, device: Option<&String>, least: usize) {
    let name = report.device.name.to_lowercase();
    let fits = device.is_none_or(|wanted| name.contains(&wanted.to_lowercase()));
    assert!(fits, "the tests were to run on {device:?}, the device is '{name}'");
    // Without a corpus, there are so few modules that one in eighty may be none; all of them are run on CPU devices.
    let mut wanted = BTreeSet::from(["hal", "kernels", "models", "vm"]);
    wanted.extend(halite_conformance::corpus::shared().map(|_| "modules"));
    assert!(suites(report).is_superset(&wanted), "{:?} of {wanted:?}", suites(report));
    assert!(report.cases.len() > least, "only {} cases", report.cases.len());
    let passed = report.cases.iter().filter(|case| matches!(case.status, Status::Pass)).count();
    assert!(passed * 3 > report.cases.len(), "only {passed} of {} pass", report.cases.len());
}
