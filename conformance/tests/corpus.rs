//! The shared corpus on the Vulkan device that the environment selects: every program passes, or is named in
//! `conformance/expectations/` with a reason. No recording lacks a barrier.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{path::Path, sync::Arc};

use halite_conformance::{corpus, expectations::Expectations, replay};
use halite_hal::{Device, DriverRegistry, Options};

/// The device to test. Without one the tests are skipped, unless `HALITE_TEST_DEVICE` names one: `cargo xtask test`
/// sets it, so that a driver that was installed and then not found is a failure.
fn device() -> Option<Arc<dyn Device>> {
    halite_vulkan::link();
    let wanted = std::env::var("HALITE_TEST_DEVICE").ok();
    let registry = DriverRegistry::with_static_drivers();
    match halite_layers::open(&registry, "vulkan?hazards=on&pipeline_cache=off", &Options::new()) {
        Ok(device) => {
            let name = device.info().name.to_lowercase();
            let fits = wanted.as_ref().is_none_or(|w| name.contains(&w.to_lowercase()));
            assert!(fits, "the tests were to run on {wanted:?}, the device is '{name}'");
            Some(device)
        }
        Err(e) => {
            assert!(wanted.is_none(), "the tests were to run on {wanted:?}: {e}");
            eprintln!("SKIPPED: no Vulkan device: {e}");
            None
        }
    }
}

fn replay_set(set: &str) {
    let Some(root) = corpus::shared() else {
        eprintln!("SKIPPED: the shared corpus is not beside this checkout");
        return;
    };
    let Some(device) = device() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("expectations");
    let expectations = Expectations::for_device(&folder, &device.info().name).unwrap();
    let programs = corpus::programs(&root, set).unwrap();
    assert!(!programs.is_empty(), "the corpus has no set '{set}'");
    let complaints: Vec<String> = programs
        .iter()
        .filter_map(|program| {
            let verdicts = replay::run(&root, program, &device);
            expectations.complaint(&program.name, &verdicts).map(|c| format!("{}: {c}", program.name))
        })
        .collect();
    assert!(complaints.is_empty(), "on {}:\n{}", device.info().name, complaints.join("\n"));
}

#[test]
fn small_programs() {
    replay_set("small");
}

#[test]
fn models() {
    replay_set("models");
}

#[test]
fn scalar_operations_of_the_vm() {
    replay_set("vm_ops");
}

/// Damaged modules end in an error or run; nothing panics, hangs or kills the process.
#[test]
fn malformed_modules() {
    let Some(root) = corpus::shared() else {
        eprintln!("SKIPPED: the shared corpus is not beside this checkout");
        return;
    };
    let Some(device) = device() else { return };
    let programs = corpus::programs(&root, "bad").unwrap();
    assert!(programs.len() > 30, "{} malformed modules", programs.len());
    let verdicts = programs.iter().flat_map(|p| replay::run(&root, p, &device));
    let refused = verdicts.filter(|v| matches!(v, replay::Verdict::Error(_))).count();
    assert!(refused > programs.len() / 2, "only {refused} of {} were refused", programs.len());
}
